//! What services accept, as rules: one file per wire, named after it. A request body comes in, what
//! is wrong with it goes out as sentences. The rules are those of the strictest services that speak
//! the wire, so a body that passes is refused by none.

pub mod openai_completions;

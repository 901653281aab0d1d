//! History as a wire sends it: pure functions between the transcript of a request and the body
//! that a protocol makes of it (`kernel.md` M9–M12, M18; `providers.md` §1.3, §6).
//!
//! In comes what a session, an import or a plugin holds, in whatever state; out comes a list that
//! any service accepts: calls and results paired, ids unique, nothing of another model that only
//! that model understands. The stored messages are never changed. Nothing here fails.
//!
//! [`replay`] and [`render`] are for the prompt, [`prepare`] is for the messages, [`Preparer`]
//! prepares a conversation that grows, [`repairs`] tells what had to be mended, [`ContextEstimate`]
//! counts.

mod named;
mod prompt;

mod repair;

mod edit;
mod ids;
mod image;
mod matching;
mod open;

mod damage;

mod estimate;

pub use damage::{Damage, Repair};
pub use estimate::{ContextEstimate, message_chars};
pub use ids::{AnyId, IdRule, sanitize_id, short_hash, tool_name};
pub use prompt::{patch_tools, render, render_update, replay};
pub use repair::{NO_RESULT, Preparer, prepare, repairs};

#[cfg(test)]
mod tests;

//! The Rhai host: scripts as sources of tools, hooks, commands and providers, and the scripts that
//! ship with pliant.
//!
//! [`load_extension`] compiles a script, runs its top level, which registers things, and answers a
//! [`Generation`](pliant_kernel::registry::Generation) like every other source. The kernel then
//! invokes contributions with JSON; a script thread turns it into values, runs the closure and turns
//! the answer back. What a script can call is in `api`, one file per group of functions.
//!
//! Scripts are trusted like plugins, but bounded: every size, depth and time has a limit, an endless
//! loop ends when nobody waits for it any more, and no failure is more than an error value.
#![warn(missing_docs)]

mod api;
mod contributed;
mod contribution;
mod convert;
mod error;
mod hint;
mod script;
mod shell;
mod shipped;
mod shipped_texts;

mod engine;
mod modules;
mod program;
mod reference;
mod repl;
mod threads;
mod timers;

mod call;
mod extension;
mod loader;

pub use extension::{Limits, load_extension};
pub use loader::{FindScripts, Scripts, WantsShipped};
pub use reference::{Callable, callables, definitions, reference};
pub use repl::{EVAL, Repl};
pub use script::Script;
pub use shipped::{Shipped, shipped_extensions};
pub use shipped_texts::shipped_texts;

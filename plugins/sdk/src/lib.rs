//! For authors of pliant plugins, and for the kernel: the types both sides share, and the macro
//! that turns a crate into a loadable plugin. No I/O and no async runtime: what a plugin needs from
//! outside it asks of [`Host`], and every effect passes the kernel.
//!
//! # A complete small plugin
//!
//! `Cargo.toml`: `crate-type = ["cdylib"]`, and `pliant-sdk`, `schemars`, `serde` as dependencies.
//!
//! ```
//! use pliant_sdk::{Error, Host, Init, Plugin, Tool, ToolCtx, ToolResult, ToolSpec};
//! use pliant_sdk::hook::{ToolCallAnswer, ToolCallEvent};
//!
//! /// The arguments. Doc comments become the descriptions that the model sees.
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct GreetInput {
//!     /// Who to greet.
//!     name: String,
//! }
//!
//! struct Greet;
//!
//! impl Tool for Greet {
//!     type Input = GreetInput;
//!
//!     fn spec(&self) -> ToolSpec {
//!         ToolSpec::new("greet", "Greet somebody by name.")
//!     }
//!
//!     async fn execute(&self, input: GreetInput, _ctx: ToolCtx) -> Result<ToolResult, Error> {
//!         Ok(ToolResult::text(format!("Hello, {}!", input.name)))
//!     }
//! }
//!
//! fn create(_host: Host, _init: Init) -> Result<Plugin, Error> {
//!     Ok(Plugin::new().tool(Greet).on(|call: ToolCallEvent, _ctx| async move {
//!         let forbidden = call.input.get("name").is_some_and(|name| name == "nobody");
//!         Ok(if forbidden { ToolCallAnswer::block("Nobody is not to be greeted.") } else { ToolCallAnswer::default() })
//!     }))
//! }
//!
//! pliant_sdk::export! {
//!     name: "hello",
//!     provides: { tool "greet", hook "tool_call" },
//!     create: create,
//! }
//! ```
//!
//! A failure is an [`Error`] with a sentence in it; a panic is caught at the border and becomes one.
//! Futures are polled by the kernel; waiting is for [`Host`]'s futures, blocking work for
//! [`Host::blocking`]. The [`guide`] goes on from here: what else there is to contribute, and to ask for;
//! [`testing`] is for the plugin's own tests.
#![deny(missing_docs)]

pub mod error;
pub mod message;
pub mod model;
pub mod stream;

pub mod draft;
pub mod event;
pub mod hook;

pub mod autocomplete;
pub mod command;
pub mod flag;
pub mod history;
pub mod late;
pub mod loadout;
pub mod mcp;
pub mod provider;
pub mod shortcut;
pub mod tool;
pub mod virtual_model;

pub mod display;
pub mod view;

pub mod host;
pub mod plugin;
pub mod session;
pub mod state;
pub mod ui;

#[doc(hidden)]
pub mod crossing;
#[doc(hidden)]
pub mod export;
mod guard;
mod lenient;

pub mod guide;
pub mod testing;

pub mod partial_json;
pub mod sse;
pub mod wire;

pub mod truncation;
pub mod utf8;

pub use draft::Draft;
pub use error::Error;
pub use event::Event;
pub use export::Init;
pub use guard::catch;
pub use host::Host;
pub use message::Message;
pub use model::Model;
pub use plugin::Plugin;
pub use stream::StreamEvent;
pub use tool::{Tool, ToolCtx, ToolResult, ToolSpec};

//! The session that a handler, tool or command runs in, with types: what it is, and what may be asked
//! of it (`extensions.md` §5). A file for each group of questions.

mod bus;
mod messages;
mod model;
mod places;
mod prompt;
mod read;
mod reload;
mod state;
mod tools;

use crate::host::Host;

pub use messages::{
    AppendEntry, MessageDraft, MessageOptions, SendAs, SendMessage, SendUserMessage,
    UserMessageOptions,
};
pub use model::{ContextUsage, ScopedModel};
pub use places::{NavigateOptions, Navigated};
pub use read::{
    ProjectionSource, SessionEntry, SessionInfo, SessionNode, SessionNodes, SessionProjection,
};
pub use tools::{CallPiece, CalledTool, ToolInfo};

/// The session behind a call. It holds nothing, so what it answers is of the moment.
#[derive(Debug, Clone, Copy)]
pub struct Session<'a> {
    host: &'a Host,
}

impl Host {
    /// The session that the call belongs to. Its methods answer `unsupported` where there is none.
    #[must_use]
    pub fn session(&self) -> Session<'_> {
        Session { host: self }
    }
}

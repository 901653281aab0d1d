//! What a handler, tool or command may ask of the session it runs in. `session` implements it; the
//! host services reach a session through nothing else.

use std::path::Path;
use std::sync::Arc;

use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::{BoxFuture, LogLevel};
use serde_json::Value;

/// The session behind a call.
pub trait Actions: Send + Sync {
    /// Working directory.
    fn cwd(&self) -> &Path;

    /// Environment of the model's shell commands: session id and file, provider, model, level
    /// (`interfaces.md` §4), as of now.
    fn environment(&self) -> Vec<(String, String)>;

    /// The front end's side.
    fn ui(&self) -> &dyn HostUi;

    /// Names of the services that [`Actions::ask`] answers.
    fn services(&self) -> Vec<&'static str>;

    /// Answers a service of the session; `unsupported` for a name it does not know, and a refusal for
    /// one that this call may not use (`extensions.md` §5.1).
    fn ask(self: Arc<Self>, service: &str, ask: Ask) -> BoxFuture<'static, Result<Value, Error>>;
}

/// A request to a session.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Name of the source whose code asks.
    pub source: String,
    /// The call that the code runs in.
    pub scope: CallScope,
    /// What is asked.
    pub payload: Value,
}

/// What kind of call asks a session for something; what it may do follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallScope {
    /// A handler of an event.
    Handler,
    /// A tool call of the model, or one made by such a call.
    Tool {
        /// Id of the call.
        call_id: String,
    },
    /// A command of the user. Only commands may wait for the session or put another in its place: a
    /// handler that did would wait for the run that waits for it.
    Command,
}

/// A session and the kind of call that asks it.
#[derive(Clone)]
pub struct Asker {
    /// The session.
    pub session: Arc<dyn Actions>,
    /// The call.
    pub scope: CallScope,
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Asker").field(&self.scope).finish()
    }
}

/// What a front end shows for plugins. The defaults are those of a mode without a user interface.
pub trait HostUi: Send + Sync {
    /// Shows a line.
    ///
    /// # Errors
    /// `unavailable` where nobody is shown anything.
    fn notify(&self, message: &str, level: LogLevel) -> Result<(), Error> {
        let _ = (message, level);
        Err(unavailable("ui.notify"))
    }
}

/// The error of a dialog that this mode does not have.
#[must_use]
pub fn unavailable(service: &str) -> Error {
    Error::new(
        code::UNAVAILABLE,
        format!("{service} is not available in this mode"),
    )
}

/// No user interface.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoUi;

impl HostUi for NoUi {}

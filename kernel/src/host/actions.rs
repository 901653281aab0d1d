//! What a handler, tool or command may ask of the session it runs in. `session` implements it; the
//! host services reach a session through nothing else.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pliant_sdk::Error;
use pliant_sdk::host::{BoxFuture, ByteStream};
use pliant_sdk::session::CalledTool;
use pliant_sdk::ui::Dialog;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::ui::HostUi;

/// The session behind a call.
pub trait Actions: Send + Sync {
    /// Working directory.
    fn cwd(&self) -> &Path;

    /// Environment of the model's shell commands: session id and file, provider, model, level
    /// (`interfaces.md` §4), as of now.
    fn environment(&self) -> Vec<(String, String)>;

    /// The front end's side.
    fn ui(&self) -> &dyn HostUi;

    /// The user is asked something for it, until what is answered is dropped.
    fn asks_user(self: Arc<Self>, dialog: &Dialog) -> Box<dyn Send> {
        let _ = dialog;
        Box::new(())
    }

    /// Ends the dialogs that are open when another session takes the place of this one.
    fn leaving(&self) -> CancellationToken;

    /// Names of the services that [`Actions::ask`] answers.
    fn services(&self) -> Vec<&'static str>;

    /// Answers a service of the session; `unsupported` for a name it does not know, and a refusal for
    /// one that this call may not use (`extensions.md` §5.1).
    fn ask(self: Arc<Self>, service: &str, ask: Ask) -> BoxFuture<'static, Result<Value, Error>>;

    /// Opens a stream of the session, likewise.
    fn open(
        self: Arc<Self>,
        service: &str,
        ask: Ask,
    ) -> BoxFuture<'static, Result<ByteStream, Error>> {
        drop(ask);
        let error = Error::unsupported(&format!("the streaming service \"{service}\""));
        Box::pin(std::future::ready(Err(error)))
    }
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
#[derive(Clone)]
pub enum CallScope {
    /// A handler of an event.
    Handler,
    /// A handler of `input`.
    Input {
        /// How many such handlers the message came of, each of which sent one for the one it heard.
        depth: u32,
    },
    /// A tool call of the model, or one made by such a call.
    Tool {
        /// Id of the call.
        call_id: String,
        /// Makes calls inside it.
        calls: Arc<dyn ToolCalls>,
    },
    /// A command of the user. Only commands may wait for the session or put another in its place: a
    /// handler that did would wait for the run that waits for it.
    Command {
        /// Where the session that takes the place is noted; `None` for a command that the session waits
        /// for before it ends.
        successor: Option<Successor>,
    },
}

/// The session that took the place of a command's own: the command goes on there.
#[derive(Clone, Default)]
pub struct Successor(Arc<Mutex<Option<Arc<dyn Actions>>>>);

impl Successor {
    /// Notes it.
    pub fn set(&self, session: Arc<dyn Actions>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
    }

    /// It, if there is one.
    #[must_use]
    pub fn get(&self) -> Option<Arc<dyn Actions>> {
        let session = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        session.clone()
    }
}

impl std::fmt::Debug for CallScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Handler => f.write_str("Handler"),
            Self::Input { depth } => f.debug_tuple("Input").field(depth).finish(),
            Self::Tool { call_id, .. } => f.debug_tuple("Tool").field(call_id).finish(),
            Self::Command { .. } => f.write_str("Command"),
        }
    }
}

/// Calls of other tools that a running tool makes (`extensions.md` §5.4).
pub trait ToolCalls: Send + Sync {
    /// Makes a call.
    ///
    /// # Errors
    /// When the tool does not run any more.
    fn call(&self, name: &str, arguments: Value) -> Result<Box<dyn ToolCallMade>, Error>;
}

/// A call that was made. Dropping it aborts the call.
pub trait ToolCallMade: Send {
    /// Lets the call go on by itself and answers its id.
    fn leave(self: Box<Self>) -> String;

    /// Waits for the end.
    fn end(self: Box<Self>) -> BoxFuture<'static, CalledTool>;

    /// What it shows while it runs, and its end.
    fn watch(self: Box<Self>) -> ByteStream;
}

/// A session and the kind of call that asks it.
#[derive(Clone)]
pub struct Asker {
    /// The session.
    pub session: Arc<dyn Actions>,
    /// The call.
    pub scope: CallScope,
}

impl Asker {
    /// The session that answers now.
    #[must_use]
    pub fn current(&self) -> Arc<dyn Actions> {
        let successor = match &self.scope {
            CallScope::Command { successor } => successor.as_ref(),
            _ => None,
        };
        let successor = successor.and_then(Successor::get);
        successor.unwrap_or_else(|| Arc::clone(&self.session))
    }
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Asker").field(&self.scope).finish()
    }
}

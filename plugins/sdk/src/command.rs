//! Commands: `/name args`, typed by the user (`extensions.md` §4.4).

use std::future::Future;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::host::{Host, LogLevel};
use crate::plugin::CallCtx;
use crate::ui::Ui;

/// A command.
pub trait Command: Send + Sync + 'static {
    /// Name and description.
    fn spec(&self) -> CommandSpec;

    /// Runs it. `args` is everything after the first space, untrimmed.
    fn run(&self, args: String, ctx: CommandCtx) -> impl Future<Output = Result<(), Error>> + Send;

    /// Completions of the argument typed so far.
    fn complete(&self, prefix: &str) -> Vec<Completion> {
        let _ = prefix;
        Vec::new()
    }
}

/// A command as the registry keeps it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandSpec {
    /// Name without the slash.
    pub name: String,
    /// One line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl CommandSpec {
    /// A command with a one-line description.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: Some(description.into()),
        }
    }
}

/// One completion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Completion {
    /// What is inserted.
    pub value: String,
    /// What is shown.
    pub label: String,
    /// More about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The running command.
#[derive(Debug, Clone)]
pub struct CommandCtx {
    call: CallCtx,
}

impl CommandCtx {
    pub(crate) fn new(call: CallCtx) -> Self {
        Self { call }
    }

    /// The services, bound to this call.
    #[must_use]
    pub fn host(&self) -> &Host {
        self.call.host()
    }

    /// The user: displays and dialogs.
    #[must_use]
    pub fn ui(&self) -> Ui<'_> {
        self.host().ui()
    }

    /// Shows the user a line (`ui.notify`).
    ///
    /// # Errors
    /// `unavailable` where nobody is shown anything.
    pub async fn notify(&self, message: &str, level: LogLevel) -> Result<(), Error> {
        let payload = serde_json::json!({"message": message, "level": level});
        self.host()
            .call_bytes("ui.notify", payload.to_string().into_bytes())
            .await
            .map(drop)
    }
}

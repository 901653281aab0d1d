//! The user runs a command (`extensions.md` §3.5).

use serde::{Deserialize, Serialize};

use super::Hook;

/// The user runs a command line (`user_bash`). An error of the handler stops the command.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UserBashEvent {
    /// The command line, without a configured prefix.
    pub command: String,
    /// No model is to see it.
    pub exclude_from_context: bool,
    /// Where it would run.
    pub cwd: String,
}

impl Hook for UserBashEvent {
    const EVENT: &'static str = "user_bash";
    /// `None` lets the command run.
    type Answer = Option<UserBashAnswer>;
}

/// What a `user_bash` handler gives in place of running the command.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct UserBashAnswer {
    /// What came of it.
    pub result: UserBashResult,
}

/// What came of a command.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserBashResult {
    /// What it printed.
    pub output: String,
    /// Its exit code, if it had one.
    pub exit_code: Option<i64>,
    /// The user stopped it.
    pub cancelled: bool,
    /// The output was cut.
    pub truncated: bool,
    /// Where the whole output is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
}

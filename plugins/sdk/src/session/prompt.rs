//! The prompt that requests are made with.

use serde_json::{Map, Value};

use super::Session;
use crate::error::Error;

impl Session<'_> {
    /// The system prompt as one text, as the handlers of the active run left it so far.
    ///
    /// # Errors
    /// `unsupported` outside a session.
    pub async fn system_prompt(&self) -> Result<String, Error> {
        self.host.call("session.system_prompt", &Value::Null).await
    }

    /// What the system prompt is built from (`extensions.md` §3.6). For commands only: handlers of
    /// `before_agent_start` are given it, and may edit it.
    ///
    /// # Errors
    /// `unavailable` in a handler or tool.
    pub async fn system_prompt_options(&self) -> Result<Map<String, Value>, Error> {
        let service = "session.system_prompt_options";
        self.host.call(service, &Value::Null).await
    }

    /// Whether messages wait for the active run or the next one.
    ///
    /// # Errors
    /// `unsupported` outside a session.
    pub async fn has_pending_messages(&self) -> Result<bool, Error> {
        let service = "session.has_pending_messages";
        self.host.call(service, &Value::Null).await
    }
}

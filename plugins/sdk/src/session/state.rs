//! How the session stands, and stopping it.

use serde_json::Value;

use super::Session;
use crate::error::Error;

impl Session<'_> {
    /// Whether no run is active and none is being prepared.
    ///
    /// # Errors
    /// `unsupported` outside a session.
    pub async fn is_idle(&self) -> Result<bool, Error> {
        self.host.call("session.is_idle", &Value::Null).await
    }

    /// Asks what is running to stop. Does not wait for it: the call may be part of it.
    ///
    /// # Errors
    /// `unsupported` outside a session.
    pub async fn abort(&self) -> Result<(), Error> {
        self.host.call("session.abort", &Value::Null).await
    }

    /// Returns when the session is idle. For commands only.
    ///
    /// # Errors
    /// `unavailable` in a handler or tool.
    pub async fn wait_idle(&self) -> Result<(), Error> {
        self.host.call("session.wait_idle", &Value::Null).await
    }
}

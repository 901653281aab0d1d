//! What extensions say to each other.

use serde::Serialize;
use serde_json::{Value, json};

use super::Session;
use crate::error::Error;

impl Session<'_> {
    /// Says something on a channel and returns when everybody who listens has heard
    /// ([`crate::Plugin::on_bus`]). Failures of theirs are reported as theirs.
    ///
    /// # Errors
    /// `unsupported` outside a session, `invalid` without a channel.
    pub async fn emit(&self, channel: &str, data: &impl Serialize) -> Result<(), Error> {
        let said = json!({"channel": channel, "data": serde_json::to_value(data)?});
        self.host.call::<Value>("bus.emit", &said).await.map(drop)
    }
}

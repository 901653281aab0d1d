//! The session's name (S5).

use pliant_sdk::Event;
use serde_json::json;

use super::Session;
use crate::registry::HookPoint;
use crate::tree::TreeError;

impl Session {
    /// The session's name, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        self.0.tree().name().map(str::to_owned)
    }

    /// Names the session, on one line; an empty text takes the name away.
    ///
    /// # Errors
    /// A failed write; the name is then as before.
    pub async fn set_name(&self, name: &str) -> Result<(), TreeError> {
        self.0.tree().set_name(name)?;
        let name = self.name();
        let mut event = json!({"type": "session_info_changed"});
        if let Some(name) = &name {
            event["name"] = json!(name);
        }
        self.tell(HookPoint::SessionInfoChanged, &event).await;
        let event = Event::SessionInfoChanged { name };
        self.0.subscribers.publish(event).await;
        Ok(())
    }
}

//! The session's name (S5).

use pliant_sdk::Event;
use serde_json::json;

use super::Session;
use crate::registry::HookPoint;
use crate::tree::{TreeError, one_line};

impl Session {
    /// The session's name, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        self.0.tree().name().map(str::to_owned)
    }

    /// Names the session, on one line; an empty text takes the name away. Nothing happens when that is
    /// its name already, so a handler may answer the change with one of its own.
    ///
    /// # Errors
    /// A failed write; the name is then as before.
    pub async fn set_name(&self, name: &str) -> Result<(), TreeError> {
        let name = {
            let mut tree = self.0.tree();
            if tree.name().unwrap_or_default() == one_line(name) {
                return Ok(());
            }
            tree.set_name(name)?;
            tree.name().map(str::to_owned)
        };
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

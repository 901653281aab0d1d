//! What is changed while the program runs: it holds at once, in every session of this program, and is
//! written to the user's file for later ones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pliant_sdk::Error;
use serde_json::Value;

use super::{QueueMode, Settings, write_settings};

/// Keys that were changed since the start.
pub(super) type Changed = Arc<Mutex<HashMap<String, Value>>>;

pub(super) fn lock(changed: &Changed) -> MutexGuard<'_, HashMap<String, Value>> {
    changed.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Settings {
    /// A value by its dotted key, as it was changed last; null when unset.
    #[must_use]
    pub fn current(&self, key: &str) -> Value {
        let changed = lock(&self.changed);
        changed.get(key).unwrap_or_else(|| self.get(key)).clone()
    }

    /// Whether something is on, as it was changed last.
    #[must_use]
    pub fn is_on(&self, key: &str) -> Option<bool> {
        self.current(key).as_bool()
    }

    /// How many messages the queue of that key delivers at a time, as it was changed last.
    #[must_use]
    pub fn queue_mode(&self, key: &str) -> QueueMode {
        let mode = serde_json::from_value(self.current(key));
        mode.unwrap_or_default()
    }

    /// Changes keys: from now on, and in the user's file if there is one. Blocks while the file is
    /// written.
    ///
    /// # Errors
    /// When the file cannot be changed; the changes hold in this program all the same.
    pub fn change(&self, changes: &[(&str, Value)]) -> Result<(), Error> {
        {
            let mut changed = lock(&self.changed);
            changed.extend(
                changes
                    .iter()
                    .map(|(key, value)| ((*key).to_owned(), value.clone())),
            );
        }
        match self.path() {
            Some(path) => write_settings(path, changes),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_holds_at_once_and_for_clones_too() {
        let settings =
            Settings::from_value(json!({"retry": {"enabled": true}, "steeringMode": "all"}));
        let clone = settings.clone();
        settings.change(&[("retry.enabled", json!(false))]).unwrap();
        assert_eq!(clone.is_on("retry.enabled"), Some(false));
        assert_eq!(clone.get("retry.enabled"), &json!(true));
        assert_eq!(clone.queue_mode("steeringMode"), QueueMode::All);
        assert_eq!(clone.queue_mode("followUpMode"), QueueMode::OneAtATime);
    }
}

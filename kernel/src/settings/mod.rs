//! Settings: as written in the file, and as used. Changing the file is `write`'s.
//!
//! `settings.json` of the user's directory is read once at start; a file that does not parse counts
//! as empty, is reported, and is never overwritten (`interfaces.md` §5).

mod change;
mod write;

use std::path::{Path, PathBuf};
use std::time::Duration;

use pliant_sdk::message::ThinkingLevel;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::textfile;

pub use write::write_settings;

pub(crate) use change::queue_key;

use change::Changed;

/// The settings in force. Unknown keys stay reachable through [`Settings::get`].
#[derive(Debug, Clone, Default)]
pub struct Settings {
    written: Value,
    used: Used,
    /// The user's file; `None` for settings as given.
    path: Option<PathBuf>,
    changed: Changed,
}

/// The keys the kernel itself uses, with their defaults. A value of the wrong type reads as unset.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Used {
    /// Provider of a new session.
    #[serde(deserialize_with = "or_unset")]
    pub default_provider: Option<String>,
    /// Model of a new session.
    #[serde(deserialize_with = "or_unset")]
    pub default_model: Option<String>,
    /// Thinking level of a new session.
    #[serde(deserialize_with = "or_unset")]
    pub default_thinking_level: Option<ThinkingLevel>,
    /// Models to choose from and to cycle through, as patterns.
    #[serde(deserialize_with = "or_unset")]
    pub enabled_models: Option<Vec<String>>,
    /// Tools active at the start.
    #[serde(deserialize_with = "or_unset")]
    pub default_tools: Option<Vec<String>>,
    /// Shell of commands.
    #[serde(deserialize_with = "or_unset")]
    pub shell_path: Option<String>,
    /// A line put before every shell command.
    #[serde(deserialize_with = "or_unset")]
    pub shell_command_prefix: Option<String>,
    /// Where sessions are stored.
    #[serde(deserialize_with = "or_unset")]
    pub session_dir: Option<String>,
    /// Proxy for HTTP and HTTPS, unless the environment names one.
    #[serde(deserialize_with = "or_unset")]
    pub http_proxy: Option<String>,
    /// `0` or `"disabled"` = none.
    #[serde(deserialize_with = "or_unset")]
    pub http_idle_timeout_ms: Option<Value>,
    /// Extensions.
    #[serde(deserialize_with = "or_unset")]
    pub extensions: Option<Vec<String>>,
}

/// How many queued messages enter at one poll (L8).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueMode {
    /// The oldest.
    #[default]
    OneAtATime,
    /// All of them.
    All,
}

fn or_unset<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).ok())
}

impl Settings {
    /// Reads the user's file. A missing one is empty; a bad one is empty and answers a sentence.
    #[must_use]
    pub fn load(agent_dir: &Path) -> (Self, Option<String>) {
        let path = agent_dir.join("settings.json");
        let (settings, problem) = Self::read(&path);
        let path = Some(path);
        (Self { path, ..settings }, problem)
    }

    fn read(path: &Path) -> (Self, Option<String>) {
        let text = match textfile::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return (Self::default(), None);
            }
            Err(error) => return (Self::default(), Some(ignored(path, &error.to_string()))),
        };
        match serde_json::from_str::<Value>(&text) {
            Ok(written @ Value::Object(_)) => (Self::from_value(written), None),
            Ok(_) => (
                Self::default(),
                Some(ignored(path, "it is not a JSON object")),
            ),
            Err(error) => (Self::default(), Some(ignored(path, &error.to_string()))),
        }
    }

    /// Settings as given.
    #[must_use]
    pub fn from_value(written: Value) -> Self {
        let used = Used::deserialize(&written).unwrap_or_default();
        Self {
            written,
            used,
            ..Self::default()
        }
    }

    /// The user's file, which [`write_settings`] changes; `None` for settings as given.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The level wanted for one model, `provider/id` (`modelThinkingLevels`).
    #[must_use]
    pub fn model_level(&self, model: &str) -> Option<ThinkingLevel> {
        let level = self.get("modelThinkingLevels").get(model)?;
        ThinkingLevel::parse(level.as_str()?)
    }

    /// The typed keys.
    #[must_use]
    pub fn used(&self) -> &Used {
        &self.used
    }

    /// Any value by its dotted key; null when unset.
    #[must_use]
    pub fn get(&self, key: &str) -> &Value {
        key.split('.')
            .try_fold(&self.written, |value, part| value.get(part))
            .unwrap_or(&Value::Null)
    }

    /// Longest time a handler may take (`extensions.handlerTimeoutMs`); `None` = no limit.
    #[must_use]
    pub fn handler_limit(&self) -> Option<Duration> {
        let ms = self
            .get("extensions.handlerTimeoutMs")
            .as_u64()
            .unwrap_or(30_000);
        (ms > 0).then(|| Duration::from_millis(ms))
    }

    /// A whole number by its dotted key; `None` when unset or something else.
    #[must_use]
    pub fn count(&self, key: &str) -> Option<u64> {
        self.get(key).as_u64()
    }

    /// Limit for silence of an HTTP connection, milliseconds; `None` = no limit.
    #[must_use]
    pub fn http_idle_timeout_ms(&self) -> Option<u64> {
        match &self.used.http_idle_timeout_ms {
            None => Some(300_000),
            Some(Value::String(word)) if word == "disabled" => None,
            Some(value) => value.as_u64().filter(|ms| *ms > 0),
        }
    }
}

fn ignored(path: &Path, cause: &str) -> String {
    format!(
        "The settings file {} is ignored, because it cannot be read: {cause}. Correct or remove it.",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_the_wrong_type_read_as_unset_and_others_stay() {
        let settings = Settings::from_value(
            json!({"defaultTools": 3, "retry": {"provider": {"maxRetries": 2}}}),
        );
        assert_eq!(settings.used().default_tools, None);
        assert_eq!(settings.get("retry.provider.maxRetries"), &json!(2));
        assert_eq!(settings.get("retry.nothing.here"), &Value::Null);
    }

    #[test]
    fn the_idle_limit_can_be_switched_off_in_two_ways() {
        assert_eq!(Settings::default().http_idle_timeout_ms(), Some(300_000));
        for off in [json!(0), json!("disabled")] {
            assert_eq!(
                Settings::from_value(json!({ "httpIdleTimeoutMs": off })).http_idle_timeout_ms(),
                None
            );
        }
    }
}

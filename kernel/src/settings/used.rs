//! The keys that the kernel itself uses, with their types.

use pliant_sdk::message::ThinkingLevel;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// Whether a project whose files nobody has decided on is trusted.
    #[serde(deserialize_with = "or_unset")]
    pub default_project_trust: Option<ProjectTrust>,
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

/// What holds for projects that nobody has decided on (`interfaces.md` §14).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProjectTrust {
    /// The user is asked, where there is one.
    #[default]
    Ask,
    /// They are trusted.
    Always,
    /// They are not.
    Never,
}

fn or_unset<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).ok())
}

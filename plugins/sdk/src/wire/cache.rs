//! How long a service should keep the beginning of a conversation (`providers.md` §11).

use serde_json::{Value, json};

use crate::provider::StreamOptions;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// No markers, no keys, no headers of a session.
    None,
    /// As long as the service does by itself.
    Short,
    /// As long as it can.
    Long,
}

impl Retention {
    /// What the options say; `short` unless they say anything.
    #[must_use]
    pub fn of(options: &StreamOptions) -> Self {
        match options.cache_retention.as_deref() {
            Some("none") => Self::None,
            Some("long") => Self::Long,
            _ => Self::Short,
        }
    }

    /// The conversation's name for the service, unless nothing is to be kept.
    #[must_use]
    pub fn session(self, options: &StreamOptions) -> Option<&str> {
        let session = options.session_id.as_deref();
        session.filter(|_| self != Self::None)
    }

    /// What marks the end of a part that is to be kept, as Anthropic's protocol has it.
    #[must_use]
    pub fn marker(self, supports_long: bool) -> Option<Value> {
        match self {
            Self::None => None,
            Self::Long if supports_long => Some(json!({"type": "ephemeral", "ttl": "1h"})),
            Self::Short | Self::Long => Some(json!({"type": "ephemeral"})),
        }
    }
}

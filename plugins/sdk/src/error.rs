//! The one error value that crosses the border between plugins and the kernel.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A failure as a value: a code for programs, a sentence for people.
///
/// The sentence names the thing, the cause and, where there is one, the next step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Error {
    /// One of [`code`], or a plugin's own word.
    pub code: String,
    /// A sentence.
    pub message: String,
    /// Source position, for panics and scripts: `file:line:column`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Data for programs, e.g. `{"status": 429}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<Value>>,
}

/// Well-known error codes.
pub mod code {
    /// The operation or service does not exist.
    pub const UNSUPPORTED: &str = "unsupported";
    /// The service exists, but not in this mode (a dialog in print mode).
    pub const UNAVAILABLE: &str = "unavailable";
    /// The payload is not what the operation takes.
    pub const INVALID: &str = "invalid";
    /// The caller gave up.
    pub const CANCELLED: &str = "cancelled";
    /// A time limit passed.
    pub const TIMEOUT: &str = "timeout";
    /// The process that the plugin runs in is gone.
    pub const CRASHED: &str = "crashed";
    /// The plugin panicked.
    pub const PANIC: &str = "panic";
    /// The thing asked for was not found.
    pub const NOT_FOUND: &str = "not_found";
    /// The operating system refused.
    pub const IO: &str = "io";
    /// The network failed before an answer came.
    pub const NETWORK: &str = "network";
    /// The receiver does not hold the conversation that a request continues; send it whole.
    pub const CONVERSATION_UNKNOWN: &str = "conversation.unknown";
    /// The session or generation that the call belonged to has ended.
    pub const STALE: &str = "stale";
    /// The plugin takes no calls at present: it panicked too often, it hangs, or it could not be loaded.
    pub const FAULTY: &str = "faulty";
    /// Anything else.
    pub const FAILED: &str = "failed";
}

impl Error {
    /// An error with a code.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            location: None,
            details: None,
        }
    }

    /// A failure without a more exact code.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(code::FAILED, message)
    }

    /// The payload is not what the operation takes.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(code::INVALID, message)
    }

    /// The operation or service does not exist.
    pub fn unsupported(what: &str) -> Self {
        Self::new(
            code::UNSUPPORTED,
            format!("{what} is not supported by this version"),
        )
    }

    /// The caller gave up.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(code::CANCELLED, "Operation aborted")
    }

    /// Adds data for programs.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// Whether the error has that code.
    #[must_use]
    pub fn is(&self, code: &str) -> bool {
        self.code == code
    }

    /// JSON bytes, as the waist carries them.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_else(|_| br#"{"code":"failed","message":""}"#.to_vec())
    }

    /// Reads what [`Error::to_bytes`] wrote; anything else becomes the message itself.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes)
            .unwrap_or_else(|_| Self::failed(String::from_utf8_lossy(bytes).into_owned()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            Some(location) => write!(f, "{} ({location})", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => code::NOT_FOUND,
            _ => code::IO,
        };
        Self::new(kind, error.to_string())
    }
}

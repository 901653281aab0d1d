//! What services accept, as rules: one file per wire, named after it. A request body comes in, what
//! is wrong with it goes out as sentences. The rules are those of the strictest services that speak
//! the wire, so a body that passes is refused by none.

use serde_json::Value;

pub mod anthropic_messages;
pub mod openai_completions;

/// The protocol of a request, known by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `openai-completions`.
    Completions,
    /// `anthropic-messages`.
    Messages,
}

impl Dialect {
    /// The protocol that has requests at that path; `None` when it is no request for an answer.
    pub fn at(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        let last = path.rsplit('/').next();
        match last {
            _ if path.ends_with("/chat/completions") => Some(Self::Completions),
            Some("messages") => Some(Self::Messages),
            _ => None,
        }
    }
}

/// The elements; none of what is no list.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Whether every service takes it as the name of a tool.
fn is_name(name: &str) -> bool {
    const MAX_CHARS: usize = 64;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.len() <= MAX_CHARS && name.bytes().all(fits)
}

/// Whether it is whole base64 of something.
fn is_base64(data: &str) -> bool {
    let digits = data.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !digits.is_empty()
        && data.len().is_multiple_of(4)
        && data.len() - digits.len() <= 2
        && digits.bytes().all(is_digit)
}

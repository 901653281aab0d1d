//! Texts of failures, as sessions and the retry rules know them (`providers.md` §7.3).

use pliant_sdk::wire::failure::{self, cut};
use serde_json::Value;

/// The data of an event was not JSON.
pub(crate) const MALFORMED: &str = "Error reading response: malformed server-sent event JSON.";

/// The stream ended in the middle.
pub(crate) const UNFINISHED: &str = "Stream ended without finish_reason";

/// The text for an answer with an error status.
pub(crate) fn of_status(status: u16, body: &str) -> String {
    failure::of_status(status, body, |json| {
        match json.get("error").filter(|error| !error.is_null()) {
            Some(Value::String(text)) => format!("{status}: {}", cut(text)),
            Some(error) => with_upstream(format!("{status}: {}", cut(&error.to_string())), error),
            None => format!("{status}: {}", cut(&json.to_string())),
        }
    })
}

/// The failure that a JSON body tells.
pub(crate) fn told(body: &Value) -> Option<String> {
    let error = body.get("error").filter(|error| !error.is_null());
    error.map(of_error)
}

/// The text for an error object inside the stream.
pub(crate) fn of_error(error: &Value) -> String {
    let message = error.get("message").and_then(Value::as_str);
    let text = match (message, error) {
        (Some(message), _) if !message.is_empty() => message.to_owned(),
        (_, Value::String(text)) => text.clone(),
        _ => error.to_string(),
    };
    with_upstream(cut(&text), error)
}

/// OpenRouter hides what the service behind it said.
fn with_upstream(text: String, error: &Value) -> String {
    let raw = error
        .get("metadata")
        .and_then(|metadata| metadata.get("raw"));
    match raw.and_then(Value::as_str) {
        Some(raw) if !raw.is_empty() && !text.contains(raw) => format!("{text}\n{}", cut(raw)),
        _ => text,
    }
}

//! Texts of failures, as sessions and the retry rules know them (`providers.md` §7.3).

use serde_json::Value;

/// The data of an event was not JSON.
pub(crate) const MALFORMED: &str = "Error reading response: malformed server-sent event JSON.";

/// The stream ended in the middle.
pub(crate) const UNFINISHED: &str = "Stream ended without finish_reason";

/// Longer bodies are cut, because the text is stored in the session and shown.
const MAX_BODY_CHARS: usize = 4000;

/// The text for an answer with an error status.
pub(crate) fn of_status(status: u16, body: &str) -> String {
    let body = body.trim();
    if body.is_empty() {
        return format!("{status} status code (no body)");
    }
    let Ok(json @ Value::Object(_)) = serde_json::from_str::<Value>(body) else {
        return format!("{status} {}", cut(body));
    };
    match json.get("error").filter(|error| !error.is_null()) {
        Some(Value::String(text)) => format!("{status}: {}", cut(text)),
        Some(error) => with_upstream(format!("{status}: {}", cut(&error.to_string())), error),
        None => format!("{status}: {}", cut(&json.to_string())),
    }
}

/// The text for an answer that succeeded and holds something, but not one event: an error that a
/// gateway calls a success, or another site at that address.
pub(crate) fn of_no_stream(body: &str) -> Option<String> {
    let body = body.trim();
    if body.lines().all(is_of_a_stream) {
        return None;
    }
    let json = serde_json::from_str::<Value>(body).ok();
    let error = json.as_ref().and_then(|json| json.get("error"));
    Some(match error.filter(|error| !error.is_null()) {
        Some(error) => of_error(error),
        None => format!(
            "The service sent no stream of events. Check the baseUrl of the provider; what came instead: {}",
            cut(body)
        ),
    })
}

/// Whether a line could stand in a stream of events: it is empty, a comment, or a field.
fn is_of_a_stream(line: &str) -> bool {
    line.is_empty()
        || [":", "data:", "event:", "id:", "retry:"]
            .iter()
            .any(|field| line.starts_with(field))
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

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_BODY_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => {
            let more = text[end..].chars().count();
            format!("{}... [truncated {more} chars]", &text[..end])
        }
    }
}

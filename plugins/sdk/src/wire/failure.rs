//! Texts of failures that all wires tell alike (`providers.md` §7.3). Sessions keep them, and the rules
//! of retry read them.

use serde_json::Value;

/// Longer bodies are cut, because the text is stored in the session and shown.
const MAX_BODY_CHARS: usize = 4000;

/// The text for an answer with an error status. `of_json` words a body that is a JSON object.
pub fn of_status(status: u16, body: &str, of_json: impl FnOnce(&Value) -> String) -> String {
    let body = body.trim();
    if body.is_empty() {
        return format!("{status} status code (no body)");
    }
    match serde_json::from_str::<Value>(body) {
        Ok(json @ Value::Object(_)) => of_json(&json),
        _ => format!("{status} {}", cut(body)),
    }
}

/// The text for an answer that succeeded and holds something, but not one event: an error that a
/// gateway calls a success, or another site at that address. `told` is what a JSON body tells.
pub fn of_no_stream(body: &str, told: impl FnOnce(&Value) -> Option<String>) -> Option<String> {
    let body = body.trim();
    if body.lines().all(is_of_a_stream) {
        return None;
    }
    let json = serde_json::from_str::<Value>(body).ok();
    let told = json.as_ref().and_then(told);
    Some(told.unwrap_or_else(|| {
        format!(
            "The service sent no stream of events. Check the baseUrl of the provider; what came instead: {}",
            cut(body)
        )
    }))
}

/// Whether a line could stand in a stream of events: it is empty, a comment, or a field.
fn is_of_a_stream(line: &str) -> bool {
    line.is_empty()
        || [":", "data:", "event:", "id:", "retry:"]
            .iter()
            .any(|field| line.starts_with(field))
}

/// The beginning of a long text, and how much is missing.
#[must_use]
pub fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_BODY_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => {
            let more = text[end..].chars().count();
            format!("{}... [truncated {more} chars]", &text[..end])
        }
    }
}

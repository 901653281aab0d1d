//! Texts of failures, as sessions and the retry rules know them (`providers.md` §7.3).

use pliant_sdk::wire::failure::{self, cut};
use serde_json::Value;

/// The stream ended in the middle.
pub(crate) const UNFINISHED: &str = "Anthropic stream ended before message_stop";

/// The stream ended and did not say why the answer did.
pub(crate) const WITHOUT_REASON: &str = "Anthropic stream ended without a stop reason";

/// Another model took over after the first had begun to answer.
pub(crate) const FALLBACK: &str = "Anthropic performed an unsupported mid-output model fallback";

/// The model does not want to.
pub(crate) const REFUSED: &str = "The model refused to complete the request";

/// What a service says when its limits of strict tools are exceeded.
const STRICT_TOOLS: [&str; 3] = [
    "The compiled grammar is too large",
    "Too many strict tools (",
    "Schemas contains too many parameters with union types (",
];

/// The text for an answer with an error status.
pub(crate) fn of_status(status: u16, body: &str) -> String {
    failure::of_status(status, body, |json| match json.get("message") {
        Some(Value::String(message)) if !message.is_empty() => {
            format!("{status} {}", cut(message))
        }
        _ => format!("{status} {}", cut(&json.to_string())),
    })
}

/// Whether a refusal is about strict tools, so that the request may do without some.
pub(crate) fn is_of_strict_tools(status: u16, body: &str) -> bool {
    if status != 400 {
        return false;
    }
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let error = &body["error"];
    let message = error["message"].as_str().unwrap_or_default();
    error["type"] == "invalid_request_error"
        && STRICT_TOOLS.iter().any(|limit| message.contains(limit))
}

/// The failure that a JSON body tells.
pub(crate) fn told(body: &Value) -> Option<String> {
    let has_error = body.get("error").is_some_and(|error| !error.is_null());
    has_error.then(|| cut(&body.to_string()))
}

/// The data of an event was not JSON.
pub(crate) fn malformed(event: &str, reason: &str, data: &str) -> String {
    let data = cut(data);
    format!("Could not parse Anthropic SSE event {event}: {reason}; data={data}")
}

//! Requests to a model: what is sent of the conversation, and the exchange with the service
//! (`extensions.md` §3.3).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Hook;
use crate::message::Message;

/// The conversation is about to be sent (`context`): everything but system messages, as the session
/// holds it. What is answered is sent this once; the session stays as it is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextEvent {
    /// The messages.
    pub messages: Vec<Message>,
}
hook!(ContextEvent, "context", ContextAnswer);

/// As [`ContextEvent`], after its handlers, with the system messages (`context_with_system`). What is
/// answered is sent as it is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextWithSystemEvent {
    /// The messages.
    pub messages: Vec<Message>,
}
hook!(ContextWithSystemEvent, "context_with_system", ContextAnswer);

/// What a handler wants sent of the conversation. The default leaves it as it is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextAnswer {
    /// The messages to send. They are repaired like any others: a call without a result gets one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
}

impl ContextAnswer {
    /// Sends these messages.
    #[must_use]
    pub fn send(messages: Vec<Message>) -> Self {
        Self {
            messages: Some(messages),
        }
    }
}

/// A request to a service is about to be sent (`before_provider_headers`), once for all attempts at it.
/// The secret is added later.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BeforeProviderHeaders {
    /// Names and values; null removes a header that pliant would send.
    pub headers: Map<String, Value>,
}
hook!(
    BeforeProviderHeaders,
    "before_provider_headers",
    HeadersAnswer
);

/// What a `before_provider_headers` handler makes of the headers. The default leaves them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HeadersAnswer {
    /// The edited event; `headers` is read back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<BeforeProviderHeaders>,
}

impl HeadersAnswer {
    /// Sends these headers: all of them, not only the changed ones.
    #[must_use]
    pub fn send(headers: Map<String, Value>) -> Self {
        Self {
            event: Some(BeforeProviderHeaders { headers }),
        }
    }
}

/// The body of a request is complete (`before_provider_request`). An answer is sent in its place.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BeforeProviderRequest {
    /// The body, in the words of the service.
    pub payload: Value,
}
hook!(
    BeforeProviderRequest,
    "before_provider_request",
    Option<Value>
);

/// A service answered (`after_provider_response`); its body is not read yet.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AfterProviderResponse {
    /// Status code.
    pub status: u16,
    /// Names in lower case; the values of one name joined by commas.
    pub headers: Map<String, Value>,
}
hook!(AfterProviderResponse, "after_provider_response", ());

/// A frame of a service's stream (`provider_stream_event`), before the wire reads it. The stream waits
/// for its handlers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProviderStreamEvent {
    /// The provider.
    pub provider: String,
    /// The wire.
    pub api: String,
    /// The model.
    pub model: String,
    /// The frame's data: JSON, or a text where it is none.
    pub data: Value,
}
hook!(ProviderStreamEvent, "provider_stream_event", ());

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_say_only_what_they_change() {
        let written = |answer: &ContextAnswer| serde_json::to_value(answer).unwrap();
        assert_eq!(written(&ContextAnswer::default()), json!({}));
        assert_eq!(
            written(&ContextAnswer::send(Vec::new())),
            json!({"messages": []})
        );
        let mut headers = Map::new();
        headers.insert("x-a".to_owned(), Value::Null);
        let answer = serde_json::to_value(HeadersAnswer::send(headers)).unwrap();
        assert_eq!(answer, json!({"event": {"headers": {"x-a": null}}}));
    }
}

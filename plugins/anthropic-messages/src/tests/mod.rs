//! What the tests of this crate share.

mod cache;
mod damaged;
mod fixtures;
mod request;
mod streaming;
mod thinking;

use pliant_sdk::Model;
use pliant_sdk::provider::StreamRequest;
pub(crate) use pliant_tests::rehearsal::{
    Answered as Reply, Outcome, answered as reply, messages, options,
};
use serde_json::{Value, json};

use crate::AnthropicMessages;
use crate::request::{Built, Kept};

/// Sends a request through the wire, against a host that answers `reply`.
pub(crate) fn exchange(request: StreamRequest, reply: Reply) -> Outcome {
    pliant_tests::rehearsal::exchange(&AnthropicMessages, request, [reply])
}

/// A model of no known service.
pub(crate) fn model(patch: Value) -> Model {
    let mut model = json!({"id": "m", "name": "M", "api": "anthropic-messages", "provider": "p",
        "baseUrl": "https://h.test", "reasoning": true, "input": ["text", "image"],
        "contextWindow": 128_000, "maxTokens": 32_000});
    for (name, value) in patch.as_object().unwrap() {
        model[name] = value.clone();
    }
    serde_json::from_value(model).unwrap()
}

/// Builds on what the request's conversation keeps.
pub(crate) fn build(request: &StreamRequest) -> Result<Built, String> {
    request.with_cache(|kept: &mut Kept| crate::request::build(kept, request))
}

pub(crate) fn built(patch: Value, option: Value, list: Value) -> Built {
    let request = StreamRequest::new(model(patch), options(option), messages(list));
    build(&request).unwrap()
}

pub(crate) fn body_of(built: &Built) -> Value {
    serde_json::from_slice(built.http.body()).unwrap()
}

/// The body for a model with these switches.
pub(crate) fn body(patch: Value, option: Value, list: Value) -> Value {
    body_of(&built(patch, option, list))
}

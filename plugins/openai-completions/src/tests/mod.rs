//! What the tests of this crate share.

mod cache;
mod damaged;
mod fixtures;
mod flags;
mod request;
mod streaming;

use pliant_sdk::Model;
use pliant_sdk::provider::StreamRequest;
pub(crate) use pliant_tests::rehearsal::{
    Answered as Reply, Outcome, answered as reply, messages, options,
};
use serde_json::{Value, json};

use crate::OpenAiCompletions;

/// Sends a request through the wire, against a host that answers `reply`.
pub(crate) fn exchange(request: StreamRequest, reply: Reply) -> Outcome {
    pliant_tests::rehearsal::exchange(&OpenAiCompletions, request, [reply])
}

/// A model of no known service.
pub(crate) fn model(patch: Value) -> Model {
    let mut model = json!({"id": "m", "name": "M", "api": "openai-completions", "provider": "p",
        "baseUrl": "https://h.test/v1", "reasoning": true, "input": ["text", "image"],
        "contextWindow": 128_000, "maxTokens": 32_000});
    for (name, value) in patch.as_object().unwrap() {
        model[name] = value.clone();
    }
    serde_json::from_value(model).unwrap()
}

/// The body for a model with these switches.
pub(crate) fn body(patch: Value, option: Value, list: Value) -> Value {
    let request = StreamRequest::new(model(patch), options(option), messages(list));
    serde_json::from_slice(crate::request::build(&request).unwrap().http.body()).unwrap()
}

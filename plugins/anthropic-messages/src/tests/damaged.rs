//! Whatever a session holds, the request is one that services accept (M18; `design.md` §3, 7).

use std::sync::Arc;

use pliant_sdk::Model;
use pliant_sdk::message::Message;
use pliant_sdk::provider::StreamRequest;
use pliant_tests::histories::{self, Dice};
use pliant_tests::recorded;
use pliant_tests::wires::anthropic_messages::check;
use serde_json::{Value, json};

use super::{body_of, build, messages, model, options};
use crate::API;

/// The switches that change what becomes of messages.
fn models() -> Vec<Model> {
    let compat = |compat: Value| model(json!({"compat": compat}));
    vec![
        model(json!({})),
        model(json!({"input": ["text"], "reasoning": false})),
        compat(json!({"allowEmptySignature": true, "supportsCacheControlOnTools": false})),
        compat(json!({"supportsStrictTools": true, "supportsEagerToolInputStreaming": false})),
        compat(json!({"supportsMidConvoSystemMessages": true})),
        compat(
            json!({"supportsMidConvoSystemMessages": true, "supportsMidConvoToolChanges": true}),
        ),
        compat(
            json!({"supportsMidConvoSystemMessages": true, "supportsMidConvoToolChanges": true,
            "supportsMidConvoEffort": true, "forceAdaptiveThinking": true}),
        ),
    ]
}

fn body(model: &Model, messages: &[Arc<Message>]) -> Value {
    let option = options(json!({"reasoning": "high"}));
    let request = StreamRequest::new(model.clone(), option, messages.to_vec());
    // Strict: half a surrogate pair in the bytes is an error here.
    body_of(&build(&request).unwrap())
}

/// What a session sends last: there is always something to answer.
fn with_prompt(mut history: Vec<Value>) -> Vec<Arc<Message>> {
    history.push(json!({"role": "user", "content": "Go on.", "timestamp": 9999}));
    messages(Value::Array(history))
}

#[track_caller]
fn check_valid(history: Value) {
    let history = with_prompt(history.as_array().unwrap().clone());
    for model in models() {
        let body = body(&model, &history);
        let wrong = check(&body);
        assert!(wrong.is_empty(), "{wrong:#?}\n{body:#}");
    }
}

/// Histories from their seeds, each with the next of the models.
fn cases(count: u64) -> impl Iterator<Item = (u64, Model, Vec<Arc<Message>>)> {
    let models = models().into_iter().cycle();
    (0..count).zip(models).map(|(seed, model)| {
        let mut history = histories::damaged(&mut Dice::new(seed));
        for message in &mut history {
            // Answers of the model itself, whoever that is here.
            if message.get("provider") == Some(&json!(histories::SPEAKER[0])) {
                message["provider"] = json!(model.provider);
                message["api"] = json!(API);
                if message["model"] == histories::SPEAKER[2] {
                    message["model"] = json!(model.id);
                }
                message["providerThinkingLevel"] = json!("medium");
            }
        }
        (seed, model, with_prompt(history))
    })
}

#[test]
fn every_damaged_history_becomes_a_request_that_services_accept() {
    for (seed, model, history) in cases(1500) {
        let body = body(&model, &history);
        let wrong = check(&body);
        assert!(
            wrong.is_empty(),
            "seed {seed}, compat {:?}: {wrong:#?}\n{}\n{body:#}",
            model.compat,
            serde_json::to_string_pretty(&history).unwrap()
        );
    }
}

/// The rules are no stricter than the services that the cases were recorded for.
#[test]
fn all_recorded_requests_are_accepted() {
    for folder in super::fixtures::cases() {
        let case = recorded::json_file(&folder.join("case.json"));
        let wrong = check(&body_of(&build(&recorded::request(&case)).unwrap()));
        assert!(wrong.is_empty(), "{}: {wrong:#?}", folder.display());
    }
}

#[test]
fn a_tool_with_a_name_that_no_service_takes_is_not_declared() {
    let tool = |name: &str| json!({"name": name, "description": "d", "parameters": {}});
    let tools = json!([tool(&"x".repeat(200)), tool(""), tool("a b"), tool("good")]);
    check_valid(
        json!([{"role": "system", "content": "s", "toolsAdded": tools},
        {"role": "system", "content": "", "toolsAdded": [tool("b c"), tool("late")]}]),
    );
}

#[test]
fn parameters_are_the_schema_of_an_object() {
    for parameters in [
        json!(null),
        json!(7),
        json!([]),
        json!({"type": "string"}),
        json!({"properties": [], "required": "a", "anyOf": [{}]}),
    ] {
        check_valid(json!([{"role": "system", "content": "s", "toolsAdded":
            [{"name": "t", "description": "d", "parameters": parameters}]}]));
    }
}

#[test]
fn a_conversation_whose_beginning_is_lost_begins_with_the_user() {
    let answer = |text: &str| {
        json!({"role": "assistant", "content": [{"type": "text", "text": text}],
            "provider": "p", "api": API, "model": "m", "stopReason": "stop"})
    };
    check_valid(json!([answer("x")]));
    check_valid(
        json!([{"role": "system", "content": "s"}, {"role": "user", "content": " "},
        {"role": "system", "content": "later"}, answer("x")]),
    );
}

//! Whatever a session holds, the request is one that services accept (M18; `design.md` §3, 7). The
//! named tests are what the generated histories found.

use std::sync::Arc;

use pliant_sdk::Model;
use pliant_sdk::history::{self, AnyId};
use pliant_sdk::message::Message;
use pliant_sdk::provider::StreamRequest;
use pliant_tests::histories::{self, Dice};
use pliant_tests::wires::openai_completions::{Service, check};
use serde_json::{Value, json};

use super::{messages, model, options};
use crate::request::build;

/// The switches that change what becomes of messages.
fn models() -> Vec<Model> {
    let compat = |compat: Value| model(json!({"compat": compat}));
    vec![
        model(json!({})),
        model(json!({"provider": "openai"})),
        model(json!({"input": ["text"], "reasoning": false})),
        compat(
            json!({"requiresAssistantAfterToolResult": true, "requiresToolResultName": true,
            "requiresToolsWithToolHistory": true}),
        ),
        compat(json!({"requiresThinkingAsText": true, "cacheControlFormat": "anthropic"})),
        compat(json!({"requiresNonNullAssistantContent": true,
            "requiresReasoningContentOnAssistantMessages": true})),
        compat(json!({"supportsMidConvoSystemMessages": true,
            "supportsOpenAIGrammarTools": true, "supportsStrictMode": true})),
        compat(json!({"supportsMidConvoSystemMessages": true,
            "supportsMidConvoToolAdditions": true})),
    ]
}

fn body(model: &Model, messages: &[Arc<Message>]) -> Value {
    let request = StreamRequest::new(model.clone(), options(json!({})), messages.to_vec());
    // Strict: half a surrogate pair in the bytes is an error here.
    serde_json::from_slice(build(&request).unwrap().http.body()).unwrap()
}

fn service(model: &Model) -> Service {
    match model.provider.as_str() {
        "openai" => Service::OPENAI,
        _ => Service::ANY,
    }
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
        let wrong = check(&body, service(&model));
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
            }
        }
        (seed, model, with_prompt(history))
    })
}

#[test]
fn every_damaged_history_becomes_a_request_that_services_accept() {
    for (seed, model, history) in cases(3000) {
        let body = body(&model, &history);
        let wrong = check(&body, service(&model));
        assert!(
            wrong.is_empty(),
            "seed {seed}, compat {:?}: {wrong:#?}\n{}\n{body:#}",
            model.compat,
            serde_json::to_string_pretty(&history).unwrap()
        );
    }
}

/// The kernel has repaired the transcript once before it comes here.
#[test]
fn a_history_that_the_kernel_repaired_gives_the_same_messages() {
    for (seed, model, history) in cases(500) {
        let repaired = history::prepare(&history, &model, &AnyId);
        let (repaired, raw) = (body(&model, &repaired), body(&model, &history));
        assert_eq!(with_numbers(repaired), with_numbers(raw), "seed {seed}");
    }
}

/// The messages with ids by number: one that only the wire finds ill-formed leads to another name
/// when it is not unique either.
fn with_numbers(mut body: Value) -> Value {
    let mut known = Vec::new();
    let mut number = |id: &mut Value| {
        let at = known.iter().position(|known| known == id);
        let at = at.unwrap_or(known.len());
        known.push(std::mem::replace(id, json!(at)));
    };
    for message in body["messages"].as_array_mut().unwrap() {
        if let Some(id) = message.get_mut("tool_call_id") {
            number(id);
        }
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            number(&mut call["id"]);
        }
    }
    body["messages"].take()
}

/// The rules are no stricter than the services that the cases were recorded for.
#[test]
fn all_recorded_requests_are_accepted() {
    for folder in super::fixtures::cases() {
        let case = pliant_tests::recorded::json_file(&folder.join("case.json"));
        let request = pliant_tests::recorded::request(&case);
        let body: Value = serde_json::from_slice(build(&request).unwrap().http.body()).unwrap();
        let wrong = check(&body, service(&request.model));
        assert!(wrong.is_empty(), "{}: {wrong:#?}", folder.display());
    }
}

#[test]
fn a_tool_with_a_name_that_no_service_takes_is_not_declared() {
    // Seed 12: it had made every later request fail.
    let tool = |name: &str| json!({"name": name, "description": "d", "parameters": {}});
    let tools = json!([tool(&"x".repeat(200)), tool(""), tool("a b"), tool("good")]);
    let history = json!([{"role": "system", "content": "s", "toolsAdded": tools},
        {"role": "system", "content": "", "toolsAdded": [tool("b c"), tool("late")]}]);
    check_valid(history.clone());
    let body = body(
        &model(json!({})),
        &with_prompt(history.as_array().unwrap().clone()),
    );
    let names: Vec<&Value> = body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["function"]["name"])
        .collect();
    assert_eq!(names, ["good", "late"]);
}

#[test]
fn a_tool_that_is_added_twice_in_one_message_is_declared_once() {
    let tool = json!({"name": "t", "description": "d", "parameters": {"type": "object"}});
    check_valid(json!([{"role": "system", "content": "s"},
        {"role": "system", "content": "", "toolsAdded": [tool, tool]}]));
}

#[test]
fn parameters_are_the_schema_of_an_object() {
    for parameters in [
        json!(null),
        json!(7),
        json!({}),
        json!({"type": "string"}),
        json!([]),
    ] {
        check_valid(json!([{"role": "system", "content": "s", "toolsAdded":
            [{"name": "t", "description": "d", "parameters": parameters}]}]));
    }
}

#[test]
fn images_that_cannot_be_read_become_a_note() {
    let image = |data: &str, kind: &str| json!({"type": "image", "data": data, "mimeType": kind});
    let images = json!([
        image("", "image/png"),
        image("QQ==", "text/plain"),
        image("?", "")
    ]);
    let call = json!([{"type": "toolCall", "id": "1", "name": "t", "arguments": {}}]);
    check_valid(json!([{"role": "user", "content": images},
        {"role": "assistant", "content": call, "stopReason": "toolUse"},
        {"role": "toolResult", "toolCallId": "1", "toolName": "t", "content": images}]));
}

//! The recorded cases: what pi 1.6.0 sends, and what it makes of an answer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pliant_sdk::StreamEvent;
use pliant_sdk::message::Message;
use pliant_sdk::provider::StreamRequest;
use pliant_sdk::stream::Assembler;
use serde_json::{Value, json};

use super::{Outcome, exchange, messages, options};

const BASE: &str = "http://fixture.test";

pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures")
        .join(name)
}

pub(crate) fn cases() -> Vec<PathBuf> {
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder("wire/openai-completions"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    cases.sort();
    for target in [
        "openai-completions",
        "system-messages-in-place",
        "text-only-model",
    ] {
        cases.push(folder("wire/handoff").join(target));
    }
    cases
}

pub(crate) fn json_file(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(&text.replace("{{BASE}}", BASE)).unwrap()
}

/// Prompt and tools go into a leading system message (M12).
pub(crate) fn request(case: &Value) -> StreamRequest {
    let context = &case["context"];
    let mut list = vec![json!({"role": "system", "content": context["systemPrompt"],
        "toolsAdded": context.get("tools").unwrap_or(&json!([])), "timestamp": 0})];
    list.extend(context["messages"].as_array().unwrap().iter().cloned());
    StreamRequest::new(
        serde_json::from_value(case["model"].clone()).unwrap(),
        options(case["options"].clone()),
        messages(Value::Array(list)),
    )
}

/// The body of the case's answer, in the pieces it is written in unless `size` is given.
pub(crate) fn run(folder: &Path, size: Option<usize>) -> Outcome {
    let case = json_file(&folder.join("case.json"));
    let response = &case["responses"][0];
    let body = std::fs::read(folder.join(response["body"].as_str().unwrap())).unwrap();
    let written = response["chunk"]
        .as_u64()
        .map(|n| usize::try_from(n).unwrap());
    let size = size.or(written).unwrap_or(body.len().max(1));
    let pieces = body.chunks(size).map(|piece| Ok(piece.to_vec())).collect();
    let status = u16::try_from(response["status"].as_u64().unwrap()).unwrap();
    exchange(request(&case), Ok((status, pieces)))
}

/// Events as the fixtures write them, with the arguments read so far.
fn shown(outcome: &Outcome) -> Vec<Value> {
    let message = outcome.message.as_ref().unwrap();
    let mut assembler = Assembler::new(Default::default());
    let mut shown = Vec::new();
    for event in &outcome.events {
        assert!(assembler.push(event), "{event:?} fits what came before");
        let mut value = serde_json::to_value(event).unwrap();
        match event {
            StreamEvent::Meta { .. } => continue,
            StreamEvent::ToolcallStart { content_index, .. }
            | StreamEvent::ToolcallDelta { content_index, .. }
            | StreamEvent::ToolcallEnd { content_index, .. } => {
                let call = assembler.message().content[*content_index]
                    .as_tool_call()
                    .unwrap();
                for field in ["id", "toolName", "toolCall"] {
                    value.as_object_mut().unwrap().shift_remove(field);
                }
                value["name"] = json!(call.name);
                value["arguments"] = json!(assembler.arguments(*content_index).unwrap());
                if let Some(error) = &call.arguments_error {
                    value["argumentsError"] = json!(error);
                }
            }
            _ => {}
        }
        shown.push(value);
    }
    let reason = message.stop_reason.as_str();
    let kind = if message.stop_reason.is_failure() {
        "error"
    } else {
        "done"
    };
    shown.push(json!({"type": kind, "reason": reason}));
    shown
}

/// Equality of JSON with doubles, and without the words of a JSON parser.
fn assert_same(actual: &Value, expected: &Value, at: &str) {
    match (actual, expected) {
        (Value::Object(a), Value::Object(e)) => {
            let names = |map: &serde_json::Map<String, Value>| {
                let mut names: Vec<String> = map.keys().cloned().collect();
                names.sort();
                names
            };
            assert_eq!(names(a), names(e), "{at}");
            for (name, value) in e {
                assert_same(&a[name], value, &format!("{at}.{name}"));
            }
        }
        (Value::Array(a), Value::Array(e)) => {
            assert_eq!(a.len(), e.len(), "{at}: {actual} for {expected}");
            for (index, (a, e)) in a.iter().zip(e).enumerate() {
                assert_same(a, e, &format!("{at}[{index}]"));
            }
        }
        (Value::Number(a), Value::Number(e)) => {
            let (a, e) = (a.as_f64().unwrap(), e.as_f64().unwrap());
            assert!((a - e).abs() <= 1e-12 * e.abs(), "{at}: {a} for {e}");
        }
        (Value::String(a), Value::String(e)) if at.ends_with("argumentsError") => {
            let received = |text: &str| text[text.find("Received arguments").unwrap()..].to_owned();
            assert_eq!(received(a), received(e), "{at}");
        }
        _ => assert_eq!(actual, expected, "{at}"),
    }
}

fn check_answer(folder: &Path, outcome: &Outcome) {
    let expected = json_file(&folder.join("expected.json"));
    let at = folder.display().to_string();
    let mut message =
        serde_json::to_value(Message::Assistant(outcome.message.clone().unwrap())).unwrap();
    message.as_object_mut().unwrap().shift_remove("timestamp");
    assert_same(&message, &expected["message"], &format!("{at}: message"));
    assert_same(
        &Value::Array(shown(outcome)),
        &expected["events"],
        &format!("{at}: events"),
    );
}

#[test]
fn all_recorded_answers_are_read_as_by_pi() {
    let cases = cases();
    for folder in &cases {
        check_answer(folder, &run(folder, None));
    }
    assert_eq!(cases.len(), 11);
}

#[test]
fn all_recorded_requests_are_sent_as_by_pi() {
    let cases = cases();
    for folder in &cases {
        let expected = &json_file(&folder.join("expected-request.json"))[0];
        let Outcome { http, body, .. } = run(folder, None);
        let at = folder.display().to_string();
        assert_eq!(expected["method"], http.method.as_str(), "{at}");
        let path = expected["path"].as_str().unwrap();
        assert_eq!(http.url, format!("{BASE}{path}"), "{at}");
        let credential = http.credential.unwrap();
        let secret = (
            credential.header,
            Some(format!("{}test-key", credential.prefix)),
        );
        for (name, value) in expected["headers"].as_object().unwrap() {
            let mut headers = http.headers.iter().chain([&secret]);
            let sent = headers.find(|(sent, _)| sent == name).unwrap();
            assert_eq!(sent.1.as_deref(), value.as_str(), "{at}: {name}");
        }
        assert_same(&body, &expected["body"], &format!("{at}: body"));
    }
}

#[test]
fn answers_do_not_depend_on_where_the_body_is_cut() {
    for folder in cases() {
        let body = std::fs::read(folder.join("stream.sse")).unwrap_or_default();
        for size in (1..60).chain([100, 1000, body.len().max(1)]) {
            check_answer(&folder, &run(&folder, Some(size)));
        }
    }
}

#[test]
fn an_aborted_answer_keeps_what_is_known() {
    let outcome = run(&folder("wire/openai-completions/05-cache-usage"), None);
    let mut assembler = Assembler::new(Default::default());
    outcome
        .events
        .iter()
        .for_each(|event| assert!(assembler.push(event)));
    let whole = outcome.message.unwrap();
    let kept = assembler.finish(whole.stop_reason, None);
    assert_eq!(kept.usage, whole.usage);
    assert_eq!(kept.response_id.as_deref(), Some("chatcmpl-fx01"));
    assert_eq!(kept.content, whole.content);
}

/// Everything but what every request has.
fn thinking_fields(body: &Value) -> Value {
    let mut fields = body.clone();
    let common = [
        "model",
        "messages",
        "stream",
        "stream_options",
        "store",
        "prompt_cache_key",
        "prompt_cache_retention",
    ];
    for name in common {
        fields.as_object_mut().unwrap().shift_remove(name);
    }
    fields
}

#[test]
fn every_thinking_level_of_the_catalogue_is_sent_as_by_pi() {
    let rows = folder("requests/thinking-openai-completions.jsonl");
    let rows = std::fs::read_to_string(rows).unwrap();
    let mut checked = 0;
    for row in rows.lines() {
        let mut row: Value = serde_json::from_str(row).unwrap();
        if row["model"]["baseUrl"] == "" {
            row["model"]["baseUrl"] = json!(BASE);
        }
        for (level, expected) in row["levels"].as_object().unwrap() {
            let request = StreamRequest::new(
                serde_json::from_value(row["model"].clone()).unwrap(),
                options(json!({"reasoning": level})),
                vec![Arc::new(Message::user("x", 0))],
            );
            let built = crate::request::build(&request).unwrap();
            let body: Value = serde_json::from_slice(built.http.body()).unwrap();
            let mut expected = expected.clone();
            expected.as_object_mut().unwrap().shift_remove("clamped");
            let at = format!("{} at {level}", row["model"]["id"]);
            assert_same(&thinking_fields(&body), &expected, &at);
            checked += 1;
        }
    }
    assert_eq!(checked, 149 * 7);
}

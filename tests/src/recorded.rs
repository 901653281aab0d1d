//! The recorded cases of `tests/fixtures/wire`: what pi 1.6.0 sends over each wire, and what it makes of
//! an answer. A wire is checked against those of its name and against histories of other models.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pliant_sdk::message::Message;
use pliant_sdk::provider::{Provider as _, StreamRequest, Wire};
use pliant_sdk::stream::Assembler;
use pliant_sdk::wire::Service;
use pliant_sdk::{Model, StreamEvent};
use serde_json::{Map, Value, json};

use crate::rehearsal::{Outcome, exchange, messages, options};
use crate::workspace;

/// The address of the service in all cases.
pub const BASE: &str = "http://fixture.test";

/// A folder or file of the fixtures.
pub fn fixture(name: &str) -> PathBuf {
    workspace().join("tests/fixtures").join(name)
}

/// The cases of a wire, and those of the hand-over that are named.
pub fn cases(api: &str, handovers: &[&str]) -> Vec<PathBuf> {
    let folder = fixture("wire").join(api);
    let entries = std::fs::read_dir(folder).expect("the wire has cases");
    let mut cases: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.is_dir())
        .collect();
    cases.sort();
    let handovers = handovers
        .iter()
        .map(|name| fixture("wire/handoff").join(name));
    cases.extend(handovers);
    cases
}

/// A file of a case.
pub fn json_file(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("the file is there");
    serde_json::from_str(&text.replace("{{BASE}}", BASE)).expect("the file is JSON")
}

/// The request of a case. Prompt and tools go into a leading system message (M12).
pub fn request(case: &Value) -> StreamRequest {
    let context = &case["context"];
    let mut list = vec![json!({"role": "system", "content": context["systemPrompt"],
        "toolsAdded": context.get("tools").unwrap_or(&json!([])), "timestamp": 0})];
    list.extend(
        context["messages"]
            .as_array()
            .into_iter()
            .flatten()
            .cloned(),
    );
    StreamRequest::new(
        serde_json::from_value(case["model"].clone()).expect("the case has a model"),
        options(case["options"].clone()),
        messages(Value::Array(list)),
    )
}

/// Runs a case. The body of the answer comes in the pieces it was written in unless `size` is given.
pub fn run(wire: &impl Wire, folder: &Path, size: Option<usize>) -> Outcome {
    let case = json_file(&folder.join("case.json"));
    let response = &case["responses"][0];
    let number = |name: &str| {
        response[name]
            .as_u64()
            .and_then(|n| usize::try_from(n).ok())
    };
    let body = response["body"].as_str().expect("the answer has a body");
    let body = std::fs::read(folder.join(body)).expect("the body is there");
    let size = size.or(number("chunk")).unwrap_or(body.len().max(1));
    let pieces = body.chunks(size).map(|piece| Ok(piece.to_vec())).collect();
    let status = number("status").and_then(|status| u16::try_from(status).ok());
    let answer = Ok((status.expect("the answer has a status"), pieces));
    exchange(wire, request(&case), [answer])
}

/// Compares message and events of a case with what pi made of it.
///
/// # Panics
/// When they differ.
pub fn check_answer(folder: &Path, outcome: &Outcome) {
    let expected = json_file(&folder.join("expected.json"));
    let at = folder.display().to_string();
    let message = outcome.message.clone().expect("there is a message");
    let mut message = serde_json::to_value(Message::Assistant(message)).expect("it can be written");
    if let Some(message) = message.as_object_mut() {
        message.shift_remove("timestamp");
    }
    assert_same(&message, &expected["message"], &format!("{at}: message"));
    let events = Value::Array(shown(outcome));
    assert_same(&events, &expected["events"], &format!("{at}: events"));
}

/// Compares the request of a case with the one that pi sent.
///
/// # Panics
/// When they differ.
pub fn check_request(folder: &Path, outcome: &Outcome) {
    let expected = &json_file(&folder.join("expected-request.json"))[0];
    let Outcome { http, body, .. } = outcome;
    let at = folder.display().to_string();
    assert_eq!(expected["method"], http.method.as_str(), "{at}");
    let path = expected["path"].as_str().unwrap_or_default();
    assert_eq!(http.url, format!("{BASE}{path}"), "{at}");
    let credential = http.credential.as_ref().expect("the host adds a key");
    let secret = (
        credential.header.clone(),
        Some(format!("{}test-key", credential.prefix)),
    );
    for (name, value) in expected["headers"].as_object().into_iter().flatten() {
        let mut headers = http.headers.iter().chain([&secret]);
        let sent = headers.find(|(sent, _)| sent == name);
        let sent = sent.unwrap_or_else(|| panic!("{at}: {name} is not sent"));
        assert_eq!(sent.1.as_deref(), value.as_str(), "{at}: {name}");
    }
    assert_same(body, &expected["body"], &format!("{at}: body"));
}

/// The rows of `requests/thinking-API.jsonl`: a model, and by level what a request for it holds.
pub fn thinking_rows(api: &str) -> Vec<(Model, Map<String, Value>)> {
    let file = fixture("requests").join(format!("thinking-{api}.jsonl"));
    let rows = std::fs::read_to_string(file).expect("the wire has rows");
    let read = |row: &str| {
        let mut row: Value = serde_json::from_str(row).expect("a row is JSON");
        if row["model"]["baseUrl"] == "" {
            row["model"]["baseUrl"] = json!(BASE);
        }
        let model = serde_json::from_value(row["model"].take()).expect("a row has a model");
        let levels = row["levels"].as_object().cloned().unwrap_or_default();
        let without_clamped = levels.into_iter().map(|(level, mut fields)| {
            if let Some(fields) = fields.as_object_mut() {
                fields.shift_remove("clamped");
            }
            (level, fields)
        });
        (model, without_clamped.collect())
    };
    rows.lines().map(read).collect()
}

/// Checks that the manifest in a plugin's source, what the plugin contributes, its table of services
/// and its catalogue of models tell the same.
///
/// # Panics
/// When they do not.
pub fn check_services(api: &str, source: &str, described: &[Value], services: &[Service]) {
    let of_kind = |kind: &'static str| described.iter().filter(move |item| item["kind"] == kind);
    let wires: Vec<&Value> = of_kind("wire").map(|item| &item["name"]).collect();
    assert_eq!(wires, [api]);
    let providers =
        of_kind("provider").map(|item| json!({"name": item["name"], "env": item["env"]}));
    assert_eq!(providers.collect::<Vec<_>>(), listed(source));
    let lines: Vec<Value> = services
        .first()
        .map_or("", |service| service.catalogue)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a model is JSON"))
        .collect();
    let in_catalogue: BTreeSet<&str> = lines
        .iter()
        .filter_map(|line| line["provider"].as_str())
        .collect();
    let in_table: BTreeSet<&str> = services.iter().map(|service| service.id).collect();
    assert_eq!(in_catalogue, in_table);
    let models: Vec<Model> = services.iter().flat_map(Service::models).collect();
    assert_eq!(models.len(), lines.len());
    for (model, line) in models.iter().zip(&lines) {
        assert_eq!(model.api, api);
        let mut written = serde_json::to_value(model).expect("a model can be written");
        if let Some(written) = written.as_object_mut() {
            written.shift_remove("api");
        }
        assert_eq!(&written, line);
    }
}

/// What the export macro of a source lists, as `{name, env}`.
fn listed(source: &str) -> Vec<Value> {
    let list = source.split_once("provides: {").map(|(_, list)| list);
    let list = list
        .and_then(|list| list.split_once('}'))
        .map(|(list, _)| list);
    let entries = list.expect("the source lists what it provides").split(',');
    let providers = entries
        .map(str::trim)
        .filter(|entry| entry.starts_with("provider "));
    providers
        .map(|entry| {
            let mut quoted = entry.split('"').skip(1).step_by(2);
            json!({"name": quoted.next(), "env": quoted.collect::<Vec<_>>()})
        })
        .collect()
}

/// Events as the fixtures write them, with the arguments read so far.
fn shown(outcome: &Outcome) -> Vec<Value> {
    let message = outcome.message.as_ref().expect("there is a message");
    let mut assembler = Assembler::new(Default::default());
    let mut shown = Vec::new();
    for event in &outcome.events {
        assert!(assembler.push(event), "{event:?} fits what came before");
        let mut value = serde_json::to_value(event).expect("an event can be written");
        match event {
            StreamEvent::Meta { .. } => continue,
            StreamEvent::ToolcallStart { content_index, .. }
            | StreamEvent::ToolcallDelta { content_index, .. }
            | StreamEvent::ToolcallEnd { content_index, .. } => {
                let call = assembler.message().content[*content_index].as_tool_call();
                let call = call.expect("the block is a call");
                let fields = value.as_object_mut().expect("an event is an object");
                for field in ["id", "toolName", "toolCall"] {
                    fields.shift_remove(field);
                }
                value["name"] = json!(call.name);
                value["arguments"] = json!(assembler.arguments(*content_index));
                if let Some(error) = &call.arguments_error {
                    value["argumentsError"] = json!(error);
                }
            }
            _ => {}
        }
        shown.push(value);
    }
    let reason = message.stop_reason.as_str();
    let kind = match message.stop_reason.is_failure() {
        true => "error",
        false => "done",
    };
    shown.push(json!({"type": kind, "reason": reason}));
    shown
}

/// Equality of JSON with doubles, and without the words of a JSON parser.
///
/// # Panics
/// With the place of the first difference.
pub fn assert_same(actual: &Value, expected: &Value, at: &str) {
    match (actual, expected) {
        (Value::Object(a), Value::Object(e)) => {
            let names = |map: &Map<String, Value>| map.keys().cloned().collect::<BTreeSet<_>>();
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
            let number = |number: &serde_json::Number| number.as_f64().unwrap_or(f64::NAN);
            let (a, e) = (number(a), number(e));
            assert!((a - e).abs() <= 1e-12 * e.abs(), "{at}: {a} for {e}");
        }
        (Value::String(a), Value::String(e)) if at.ends_with("argumentsError") => {
            let received = |text: &str| {
                let start = text.find("Received arguments");
                text[start.expect("the arguments are quoted")..].to_owned()
            };
            assert_eq!(received(a), received(e), "{at}");
        }
        _ => assert_eq!(actual, expected, "{at}"),
    }
}

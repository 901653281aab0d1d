//! What holds for the request that is made from any history (`kernel.md` M18, `providers.md` §6,
//! invariants 9 and 10): every call has exactly one result directly behind its message, ids are
//! unique and taken by the service. Used by the fuzz target and by the test of its corpus.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use pliant_kernel::tree::{Ids, SessionTree};
use pliant_sdk::Model;
use pliant_sdk::history::{IdRule, Preparer, prepare, sanitize_id};
use pliant_sdk::message::{AssistantMessage, Message, StopReason};

/// Reads the bytes as a session in this folder and makes requests to several models of it.
///
/// # Panics
/// When one of the rules is broken.
pub fn check(bytes: &[u8], folder: &Path) {
    let path = folder.join("history.jsonl");
    fs::write(&path, bytes).expect("the folder is writable");
    let Ok(tree) = SessionTree::read(&path, Ids::system()) else {
        return;
    };
    let all: Vec<Arc<Message>> = tree
        .entries()
        .iter()
        .filter_map(|entry| entry.message().cloned())
        .collect();
    check_messages(tree.context());
    check_messages(&all);
}

/// Makes requests of these messages.
///
/// # Panics
/// When one of the rules is broken.
pub fn check_messages(messages: &[Arc<Message>]) {
    for model in models(messages) {
        let prepared = prepare(messages, &model, &Strict);
        check_request(&prepared);
        assert_eq!(prepare(&prepared, &model, &Strict), prepared, "twice");
        check_parts(messages, &model, &prepared);
    }
}

/// A model that nobody answered with, and the one of the last answer.
fn models(messages: &[Arc<Message>]) -> Vec<Model> {
    let mut models = vec![Model {
        id: "other".into(),
        input: vec!["text".into()],
        ..Model::default()
    }];
    let mut answers = messages.iter().filter_map(|message| message.as_assistant());
    models.extend(answers.next_back().map(|answer| Model {
        id: answer.model.clone(),
        provider: answer.provider.clone(),
        api: answer.api.clone(),
        input: vec!["text".into(), "image".into()],
        ..Model::default()
    }));
    models
}

/// As the strictest service has it.
struct Strict;

impl IdRule for Strict {
    fn foreign(&self, id: &str, _: &AssistantMessage) -> String {
        sanitize_id(id, 64)
    }

    fn accepts(&self, id: &str) -> bool {
        !id.is_empty() && sanitize_id(id, 64) == id
    }
}

fn check_request(request: &[Arc<Message>]) {
    let mut ids: HashSet<&str> = HashSet::new();
    let mut at = 0;
    while let Some(message) = request.get(at) {
        at += 1;
        let answer = match &**message {
            Message::System(_) | Message::User(_) => continue,
            Message::Assistant(answer) => answer,
            other => panic!("a {} stands alone", other.role()),
        };
        assert!(!answer.stop_reason.is_failure() && answer.stop_reason != StopReason::Pending);
        let calls: HashSet<&str> = answer.tool_calls().map(|call| &*call.id).collect();
        assert_eq!(calls.len(), answer.tool_calls().count(), "a call twice");
        for call in answer.tool_calls() {
            assert!(Strict.accepts(&call.id), "{:?}", call.id);
            assert!(Strict.accepts(&call.name), "{:?}", call.name);
            assert!(ids.insert(&call.id), "{:?} twice", call.id);
        }
        let results = request[at..].iter().map_while(|message| match &**message {
            Message::ToolResult(result) => Some(result),
            _ => None,
        });
        let results: Vec<_> = results.collect();
        at += results.len();
        let answered: HashSet<&str> = results.iter().map(|r| &*r.tool_call_id).collect();
        assert_eq!(answered, calls, "calls and results differ");
        assert_eq!(results.len(), calls.len(), "a call has two results");
        assert!(results.iter().all(|r| Strict.accepts(&r.tool_name)));
    }
}

/// A conversation that grew gives the same request, or says that it cannot.
fn check_parts(messages: &[Arc<Message>], model: &Model, whole: &[Arc<Message>]) {
    let (mut preparer, mut parts) = (Preparer::default(), Vec::new());
    let step = messages.len() / 3 + 1;
    for part in messages.chunks(step) {
        match preparer.extend(part, model, &Strict) {
            Some(prepared) => parts.extend(prepared),
            None => return,
        }
    }
    assert_eq!(parts, whole, "in parts it is another request");
}

//! Whatever handlers of a boundary propose: what they are shown of it is what the conversation becomes,
//! or nothing changes.

use std::sync::{Arc, Mutex};

use pliant_sdk::Plugin;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Value, json};

use crate::support::*;

/// An entry that is proposed; places are counted among the entries of the context.
#[derive(Debug, Clone)]
enum Proposed {
    Data,
    Note(&'static str),
    Edit(usize, Option<&'static str>),
    Compaction(Option<usize>),
    Lost,
}

fn proposed() -> impl Strategy<Value = Proposed> {
    let text = prop_oneof![Just("a"), Just("b €")];
    let place = 0_usize..8;
    prop_oneof![
        2 => Just(Proposed::Data),
        4 => text.clone().prop_map(Proposed::Note),
        4 => (place.clone(), proptest::option::of(text)).prop_map(|(at, to)| Proposed::Edit(at, to)),
        3 => proptest::option::of(place).prop_map(Proposed::Compaction),
        1 => Just(Proposed::Lost),
    ]
}

impl Proposed {
    fn draft(&self, entries: &[Value]) -> Value {
        let id = |at: usize| entries[at % entries.len()]["id"].clone();
        match self {
            Self::Data => json!({"type": "custom", "customType": "data", "data": [1]}),
            Self::Note(text) => {
                json!({"type": "custom_message", "customType": "note", "content": text, "display": false})
            }
            Self::Edit(at, to) => {
                let replacement = to.map(|text| json!({ "content": text }));
                json!({"type": "context_edit", "targetId": id(*at), "replacement": replacement})
            }
            Self::Compaction(kept) => {
                let kept = kept.map(id);
                json!({"type": "compaction", "summary": "S", "firstKeptEntryId": kept})
            }
            Self::Lost => json!({"type": "context_edit", "targetId": "lost", "replacement": null}),
        }
    }
}

/// Times are those of storing.
fn without_times(messages: Value) -> Value {
    let Value::Array(mut messages) = messages else {
        return messages;
    };
    for message in &mut messages {
        if let Value::Object(message) = message {
            message.remove("timestamp");
        }
    }
    Value::Array(messages)
}

/// A session whose only boundary is given `proposals`, one handler each.
async fn check(proposals: Vec<Vec<Proposed>>) -> Result<(), TestCaseError> {
    let shown = Arc::new(Mutex::new(Value::Null));
    let mut plugin = Plugin::new().tool(echo("echo"));
    for entries in proposals {
        plugin = plugin.on_event("agent_before_settle", move |event: Value, _| {
            let context = event["context"]["contextEntries"].as_array().cloned();
            let context = context.unwrap_or_default();
            let drafts: Vec<_> = entries.iter().map(|entry| entry.draft(&context)).collect();
            async move { Ok(json!({ "entries": drafts })) }
        });
    }
    let last = Arc::clone(&shown);
    let plugin = plugin.on_event("agent_before_settle", move |event: Value, _| {
        *last.lock().unwrap() = event;
        async { Ok(Value::Null) }
    });
    let replies = [
        calls([("a", "echo", json!({"text": "A"}))]),
        Reply::Text("done"),
    ];
    let mut scene = scene(Script::new(replies), plugin).await;
    scene.prompt("go").await;
    let shown = shown.lock().unwrap().clone();
    let events = scene.events();
    let stored = events
        .iter()
        .filter(|event| *event == "entry_appended")
        .count();
    let proposed = shown["entries"].as_array().map_or(0, Vec::len);
    let failed = events
        .iter()
        .any(|event| event.starts_with("extension_error"));
    let messages = serde_json::to_value(scene.session.messages()).unwrap();
    if stored == proposed {
        let shown = shown["context"]["contextMessages"].clone();
        prop_assert_eq!(without_times(messages), without_times(shown));
    } else {
        // None of them, and somebody was told why.
        prop_assert!(stored == 0 && failed, "{:?}", events);
        prop_assert_eq!(messages.as_array().map(Vec::len), Some(5));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn what_is_shown_of_a_proposal_is_what_the_conversation_becomes(
        proposals in prop::collection::vec(prop::collection::vec(proposed(), 0..5), 1..3)
    ) {
        // R47, invariants 8 and 35
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(check(proposals))?;
    }
}

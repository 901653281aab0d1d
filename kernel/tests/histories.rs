//! Any history gives a valid request: random orders of answers and results whose ids collide, by
//! the rules that the fuzz target of repair checks (M18, invariants 9 and 10).
//!
//! `PROPTEST_CASES=20000` asks for more cases.

#![allow(clippy::unwrap_used, reason = "test code")]

#[path = "../../tests/fuzz/checks/repair.rs"]
#[expect(dead_code, reason = "files are for the fuzz target")]
mod repair;

use std::sync::Arc;

use pliant_sdk::history::NO_RESULT;
use pliant_sdk::message::Message;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_gives_a_valid_request(messages in vec(message(), 0..14)) {
        let messages: Vec<_> = messages.into_iter().map(Message::from).map(Arc::new).collect();
        repair::check_messages(&messages);
    }
}

fn message() -> impl Strategy<Value = Value> {
    let answer = (vec(block(), 0..4), model(), stop_reason());
    let result = (id(), tool(), any::<bool>(), any::<bool>());
    prop_oneof![
        2 => Just(json!({"role": "user", "content": "words"})),
        1 => Just(json!({"role": "system", "content": "rules"})),
        6 => answer.prop_map(|(content, model, stop)| json!({
            "role": "assistant", "content": content, "api": "a", "provider": "p",
            "model": model, "stopReason": stop,
        })),
        8 => result.prop_map(|(id, tool, is_error, placeholder)| json!({
            "role": "toolResult", "toolCallId": id, "toolName": tool, "isError": is_error,
            "content": if placeholder { NO_RESULT } else { "found" },
        })),
        1 => Just(json!({"role": "bashExecution", "command": "ls", "output": "a"})),
        1 => Just(json!({"role": "from-later"})),
    ]
}

fn block() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => (id(), tool(), 0..2).prop_map(|(id, name, n)| json!({
            "type": "toolCall", "id": id, "name": name, "arguments": {"n": n},
        })),
        1 => "[a ]{0,2}".prop_map(|text| json!({"type": "text", "text": text})),
        1 => ("[a ]{0,2}", any::<bool>()).prop_map(|(thinking, signed)| json!({
            "type": "thinking", "thinking": thinking,
            "thinkingSignature": if signed { "c2ln" } else { "" },
        })),
        1 => Just(json!({"type": "from-later"})),
    ]
}

/// Few, so that they meet; some fit no service, and some are what others become.
fn id() -> impl Strategy<Value = String> {
    let long = "x".repeat(70);
    let cut = "x".repeat(64);
    let ids = ["", "c1", "c2", "a|b", "a_b", "\u{f6}", "_", &long, &cut];
    proptest::sample::select(ids.map(str::to_owned).to_vec())
}

fn tool() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec!["read", "bash", "", "a b"])
}

fn model() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec!["m", "n"])
}

fn stop_reason() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        6 => Just("toolUse"),
        1 => Just("stop"),
        1 => Just("length"),
        1 => Just("error"),
        1 => Just("aborted"),
        1 => Just("pending"),
    ]
}

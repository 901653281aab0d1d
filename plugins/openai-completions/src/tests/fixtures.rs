//! The recorded cases: what pi 1.6.0 sends, and what it makes of an answer.

use std::path::PathBuf;
use std::sync::Arc;

use pliant_sdk::message::Message;
use pliant_sdk::provider::StreamRequest;
use pliant_sdk::stream::Assembler;
use pliant_tests::recorded::{self, assert_same, check_answer, check_request, run};
use serde_json::{Value, json};

use super::options;
use crate::{API, OpenAiCompletions};

pub(crate) fn cases() -> Vec<PathBuf> {
    recorded::cases(API, &[API, "system-messages-in-place", "text-only-model"])
}

#[test]
fn all_recorded_answers_are_read_as_by_pi() {
    let cases = cases();
    for folder in &cases {
        check_answer(folder, &run(&OpenAiCompletions, folder, None));
    }
    assert_eq!(cases.len(), 11);
}

#[test]
fn all_recorded_requests_are_sent_as_by_pi() {
    let cases = cases();
    for folder in &cases {
        check_request(folder, &run(&OpenAiCompletions, folder, None));
    }
}

#[test]
fn answers_do_not_depend_on_where_the_body_is_cut() {
    for folder in cases() {
        let body = std::fs::read(folder.join("stream.sse")).unwrap_or_default();
        for size in (1..60).chain([100, 1000, body.len().max(1)]) {
            check_answer(&folder, &run(&OpenAiCompletions, &folder, Some(size)));
        }
    }
}

#[test]
fn an_aborted_answer_keeps_what_is_known() {
    let outcome = run(
        &OpenAiCompletions,
        &recorded::fixture("wire/openai-completions/05-cache-usage"),
        None,
    );
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
    let mut checked = 0;
    for (model, levels) in recorded::thinking_rows(API) {
        for (level, expected) in levels {
            let request = StreamRequest::new(
                model.clone(),
                options(json!({"reasoning": level})),
                vec![Arc::new(Message::user("x", 0))],
            );
            let built = crate::request::build(&request).unwrap();
            let body: Value = serde_json::from_slice(built.http.body()).unwrap();
            let at = format!("{} at {level}", model.id);
            assert_same(&thinking_fields(&body), &expected, &at);
            checked += 1;
        }
    }
    assert_eq!(checked, 149 * 7);
}

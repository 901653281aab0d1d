//! The recorded cases: what pi 1.6.0 sends, and what it makes of an answer.

use std::path::PathBuf;
use std::sync::Arc;

use pliant_sdk::message::Message;
use pliant_sdk::provider::StreamRequest;
use pliant_sdk::stream::Assembler;
use pliant_tests::recorded::{self, assert_same, check_answer, check_request, run};
use serde_json::{Value, json};

use super::{body_of, build, options};
use crate::{API, AnthropicMessages};

pub(crate) fn cases() -> Vec<PathBuf> {
    recorded::cases(API, &[API])
}

#[test]
fn all_recorded_answers_are_read_as_by_pi() {
    let cases = cases();
    for folder in &cases {
        check_answer(folder, &run(&AnthropicMessages, folder, None));
    }
    assert_eq!(cases.len(), 9);
}

#[test]
fn all_recorded_requests_are_sent_as_by_pi() {
    for folder in cases() {
        check_request(&folder, &run(&AnthropicMessages, &folder, None));
    }
}

#[test]
fn answers_do_not_depend_on_where_the_body_is_cut() {
    for folder in cases() {
        let body = std::fs::read(folder.join("stream.sse")).unwrap_or_default();
        for size in (1..60).chain([100, 1000, body.len().max(1)]) {
            check_answer(&folder, &run(&AnthropicMessages, &folder, Some(size)));
        }
    }
}

#[test]
fn an_aborted_answer_keeps_what_is_known() {
    let folder = recorded::fixture("wire/anthropic-messages/05-cache-usage");
    let outcome = run(&AnthropicMessages, &folder, None);
    let mut assembler = Assembler::new(Default::default());
    outcome
        .events
        .iter()
        .for_each(|event| assert!(assembler.push(event)));
    let whole = outcome.message.unwrap();
    let kept = assembler.finish(whole.stop_reason, None);
    assert_eq!(kept.usage, whole.usage);
    assert_eq!(kept.response_id.as_deref(), Some("msg_fx01"));
    assert_eq!(kept.content, whole.content);
}

/// Everything but what every request has, as the rows write it.
fn thinking_fields(body: &Value, beta: Option<&str>) -> Value {
    let mut fields = body.clone();
    let last = body["messages"].as_array().unwrap().last().unwrap();
    let marker = last.get("output_config").map(|config| &config["effort"]);
    let common = ["model", "messages", "stream"];
    for name in common {
        fields.as_object_mut().unwrap().shift_remove(name);
    }
    if let Some(beta) = beta {
        fields["betas"] = beta.split(',').collect();
    }
    if let Some(marker) = marker {
        fields["#marker"] = marker.clone();
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
            let built = build(&request).unwrap();
            let headers = &built.http.request().headers;
            let beta = headers.iter().find(|(name, _)| name == "anthropic-beta");
            let beta = beta.and_then(|(_, value)| value.as_deref());
            let at = format!("{} at {level}", model.reference());
            assert_same(&thinking_fields(&body_of(&built), beta), &expected, &at);
            checked += 1;
        }
    }
    assert_eq!(checked, 52 * 7);
}

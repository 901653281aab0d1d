//! What the user is told of a history that was repaired (M18).

use serde_json::json;

use super::*;
use crate::message::AssistantMessage;

fn told(messages: &[Arc<Message>]) -> Vec<(Damage, usize)> {
    let repairs = repairs(messages);
    repairs
        .iter()
        .map(|repair| (repair.damage, repair.count))
        .collect()
}

#[track_caller]
fn check_told(script: &str, expected: &[(Damage, usize)]) {
    assert_eq!(told(&transcript(script)), expected, "{script}");
}

#[test]
fn what_is_normal_is_no_repair() {
    check_told("sP u1 a1,2 r2 r1 a u2", &[]);
    // Failed answers are left out with their results.
    check_told("u1 !1 r1 u2 !3 u3", &[]);
    // System messages wait for the results.
    check_told("a1,2 s1 r1 s2 r2 u", &[]);
    check_told("a1 !2 r1 u", &[]);
    // Another model, with ids of another service.
    check_told("x1|2 r1|2 u", &[]);
    // P09: some services count anew with every answer, and a call belongs to the result behind it.
    check_told("a1,2 r1 r2 a1 r1 u a1,2 r2 r1", &[]);
    // A stand-in that another program has stored.
    check_told("a1 r1=No_result_provided u", &[]);
}

#[test]
fn every_kind_of_damage_is_counted() {
    use Damage::*;
    check_told("a1,2 u a3", &[(CallWithoutResult, 3)]);
    check_told("u1 r9 r8 u2", &[(ResultWithoutCall, 2)]);
    check_told("a1 r1 r1 r1", &[(SurplusResult, 2)]);
    check_told("a1:t,1:t r1", &[(RepeatedCall, 1)]);
    check_told("a:t r:t a1:t,1:other r1 r1", &[(UnusableId, 2)]);
    check_told("a1:bad.name r1:bad.name", &[(UnusableToolName, 1)]);
}

#[test]
fn a_result_away_from_its_call_is_displaced() {
    // K04: entries injected between a call and its result, results before their call.
    check_told("a1,2 u1 r1 r2", &[(Damage::DisplacedResult, 2)]);
    check_told("r1 u1 a1 u2", &[(Damage::DisplacedResult, 1)]);
    check_told("a1 a2 r1 r2", &[(Damage::DisplacedResult, 1)]);
    check_told("r1 a1 u2", &[(Damage::DisplacedResult, 1)]);
}

#[test]
fn ids_are_judged_by_the_rule_of_the_wire() {
    let long = "x".repeat(300);
    let messages = transcript(&format!("a{long} r{long}"));
    assert!(repairs(&messages).is_empty());
    let mut preparer = Preparer::default();
    preparer.extend(&messages, &model(), &Rule).unwrap();
    assert_eq!(
        preparer.repairs(),
        [Repair {
            damage: Damage::UnusableId,
            count: 1
        }]
    );
}

#[test]
fn blocks_and_images_that_cannot_be_sent_are_counted() {
    let image = |data: &str| json!({"type": "image", "data": data, "mimeType": "image/png"});
    let damaged = [
        message(
            json!({"role": "user", "content": [null, image("?"), image("QQ=="),
            {"type": "toolCall", "id": "1", "name": "t", "arguments": {}}]}),
        ),
        message(json!({"role": "assistant", "stopReason": "stop", "content":
            [7, {"type": "thinking", "thinking": ""}, image(""), {"type": "text", "text": "a"}]})),
        message(json!({"role": "assistant", "stopReason": "error", "content": [7, {"type": "x"}]})),
    ];
    assert_eq!(
        told(&damaged),
        [(Damage::UnreadableBlock, 3), (Damage::UnusableImage, 1)]
    );
}

#[test]
fn a_repair_is_a_sentence() {
    let sentences = |script: &str| {
        let repairs = repairs(&transcript(script));
        repairs.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        sentences("a1 u"),
        [
            "One tool call has no result, as after an interruption: an error result stands in its place."
        ]
    );
    assert_eq!(
        sentences("r1 r2 u"),
        ["2 tool results belong to no tool call: nothing of them is sent."]
    );
    let all = [
        Damage::CallWithoutResult,
        Damage::ResultWithoutCall,
        Damage::DisplacedResult,
        Damage::SurplusResult,
        Damage::UnusableId,
        Damage::RepeatedCall,
        Damage::UnusableToolName,
        Damage::UnreadableBlock,
        Damage::UnusableImage,
    ];
    for damage in all {
        let [one, many] = [1, 2].map(|count| Repair { damage, count }.to_string());
        assert!(
            one.starts_with("One ") && many.starts_with("2 "),
            "{one} {many}"
        );
        assert!(one.ends_with('.') && many.ends_with('.') && one != many);
    }
}

// The list of M18, point by point, where no test above has it already.

#[test]
fn a_result_whose_call_a_compaction_or_an_edit_left_out_is_dropped() {
    let mut kept = transcript("u1 r1 a2 r2");
    kept[0] = message(json!({"role": "user", "content": "<summary>"}));
    assert_eq!(
        show(&prepare(&kept, &model(), &Rule)),
        "u<summary> a2 r2=ok"
    );
    // Of an answer with two calls an edit left one.
    check("a2 r1=x r2=y", "a2 r2=y");
}

#[test]
fn a_truncated_call_is_sent_with_empty_arguments_and_its_error() {
    // P08: what the model wrote was no object; the stored error belongs to validation.
    let broken = json!({"type": "toolCall", "id": "1", "name": "t", "arguments": "{\"path\": \"a",
        "argumentsError": "no JSON object"});
    let answer = message(json!({"role": "assistant", "content": [broken], "stopReason": "length"}));
    let prepared = prepare(&[answer], &model(), &Rule);
    assert_eq!(show(&prepared), "a1 r1=-");
    let answer: &AssistantMessage = prepared[0].as_assistant().unwrap();
    assert!(answer.tool_calls().next().unwrap().arguments.is_empty());
}

#[test]
fn contents_of_any_type_and_missing_usage_are_tolerated() {
    for content in [
        json!(null),
        json!(7),
        json!({"text": "x"}),
        json!([]),
        json!("text"),
    ] {
        let messages = ["user", "assistant", "toolResult", "system", "custom"].map(|role| {
            message(json!({"role": role, "content": content, "usage": "much", "toolCallId": "1"}))
        });
        let call = json!([{"type": "toolCall", "id": "1", "name": "t"}]);
        let call = message(json!({"role": "assistant", "content": call, "usage": null}));
        let prepared = prepare(&[&[call], &messages[..]].concat(), &model(), &Rule);
        let roles: Vec<&str> = prepared.iter().map(|message| message.role()).collect();
        assert_eq!(
            roles,
            ["assistant", "toolResult", "user", "assistant", "system"]
        );
    }
}

#[test]
fn an_image_that_no_service_reads_becomes_a_note() {
    let seeing = Model {
        input: vec!["text".into(), "image".into()],
        ..model()
    };
    let image = |data: &str, kind: &str| json!({"type": "image", "data": data, "mimeType": kind});
    let user = message(
        json!({"role": "user", "content": [image("QQ==", "image/png"),
        image("half", "image/png"), image("no base64", "image/png"), image("QQ==", "image/bmp")]}),
    );
    let Message::User(sent) = &*prepare(&[user], &seeing, &Rule)[0] else {
        panic!("not a user message")
    };
    let note = json!({"type": "text", "text": super::super::image::DAMAGED});
    let kept = [image("QQ==", "image/png"), image("half", "image/png")];
    assert_eq!(
        serde_json::to_value(&sent.content).unwrap(),
        json!([kept[0], kept[1], note])
    );
}

#[test]
fn ids_that_begin_anew_with_every_answer_are_prepared_in_parts() {
    // A lost result of call 1, a stray result 2: neither makes later turns start from the beginning.
    let mut preparer = Preparer::default();
    let mut sent = preparer
        .extend(&transcript("a1 u r2 u"), &model(), &Rule)
        .unwrap();
    for _ in 0..3 {
        let turn = transcript("a1 r1 a2 r2 u");
        sent.extend(preparer.extend(&turn, &model(), &Rule).unwrap());
    }
    assert_eq!(show(&sent).matches("=ok").count(), 6);
}

#[test]
fn ten_thousand_calls_with_one_id_are_prepared_at_once() {
    // Twice as many may take twice as long, not four times: names are not tried from the first.
    let messages = transcript(&vec!["a1 r1 u"; 5000].join(" "));
    let prepared = prepare(&messages, &model(), &Rule);
    assert_eq!(show(&prepared).matches("=ok").count(), 5000);
    assert_eq!(told(&messages), []);
}

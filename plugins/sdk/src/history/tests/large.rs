//! Histories with very many equal things: what is done of them takes as long as they are, however
//! they are damaged. Nothing is timed here; a step that looks at all the others would take minutes.

use std::collections::HashMap;

use serde_json::json;

use super::*;
use crate::message::{Content, StopReason, ToolCall, ToolResultMessage};

const MANY: usize = 20_000;

fn tool_call(id: &str, tool: &str, number: usize) -> Content {
    Content::ToolCall(ToolCall {
        id: id.into(),
        name: tool.into(),
        arguments: [("n".to_owned(), number.into())].into_iter().collect(),
        ..ToolCall::default()
    })
}

fn answer_of(content: Vec<Content>) -> Arc<Message> {
    Arc::new(Message::Assistant(AssistantMessage {
        content,
        provider: "p".into(),
        api: "a".into(),
        model: "m".into(),
        stop_reason: StopReason::ToolUse,
        ..AssistantMessage::default()
    }))
}

fn result_of(id: &str, tool: &str, text: &str) -> Arc<Message> {
    Arc::new(Message::ToolResult(ToolResultMessage {
        tool_call_id: id.into(),
        tool_name: tool.into(),
        content: vec![Content::text(text)],
        is_error: text == NO_RESULT,
        ..ToolResultMessage::default()
    }))
}

/// The place of a call among the calls, and the text of its result.
type Sent = (usize, String);

/// The results that are sent, in their order.
fn sent_results(prepared: &[Arc<Message>]) -> Vec<Sent> {
    let answers = prepared.iter().filter_map(|message| message.as_assistant());
    let calls = answers.flat_map(AssistantMessage::tool_calls).enumerate();
    let place: HashMap<&str, usize> = calls.map(|(at, call)| (call.id.as_str(), at)).collect();
    let results = prepared.iter().filter_map(|message| match &**message {
        Message::ToolResult(result) => Some(result),
        _ => None,
    });
    let text = |content| crate::message::joined_text(content, "");
    results
        .map(|result| (place[&*result.tool_call_id], text(&result.content)))
        .collect()
}

/// What is sent of the results, and what is told of the history.
fn matched(messages: &[Arc<Message>]) -> (Vec<Sent>, Vec<(Damage, usize)>) {
    let told = repairs(messages).into_iter();
    (
        sent_results(&prepare(messages, &model(), &Rule)),
        told.map(|repair| (repair.damage, repair.count)).collect(),
    )
}

#[test]
fn very_many_calls_of_one_answer_are_prepared_at_once() {
    let ids: Vec<String> = (0..MANY).map(|number| format!("c{number}")).collect();
    let calls = ids.iter().map(|id| tool_call(id, "t", 0)).collect();
    let mut messages = vec![answer_of(calls)];
    messages.extend(ids.iter().rev().map(|id| result_of(id, "t", id)));
    let prepared = prepare(&messages, &model(), &Rule);
    assert!(
        prepared
            .iter()
            .zip(&messages)
            .all(|(a, b)| Arc::ptr_eq(a, b))
    );
    let expected = (0..MANY).rev().map(|at| (at, format!("c{at}")));
    assert_eq!(matched(&messages), (expected.collect(), vec![]));
}

#[test]
fn very_many_calls_and_results_of_one_id_are_matched_as_few_are() {
    use Damage::*;
    let tool = |number: usize| format!("t{number}");
    let calls = |of: std::ops::Range<usize>| {
        answer_of(
            of.map(|number| tool_call("1", &tool(number), number))
                .collect(),
        )
    };
    let mut results: Vec<_> = (0..MANY)
        .map(|number| result_of("1", &tool(number), &number.to_string()))
        .collect();
    results.reverse();

    // Each result goes to the call of its tool.
    let behind = [&[calls(0..MANY)], &results[..]].concat();
    let each = |(at, text): &Sent| at.to_string() == *text;
    let (sent, told) = matched(&behind);
    assert!(sent.len() == MANY && sent.iter().all(each));
    assert_eq!(told, [(UnusableId, MANY - 1)]);

    // Of tools that nobody called: in order, and what is before the call as well.
    let results: Vec<_> = (0..MANY)
        .map(|number| result_of("1", "other", &number.to_string()))
        .collect();
    let behind = [&[calls(0..MANY)], &results[..]].concat();
    let (sent, told) = matched(&behind);
    assert!(sent.len() == MANY && sent.iter().all(each));
    assert_eq!(told, [(UnusableId, MANY - 1)]);
    let before = [&results[..], &[calls(0..MANY)]].concat();
    let (sent, told) = matched(&before);
    assert!(sent.len() == MANY && sent.iter().all(each));
    assert_eq!(told, [(DisplacedResult, MANY), (UnusableId, MANY - 1)]);

    // One call and all the results, real ones and what stood for them.
    let one = [&[calls(0..1)], &results[..]].concat();
    let sent = vec![(0, "0".to_owned())];
    assert_eq!(matched(&one), (sent, vec![(SurplusResult, MANY - 1)]));
    let stand_ins = vec![result_of("1", "other", NO_RESULT); MANY];
    let (sent, told) = matched(&[&[calls(0..MANY)], &stand_ins[..]].concat());
    assert!(sent.len() == MANY && sent.iter().all(|(_, text)| text == NO_RESULT));
    assert_eq!(
        told,
        [(CallWithoutResult, MANY - 1), (UnusableId, MANY - 1)]
    );
}

#[test]
fn a_call_that_is_repeated_very_often_is_sent_once() {
    let mut calls = vec![tool_call("1", "t", 0); MANY];
    calls.extend(vec![tool_call("1", "t", 1); MANY]);
    let messages = [answer_of(calls), result_of("1", "t", "x")];
    let sent = [(0, "x".to_owned()), (1, NO_RESULT.to_owned())];
    let told = [
        (Damage::CallWithoutResult, 1),
        (Damage::UnusableId, 1),
        (Damage::RepeatedCall, 2 * MANY - 2),
    ];
    assert_eq!(matched(&messages), (sent.to_vec(), told.to_vec()));
}

#[test]
fn very_many_ids_that_others_would_get_are_passed_over_once() {
    let made_up = |number| format!("call_{}", short_hash(&format!("1#{number}")));
    let mut calls: Vec<Content> = (2..MANY)
        .map(|number| tool_call(&made_up(number), "t", 0))
        .collect();
    calls.extend((0..MANY).map(|number| tool_call("1", "t", number)));
    let prepared = prepare(&[answer_of(calls)], &model(), &Rule);
    let answer = prepared[0].as_assistant().unwrap();
    let ids: Vec<&str> = answer.tool_calls().map(|call| call.id.as_str()).collect();
    assert_eq!(ids[MANY - 2..MANY], ["1", &made_up(MANY)]);
    assert_eq!(ids[2 * MANY - 3], made_up(2 * MANY - 2));
}

#[test]
fn very_many_images_and_unreadable_parts_are_left_out_at_once() {
    let image = |data: &str| json!({"type": "image", "data": data, "mimeType": "image/png"});
    let mut content = vec![image("QQ=="); MANY];
    content.extend(vec![image("?"); MANY]);
    content.extend(vec![json!({"type": "video"}); MANY]);
    let messages = [message(json!({"role": "user", "content": content}))];
    let told: Vec<usize> = repairs(&messages)
        .iter()
        .map(|repair| repair.count)
        .collect();
    assert_eq!(told, [MANY, MANY]);
    let prepared = prepare(&messages, &model(), &Rule);
    assert_eq!(show(&prepared), format!("u{IMAGE_OMITTED}"));
}

#[test]
fn very_many_sections_and_tools_are_patched_at_once() {
    // M9
    let tool = |name: &str| json!({"name": name, "description": "", "parameters": {}});
    let names: Vec<String> = (0..MANY).map(|number| format!("n{number}")).collect();
    let sections: serde_json::Map<_, _> = names.iter().map(|n| (n.clone(), json!(n))).collect();
    let mut messages = vec![system(json!({"content": "", "sections": sections,
        "toolsAdded": names.iter().map(|name| tool(name)).collect::<Vec<_>>()}))];
    let [gone @ .., last] = &names[..] else {
        panic!("there are many")
    };
    messages.extend(gone.iter().map(|name| {
        let sections = json!({name: null});
        system(json!({"content": "", "sections": sections, "toolsRemoved": [{"name": name}]}))
    }));
    let joined = replay(&messages).unwrap();
    assert_eq!(render(&joined), *last);
    assert_eq!(joined.tools_added.unwrap().len(), 1);

    let mut tools = Vec::new();
    patch_tools(&mut tools, &messages[0]);
    patch_tools(&mut tools, &messages[0]);
    let kept: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(kept, names);
}

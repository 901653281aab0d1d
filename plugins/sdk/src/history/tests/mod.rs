//! What is sent of a history. Transcripts are written in short forms, see [`transcript`].

mod large;
mod properties;
mod repairs;

use std::sync::Arc;

use serde_json::{Value, json};

use super::ids::base36;
use super::image::OMITTED as IMAGE_OMITTED;
use super::prompt::content_text;
use super::*;
use crate::message::{AssistantMessage, Message, SystemMessage};
use crate::model::Model;

/// As `openai-completions`: `a|b` is made short, everything printable is taken.
struct Rule;

impl IdRule for Rule {
    fn foreign(&self, id: &str, _: &AssistantMessage) -> String {
        sanitize_id(id, 64)
    }

    fn accepts(&self, id: &str) -> bool {
        !id.is_empty() && id.len() <= 64 && id.chars().all(|ch| ch.is_ascii_graphic())
    }
}

fn model() -> Model {
    Model {
        id: "m".into(),
        provider: "p".into(),
        api: "a".into(),
        ..Model::default()
    }
}

fn message(value: Value) -> Arc<Message> {
    Arc::new(Message::from(value))
}

/// Short forms: `u` user, `s` system, `a` answer with calls, `!` failed answer with calls, `x`
/// answer of another model, `r` result. Calls and results as `id:tool`.
fn transcript(script: &str) -> Vec<Arc<Message>> {
    script.split(' ').map(parse).collect()
}

fn parse(word: &str) -> Arc<Message> {
    let (kind, rest) = word.split_at(1);
    let calls: Vec<Value> = rest
        .split(',')
        .filter(|call| !call.is_empty())
        .map(|call| {
            let (id, tool) = call.split_once(':').unwrap_or((call, "t"));
            json!({"type": "toolCall", "id": id, "name": tool, "arguments": {"n": tool}})
        })
        .collect();
    let answer = |model: &str, stop: &str| {
        json!({"role": "assistant", "content": calls, "provider": "p", "api": "a", "model": model,
            "stopReason": stop})
    };
    message(match kind {
        "a" => answer("m", "toolUse"),
        "x" => answer("other", "toolUse"),
        "!" => answer("m", "error"),
        "r" => {
            let (id, text) = rest.split_once('=').unwrap_or((rest, "ok"));
            let (id, tool) = id.split_once(':').unwrap_or((id, "t"));
            let text = text.replace('_', " ");
            json!({"role": "toolResult", "toolCallId": id, "toolName": tool,
                "content": [{"type": "text", "text": text}], "isError": text == NO_RESULT})
        }
        "s" => json!({"role": "system", "content": rest}),
        _ => json!({"role": "user", "content": rest}),
    })
}

fn show(messages: &[Arc<Message>]) -> String {
    let word = |message: &Arc<Message>| match &**message {
        Message::System(message) => format!("s{}", content_text(&message.content)),
        Message::User(message) => format!("u{}", content_text(&message.content)),
        Message::Assistant(message) => {
            let calls: Vec<&str> = message.tool_calls().map(|call| call.id.as_str()).collect();
            format!("a{}", calls.join(","))
        }
        Message::ToolResult(result) => {
            let text = crate::message::joined_text(&result.content, "");
            let text = text.replace(NO_RESULT, "-");
            format!("r{}={}", result.tool_call_id, text)
        }
        other => other.role().to_owned(),
    };
    messages.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn check(script: &str, expected: &str) {
    let prepared = prepare(&transcript(script), &model(), &Rule);
    assert_eq!(show(&prepared), expected, "{script}");
}

#[test]
fn the_hash_is_that_of_pi() {
    // Fixtures `handoff/openai-completions` and `mistral-conversations/02-tool-calls`.
    let long = format!("call_Q1w2|fc_{}==", "ab+/".repeat(20));
    assert_eq!(short_hash(&long), "bfyize13we77v");
    assert!(short_hash("toolulongidentifier").starts_with("xx4vtq1dy"));
    assert_eq!(base36(0), "0");
    assert_eq!(base36(35 + 36), "1z");
}

#[test]
fn a_sound_history_is_sent_as_it_is() {
    let messages = transcript("sP u1 a1,2 r1=x r2=y a u2");
    let prepared = prepare(&messages, &model(), &Rule);
    assert_eq!(prepared.len(), messages.len());
    assert!(
        prepared
            .iter()
            .zip(&messages)
            .all(|(sent, stored)| Arc::ptr_eq(sent, stored))
    );
}

#[test]
fn a_call_without_result_gets_one() {
    // M18
    check("u1 a1,2 r2=x u2", "u1 a1,2 r2=x r1=- u2");
    check("a1", "a1 r1=-");
    check("a1 a2 r2", "a1 r1=- a2 r2=ok");
}

#[test]
fn a_system_message_waits_for_the_results() {
    check("a1,2 s1 r1 s2 r2 s3 u", "a1,2 r1=ok r2=ok s1 s2 s3 u");
    check("a1,2 r1 s1 u", "a1,2 r1=ok r2=- s1 u");
}

#[test]
fn failed_answers_are_left_out_with_their_results() {
    check("u1 !1 r1 u2", "u1 u2");
    check("a1 !2 r1 u", "a1 r1=ok u");
    check("!1 r1 a1 u", "a1 r1=- u");
    check("a1 !1 r1 u", "a1 r1=ok u");
    let mut pending = transcript("u1 a1 u2");
    pending[1] = message(json!({"role": "assistant", "content": "half", "stopReason": "pending"}));
    assert_eq!(show(&prepare(&pending, &model(), &Rule)), "u1 u2");
}

#[test]
fn results_without_a_call_are_dropped_and_displaced_ones_moved() {
    check("u1 r9 u2", "u1 u2");
    check("a1 u1 r1=late u2", "a1 r1=late u1 u2");
    check("r1=early u1 a1 u2", "u1 a1 r1=early u2");
    check("a1 a2 r1=x r2=y", "a1 r1=x a2 r2=y");
}

#[test]
fn the_first_real_result_counts() {
    check("a1 r1=x r1=y u", "a1 r1=x u");
    check("a1 rr u", "a1 r1=- u");
    check("a1 r1=No_result_provided r1=real u", "a1 r1=real u");
    check("a1 r1=No_result_provided u", "a1 r1=- u");
}

#[test]
fn repeated_ids_are_made_unique() {
    // P09
    let hashed = |id: &str| format!("call_{}", short_hash(id));
    let second = hashed("1#2");
    check(
        "a1 r1=x a1 r1=y u",
        &format!("a1 r1=x a{second} r{second}=y u"),
    );
    check(
        "a1:t,1:v r1:v=x r1:t=y",
        &format!("a1,{second} r{second}=x r1=y"),
    );
    check("a1:t,1:t r1:t=x r1:t=y u", "a1 r1=x u");
    let empty = hashed("");
    let next = hashed("#2");
    check(
        "a:v,:t r:t=x r:v=y",
        &format!("a{empty},{next} r{next}=x r{empty}=y"),
    );
}

#[test]
fn many_calls_with_one_id_stay_apart() {
    let script = "a1 r1 ".repeat(300);
    let prepared = prepare(&transcript(script.trim()), &model(), &Rule);
    let mut ids: Vec<&str> = prepared
        .iter()
        .filter_map(|message| message.as_assistant())
        .flat_map(|answer| answer.tool_calls().map(|call| call.id.as_str()))
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 300);
    assert!(!show(&prepared).contains("=-"));
}

#[test]
fn ill_formed_ids_of_the_same_model_are_rewritten_too() {
    let long = "x".repeat(300);
    let cut = &long[..64];
    check(&format!("a{long} r{long}=x"), &format!("a{cut} r{cut}=x"));
    check(
        "afunctions.bash:0:t rfunctions.bash:0:t",
        "afunctions.bash rfunctions.bash=ok",
    );
}

#[test]
fn thinking_and_signatures_stay_with_their_model() {
    // reports P10
    let content = json!([
        {"type": "thinking", "thinking": "t", "thinkingSignature": "sig"},
        {"type": "thinking", "thinking": "", "thinkingSignature": "sig"},
        {"type": "thinking", "thinking": "", "redacted": true},
        {"type": "thinking", "thinking": " "},
        {"type": "text", "text": "a", "textSignature": "sig"},
        {"type": "toolCall", "id": "c|d", "name": "t", "arguments": {}, "thoughtSignature": "sig"},
        {"type": "image", "data": "", "mimeType": ""}, null, {"type": "video"}]);
    let answer = |model: &str| {
        message(
            json!({"role": "assistant", "content": content, "provider": "p", "api": "a",
            "model": model, "stopReason": "toolUse"}),
        )
    };
    let blocks = |messages: &[Arc<Message>]| {
        serde_json::to_value(&messages[0].as_assistant().unwrap().content).unwrap()
    };
    let own = prepare(&[answer("m")], &model(), &Rule);
    assert_eq!(
        blocks(&own),
        json!([content[0], content[1], content[2], content[4], content[5]])
    );
    let foreign = prepare(&[answer("other")], &model(), &Rule);
    assert_eq!(
        blocks(&foreign),
        json!([{"type": "text", "text": "a"}, {"type": "toolCall", "id": "c_d", "name": "t", "arguments": {}}])
    );
    assert_eq!(show(&foreign), "ac_d rc_d=-");
}

#[test]
fn images_become_one_placeholder_where_none_can_be_seen() {
    let image = json!({"type": "image", "data": "QQ==", "mimeType": "image/png"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let user = message(json!({"role": "user", "content":
        [image, image, text("x"), image, text(IMAGE_OMITTED), image, null]}));
    let Message::User(sent) = &*prepare(&[Arc::clone(&user)], &model(), &Rule)[0] else {
        panic!("not a user message")
    };
    let omitted = text(IMAGE_OMITTED);
    assert_eq!(
        serde_json::to_value(&sent.content).unwrap(),
        json!([omitted, text("x"), omitted, omitted])
    );
    let seeing = Model {
        input: vec!["text".into(), "image".into()],
        ..model()
    };
    let sound = message(json!({"role": "user", "content": [image, text("x")]}));
    assert!(Arc::ptr_eq(
        &prepare(&[Arc::clone(&sound)], &seeing, &Rule)[0],
        &sound
    ));
}

#[test]
fn anything_at_all_can_be_prepared() {
    let junk = vec![
        message(json!(null)),
        message(json!({"role": "user", "content": 3})),
        message(
            json!({"role": "assistant", "content": [null, 7, {"type": "toolCall", "name": "a.b c"}]}),
        ),
        message(json!({"role": "toolResult", "content": "text"})),
        message(json!({"role": "bashExecution", "command": "ls"})),
        message(json!({"role": "oracle"})),
    ];
    let prepared = prepare(&junk, &model(), &Rule);
    let roles: Vec<&str> = prepared.iter().map(|message| message.role()).collect();
    assert_eq!(roles, ["user", "assistant", "toolResult"]);
    let call = prepared[1]
        .as_assistant()
        .unwrap()
        .tool_calls()
        .next()
        .unwrap();
    assert_eq!(call.name, "a_b_c");
    assert_eq!(tool_name(""), "unnamed");
}

fn system(value: Value) -> SystemMessage {
    serde_json::from_value(value).unwrap()
}

#[test]
fn replay_patches_sections_and_tools_in_order() {
    // M9, M10
    let tool =
        |name: &str, text: &str| json!({"name": name, "description": text, "parameters": {}});
    let messages = [
        system(
            json!({"content": "A", "sections": {"x": "1", "y": "2", "z": "3"}, "timestamp": 5,
            "toolsAdded": [tool("a", ""), tool("b", ""), tool("c", "")]}),
        ),
        system(
            json!({"content": [{"type": "text", "text": "B"}, {"type": "text", "text": ""}],
            "sections": {"x": null, "y": "two"}, "toolsAdded": [tool("a", "new")], "timestamp": 6}),
        ),
        system(json!({"content": "", "sections": {"x": "again"},
            "toolsRemoved": [{"name": "b"}], "toolsAdded": [tool("b", "")]})),
    ];
    let joined = replay(&messages).unwrap();
    assert_eq!(render(&joined), "A\n\nB\n\ntwo\n\n3\n\nagain");
    assert_eq!(joined.timestamp, 5);
    let tools = joined.tools_added.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["a", "c", "b"]);
    assert_eq!(tools[0].description, "new");
    assert_eq!(replay(&[]), None);
    assert_eq!(
        render_update(&messages[1]),
        "B\n\nRemoved system prompt section \"x\".\n\nUpdated system prompt section \"y\":\n\ntwo"
    );
}

fn counted(messages: &[Value]) -> ContextEstimate {
    let mut estimate = ContextEstimate::default();
    for value in messages {
        estimate.add(&Message::from(value.clone()));
    }
    estimate
}

#[test]
fn the_newest_trustworthy_usage_anchors_the_estimate() {
    let answer = |tokens: u64, time: i64, stop: &str| {
        json!({"role": "assistant", "content": "1234567", "usage": {"totalTokens": tokens},
            "stopReason": stop, "timestamp": time})
    };
    let user = |time: i64| json!({"role": "user", "content": "12345678", "timestamp": time});
    assert_eq!(counted(&[user(1)]).tokens(), 3);
    assert_eq!(
        counted(&[user(1), answer(100, 2, "stop"), user(3)]).tokens(),
        103
    );
    assert_eq!(
        counted(&[user(1), answer(100, 2, "error"), user(3)]).tokens(),
        8
    );
    assert_eq!(counted(&[user(9), answer(100, 2, "stop")]).tokens(), 5);
    assert_eq!(
        counted(&[answer(100, 1, "stop"), answer(0, 2, "stop")]).tokens(),
        102
    );
    // Damage: no context holds that much.
    assert_eq!(
        counted(&[user(1), answer(u64::MAX, 2, "stop"), user(3)]).tokens(),
        8
    );
    let image =
        json!({"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "😀"}]});
    assert_eq!(counted(&[image]).tokens(), 1372);
    let tools = json!({"role": "system", "content": "ab", "sections": {"s": "cd", "t": null},
        "toolsAdded": [{"name": "a", "description": "", "parameters": {}}]});
    assert_eq!(counted(&[tools]).tokens(), (4_u64 + 48) * 2 / 7 + 1);
}

#[test]
fn the_output_limit_leaves_room_for_the_input() {
    let with = ContextEstimate::of_tokens;
    assert_eq!(with(1).clamp_output(198_703 + 9, 202_800), 198_703);
    assert_eq!(with(1).clamp_output(500, 202_800), 500);
    assert_eq!(with(1).clamp_output(500, 0), 500);
    // 15 % of 100,000 is more than the fixed margin.
    assert_eq!(with(100_000).clamp_output(99_999, 200_000), 85_000);
    // Below 32,768 the margin is the fixed one, and the room no more than that.
    assert_eq!(with(150_000).clamp_output(99_999, 200_000), 32_768);
    assert_eq!(with(180_000).clamp_output(99_999, 200_000), 15_904);
    assert_eq!(with(300_000).clamp_output(99_999, 200_000), 1);
}

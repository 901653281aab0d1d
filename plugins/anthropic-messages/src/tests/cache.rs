//! What is kept between requests never shows: the bytes are those of a request built at once.

use std::sync::Arc;

use pliant_sdk::Model;
use pliant_sdk::message::Message;
use pliant_sdk::provider::StreamRequest;
use pliant_tests::histories::Dice;
use serde_json::{Value, json};

use super::build;
use super::{model, options};

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn random_message(dice: &mut Dice, time: i64) -> Arc<Message> {
    let image = json!({"type": "image", "data": "QQ==", "mimeType": "image/png"});
    let id = ["1", "2", "", "c|d", "bad id", "3"][dice.roll(6)];
    let tool = |name: &str| {
        json!({"name": name, "description": "d", "parameters": {"type": "object",
            "properties": {"text": {"type": "string"}}, "required": ["text"]},
            "constrainedSampling": {"type": "json_schema", "strict": "prefer"}})
    };
    let call =
        |id: &str| json!({"type": "toolCall", "id": id, "name": "t", "arguments": {"text": id}});
    let thinking = json!({"type": "thinking", "thinking": "hm", "thinkingSignature": "c2ln"});
    let stop = ["stop", "toolUse", "error", "pending"][dice.roll(4).min(dice.roll(4))];
    let who = ["m", "other"][dice.roll(2)];
    let answer = |content: Value| {
        json!({"role": "assistant", "provider": "p", "api": "anthropic-messages", "model": who,
            "stopReason": stop, "content": content, "usage": {"totalTokens": time * 3},
            "providerThinkingLevel": "low"})
    };
    let mut value = match dice.roll(13) {
        0 => json!({"role": "system", "content": "S", "sections": {"a": id}}),
        1 => {
            json!({"role": "system", "content": "", "toolsAdded": [tool(["t", "u"][dice.roll(2)])]})
        }
        2 => json!({"role": "system", "toolsRemoved": [{"name": "t"}]}),
        3 | 4 => json!({"role": "user", "content": "hello \"you\""}),
        5 => json!({"role": "user", "content": [image, text("x"), image]}),
        6 => answer(json!([thinking, text("ok")])),
        7 => answer(json!([call(id)])),
        8 => answer(json!([text("a"), call(id), call("9")])),
        9 => json!({"role": "toolResult", "toolCallId": id, "toolName": "t",
            "content": [image, text("r")]}),
        10 => json!({"role": "toolResult", "toolCallId": "9", "toolName": "t", "content": []}),
        11 => json!({"role": "custom", "content": "not for a wire"}),
        _ => json!({"role": "toolResult", "toolCallId": id, "toolName": "t",
            "content": [text("r")]}),
    };
    value["timestamp"] = json!(time);
    Arc::new(Message::from(value))
}

fn models() -> Vec<Model> {
    let compat = |compat: Value| model(json!({"compat": compat}));
    vec![
        model(json!({})),
        model(json!({"input": ["text"]})),
        compat(json!({"supportsStrictTools": true, "allowEmptySignature": true})),
        compat(json!({"supportsMidConvoSystemMessages": true})),
        compat(
            json!({"supportsMidConvoSystemMessages": true, "supportsMidConvoToolChanges": true,
            "supportsMidConvoEffort": true}),
        ),
        model(json!({"id": "other", "reasoning": false})),
    ]
}

fn change(dice: &mut Dice, request: &mut StreamRequest, time: i64) {
    let messages = Arc::make_mut(&mut request.messages);
    let length = messages.len();
    match dice.roll(12) {
        0 if length > 0 => messages.truncate(dice.roll(length)),
        1 if length > 0 => messages[dice.roll(length)] = random_message(dice, time),
        2 if length > 0 => drop(messages.remove(dice.roll(length))),
        3 => {
            let all = models();
            request.model = all[dice.roll(all.len())].clone();
        }
        4 => {
            let retention = ["none", "short", "long"][dice.roll(3)];
            let level = ["off", "high"][dice.roll(2)];
            request.options = options(json!({"cacheRetention": retention, "reasoning": level}));
        }
        5 => {}
        _ => {
            for _ in 0..=dice.roll(3) {
                messages.push(random_message(dice, time));
            }
        }
    }
}

#[test]
fn kept_bytes_are_the_bytes_of_a_request_built_at_once() {
    let mut dice = Dice::new(11);
    let mut compared = 0;
    for model in models() {
        for _ in 0..20 {
            let mut kept = StreamRequest::new(model.clone(), options(json!({})), Vec::new());
            for time in 0..40 {
                change(&mut dice, &mut kept, time);
                let fresh = StreamRequest::new(
                    kept.model.clone(),
                    kept.options.clone(),
                    kept.messages.to_vec(),
                );
                let (kept, fresh) = (build(&kept).unwrap(), build(&fresh).unwrap());
                assert_eq!(
                    str::from_utf8(kept.http.body()).unwrap(),
                    str::from_utf8(fresh.http.body()).unwrap()
                );
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 6 * 20 * 40);
}

/// The cache of the service depends on it.
#[test]
fn a_turn_only_adds_to_the_bytes_of_the_messages() {
    let mut dice = Dice::new(5);
    let mut request = StreamRequest::new(
        model(json!({})),
        // Markers move with the end of the conversation.
        options(json!({"cacheRetention": "none"})),
        Vec::new(),
    );
    let mut before = String::new();
    for turn in 0..100 {
        let call = json!([{"type": "toolCall", "id": format!("c{turn}"), "name": "t", "arguments": {"n": 1.5, "z": 1, "a": dice.roll(9)}}]);
        let turn_messages = [
            json!({"role": "user", "content": "x", "timestamp": turn}),
            json!({"role": "assistant", "provider": "p", "api": "anthropic-messages", "model": "m",
                "stopReason": "toolUse", "content": call}),
            json!({"role": "toolResult", "toolCallId": format!("c{turn}"), "toolName": "t",
                "content": [text("r")]}),
        ];
        Arc::make_mut(&mut request.messages)
            .extend(turn_messages.map(|value| Arc::new(Message::from(value))));
        let body = String::from_utf8(build(&request).unwrap().http.body().to_vec()).unwrap();
        let messages = body.split_once("\"messages\":[").unwrap().1;
        let messages = messages
            .split_once("],\"max_tokens\"")
            .unwrap()
            .0
            .to_owned();
        assert!(messages.starts_with(&before));
        before = messages;
    }
}

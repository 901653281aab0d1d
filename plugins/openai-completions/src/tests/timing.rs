//! Measurements, run by hand:
//! `cargo test --release -p pliant-openai-completions -- --ignored --nocapture measure`.

use std::sync::Arc;
use std::time::Instant;

use pliant_sdk::message::Message;
use pliant_sdk::provider::StreamRequest;
use pliant_sdk::sse::Decoder;
use serde_json::json;

use super::{model, options};
use crate::request::build;
use crate::stream::Answer;

#[test]
#[ignore = "a measurement"]
fn measure_deltas() {
    const DELTAS: usize = 1000;
    let mut body = String::new();
    for index in 0..DELTAS {
        let chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
            "model": "m", "choices": [{"index": 0, "delta": {"content": format!("word{index} ")},
            "finish_reason": null}]});
        body += &format!("data: {chunk}\n\n");
    }
    let request = StreamRequest::new(model(json!({})), options(json!({})), Vec::new());
    for _ in 0..5 {
        let mut answer = Answer::new(request.model.clone(), Default::default(), request.answer());
        let (mut decoder, mut decoded, mut events) = (Decoder::new(), Vec::new(), Vec::new());
        let started = Instant::now();
        let mut bytes = 0;
        for piece in body.as_bytes().chunks(220) {
            decoder.push(piece, &mut decoded).unwrap();
            for event in decoded.drain(..) {
                answer.take(None, &event.data, &mut events).unwrap();
            }
            for event in events.drain(..) {
                bytes += serde_json::to_vec(&event).unwrap().len();
            }
        }
        let per_delta = started.elapsed().as_secs_f64() * 1e6 / 1000.0;
        println!("{per_delta:.2} µs per delta, with decoding and {bytes} bytes of events");
    }
}

#[test]
#[ignore = "a measurement"]
fn measure_turns() {
    let mut request = StreamRequest::new(model(json!({})), options(json!({})), Vec::new());
    let add_turn = |request: &mut StreamRequest, turn: usize| {
        let id = format!("call_{turn}");
        let list = [
            json!({"role": "assistant", "provider": "p", "api": "openai-completions", "model": "m",
                "stopReason": "toolUse", "content": [{"type": "text", "text": "Looking at it."},
                {"type": "toolCall", "id": id, "name": "read", "arguments": {"path": "src/main.rs"}}]}),
            json!({"role": "toolResult", "toolCallId": id, "toolName": "read",
                "content": [{"type": "text", "text": "line of a file\n".repeat(130)}]}),
        ];
        request
            .messages
            .extend(list.map(|value| Arc::new(Message::from(value))));
    };
    for turn in 0..500 {
        add_turn(&mut request, turn);
    }
    let least = |times: &mut dyn Iterator<Item = std::time::Duration>| times.min().unwrap();
    let first = least(&mut (0..20).map(|_| {
        let fresh = StreamRequest::new(
            request.model.clone(),
            request.options.clone(),
            request.messages.clone(),
        );
        let started = Instant::now();
        std::hint::black_box(build(&fresh).unwrap());
        started.elapsed()
    }));
    let mut body = build(&request).unwrap().body;
    let turn = least(&mut (500..550).map(|turn| {
        add_turn(&mut request, turn);
        let started = Instant::now();
        body = build(&request).unwrap().body;
        started.elapsed()
    }));
    let copy = least(&mut (0..50).map(|_| {
        let started = Instant::now();
        std::hint::black_box(body.clone());
        started.elapsed()
    }));
    let bytes = body.len();
    println!("{bytes} bytes: {first:?} at once, {turn:?} for a turn; copying alone {copy:?}");
}

//! Streams that services really send, good and bad.

use pliant_sdk::error::code;
use pliant_sdk::message::{AssistantMessage, Content, StopReason};
use pliant_sdk::provider::StreamRequest;
use pliant_sdk::{Error, StreamEvent};
use serde_json::{Value, json};

use super::{Outcome, Reply, exchange, messages, model, options, reply};

fn send(patch: Value, answer: Reply) -> Outcome {
    let list = messages(json!([{"role": "user", "content": "x"}]));
    exchange(
        StreamRequest::new(model(patch), options(json!({})), list),
        answer,
    )
}

/// The events as a service writes them.
fn stream(events: &[Value]) -> String {
    let event = |event: &Value| {
        let name = event["type"].as_str().unwrap();
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.iter().map(event).collect()
}

/// The answer to these events between a beginning and an end.
fn answer_with(patch: Value, inner: &[Value]) -> AssistantMessage {
    let mut events = vec![start()];
    events.extend(inner.iter().cloned());
    events.extend([delta("end_turn"), json!({"type": "message_stop"})]);
    send(patch, reply(200, &stream(&events))).message.unwrap()
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"id": "r", "model": "m",
        "usage": {"input_tokens": 10, "output_tokens": 1}}})
}

fn delta(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}})
}

fn block(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn piece(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn text(text: &str) -> [Value; 3] {
    [
        block(0, json!({"type": "text", "text": ""})),
        piece(0, json!({"type": "text_delta", "text": text})),
        stop(0),
    ]
}

fn text_of(message: &AssistantMessage) -> String {
    pliant_sdk::message::joined_text(&message.content, "")
}

fn error_of(answer: Reply) -> String {
    let message = send(json!({}), answer).message.unwrap();
    assert_eq!(message.stop_reason, StopReason::Error);
    message.error_message.unwrap()
}

// P05
#[test]
fn the_last_event_needs_no_blank_line() {
    let whole = stream(&[start(), delta("end_turn"), json!({"type": "message_stop"})]);
    for ending in ["\n\n", "\n", ""] {
        let body = whole.trim_end().to_owned() + ending;
        let message = send(json!({}), reply(200, &body)).message.unwrap();
        assert_eq!(message.stop_reason, StopReason::Stop, "{ending:?}");
        assert_eq!(message.usage.output, 7);
    }
}

// P06
#[test]
fn comments_pings_and_unknown_events_are_no_part_of_the_answer() {
    for noise in [
        ":\n",
        ": ping\n\n",
        "event: ping\ndata: {\"type\": \"ping\"}\n\n",
        "event: of_later\ndata: no json\n\n",
        "data: [DONE]\n\n",
        "data: {}\n\n",
        "event: content_block_delta\ndata: 7\n\n",
        "event: content_block_delta\ndata: {\"index\": 9, \"delta\": {\"type\": \"text_delta\", \"text\": \"lost\"}}\n\n",
    ] {
        let [open, piece, close] = text("whole");
        let body = stream(&[start(), open, piece])
            + noise
            + &stream(&[close, delta("end_turn"), json!({"type": "message_stop"})]);
        let message = send(json!({}), reply(200, &body)).message.unwrap();
        assert_eq!(
            (message.stop_reason, text_of(&message).as_str()),
            (StopReason::Stop, "whole"),
            "{noise:?}"
        );
    }
}

// P07
#[test]
fn an_error_in_the_stream_is_an_error_wherever_it_comes() {
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let [open, piece, close] = text("half");
    let call = block(
        1,
        json!({"type": "tool_use", "id": "c", "name": "bash", "input": {}}),
    );
    for before in [
        vec![],
        vec![start()],
        vec![start(), open.clone(), piece.clone()],
        vec![start(), open, piece, close, call],
    ] {
        for named in ["event: error\n", ""] {
            let body = format!("{}{named}data: {error}\n\n", stream(&before));
            let outcome = send(json!({}), reply(200, &body));
            let message = outcome.message.unwrap();
            assert_eq!(message.stop_reason, StopReason::Error);
            assert_eq!(message.error_message.as_deref(), Some(error));
            let ended = |event: &StreamEvent| matches!(event, StreamEvent::ToolcallEnd { .. });
            assert!(
                !outcome.events.iter().any(ended),
                "a cut call is not complete"
            );
        }
    }
}

#[test]
fn a_stream_that_ends_early_is_an_error() {
    let [open, piece, close] = text("half");
    for (events, told) in [
        (vec![], "without a stop reason"),
        (vec![start()], "before message_stop"),
        (
            vec![start(), open.clone(), piece.clone()],
            "before message_stop",
        ),
        (
            vec![start(), open, piece, close, delta("end_turn")],
            "before message_stop",
        ),
        (
            vec![start(), json!({"type": "message_stop"})],
            "without a stop reason",
        ),
    ] {
        let error = error_of(reply(200, &stream(&events)));
        assert!(error.ends_with(told), "{error}");
    }
}

#[test]
fn stop_reasons() {
    let ended = |delta: Value| {
        let events = [start(), delta, json!({"type": "message_stop"})];
        send(json!({}), reply(200, &stream(&events)))
            .message
            .unwrap()
    };
    for (raw, reason, error) in [
        ("end_turn", StopReason::Stop, None),
        ("pause_turn", StopReason::Stop, None),
        ("stop_sequence", StopReason::Stop, None),
        ("max_tokens", StopReason::Length, None),
        ("tool_use", StopReason::ToolUse, None),
        (
            "refusal",
            StopReason::Error,
            Some("The model refused to complete the request"),
        ),
        (
            "sensitive",
            StopReason::Error,
            Some("Provider stopped with: sensitive"),
        ),
        (
            "bored",
            StopReason::Error,
            Some("Unhandled stop reason: bored"),
        ),
    ] {
        let message = ended(delta(raw));
        assert_eq!(message.stop_reason, reason, "{raw}");
        assert_eq!(message.error_message.as_deref(), error, "{raw}");
        assert_eq!(message.raw_stop_reason.as_deref(), Some(raw));
    }
    let mut refusal = delta("refusal");
    refusal["delta"]["stop_details"] = json!({"explanation": "Not that."});
    assert_eq!(ended(refusal).error_message.as_deref(), Some("Not that."));
}

// P08
#[test]
fn arguments_come_in_pieces_with_the_call_or_not_at_all() {
    let call = |input: Value| {
        block(
            0,
            json!({"type": "tool_use", "id": "c", "name": "t", "input": input}),
        )
    };
    let json_piece =
        |text: &str| piece(0, json!({"type": "input_json_delta", "partial_json": text}));
    for (events, expected) in [
        (vec![call(json!({})), stop(0)], json!({})),
        (vec![call(json!(null)), json_piece(""), stop(0)], json!({})),
        (vec![call(json!({})), json_piece("  "), stop(0)], json!({})),
        (vec![call(json!({"a": 1})), stop(0)], json!({"a": 1})),
        (
            vec![call(json!({"a": 1})), json_piece("{\"b\":2}"), stop(0)],
            json!({"b": 2}),
        ),
        // The service forgot to close it; the call is complete all the same.
        (
            vec![call(json!({})), json_piece("{\"b\":2}")],
            json!({"b": 2}),
        ),
    ] {
        let message = answer_with(json!({}), &events);
        let call = message.tool_calls().next().unwrap();
        assert_eq!(json!(call.arguments), expected);
        assert_eq!((call.id.as_str(), &call.arguments_error), ("c", &None));
    }
    let broken = answer_with(
        json!({}),
        &[call(json!({})), json_piece("{\"b\":"), stop(0)],
    );
    let error = broken
        .tool_calls()
        .next()
        .unwrap()
        .arguments_error
        .clone()
        .unwrap();
    assert!(error.ends_with("Received arguments:\n{\"b\":"), "{error}");
}

#[test]
fn a_call_without_an_id_gets_one_and_blocks_may_share_a_number() {
    let call = |id: &str| block(0, json!({"type": "tool_use", "id": id, "name": "t"}));
    let arguments =
        |text: &str| piece(0, json!({"type": "input_json_delta", "partial_json": text}));
    let message = answer_with(
        json!({}),
        &[
            call(""),
            arguments("{\"n\":1}"),
            stop(0),
            call("b"),
            arguments("{\"n\":2}"),
            stop(0),
        ],
    );
    let calls: Vec<_> = message.tool_calls().collect();
    assert!(calls[0].id.starts_with("toolu_"), "{}", calls[0].id);
    assert_eq!(
        (calls[1].id.as_str(), &calls[1].arguments["n"]),
        ("b", &json!(2))
    );
}

#[test]
fn blocks_that_begin_with_content_keep_it() {
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "a"});
    let message = answer_with(
        json!({}),
        &[
            block(0, thinking),
            piece(0, json!({"type": "thinking_delta", "thinking": "…"})),
            piece(0, json!({"type": "signature_delta", "signature": "b"})),
            stop(0),
            block(1, json!({"type": "redacted_thinking", "data": "d"})),
            stop(1),
            block(2, json!({"type": "text", "text": "so "})),
            piece(2, json!({"type": "text_delta", "text": "it is"})),
            stop(2),
        ],
    );
    let [
        Content::Thinking(first),
        Content::Thinking(second),
        Content::Text(last),
    ] = &message.content[..]
    else {
        panic!("{:?}", message.content);
    };
    assert_eq!(
        (first.thinking.as_str(), first.thinking_signature.as_deref()),
        ("hm…", Some("ab"))
    );
    assert_eq!(
        (second.redacted, second.thinking_signature.as_deref()),
        (Some(true), Some("d"))
    );
    assert_eq!(second.thinking, "[Reasoning redacted]");
    assert_eq!(last.text, "so it is");
}

#[test]
fn a_model_may_take_over_before_anything_is_said() {
    let allowed = json!([{"provider": "p", "model": "other", "cost": {"input": 5, "output": 1}}]);
    let patch =
        json!({"cost": {"input": 1, "output": 1}, "compat": {"allowedFallbackModels": allowed}});
    let mut taken_over = start();
    taken_over["message"]["model"] = json!("other");
    let takes_over = block(0, json!({"type": "fallback"}));
    let end = [delta("end_turn"), json!({"type": "message_stop"})];
    let events = [
        vec![taken_over, takes_over.clone()],
        text("x").to_vec(),
        end.to_vec(),
    ]
    .concat();
    let message = send(patch, reply(200, &stream(&events))).message.unwrap();
    assert_eq!(message.response_model.as_deref(), Some("other"));
    assert!((message.usage.cost.input - 50e-6).abs() < 1e-12);
    let events = [vec![start()], text("x").to_vec(), vec![takes_over]].concat();
    assert!(error_of(reply(200, &stream(&events))).contains("mid-output model fallback"));
}

#[test]
fn usage_of_many_services() {
    let usage = |start_usage: Value, delta_usage: Value, patch: Value| {
        let mut start = start();
        start["message"]["usage"] = start_usage;
        let mut delta = delta("end_turn");
        delta["usage"] = delta_usage;
        let events = [start, delta, json!({"type": "message_stop"})];
        send(patch, reply(200, &stream(&events)))
            .message
            .unwrap()
            .usage
    };
    // The end may repeat the input, or say that it knows nothing of it.
    let late = json!({"input_tokens": 4, "output_tokens": 2, "cache_read_input_tokens": null});
    let counted = usage(
        json!({"input_tokens": 9, "cache_read_input_tokens": 3}),
        late,
        json!({}),
    );
    assert_eq!(
        (counted.input, counted.cache_read, counted.total_tokens),
        (4, 3, 9)
    );
    let odd = usage(json!(null), json!({"output_tokens": 2.0}), json!({}));
    assert_eq!((odd.input, odd.output), (0, 2));
    let hour = json!({"cache_creation_input_tokens": 5, "cache_creation": {"ephemeral_1h_input_tokens": 2}});
    assert_eq!(usage(json!({}), hour, json!({})).cache_write_1h, Some(2));
    let charged = json!({"output_tokens": 2, "cost": 0.25, "is_byok": false});
    let cost = usage(
        json!({}),
        charged.clone(),
        json!({"provider": "openrouter"}),
    )
    .cost;
    assert_eq!((cost.total, cost.total_from_provider), (0.25, Some(true)));
    assert_eq!(
        usage(json!({}), charged, json!({}))
            .cost
            .total_from_provider,
        Some(false)
    );
}

#[test]
fn data_that_is_not_json_ends_the_answer_unless_it_can_be_repaired() {
    let raw = |data: &str| {
        let [open, ..] = text("");
        let end = stream(&[stop(0), delta("end_turn"), json!({"type": "message_stop"})]);
        format!(
            "{}event: content_block_delta\ndata: {data}\n\n{end}",
            stream(&[start(), open])
        )
    };
    let repaired = raw(
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\d"}}"#,
    );
    let message = send(json!({}), reply(200, &repaired)).message.unwrap();
    assert_eq!(text_of(&message), "a\\d");
    let error = error_of(reply(200, &raw("{\"type\":")));
    assert!(
        error.starts_with("Could not parse Anthropic SSE event content_block_delta: "),
        "{error}"
    );
    // Numbers as texts, and fields that are of another type.
    let odd = raw(
        r#"{"type":"content_block_delta","index":"0","usage":[],"delta":{"type":"text_delta","text":"b","thinking":7}}"#,
    );
    assert_eq!(
        text_of(&send(json!({}), reply(200, &odd)).message.unwrap()),
        "b"
    );
}

#[test]
fn what_the_service_did_to_the_input_is_noted() {
    let mut said = delta("end_turn");
    said["input_transformations"] =
        json!([{"type": "dropped", "path": "messages.1", "reason": null, "x": 1}]);
    let events = [start(), said, json!({"type": "message_stop"})];
    let message = send(json!({}), reply(200, &stream(&events)))
        .message
        .unwrap();
    let diagnostics = message.diagnostics.unwrap();
    assert_eq!(diagnostics[0]["type"], "anthropic_input_transformations");
    let told = json!([{"type": "dropped", "path": "messages.1"}]);
    assert_eq!(diagnostics[0]["details"]["transformations"], told);
}

#[test]
fn texts_of_error_statuses() {
    let json =
        r#"{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}"#;
    let compact = "529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}";
    assert_eq!(error_of(reply(529, json)), compact);
    assert_eq!(error_of(reply(502, " <h1>no</h1> ")), "502 <h1>no</h1>");
    assert_eq!(error_of(reply(403, "")), "403 status code (no body)");
    assert_eq!(
        error_of(reply(404, r#"{"message": "no such model"}"#)),
        "404 no such model"
    );
    let long = error_of(reply(400, &"x".repeat(5000)));
    assert!(long.ends_with("... [truncated 1000 chars]"));
}

#[test]
fn an_answer_that_is_no_stream_says_what_it_was() {
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    assert_eq!(error_of(reply(200, error)), error);
    let page = error_of(reply(200, "<html>Sign in</html>"));
    assert!(
        page.contains("no stream of events") && page.contains("Sign in"),
        "{page}"
    );
}

#[test]
fn failures_of_the_transport_are_messages_and_giving_up_is_none() {
    let network = Error::new(code::NETWORK, "Connection error.: refused");
    assert_eq!(error_of(Err(network.clone())), "Connection error.: refused");
    let cut = vec![Ok(stream(&[start()]).into_bytes()), Err(network)];
    assert_eq!(error_of(Ok((200, cut))), "Connection error.: refused");
    let given_up = send(json!({}), Err(Error::cancelled()))
        .message
        .unwrap_err();
    assert!(given_up.is(code::CANCELLED));
}

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

/// The answer to chunks, each written as one event.
fn answer_of(patch: Value, chunks: &[Value]) -> AssistantMessage {
    let mut body = String::new();
    for chunk in chunks {
        body += &format!("data: {chunk}\n\n");
    }
    send(patch, reply(200, &body)).message.unwrap()
}

fn delta(delta: Value) -> Value {
    json!({"id": "r", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn fragment(fragment: Value) -> Value {
    delta(json!({"tool_calls": [fragment]}))
}

fn text_of(message: &AssistantMessage) -> String {
    pliant_sdk::message::joined_text(&message.content, "")
}

fn calls(message: &AssistantMessage) -> Value {
    let calls = message.tool_calls();
    calls
        .map(|call| json!([call.id, call.name, call.arguments]))
        .collect()
}

fn error_of(answer: Reply) -> String {
    let message = send(json!({}), answer).message.unwrap();
    assert_eq!(message.stop_reason, StopReason::Error);
    message.error_message.unwrap()
}

// P05
#[test]
fn the_last_event_needs_no_blank_line() {
    let usage = json!({"choices": [{"delta": {}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
    for tail in ["\n\n", "\n", ""] {
        let body = format!(
            "data: {}\n\ndata: {usage}{tail}",
            delta(json!({"content": "a"}))
        );
        let message = send(json!({}), reply(200, &body)).message.unwrap();
        assert_eq!(message.stop_reason, StopReason::Stop, "{tail:?}");
        assert_eq!(message.usage.total_tokens, 5);
        assert_eq!(text_of(&message), "a");
    }
}

/// Expects that a body is read as the whole answer "a".
#[track_caller]
fn assert_answers_a(body: &str) {
    let message = send(json!({}), reply(200, body)).message.unwrap();
    assert_eq!(
        (text_of(&message).as_str(), message.stop_reason),
        ("a", StopReason::Stop)
    );
}

// P06
#[test]
fn comments_are_not_chunks() {
    let body = format!(
        ":\n: ping\n\ndata: {}\n\n:ping\n: OPENROUTER PROCESSING\n\ndata: {}\n\n",
        delta(json!({"content": "a"})),
        finish("stop")
    );
    assert_answers_a(&body);
}

// P07
#[test]
fn an_error_in_the_stream_is_an_error_wherever_it_comes() {
    let error = json!({"error": {"message": "Overloaded", "type": "overloaded_error"}});
    let text = delta(json!({"content": "One"}));
    let call = fragment(
        json!({"index": 0, "id": "c", "function": {"name": "t", "arguments": "{\"a\":\"b"}}),
    );
    let before: [&[Value]; 3] = [&[], std::slice::from_ref(&text), &[text.clone(), call]];
    for (blocks, chunks) in before.into_iter().enumerate() {
        let chunks = [chunks, std::slice::from_ref(&error)].concat();
        let message = answer_of(json!({}), &chunks);
        assert_eq!(message.stop_reason, StopReason::Error);
        assert_eq!(message.error_message.as_deref(), Some("Overloaded"));
        assert_eq!(message.content.len(), blocks);
        if let Some(call) = message.tool_calls().next() {
            assert_eq!(json!(call.arguments), json!({"a": "b"}));
        }
    }
    let named = "event: error\ndata: {\"message\":\"Overloaded\"}\n\n";
    assert_eq!(error_of(reply(200, named)), "Overloaded");
    assert_eq!(error_of(reply(200, "event: error\ndata: busy\n\n")), "busy");
}

#[test]
fn the_text_of_a_stream_error() {
    let text = |error: Value| {
        answer_of(json!({}), &[json!({"error": error})])
            .error_message
            .unwrap()
    };
    assert_eq!(text(json!("plain")), "plain");
    assert_eq!(text(json!({"code": 5})), "{\"code\":5}");
    assert_eq!(
        text(json!({"message": "Provider returned error", "metadata": {"raw": "busy"}})),
        "Provider returned error\nbusy"
    );
    assert_eq!(
        text(json!({"message": "is busy", "metadata": {"raw": "busy"}})),
        "is busy"
    );
}

// P08
#[test]
fn arguments_that_are_not_there_are_an_empty_object() {
    for arguments in [
        json!(""),
        json!("  \n"),
        json!("null"),
        Value::Null,
        json!({}),
    ] {
        let function = json!({"name": "t", "arguments": arguments});
        let chunks = [
            fragment(json!({"index": 0, "id": "c", "function": function})),
            finish("tool_calls"),
        ];
        let message = answer_of(json!({}), &chunks);
        assert_eq!(calls(&message), json!([["c", "t", {}]]), "{arguments}");
        assert_eq!(message.stop_reason, StopReason::ToolUse);
        let call = message.tool_calls().next().unwrap();
        assert_eq!(call.arguments_error, None);
    }
}

#[test]
fn chunks_that_are_no_objects_are_skipped() {
    let body = format!(
        "data: null\n\ndata: 5\n\ndata: []\n\ndata: \"x\"\n\ndata:\n\ndata: {}\n\ndata: {{}}\n\ndata: {}\n\n",
        delta(json!({"content": "a"})),
        finish("stop")
    );
    assert_answers_a(&body);
}

#[test]
fn ill_typed_chunks_are_read_as_far_as_they_can_be() {
    let chunks = [
        json!({"id": 5, "model": [], "choices": [{"delta": {"content": [{"type": "text", "text": "a"}, 7]}}]}),
        json!({"choices": {"no": "list"}}),
        json!({"choices": [null]}),
        json!({"choices": [{"delta": {"content": 5, "reasoning": {}, "tool_calls": [
            {"index": "0", "id": "c", "function": {"name": "t", "arguments": {"x": 1}}}, null]}}], "usage": "none"}),
        json!({"id": "late", "choices": [{"delta": null, "finish_reason": 3}]}),
        finish("tool_calls"),
    ];
    let message = answer_of(json!({}), &chunks);
    assert_eq!(text_of(&message), "a");
    assert_eq!(calls(&message)[0], json!(["c", "t", {"x": 1}]));
    assert_eq!(message.response_id.as_deref(), Some("late"));
}

#[test]
fn half_of_a_surrogate_pair_breaks_nothing() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"a\\ud83d\"},\"finish_reason\":\"stop\"}]}\n\n";
    let message = send(json!({}), reply(200, body)).message.unwrap();
    assert_eq!(text_of(&message), "a\u{fffd}");
}

#[test]
fn data_that_is_not_json_ends_the_answer() {
    let body = format!(
        "data: {}\n\ndata: {{\"choices\n\n",
        delta(json!({"content": "a"}))
    );
    let message = send(json!({}), reply(200, &body)).message.unwrap();
    assert_eq!(
        message.error_message.as_deref(),
        Some("Error reading response: malformed server-sent event JSON.")
    );
    assert_eq!(text_of(&message), "a");
}

#[test]
fn nothing_after_the_end_counts() {
    let body = format!(
        "data: {}\n\ndata: [DONE]\n\ndata: {}\n\ndata: nonsense\n\n",
        finish("stop"),
        delta(json!({"content": "late"}))
    );
    let message = send(json!({}), reply(200, &body)).message.unwrap();
    assert!(message.content.is_empty());
}

#[test]
fn finish_reasons() {
    let ended = |reason: &str| {
        let message = answer_of(json!({}), &[delta(json!({"content": "a"})), finish(reason)]);
        assert_eq!(message.raw_stop_reason.as_deref(), Some(reason));
        (message.stop_reason, message.error_message)
    };
    assert_eq!(ended("stop"), (StopReason::Stop, None));
    assert_eq!(ended("end"), (StopReason::Stop, None));
    assert_eq!(ended("length"), (StopReason::Length, None));
    assert_eq!(ended("function_call"), (StopReason::ToolUse, None));
    for reason in ["content_filter", "network_error", "whatever"] {
        let text = format!("Provider finish_reason: {reason}");
        assert_eq!(ended(reason), (StopReason::Error, Some(text)));
    }
}

#[test]
fn an_answer_that_is_no_stream_says_what_it_was() {
    let error = |body: &str| error_of(reply(200, body));
    assert_eq!(
        error(r#"{"error": {"message": "No such deployment", "code": 7}}"#),
        "No such deployment"
    );
    let page = error("<html>Sign in</html>");
    assert!(
        page.contains("baseUrl") && page.ends_with("<html>Sign in</html>"),
        "{page}"
    );
    // Nothing at all, and a stream of comments, are a stream that broke.
    for body in ["", "\n\n", ": wait\n\n: wait\n\n", "data: [DONE]\n\n"] {
        assert_eq!(
            error(body),
            "Stream ended without finish_reason",
            "{body:?}"
        );
    }
}

#[test]
fn a_stream_may_be_allowed_to_end_without_a_reason() {
    let lenient = json!({"compat": {"supportsFinishReason": false}});
    let text = delta(json!({"content": "a"}));
    let call =
        fragment(json!({"index": 0, "id": "c", "function": {"name": "t", "arguments": "{}"}}));
    assert_eq!(
        answer_of(lenient.clone(), std::slice::from_ref(&text)).stop_reason,
        StopReason::Stop
    );
    assert_eq!(
        answer_of(lenient, std::slice::from_ref(&call)).stop_reason,
        StopReason::ToolUse
    );
    let empty = delta(json!({}));
    let mut unfinished = empty.clone();
    unfinished["choices"][0]["finish_reason"] = json!("");
    let message = answer_of(json!({}), &[unfinished]);
    assert_eq!(
        message.error_message.as_deref(),
        Some("Stream ended without finish_reason")
    );
    // Calls with `stop` stay `stop`; the loop looks at the calls.
    assert_eq!(
        answer_of(json!({}), &[call, finish("stop")]).stop_reason,
        StopReason::Stop
    );
}

#[test]
fn calls_are_told_apart_by_index_then_id() {
    let part = |index: Value, id: Value, name: Value, arguments: &str| {
        fragment(
            json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}}),
        )
    };
    let none = Value::Null;
    let by_id = [
        part(none.clone(), json!("1"), json!("t"), "{\"a\":"),
        part(none.clone(), json!("2"), json!("u"), "{}"),
        part(none.clone(), json!("1"), none.clone(), "1}"),
    ];
    let expected = json!([["1", "t", {"a": 1}], ["2", "u", {}]]);
    assert_eq!(calls(&answer_of(json!({}), &by_id)), expected);
    let late_names = [
        part(json!(0), none.clone(), none.clone(), "{\"a\":"),
        part(json!(0), json!("1"), json!("t"), "1}"),
        part(json!(1), json!("2"), json!("u"), ""),
    ];
    assert_eq!(calls(&answer_of(json!({}), &late_names)), expected);
    let nameless_rest = [
        part(none.clone(), json!("1"), json!("t"), "{\"a\":"),
        part(none.clone(), none.clone(), none.clone(), "1}"),
        part(none.clone(), none.clone(), json!("u"), "{}"),
    ];
    let calls_without = calls(&answer_of(json!({}), &nameless_rest));
    assert_eq!(calls_without[0], json!(["1", "t", {"a": 1}]));
    assert_eq!(calls_without[1][1], "u");
    // A result must be able to name its call.
    let made_up = calls_without[1][0].as_str().unwrap();
    assert!(
        made_up.starts_with("call_") && made_up.len() < 30,
        "{made_up}"
    );
    // Always index 0: another id and name after complete arguments is another call.
    let one_index = [
        part(json!(0), json!("1"), json!("t"), "{\"a\":1}"),
        part(json!(0), json!("2"), json!("u"), "{}"),
    ];
    assert_eq!(calls(&answer_of(json!({}), &one_index)), expected);
    // A new id for every piece of one call.
    let many_ids = [
        part(json!(0), json!("1"), json!("t"), "{\"a\":"),
        part(json!(0), json!("x"), none, "1}"),
    ];
    assert_eq!(
        calls(&answer_of(json!({}), &many_ids)),
        json!([["1", "t", {"a": 1}]])
    );
}

#[test]
fn grammar_calls_become_their_property() {
    let tool = json!({"name": "t", "description": "", "parameters": {"type": "object",
        "properties": {"patch": {"type": "string"}}, "required": ["patch"]},
        "constrainedSampling": {"type": "grammar", "variants": {"openai_lark": "start: A"}}});
    let list = messages(json!([{"role": "system", "content": "", "toolsAdded": [tool]}]));
    let grammar = model(json!({"compat": {"supportsOpenAIGrammarTools": true}}));
    let body = [
        fragment(
            json!({"index": 0, "id": "c", "type": "custom", "custom": {"name": "t", "input": "say \"h"}}),
        ),
        fragment(json!({"index": 0, "custom": {"input": "i\"\n"}})),
        finish("tool_calls"),
    ];
    let body: String = body
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    let outcome = exchange(
        StreamRequest::new(grammar, options(json!({})), list),
        reply(200, &body),
    );
    let message = outcome.message.unwrap();
    assert_eq!(
        calls(&message),
        json!([["c", "t", {"patch": "say \"hi\"\n"}]])
    );
    let deltas = outcome.events.iter().filter_map(|event| match event {
        StreamEvent::ToolcallDelta { delta, .. } => Some(delta.as_str()),
        _ => None,
    });
    let json: String = deltas.collect();
    assert_eq!(json, r#"{"patch":"say \"hi\"\n"}"#);
}

fn thinking(message: &AssistantMessage) -> (&str, Option<&str>) {
    match message.content.first() {
        Some(Content::Thinking(block)) => (&block.thinking, block.thinking_signature.as_deref()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn reasoning_remembers_its_field() {
    let said = |provider: &str, delta_of: Value| {
        let chunks = [
            delta(delta_of),
            delta(json!({"reasoning_text": "!"})),
            finish("stop"),
        ];
        let message = answer_of(json!({"provider": provider}), &chunks);
        let (text, signature) = thinking(&message);
        (text.to_owned(), signature.unwrap().to_owned())
    };
    let both = json!({"reasoning": "b", "reasoning_content": "a"});
    assert_eq!(said("p", both), ("a!".into(), "reasoning_content".into()));
    let plain = json!({"reasoning": "b", "reasoning_content": ""});
    assert_eq!(said("p", plain.clone()), ("b!".into(), "reasoning".into()));
    assert_eq!(
        said("opencode-go", plain),
        ("b!".into(), "reasoning_content".into())
    );
}

#[test]
fn reasoning_details_become_the_signature() {
    let part = |text: &str, more: Value| {
        let mut part = json!({"type": "reasoning.text", "text": text});
        for (name, value) in more.as_object().unwrap() {
            part[name] = value.clone();
        }
        part
    };
    let chunks = [
        delta(
            json!({"reasoning": "ab", "reasoning_details": [part("a", json!({"signature": null, "index": 0}))]}),
        ),
        delta(
            json!({"reasoning_details": [part("b", json!({"signature": "s", "index": 1})), {"type": "reasoning.text"}, 5, {"type": "odd"}]}),
        ),
        delta(
            json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}, {"type": "reasoning.encrypted", "data": "y"}]}),
        ),
        delta(json!({"reasoning_details": [{"type": "reasoning.summary", "summary": "s1"}]})),
        delta(
            json!({"reasoning_details": [{"type": "reasoning.summary", "summary": "s2", "format": "f"}]}),
        ),
        delta(json!({"content": "c"})),
        finish("stop"),
    ];
    let message = answer_of(json!({}), &chunks);
    let (text, signature) = thinking(&message);
    assert_eq!(text, "ab");
    let details: Value = serde_json::from_str(signature.unwrap()).unwrap();
    assert_eq!(
        details,
        json!([
            {"type": "reasoning.text", "text": "ab", "signature": "s", "index": 0},
            {"type": "reasoning.encrypted", "data": "x"},
            {"type": "reasoning.encrypted", "data": "y"},
            {"type": "reasoning.summary", "summary": "s1s2", "format": "f"}])
    );
}

#[test]
fn usage_of_many_services() {
    let usage = |patch: Value, usage: Value| {
        let chunk = json!({"choices": [], "usage": usage});
        answer_of(patch, &[chunk, finish("stop")]).usage
    };
    let plain = |raw: Value| usage(json!({}), raw);
    let counted = plain(
        json!({"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details":
        {"cached_tokens": 60, "cache_write_tokens": 50}, "reasoning_tokens": 4}),
    );
    assert_eq!(
        (
            counted.input,
            counted.cache_read,
            counted.cache_write,
            counted.output,
            counted.reasoning
        ),
        (0, 60, 50, 10, Some(4))
    );
    assert_eq!(counted.total_tokens, 120);
    assert_eq!(
        plain(json!({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4})).cache_read,
        4
    );
    assert_eq!(
        plain(json!({"prompt_tokens": 9.0, "cached_tokens": 5})).input,
        4
    );
    assert_eq!(
        plain(json!({"prompt_tokens": -1, "completion_tokens": null})).total_tokens,
        0
    );
    let in_choice =
        json!({"choices": [{"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 7}}]});
    assert_eq!(answer_of(json!({}), &[in_choice]).usage.input, 7);
    let router = |raw: Value| {
        let total = usage(json!({"provider": "openrouter"}), raw).cost;
        (total.total, total.total_from_provider)
    };
    assert_eq!(
        router(json!({"cost": 0.5, "is_byok": false})),
        (0.5, Some(true))
    );
    assert_eq!(router(json!({"cost": 0.5})), (0.0, Some(false)));
    assert_eq!(
        router(json!({"cost": -1, "is_byok": false})),
        (0.0, Some(false))
    );
    let byok =
        |details: Value| router(json!({"cost": 0.5, "is_byok": true, "cost_details": details}));
    assert_eq!(
        byok(json!({"upstream_inference_cost": 1.0})),
        (1.5, Some(true))
    );
    let parts = json!({"upstream_inference_cost": null, "upstream_inference_prompt_cost": 1,
        "upstream_inference_completions_cost": 2});
    assert_eq!(byok(parts), (3.5, Some(true)));
    assert_eq!(byok(json!({})), (0.0, Some(false)));
    assert_eq!(
        plain(json!({"cost": 0.5, "is_byok": false}))
            .cost
            .total_from_provider,
        Some(false)
    );
}

#[test]
fn the_answering_model_is_named_if_it_is_another() {
    let chunk = |model: &str| json!({"id": "r", "model": model, "choices": []});
    let named = |models: [&str; 3]| {
        let mut chunks: Vec<Value> = models.map(chunk).to_vec();
        chunks.push(finish("stop"));
        answer_of(json!({}), &chunks).response_model
    };
    assert_eq!(named(["m", "m", ""]), None);
    assert_eq!(named(["m", "m-0711", "m-0815"]).as_deref(), Some("m-0711"));
}

#[test]
fn texts_of_error_statuses() {
    let text = |status, body: &str| error_of(reply(status, body));
    let error = r#"{ "error": {"message": "busy", "code": 503} }"#;
    assert_eq!(text(503, error), r#"503: {"message":"busy","code":503}"#);
    assert_eq!(text(502, "<html>Bad</html>"), "502 <html>Bad</html>");
    assert_eq!(text(403, ""), "403 status code (no body)");
    assert_eq!(
        text(404, r#"{"error":"no such model"}"#),
        "404: no such model"
    );
    assert_eq!(text(422, r#"{"detail":"x"}"#), r#"422: {"detail":"x"}"#);
    let routed =
        r#"{"error":{"message":"Provider returned error","metadata":{"raw":"line\nbusy"}}}"#;
    assert!(text(429, routed).ends_with("}}\nline\nbusy"));
    let long = text(500, &"é".repeat(4100));
    assert!(long.ends_with("é... [truncated 100 chars]"));
    assert_eq!(
        long.chars().count(),
        4 + 4000 + "... [truncated 100 chars]".len()
    );
}

#[test]
fn failures_of_the_transport_are_messages_and_giving_up_is_none() {
    let refused = Error::new(code::NETWORK, "Connection error.: refused");
    assert_eq!(error_of(Err(refused.clone())), "Connection error.: refused");
    let cut = format!("data: {}\n\n", delta(json!({"content": "a"})));
    let pieces = Ok((200, vec![Ok(cut.into_bytes()), Err(refused)]));
    let outcome = send(json!({}), pieces);
    let message = outcome.message.unwrap();
    assert_eq!(
        (text_of(&message).as_str(), message.stop_reason),
        ("a", StopReason::Error)
    );
    let ends = outcome
        .events
        .iter()
        .any(|event| matches!(event, StreamEvent::TextEnd { .. }));
    assert!(!ends, "a failed stream leaves its blocks open");
    let error = send(json!({}), Err(Error::cancelled()))
        .message
        .unwrap_err();
    assert!(error.is(code::CANCELLED));
    let nowhere = send(json!({"baseUrl": ""}), reply(200, ""))
        .message
        .unwrap();
    assert_eq!(nowhere.stop_reason, StopReason::Error);
}

//! What is sent, beyond the recorded cases.

use pliant_sdk::provider::StreamRequest;
use serde_json::{Value, json};

use super::{body, body_of, build, built, exchange, messages, model, options, reply};
use crate::AnthropicMessages;

fn hello() -> Value {
    json!([{"role": "user", "content": "x"}])
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "d", "parameters": {"type": "object",
        "properties": {"n": {"type": "number"}}, "required": ["n"]}})
}

fn system(tools: Value) -> Value {
    json!({"role": "system", "content": "s", "toolsAdded": tools})
}

fn answer(content: Value) -> Value {
    json!({"role": "assistant", "content": content, "provider": "p", "api": "anthropic-messages",
        "model": "m", "stopReason": "toolUse"})
}

fn call(id: &str) -> Value {
    json!({"type": "toolCall", "id": id, "name": "t", "arguments": {"n": 1}})
}

fn result(id: &str, content: Value, is_error: bool) -> Value {
    json!({"role": "toolResult", "toolCallId": id, "toolName": "t", "content": content,
        "isError": is_error})
}

fn image() -> Value {
    json!({"type": "image", "data": "QQ==", "mimeType": "image/jpg"})
}

/// The messages without cache markers.
fn sent(patch: Value, list: Value) -> Value {
    body(patch, json!({"cacheRetention": "none"}), list)["messages"].take()
}

/// A header of the request, as the plugin sets it.
fn header(built: &crate::request::Built, name: &str) -> Option<Option<String>> {
    let headers = &built.http.request().headers;
    let mut found = headers
        .iter()
        .filter(|(known, _)| known.eq_ignore_ascii_case(name));
    let value = found.next().map(|(_, value)| value.clone());
    assert!(found.next().is_none(), "{name} is there once");
    value
}

#[test]
fn fields_stand_in_one_order() {
    let list = json!([system(json!([tool("t")])), {"role": "user", "content": "x"}]);
    let option = json!({"reasoning": "low", "metadata": {"user_id": "u", "x": 1},
        "toolChoice": "auto", "temperature": 0.5});
    let compat = json!({"forceAdaptiveThinking": true,
        "allowedFallbackModels": [{"provider": "p", "model": "other"}]});
    let body = body(json!({"compat": compat}), option, list);
    let names: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        [
            "model",
            "messages",
            "max_tokens",
            "stream",
            "system",
            "tools",
            "thinking",
            "output_config",
            "metadata",
            "tool_choice",
            "fallbacks"
        ]
    );
    assert_eq!(body["metadata"], json!({"user_id": "u"}));
    assert_eq!(body["tool_choice"], json!({"type": "auto"}));
    assert_eq!(body["fallbacks"], json!([{"model": "other"}]));
}

#[test]
fn the_key_goes_into_its_header_unless_the_user_pays_otherwise() {
    let built_with = |headers: Value| built(json!({"headers": headers}), json!({}), hello());
    let usual = built_with(json!({}));
    let credential = usual.http.request().credential.clone().unwrap();
    assert_eq!(
        (&*credential.header, &*credential.prefix),
        ("x-api-key", "")
    );
    assert_eq!(
        header(&usual, "anthropic-version"),
        Some(Some("2023-06-01".into()))
    );
    assert_eq!(
        header(&usual, "user-agent"),
        None,
        "the host says who pliant is"
    );
    let bearer = built(json!({"compat": {"authHeader": true}}), json!({}), hello());
    let credential = bearer.http.request().credential.clone().unwrap();
    assert_eq!(
        (&*credential.header, &*credential.prefix),
        ("authorization", "Bearer ")
    );
    for name in ["Authorization", "x-api-key", "cf-aig-authorization"] {
        let other = built_with(json!({name: "secret"}));
        assert_eq!(other.http.request().credential, None, "{name}");
        assert_eq!(header(&other, name), Some(Some("secret".into())));
    }
}

#[test]
fn configured_betas_are_the_only_ones() {
    let budget = json!({"reasoning": "low"});
    let betas = |patch: Value, option: Value| {
        let list = json!([system(json!([tool("t")])), {"role": "user", "content": "x"}]);
        header(&built(patch, option, list), "anthropic-beta").flatten()
    };
    let old = json!({"compat": {"supportsEagerToolInputStreaming": false}});
    assert_eq!(
        betas(old, budget.clone()).as_deref(),
        Some("fine-grained-tool-streaming-2025-05-14,interleaved-thinking-2025-05-14")
    );
    assert_eq!(betas(json!({}), json!({})), None);
    let own = json!({"headers": {"Anthropic-Beta": "own"}});
    assert_eq!(betas(own, budget.clone()).as_deref(), Some("own"));
    let none = json!({"reasoning": "low", "headers": {"anthropic-beta": null}});
    assert_eq!(betas(json!({}), none), None);
}

#[test]
fn a_session_keeps_to_its_machine_where_the_service_has_several() {
    let names = |patch: Value, retention: &str| {
        let option = json!({"sessionId": "s", "cacheRetention": retention});
        let built = built(patch, option, hello());
        ["x-session-affinity", "x-session-id"].map(|name| header(&built, name).flatten())
    };
    let affine = json!({"compat": {"sendSessionAffinityHeaders": true}});
    let s = Some("s".to_owned());
    assert_eq!(names(json!({}), "short"), [None, None]);
    assert_eq!(names(affine.clone(), "short"), [s.clone(), None]);
    assert_eq!(names(affine, "none"), [None, None]);
    assert_eq!(names(json!({"provider": "openrouter"}), "long"), [None, s]);
}

#[test]
fn the_address_is_joined_with_one_slash() {
    for url in [
        "https://h.test/a",
        "https://h.test/a/",
        "https://h.test/a//",
    ] {
        let built = built(json!({"baseUrl": url}), json!({}), hello());
        assert_eq!(
            built.http.request().url,
            "https://h.test/a/v1/messages?beta=true"
        );
    }
    let request = StreamRequest::new(model(json!({"baseUrl": ""})), options(json!({})), vec![]);
    assert!(build(&request).unwrap_err().contains("p/m has no base URL"));
}

#[test]
fn markers_stand_on_prompt_last_tool_and_last_message() {
    let list = json!([system(json!([tool("a"), tool("b")])), {"role": "user", "content": "x"}]);
    let marked = |patch: Value, option: Value| body(patch, option, list.clone());
    let short = json!({"type": "ephemeral"});
    let usual = marked(json!({}), json!({}));
    assert_eq!(usual["system"][0]["cache_control"], short);
    assert_eq!(usual["tools"][0].get("cache_control"), None);
    assert_eq!(usual["tools"][1]["cache_control"], short);
    assert_eq!(usual["messages"][0]["content"][0]["cache_control"], short);
    let long = marked(json!({}), json!({"cacheRetention": "long"}));
    assert_eq!(long["system"][0]["cache_control"]["ttl"], "1h");
    let compat = json!({"compat": {"supportsLongCacheRetention": false, "supportsCacheControlOnTools": false}});
    let less = marked(compat, json!({"cacheRetention": "long"}));
    assert_eq!(less["system"][0]["cache_control"], short);
    assert_eq!(less["tools"][1].get("cache_control"), None);
    let none = marked(json!({}), json!({"cacheRetention": "none"}));
    assert!(!none.to_string().contains("cache_control"));
    assert_eq!(none["messages"][0]["content"], "x");
}

#[test]
fn user_messages() {
    let list = json!([
        {"role": "user", "content": "  "},
        {"role": "user", "content": [text(" "), text("a"), image()]},
        {"role": "user", "content": [text("")]}]);
    let source = json!({"type": "base64", "media_type": "image/jpeg", "data": "QQ=="});
    assert_eq!(
        sent(json!({}), list),
        json!([{"role": "user", "content": [text("a"), {"type": "image", "source": source}]}])
    );
}

// P10
#[test]
fn thinking_goes_back_as_it_came_or_as_text() {
    let thinking = |thinking: &str, signature: &str| json!({"type": "thinking", "thinking": thinking, "thinkingSignature": signature});
    let redacted = json!({"type": "thinking", "thinking": "[…]", "thinkingSignature": "d",
        "redacted": true});
    let content = json!([
        thinking("a", "s"),
        thinking("", "t"),
        redacted,
        thinking("b", ""),
        thinking(" ", ""),
        text(" "),
        text("c")
    ]);
    let list = json!([{"role": "user", "content": "x"}, answer(content), {"role": "user", "content": "y"}]);
    let signed = |thinking: &str, signature: &str| json!({"type": "thinking", "thinking": thinking, "signature": signature});
    let before = [
        signed("a", "s"),
        signed("", "t"),
        json!({"type": "redacted_thinking", "data": "d"}),
    ];
    let with = |unsigned: Value| {
        let mut blocks = before.to_vec();
        blocks.extend([unsigned, text("c")]);
        Value::Array(blocks)
    };
    let usual = sent(json!({}), list.clone());
    assert_eq!(usual[1]["content"], with(text("b")));
    let lenient = sent(
        json!({"compat": {"allowEmptySignature": true}}),
        list.clone(),
    );
    assert_eq!(lenient[1]["content"], with(signed("b", "")));
    // Of another model, only what was said stays.
    let other = sent(json!({"id": "other"}), list);
    assert_eq!(other[1]["content"], json!([text("c")]));
}

#[test]
fn results_of_a_run_are_one_message_and_images_of_failures_come_behind() {
    let list = json!([{"role": "user", "content": "x"}, answer(json!([call("a"), call("b"), call("c")])),
        result("a", json!([text("1"), text("2")]), false),
        result("b", json!([text("e"), image(), image(), text("f")]), true),
        result("c", json!([text(" "), image()]), false)]);
    let sent = sent(json!({}), list);
    let blocks = sent[2]["content"].as_array().unwrap();
    let contents: Vec<&Value> = blocks.iter().map(|block| &block["content"]).collect();
    assert_eq!(contents[0], "1\n2");
    assert_eq!(contents[1], "e\n(image attached after the tool results)\nf");
    assert_eq!(contents[2][0], text("(see attached image)"));
    assert_eq!(blocks[1]["is_error"], true);
    assert_eq!(
        blocks[3],
        text("Images from the error result of tool call b (t):")
    );
    assert_eq!((blocks.len(), &blocks[5]["type"]), (6, &json!("image")));
}

#[test]
fn later_system_messages_wait_for_the_next_answer() {
    let later = |text: &str| json!({"role": "system", "content": text});
    let list = json!([later("s"), {"role": "user", "content": "x"}, answer(json!([call("a")])),
        later("one"), result("a", json!([text("r")]), false), {"role": "user", "content": "y"},
        answer(json!([text("z")])), {"role": "user", "content": "w"}, later("two")]);
    let in_place = json!({"compat": {"supportsMidConvoSystemMessages": true}});
    let sent_in_place = sent(in_place.clone(), list.clone());
    let roles: Vec<&Value> = sent_in_place
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["role"])
        .collect();
    assert_eq!(
        roles,
        [
            "user",
            "assistant",
            "user",
            "user",
            "system",
            "assistant",
            "user",
            "system"
        ]
    );
    let marked = body(in_place, json!({}), list.clone());
    assert_eq!(marked["system"][0]["text"], "s");
    assert_eq!(
        marked["messages"][7]["content"][0]["cache_control"]["type"],
        "ephemeral"
    );
    let folded = body(json!({}), json!({}), list);
    assert_eq!(folded["system"][0]["text"], "s\n\none\n\ntwo");
}

#[test]
fn later_tools_may_stand_in_place() {
    let change = json!({"role": "system", "content": "", "toolsAdded": [tool("late"), tool("b")],
        "toolsRemoved": [{"name": "a"}, {"name": "b"}]});
    let list =
        json!([system(json!([tool("a"), tool("b")])), {"role": "user", "content": "x"}, change]);
    let names = |body: &Value| {
        let tools = body["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].clone()).collect::<Vec<_>>()
    };
    let compat = json!({"compat": {"supportsMidConvoSystemMessages": true, "supportsMidConvoToolChanges": true}});
    let in_place = built(compat.clone(), json!({}), list.clone());
    let beta = header(&in_place, "anthropic-beta").flatten();
    assert_eq!(beta.as_deref(), Some("inline-tools-2026-09-15"));
    let in_place = body_of(&in_place);
    assert_eq!(
        names(&in_place),
        ["a", "b", "__pliant_deferred_placeholder__"]
    );
    assert_eq!(in_place["tools"][1]["cache_control"]["type"], "ephemeral");
    assert_eq!(in_place["tools"][2].get("cache_control"), None);
    let blocks = &in_place["messages"][1]["content"];
    assert_eq!(
        blocks[0]["tool"],
        json!({"type": "tool_reference", "name": "a"})
    );
    assert_eq!(blocks[1]["tool"]["definition"]["name"], "late");
    assert_eq!(
        (&blocks[2]["type"], blocks.as_array().unwrap().len()),
        (&json!("tool_addition"), 3)
    );
    // A list that is all placeholder is refused, so without tools at first nothing stands in place.
    let empty_first = json!([{"role": "system", "content": "s"}, {"role": "user", "content": "x"},
        {"role": "system", "content": "", "toolsAdded": [tool("late")]}]);
    assert_eq!(names(&body(compat, json!({}), empty_first)), ["late"]);
    assert_eq!(names(&body(json!({}), json!({}), list)), ["late", "b"]);
}

#[test]
fn the_effort_of_each_answer_stands_before_it() {
    let mut said = answer(json!([text("a")]));
    said["providerThinkingLevel"] = json!("high");
    let mut of_others = said.clone();
    of_others["provider"] = json!("other");
    let list = json!([{"role": "user", "content": "x"}, said, {"role": "user", "content": "y"}, of_others,
        {"role": "user", "content": "z"}]);
    let efforts = |option: Value| {
        let compat = json!({"compat": {"supportsMidConvoEffort": true}});
        let request = StreamRequest::new(model(compat), options(option), messages(list.clone()));
        let built = build(&request).unwrap();
        let body = body_of(&built);
        let all = body["messages"].as_array().unwrap().iter();
        let at = all
            .enumerate()
            .filter(|(_, message)| message["role"] == "system");
        let at: Vec<(usize, Value)> = at
            .map(|(at, message)| (at, message["output_config"]["effort"].clone()))
            .collect();
        (at, built.effort, body["output_config"]["effort"].clone())
    };
    let (at, effort, top) = efforts(json!({"reasoning": "low"}));
    assert_eq!(at, [(1, json!("high")), (6, json!("low"))]);
    assert_eq!((effort.as_deref(), top), (Some("low"), json!("low")));
    // Without thinking there is no effort that could change.
    assert_eq!(efforts(json!({})), (Vec::new(), None, Value::Null));
}

#[test]
fn strict_schemas_leave_out_what_the_service_refuses() {
    let strict = |property: Value, wish: &str| {
        let tool = json!({"name": "t", "description": "d",
            "parameters": {"type": "object", "properties": {"a": property}, "description": "p"},
            "constrainedSampling": {"type": "json_schema", "strict": wish}});
        let list = json!([system(json!([tool])), {"role": "user", "content": "x"}]);
        let patch = json!({"compat": {"supportsStrictTools": true}});
        let request = StreamRequest::new(model(patch), options(json!({})), messages(list));
        build(&request).map(|built| body_of(&built)["tools"][0].take())
    };
    let plain = strict(json!({"type": "string"}), "prefer").unwrap();
    assert_eq!(plain["strict"], true);
    assert_eq!(plain["input_schema"]["required"], json!(["a"]));
    assert_eq!(plain["input_schema"]["additionalProperties"], false);
    assert_eq!(plain["input_schema"]["description"], "p");
    for refused in [
        json!({"type": "number", "minimum": 1}),
        json!({"type": "string", "format": "color"}),
        json!({"type": "array", "items": {"type": "string"}, "minItems": 2}),
    ] {
        let tool = strict(refused.clone(), "prefer").unwrap();
        assert_eq!(tool.get("strict"), None, "{refused}");
        assert!(
            strict(refused, "require")
                .unwrap_err()
                .contains("requires a strict schema")
        );
    }
    let kept =
        json!({"type": "array", "items": {"type": "string", "format": "date"}, "minItems": 1});
    assert_eq!(strict(kept, "require").unwrap()["strict"], true);
}

#[test]
fn too_many_strict_tools_are_asked_for_once() {
    let tool = json!({"name": "t", "description": "d", "parameters": {"type": "object", "properties": {}},
        "constrainedSampling": {"type": "json_schema", "strict": "prefer"}});
    let list = messages(json!([system(json!([tool])), {"role": "user", "content": "x"}]));
    let patch = json!({"compat": {"supportsStrictTools": true}});
    let request = StreamRequest::new(model(patch), options(json!({})), list);
    let refusal = json!({"type": "error", "error": {"type": "invalid_request_error",
        "message": "Too many strict tools (21)"}});
    let again = || reply(400, &refusal.to_string());
    let outcome =
        pliant_tests::rehearsal::exchange(&AnthropicMessages, request.clone(), [again(), again()]);
    let strict: Vec<&Value> = outcome
        .bodies
        .iter()
        .map(|body| &body["tools"][0]["strict"])
        .collect();
    assert_eq!(strict, [&json!(true), &Value::Null]);
    let message = outcome.message.unwrap();
    let diagnostics = message.diagnostics.unwrap();
    assert_eq!(diagnostics[0]["type"], "anthropic_strict_tools_fallback");
    assert!(
        message
            .error_message
            .unwrap()
            .contains("Too many strict tools")
    );
    // The conversation remembers it.
    let next = exchange(request, again());
    assert_eq!(next.bodies.len(), 1);
    assert_eq!(next.body["tools"][0].get("strict"), None);
}

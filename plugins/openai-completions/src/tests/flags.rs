//! Every switch of `providers.md` §4, on and off.

use pliant_sdk::provider::StreamRequest;
use serde_json::{Value, json};

use super::{body, messages, model, options};
use crate::quirks::Quirks;

fn compat(flags: Value) -> Value {
    json!({"compat": flags})
}

fn hello() -> Value {
    json!([{"role": "user", "content": "x"}])
}

fn plain(flags: Value) -> Value {
    body(compat(flags), json!({}), hello())
}

fn tool(constraint: Value) -> Value {
    let mut tool = json!({"name": "t", "description": "d", "parameters":
        {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}});
    if !constraint.is_null() {
        tool["constrainedSampling"] = constraint;
    }
    tool
}

fn with_tools(tools: Value, rest: Value) -> Value {
    let mut list = vec![json!({"role": "system", "content": "S", "toolsAdded": tools})];
    list.extend(rest.as_array().unwrap().iter().cloned());
    Value::Array(list)
}

/// An answer of the test model with a call, and its result.
fn called(content: Value) -> Value {
    json!([
        {"role": "user", "content": "x"},
        {"role": "assistant", "provider": "p", "api": "openai-completions", "model": "m",
            "stopReason": "toolUse", "content": content},
        {"role": "toolResult", "toolCallId": "c", "toolName": "t",
            "content": [{"type": "text", "text": "ok"}]},
        {"role": "user", "content": "y"}])
}

fn call() -> Value {
    json!({"type": "toolCall", "id": "c", "name": "t", "arguments": {"text": "a"}})
}

fn roles(body: &Value) -> Vec<&str> {
    let messages = body["messages"].as_array().unwrap();
    messages
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect()
}

fn header<'a>(built: &'a crate::request::Built, name: &str) -> Option<&'a str> {
    let found = built
        .http
        .request()
        .headers
        .iter()
        .find(|(known, _)| known == name)?;
    found.1.as_deref()
}

fn built(patch: Value, option: Value) -> crate::request::Built {
    let request = StreamRequest::new(model(patch), options(option), messages(hello()));
    crate::request::build(&request).unwrap()
}

#[test]
fn store_usage_and_limit_fields() {
    // G16
    let body = plain(json!({}));
    assert_eq!(body["store"], json!(false));
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
    assert_eq!(body["max_completion_tokens"], json!(32_000));
    let body = plain(
        json!({"supportsStore": false, "supportsUsageInStreaming": false,
        "maxTokensField": "max_tokens", "unknownFlag": 1}),
    );
    assert!(body.get("store").is_none());
    assert!(body.get("stream_options").is_none());
    assert_eq!(body["max_tokens"], json!(32_000));
}

#[test]
fn services_are_known_by_id_or_address() {
    let known = |patch: Value| Quirks::of(&model(patch));
    for patch in [
        json!({"provider": "deepseek"}),
        json!({"baseUrl": "https://api.deepseek.com"}),
    ] {
        let quirks = known(patch);
        assert!(!quirks.store && quirks.reasoning_content_on_assistant);
        assert_eq!(quirks.max_tokens_field, "max_tokens");
        assert_eq!(
            quirks.thinking_format,
            crate::quirks::ThinkingFormat::DeepSeek
        );
    }
    // A `compat` object leaves detection of the other switches alone.
    let quirks = known(json!({"provider": "deepseek", "compat": {"supportsStore": true}}));
    assert!(quirks.store && quirks.reasoning_content_on_assistant);
    let open_router = known(json!({"baseUrl": "https://openrouter.ai/api/v1"}));
    assert!(open_router.affinity == Some(crate::quirks::Affinity::Single));
    assert!(open_router.reports_cost && !open_router.cache_markers);
    assert!(known(json!({"provider": "openrouter", "id": "anthropic/x"})).cache_markers);
    assert!(!known(json!({"provider": "together"})).long_retention);
    assert!(known(json!({"provider": "openai"})).developer_role);
    assert!(!known(json!({"baseUrl": "https://llm.chutes.ai/v1"})).store);
}

#[test]
fn the_developer_role_is_for_reasoning_models() {
    let system = json!([{"role": "system", "content": "S"}, {"role": "user", "content": "x"}]);
    let flags = json!({"supportsDeveloperRole": true});
    assert_eq!(
        roles(&body(compat(flags.clone()), json!({}), system.clone()))[0],
        "developer"
    );
    let patch = json!({"reasoning": false, "compat": flags});
    assert_eq!(roles(&body(patch, json!({}), system.clone()))[0], "system");
    assert_eq!(roles(&body(json!({}), json!({}), system))[0], "system");
}

#[test]
fn tool_results_may_need_a_name() {
    let list = called(json!([call()]));
    let body_with = |flags| body(compat(flags), json!({}), list.clone());
    assert_eq!(
        body_with(json!({"requiresToolResultName": true}))["messages"][2]["name"],
        "t"
    );
    assert!(body_with(json!({}))["messages"][2].get("name").is_none());
}

#[test]
fn an_assistant_may_have_to_stand_between_results_and_user() {
    let list = called(json!([call()]));
    let bridged = body(
        compat(json!({"requiresAssistantAfterToolResult": true})),
        json!({}),
        list.clone(),
    );
    assert_eq!(
        roles(&bridged),
        ["user", "assistant", "tool", "assistant", "user"]
    );
    assert_eq!(
        bridged["messages"][3]["content"],
        "I have processed the tool results."
    );
    assert_eq!(bridged["messages"][1]["content"], "");
    let without = body(json!({}), json!({}), list.clone());
    assert_eq!(roles(&without), ["user", "assistant", "tool", "user"]);
    assert_eq!(without["messages"][1]["content"], Value::Null);
    let flags = json!({"requiresNonNullAssistantContent": true});
    assert_eq!(
        body(compat(flags), json!({}), list)["messages"][1]["content"],
        ""
    );
}

#[test]
fn a_history_of_calls_may_need_a_list_of_tools() {
    let flags = compat(json!({"requiresToolsWithToolHistory": true}));
    let list = called(json!([call()]));
    assert_eq!(
        body(flags.clone(), json!({}), list.clone())["tools"],
        json!([])
    );
    assert!(body(flags, json!({}), hello()).get("tools").is_none());
    assert!(body(json!({}), json!({}), list).get("tools").is_none());
}

#[test]
fn thinking_goes_back_as_field_details_or_text() {
    let thinking = |signature: &str| {
        json!([{"type": "thinking", "thinking": "one", "thinkingSignature": signature},
            {"type": "thinking", "thinking": "two", "thinkingSignature": signature},
            {"type": "text", "text": "a"}, {"type": "text", "text": "b"}, call()])
    };
    let answer = |flags: Value, signature: &str| {
        body(compat(flags), json!({}), called(thinking(signature)))["messages"][1].clone()
    };
    let entry = answer(json!({}), "reasoning");
    assert_eq!(entry["reasoning"], "one\ntwo");
    assert_eq!(entry["content"], "ab");
    let details = r#"[{"type":"reasoning.encrypted","data":"x"}]"#;
    let entry = answer(json!({}), details);
    assert_eq!(
        entry["reasoning_details"],
        json!([{"type": "reasoning.encrypted", "data": "x"}])
    );
    assert!(entry.get("reasoning").is_none());
    // Of another wire: nowhere to put it.
    let entry = answer(json!({}), "opaque");
    let names: Vec<&String> = entry.as_object().unwrap().keys().collect();
    assert_eq!(names, ["role", "content", "tool_calls"]);
    let entry = answer(json!({"requiresThinkingAsText": true}), "reasoning");
    let part = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(
        entry["content"],
        json!([part("one"), part("two"), part("ab")])
    );
    let flags = json!({"requiresReasoningContentOnAssistantMessages": true});
    assert_eq!(answer(flags.clone(), "opaque")["reasoning_content"], "");
    assert_eq!(
        answer(flags, "reasoning_content")["reasoning_content"],
        "one\ntwo"
    );
}

fn thinking(format: &str, extra: Value, level: &str) -> Value {
    let mut flags = json!({"thinkingFormat": format});
    for (name, value) in extra.as_object().unwrap() {
        flags[name] = value.clone();
    }
    let patch = json!({"compat": flags, "thinkingLevelMap": {"high": "hard"}});
    let mut body = body(patch, json!({"reasoning": level}), hello());
    for name in [
        "model",
        "messages",
        "stream",
        "stream_options",
        "store",
        "max_completion_tokens",
    ] {
        body.as_object_mut().unwrap().shift_remove(name);
    }
    body
}

#[test]
fn thinking_formats_of_no_catalogue_entry() {
    let none = json!({});
    let on = |format, extra: &Value| thinking(format, extra.clone(), "high");
    let off = |format, extra: &Value| thinking(format, extra.clone(), "off");
    assert_eq!(on("openai", &none), json!({"reasoning_effort": "hard"}));
    assert_eq!(off("openai", &none), json!({}));
    assert_eq!(
        on("openai", &json!({"supportsReasoningEffort": false})),
        json!({})
    );
    assert_eq!(
        on("qwen-chat-template", &none),
        json!({"chat_template_kwargs": {"enable_thinking": true, "preserve_thinking": true}})
    );
    assert_eq!(
        off("qwen-chat-template", &none),
        json!({"chat_template_kwargs": {"enable_thinking": false, "preserve_thinking": true}})
    );
    assert_eq!(on("string-thinking", &none), json!({"thinking": "hard"}));
    assert_eq!(off("string-thinking", &none), json!({"thinking": "none"}));
    assert_eq!(
        off("openrouter", &none),
        json!({"reasoning": {"effort": "none"}})
    );
    assert_eq!(
        on("zai", &none),
        json!({"thinking": {"type": "enabled", "clear_thinking": false}, "reasoning_effort": "hard"})
    );
    let template = json!({"chatTemplateKwargs": {"a": {"$var": "thinking.enabled"},
        "b": {"$var": "thinking.effort"}, "c": {"$var": "thinking.budget"}, "d": "literal",
        "e": {"$var": "thinking.enabled", "omitWhenOff": true}, "f": {"$var": "unknown"}}});
    assert_eq!(
        on("chat-template", &template),
        json!({"chat_template_kwargs": {"a": true, "b": "hard", "c": 16_384, "d": "literal", "e": true}})
    );
    assert_eq!(
        off("chat-template", &template),
        json!({"chat_template_kwargs": {"a": false, "d": "literal"}})
    );
    let args = json!({"chatTemplateArgs": {"on": {"$var": "thinking.enabled"}}});
    assert_eq!(
        on("baseten", &args),
        json!({"chat_template_args": {"on": true}, "reasoning_effort": "hard"})
    );
    assert_eq!(
        on("no such format", &none),
        json!({"reasoning_effort": "hard"})
    );
}

#[test]
fn thinking_may_have_a_budget() {
    let flag = json!({"supportsThinkingTokenBudget": true});
    let named = json!({"thinkingTokenBudgetField": "thinking_budget"});
    assert_eq!(
        thinking("openai", flag.clone(), "low")["thinking_token_budget"],
        2048
    );
    assert_eq!(
        thinking("openai", named.clone(), "medium")["thinking_budget"],
        8192
    );
    assert!(
        thinking("openai", named.clone(), "off")
            .get("thinking_budget")
            .is_none()
    );
    let limited = |limit: u64, budget: u64| {
        let option =
            json!({"reasoning": "low", "maxTokens": limit, "thinkingBudgets": {"low": budget}});
        body(compat(named.clone()), option, hello())["thinking_budget"].clone()
    };
    assert_eq!(limited(32_000, 5000), 5000);
    assert_eq!(limited(3000, 5000), 1976);
    assert_eq!(limited(1000, 5000), Value::Null);
}

#[test]
fn routing_and_priority() {
    let body = plain(
        json!({"openRouterRouting": {"order": ["a"]}, "vllmPriority": -3,
        "vercelGatewayRouting": {"only": ["b"], "other": 1}}),
    );
    assert_eq!(body["provider"], json!({"order": ["a"]}));
    assert_eq!(body["providerOptions"], json!({"gateway": {"only": ["b"]}}));
    assert_eq!(body["priority"], -3);
    let body = plain(json!({"vercelGatewayRouting": {"other": 1}}));
    assert!(body.get("providerOptions").is_none() && body.get("priority").is_none());
}

#[test]
fn tool_streaming_is_asked_for_with_tools_only() {
    let flags = compat(json!({"zaiToolStream": true}));
    let list = with_tools(json!([tool(Value::Null)]), hello());
    assert_eq!(body(flags.clone(), json!({}), list)["tool_stream"], true);
    assert!(body(flags, json!({}), hello()).get("tool_stream").is_none());
}

#[test]
fn strict_tools() {
    let prefer = json!({"type": "json_schema", "strict": "prefer"});
    let declared = |flags: Value, tool: Value| {
        body(compat(flags), json!({}), with_tools(json!([tool]), hello()))["tools"][0]["function"]
            .clone()
    };
    let strict = json!({"supportsStrictMode": true});
    assert!(
        declared(json!({}), tool(prefer.clone()))
            .get("strict")
            .is_none()
    );
    assert_eq!(declared(strict.clone(), tool(Value::Null))["strict"], false);
    let mut optional = tool(prefer.clone());
    optional["parameters"]["required"] = json!([]);
    let function = declared(strict.clone(), optional);
    assert_eq!(function["strict"], true);
    assert_eq!(
        function["parameters"],
        json!({"type": "object", "properties": {"text": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            "required": ["text"], "additionalProperties": false})
    );
    let mut open = tool(prefer);
    open["parameters"]["additionalProperties"] = json!(true);
    assert_eq!(declared(strict.clone(), open.clone())["strict"], false);
    assert_eq!(
        declared(strict.clone(), open.clone())["parameters"],
        open["parameters"]
    );
    open["constrainedSampling"]["strict"] = json!("require");
    let request = StreamRequest::new(
        model(compat(strict)),
        options(json!({})),
        messages(with_tools(json!([open]), hello())),
    );
    let error = crate::request::build(&request).unwrap_err();
    assert!(
        error.contains("The tool \"t\" requires a strict schema"),
        "{error}"
    );
}

#[test]
fn grammar_tools() {
    let constraint =
        json!({"type": "grammar", "variants": {"openai_regex": "a+", "openai_lark": "start: A"}});
    let list = with_tools(json!([tool(constraint)]), called(json!([call()])));
    let flags = compat(json!({"supportsOpenAIGrammarTools": true}));
    let sent = body(flags, json!({}), list.clone());
    assert_eq!(
        sent["tools"][0],
        json!({"type": "custom", "custom": {"name": "t", "description": "d", "format":
            {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: A"}}}})
    );
    assert_eq!(
        sent["messages"][2]["tool_calls"][0],
        json!({"id": "c", "type": "custom", "custom": {"name": "t", "input": "a"}})
    );
    let ordinary = body(json!({}), json!({}), list);
    assert_eq!(ordinary["tools"][0]["type"], "function");
    assert_eq!(ordinary["messages"][2]["tool_calls"][0]["type"], "function");
}

#[test]
fn later_tools_may_stand_in_place() {
    let named = |name: &str| json!({"name": name, "description": "", "parameters": {}});
    let list = |patches: Vec<Value>| {
        let mut list = vec![json!({"role": "system", "content": "S", "toolsAdded": [named("a")]})];
        for patch in patches {
            list.push(json!({"role": "user", "content": "x"}));
            let mut message = json!({"role": "system", "content": ""});
            for (name, value) in patch.as_object().unwrap() {
                message[name] = value.clone();
            }
            list.push(message);
        }
        Value::Array(list)
    };
    let flags =
        json!({"supportsMidConvoSystemMessages": true, "supportsMidConvoToolAdditions": true});
    let sent = |patches| body(compat(flags.clone()), json!({}), list(patches));
    let names = |tools: &Value| {
        let tools = tools.as_array().unwrap().iter();
        tools
            .map(|tool| tool["function"]["name"].clone())
            .collect::<Vec<_>>()
    };
    let add = |name| json!({"toolsAdded": [named(name)], "content": "new"});
    let added = sent(vec![add("b")]);
    assert_eq!(names(&added["tools"]), ["a"]);
    assert_eq!(
        added["messages"][2],
        json!({"role": "system", "content": "new"})
    );
    assert_eq!(added["messages"][3]["role"], "system");
    assert_eq!(names(&added["messages"][3]["tools"]), ["b"]);
    // A removal or a second declaration folds what came before, not what comes after.
    for fold in [
        json!({"toolsRemoved": [{"name": "b"}]}),
        json!({"toolsAdded": [named("a")]}),
    ] {
        let folded = sent(vec![add("b"), fold, add("c")]);
        assert!(!names(&folded["tools"]).contains(&json!("c")));
        let in_place: Vec<&Value> = folded["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|message| message.get("tools").is_some())
            .collect();
        assert_eq!(in_place.len(), 1);
        assert_eq!(names(&in_place[0]["tools"]), ["c"]);
    }
    // Without the flag all tools lead; without either the prompt is one message.
    let flags = json!({"supportsMidConvoSystemMessages": true});
    let sent = body(compat(flags), json!({}), list(vec![add("b")]));
    assert_eq!(names(&sent["tools"]), ["a", "b"]);
    assert_eq!(roles(&sent), ["system", "user", "system"]);
    let sent = body(json!({}), json!({}), list(vec![add("b")]));
    assert_eq!(sent["messages"][0]["content"], "S\n\nnew");
    assert_eq!(roles(&sent), ["system", "user"]);
}

#[test]
fn cache_markers() {
    let flags = compat(json!({"cacheControlFormat": "anthropic"}));
    let mut rest = called(json!([{"type": "text", "text": "a"}, call()]));
    let list = with_tools(json!([tool(Value::Null), {"name": "u"}]), rest.clone());
    let marked = body(flags.clone(), json!({}), list.clone());
    let marker = json!({"type": "ephemeral"});
    let part = |text: &str, marker: &Value| json!([{"type": "text", "text": text, "cache_control": marker}]);
    assert_eq!(marked["messages"][0]["content"], part("S", &marker));
    assert_eq!(marked["messages"][4]["content"], part("y", &marker));
    assert_eq!(marked["messages"][3]["content"], "ok");
    assert_eq!(marked["tools"][1]["cache_control"], marker);
    assert!(marked["tools"][0].get("cache_control").is_none());
    let long = body(
        flags.clone(),
        json!({"cacheRetention": "long"}),
        list.clone(),
    );
    let one_hour = json!({"type": "ephemeral", "ttl": "1h"});
    assert_eq!(long["messages"][4]["content"], part("y", &one_hour));
    // The last message with text is marked, be it a result.
    rest[3]["content"] = json!([{"type": "image", "data": "QQ==", "mimeType": "image/png"}]);
    let result = body(flags.clone(), json!({}), with_tools(json!([]), rest));
    assert_eq!(result["messages"][3]["content"], part("ok", &marker));
    for (patch, retention) in [(flags, "none"), (json!({}), "long")] {
        let plain = body(patch, json!({"cacheRetention": retention}), list.clone());
        assert!(!plain.to_string().contains("cache_control"));
    }
}

#[test]
fn session_affinity_headers() {
    let session = json!({"sessionId": "s"});
    let sends = |flags: Value| built(compat(flags), session.clone());
    let on = |format: Value| {
        sends(json!({"sendSessionAffinityHeaders": true, "sessionAffinityFormat": format}))
    };
    let all = on(json!("openai"));
    for name in ["session_id", "x-client-request-id", "x-session-affinity"] {
        assert_eq!(header(&all, name), Some("s"), "{name}");
    }
    assert_eq!(header(&on(json!("openai-nosession")), "session_id"), None);
    assert_eq!(
        header(&on(json!("openai-nosession")), "x-session-affinity"),
        Some("s")
    );
    assert_eq!(header(&on(json!("openrouter")), "x-session-id"), Some("s"));
    assert_eq!(header(&on(Value::Null), "session_id"), Some("s"));
    assert_eq!(sends(json!({})).http.request().headers.len(), 2);
    let uncached = built(
        compat(json!({"sendSessionAffinityHeaders": true})),
        json!({"sessionId": "s", "cacheRetention": "none"}),
    );
    assert_eq!(uncached.http.request().headers.len(), 2);
}

#[test]
fn cache_keys_and_retention() {
    let long_id = "x".repeat(80);
    let sent = |mode: Value, retention: &str, url: &str| {
        let patch = json!({"baseUrl": url, "compat": mode});
        body(
            patch,
            json!({"sessionId": long_id, "cacheRetention": retention}),
            hello(),
        )
    };
    let other = "https://h.test/v1";
    let openai = "https://api.openai.com/v1";
    let key = |body: &Value| body.get("prompt_cache_key").is_some();
    let auto = json!({});
    assert_eq!(
        sent(auto.clone(), "short", openai)["prompt_cache_key"],
        "x".repeat(64)
    );
    assert!(!key(&sent(auto.clone(), "none", openai)));
    assert!(!key(&sent(auto.clone(), "short", other)));
    let long = sent(auto, "long", other);
    assert!(key(&long));
    assert_eq!(long["prompt_cache_retention"], "24h");
    let unsupported = sent(json!({"supportsLongCacheRetention": false}), "long", other);
    assert!(!key(&unsupported) && unsupported.get("prompt_cache_retention").is_none());
    assert!(key(&sent(
        json!({"promptCacheKeyMode": "enabled"}),
        "short",
        other
    )));
    assert!(!key(&sent(
        json!({"promptCacheKeyMode": "disabled"}),
        "short",
        openai
    )));
}

//! The body besides switches: order, limits, sampling, headers, ids, what messages become.

use pliant_sdk::provider::StreamRequest;
use serde_json::{Value, json};

use super::{body, messages, model, options};
use crate::request::{Built, build};

fn built(patch: Value, option: Value, list: Value) -> Built {
    build(&StreamRequest::new(
        model(patch),
        options(option),
        messages(list),
    ))
    .unwrap()
}

fn hello() -> Value {
    json!([{"role": "user", "content": "x"}])
}

#[test]
fn fields_stand_in_one_order() {
    let list = json!([{"role": "system", "content": "S", "toolsAdded": [{"name": "t"}]},
        {"role": "user", "content": "x"}]);
    let patch = json!({"baseUrl": "https://api.openai.com/v1", "samplingParams": {"top_p": 0.5},
        "compat": {"zaiToolStream": true, "vllmPriority": 1, "openRouterRouting": {}}});
    let option = json!({"sessionId": "s", "cacheRetention": "long", "temperature": 0.5,
        "toolChoice": "none", "reasoning": "high", "samplingParams": {"temperature": 0.9, "seed": 1}});
    let body = body(patch, option, list);
    let names: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        [
            "model",
            "messages",
            "stream",
            "prompt_cache_key",
            "prompt_cache_retention",
            "stream_options",
            "store",
            "max_completion_tokens",
            "temperature",
            "tools",
            "tool_stream",
            "tool_choice",
            "priority",
            "reasoning_effort",
            "provider",
            "top_p",
            "seed"
        ]
    );
    // Sampling parameters override anything, where it stands.
    assert_eq!(body["temperature"], 0.9);
    assert_eq!(body["tool_choice"], "none");
}

#[test]
fn sampling_parameters_may_depend_on_the_level() {
    let patch = json!({"samplingParams": {"top_p": 1, "top_k": 1, "seed": 1},
        "samplingParamsByThinkingLevel": {"high": {"top_k": 2, "seed": 2}, "off": {"top_k": 3}}});
    let sampled = |level: &str| {
        let option = json!({"reasoning": level, "samplingParams": {"seed": 9}});
        let body = body(patch.clone(), option, hello());
        json!([body["top_p"], body["top_k"], body["seed"]])
    };
    assert_eq!(sampled("high"), json!([1, 2, 9]));
    assert_eq!(sampled("off"), json!([1, 3, 9]));
    assert_eq!(sampled("low"), json!([1, 1, 9]));
}

#[test]
fn the_output_limit_fits_the_window() {
    let limit =
        |patch: Value, option: Value| body(patch, option, hello())["max_completion_tokens"].clone();
    assert_eq!(limit(json!({}), json!({})), 32_000);
    assert_eq!(limit(json!({}), json!({"maxTokens": 5})), 5);
    assert_eq!(
        limit(json!({"maxTokens": 128_000}), json!({})),
        128_000 - 1 - 4096
    );
    assert_eq!(
        limit(
            json!({"maxTokens": 9_000_000, "contextWindow": 0}),
            json!({})
        ),
        9_000_000
    );
    assert_eq!(limit(json!({"contextWindow": 4096}), json!({})), 1);
    assert_eq!(limit(json!({"maxTokens": 0}), json!({})), Value::Null);
}

#[test]
fn later_header_layers_win_without_regard_to_case() {
    let patch = json!({"headers": {"X-Session-Affinity": "model", "Accept": null, "X-A": "1"},
        "compat": {"sendSessionAffinityHeaders": true}});
    let option =
        json!({"sessionId": "s", "headers": {"x-a": "2", "authorization": null, "x-n": 3}});
    let headers = built(patch, option, hello()).http.request().headers.clone();
    let find = |name: &str| {
        let mut found = headers
            .iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let value = found.next().map(|(_, value)| value.as_deref());
        assert!(found.next().is_none(), "{name}");
        value
    };
    assert_eq!(find("x-session-affinity"), Some(Some("model")));
    assert_eq!(find("session_id"), Some(Some("s")));
    assert_eq!(find("x-a"), Some(Some("2")));
    assert_eq!(find("x-n"), Some(Some("3")));
    // Handed on, so that the host's own is removed too.
    assert_eq!(find("accept"), Some(None));
    assert_eq!(find("authorization"), Some(None));
}

#[test]
fn the_address_is_joined_with_one_slash() {
    for url in [
        "https://h.test/v1",
        "https://h.test/v1/",
        "https://h.test/v1//",
    ] {
        let built = built(json!({"baseUrl": url}), json!({}), hello());
        assert_eq!(
            built.http.request().url,
            "https://h.test/v1/chat/completions"
        );
    }
    let request = StreamRequest::new(model(json!({"baseUrl": ""})), options(json!({})), vec![]);
    assert!(build(&request).unwrap_err().contains("p/m has no base URL"));
}

#[test]
fn a_choice_of_tools_needs_tools() {
    let body = body(json!({}), json!({"toolChoice": "auto"}), hello());
    assert!(body.get("tool_choice").is_none());
}

fn sent(list: Value) -> Vec<Value> {
    body(json!({}), json!({}), list)["messages"]
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn user_messages() {
    let image = json!({"type": "image", "data": "QQ==", "mimeType": "image/png"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let list = json!([
        {"role": "user", "content": "  "},
        {"role": "user", "content": [text(""), text("a"), image]},
        {"role": "user", "content": [text("")]},
        {"role": "user", "content": []}]);
    let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}});
    assert_eq!(
        sent(list),
        [
            json!({"role": "user", "content": "  "}),
            json!({"role": "user", "content": [text("a"), url]})
        ]
    );
}

fn answer(content: Value) -> Value {
    json!({"role": "assistant", "provider": "p", "api": "openai-completions", "model": "m",
        "stopReason": "stop", "content": content})
}

#[test]
fn assistant_messages() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let thinking = json!({"type": "thinking", "thinking": "hm", "thinkingSignature": "reasoning"});
    let list = json!([
        answer(json!([text("a"), text(" \n"), text("b")])),
        answer(json!([thinking, text(" ")])),
        answer(json!([]))
    ]);
    assert_eq!(sent(list), [json!({"role": "assistant", "content": "ab"})]);
}

#[test]
fn results_without_text_say_so() {
    let call = |id: &str| json!({"type": "toolCall", "id": id, "name": "t", "arguments": {}});
    let result = |id: &str, content: Value| json!({"role": "toolResult", "toolCallId": id, "toolName": "t", "content": content});
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = |data: &str| json!({"type": "image", "data": data, "mimeType": "image/png"});
    let list = json!([
        answer(json!([call("1"), call("2"), call("3")])),
        result("1", json!([text("a"), image("AAA1"), text("b")])),
        result("2", json!([image("AAA2"), text(" ")])),
        result("3", json!([]))
    ]);
    let sent = sent(list);
    let contents: Vec<&Value> = sent[1..4].iter().map(|entry| &entry["content"]).collect();
    assert_eq!(
        contents,
        ["a\nb", "(see attached image)", "(no tool output)"]
    );
    assert_eq!(sent[4]["role"], "user");
    assert_eq!(
        sent[4]["content"][0]["text"],
        "Attached image(s) from tool result:"
    );
    assert_eq!(sent[4]["content"].as_array().unwrap().len(), 3);
    assert_eq!(sent.len(), 5);
}

#[test]
fn call_ids_are_made_to_fit() {
    let sent = |provider: &str, from: &str, id: &str| {
        let call = json!({"type": "toolCall", "id": id, "name": "t", "arguments": {}});
        let mut answer = answer(json!([call]));
        answer["model"] = json!(from);
        answer["provider"] = json!(provider);
        let body = body(json!({"provider": provider}), json!({}), json!([answer]));
        let entries = &body["messages"];
        assert_eq!(
            entries[1]["tool_call_id"],
            entries[0]["tool_calls"][0]["id"]
        );
        entries[1]["tool_call_id"].as_str().unwrap().to_owned()
    };
    let long = "c".repeat(50);
    assert_eq!(sent("p", "other", "call_1|fc_2"), "call_1_fc_2");
    assert_eq!(sent("p", "other", "a/b|c"), "a_b_c");
    let both = format!("{long}|fc");
    let hash = &pliant_sdk::history::short_hash(&both)[..8];
    assert_eq!(sent("p", "other", &both), format!("{}_{hash}", &long[..31]));
    assert_eq!(sent("p", "other", &long), long);
    assert_eq!(sent("openai", "other", &long), &long[..40]);
    // The model's own ids are its own business, as long as any service takes them.
    assert_eq!(sent("p", "m", "functions.bash:0"), "functions.bash:0");
    assert_eq!(sent("p", "m", "a|b"), "a|b");
    assert_eq!(sent("p", "m", "a b\u{e9}"), "a_b_");
    assert_eq!(sent("p", "m", &"c".repeat(90)).len(), 64);
    let signed = format!("call__thought__{}", "c".repeat(900));
    assert_eq!(sent("p", "m", &signed), signed);
}

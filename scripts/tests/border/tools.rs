//! `register_tool`.

use pliant_kernel::registry::Kind;
use serde_json::json;

use crate::kit::{load, load_error};

#[tokio::test]
async fn a_tool_is_declared_as_a_plugins_tool_is() {
    let bench = load(
        r#"register_tool(#{
            name: "shout", description: "Say it loud.", promptSnippet: "shout: loud",
            parameters: #{ type: "object", properties: #{ text: #{ type: "string" } }, required: ["text"] },
            execute: |args, ctx| args.text.to_upper(),
        });"#,
    )
    .await;
    let spec = &bench.contribution(Kind::Tool, "shout").spec;
    assert_eq!(
        *spec,
        json!({
            "id": 0, "kind": "tool", "name": "shout", "label": "shout", "description": "Say it loud.",
            "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
            "promptSnippet": "shout: loud", "exposure": "direct", "executionMode": "parallel",
        })
    );
    let result = bench.tool("shout", json!({"text": "hey"})).await.unwrap();
    assert_eq!(
        result,
        json!({"content": [{"type": "text", "text": "HEY"}]})
    );
}

#[tokio::test]
async fn what_a_tool_answers_becomes_a_result() {
    let bench = load(
        r#"register_tool(#{ name: "t", description: "d", execute: |args| switch args.kind {
            "text" => "plain",
            "nothing" => (),
            "number" => 42,
            "list" => [1, "two", ()],
            "map" => #{ a: 1 },
            "short" => #{ content: "text", isError: true },
            "full" => #{ content: [#{ type: "text", text: "x" }], details: #{ n: 1 }, structuredContent: 7, terminate: true },
            "function" => || 1,
            "bad" => #{ content: 3 },
        } });"#,
    )
    .await;
    let answer = async |kind: &str| bench.tool("t", json!({"kind": kind})).await;
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    assert_eq!(
        answer("text").await.unwrap(),
        json!({"content": text("plain")})
    );
    assert_eq!(
        answer("nothing").await.unwrap(),
        json!({"content": text("(no output)")})
    );
    assert_eq!(
        answer("number").await.unwrap(),
        json!({"content": text("42"), "structuredContent": 42})
    );
    assert_eq!(
        answer("list").await.unwrap(),
        json!({"content": text(r#"[1,"two",null]"#), "structuredContent": [1, "two", null]})
    );
    assert_eq!(
        answer("map").await.unwrap(),
        json!({"content": text(r#"{"a":1}"#), "structuredContent": {"a": 1}})
    );
    assert_eq!(
        answer("short").await.unwrap(),
        json!({"content": text("text"), "isError": true})
    );
    assert_eq!(
        answer("full").await.unwrap(),
        json!({"content": text("x"), "details": {"n": 1}, "structuredContent": 7, "terminate": true})
    );
    let error = answer("function").await.unwrap_err();
    assert_eq!(error.message, "t.rhai: a function has no JSON form");
    // A list of blocks is what the SDK reads; anything else there reads as no blocks.
    assert!(answer("bad").await.is_err());
}

#[tokio::test]
async fn what_a_tool_throws_is_an_error_result_for_the_model() {
    let bench = load(
        r#"register_tool(#{ name: "t", description: "d", execute: |args| switch args.kind {
            "text" => throw "no such city",
            "map" => throw #{ message: "too many", details: #{ limit: 3 } },
            "number" => throw 7,
            "other" => throw #{ a: 1 },
            "nothing" => throw,
        } });"#,
    )
    .await;
    let answer = async |kind: &str| bench.tool("t", json!({"kind": kind})).await.unwrap();
    let error = |text: &str| json!({"content": [{"type": "text", "text": text}], "isError": true});
    assert_eq!(answer("text").await, error("no such city"));
    let mut detailed = error("too many");
    detailed["details"] = json!({"limit": 3});
    assert_eq!(answer("map").await, detailed);
    assert_eq!(answer("number").await, error("7"));
    assert_eq!(answer("other").await, error(r#"{"a":1}"#));
    assert_eq!(answer("nothing").await, error("the script threw nothing"));
}

#[tokio::test]
async fn a_running_tool_shows_partial_results_and_knows_its_call() {
    let bench = load(
        r#"register_tool(#{ name: "t", description: "d", execute: |args, ctx| {
            ctx.update("half");
            ctx.update(#{ content: "more", details: #{ done: 2 } });
            `${ctx.call_id} in ${ctx.cwd}, cancelled: ${ctx.cancelled()}`
        } });"#,
    )
    .await;
    assert_eq!(
        bench.tool_text("t", json!({})).await,
        "c1 in /work, cancelled: false"
    );
    assert_eq!(
        bench.emitted(),
        [
            json!({"content": [{"type": "text", "text": "half"}]}),
            json!({"content": [{"type": "text", "text": "more"}], "details": {"done": 2}}),
        ]
    );
}

#[tokio::test]
async fn a_tool_may_bring_old_arguments_into_todays_shape() {
    let bench = load(
        r#"register_tool(#{ name: "t", description: "d",
            prepare: |args| { if "file" in args { args.path = args.remove("file"); } args },
            execute: |args| args.path });"#,
    )
    .await;
    assert_eq!(
        bench.contribution(Kind::Tool, "t").spec["prepares"],
        json!(true)
    );
    let prepared = bench
        .invoke(Kind::Tool, "t", "prepare", json!({"file": "a"}))
        .await;
    assert_eq!(prepared.unwrap(), json!({"path": "a"}));
    let error = bench
        .invoke(Kind::Tool, "t", "dance", json!({}))
        .await
        .unwrap_err();
    assert_eq!(error.code, "unsupported");
}

#[tokio::test]
async fn a_declaration_that_cannot_work_is_refused_with_its_place() {
    let check = async |text: &str, expected: &str| {
        assert_eq!(load_error(text).await.message, expected, "{text}");
    };
    check(
        "register_tool(#{ description: \"d\" });",
        "t.rhai:1:1: register_tool: `name` is missing",
    )
    .await;
    check(
        r#"register_tool(#{ name: "a b", description: "d", execute: || 1 });"#,
        "t.rhai:1:1: register_tool(\"a b\"): \"a b\" cannot be a tool's name: 1 to 64 of the characters A-Z a-z 0-9 _ -",
    )
    .await;
    check(
        r#"register_tool(#{ name: "t", description: "d" });"#,
        "t.rhai:1:1: register_tool(\"t\"): `execute` is missing: give it a closure |args, ctx| …",
    )
    .await;
    check(
        r#"register_tool(#{ name: "t", description: "d", execute: "f" });"#,
        "t.rhai:1:1: register_tool(\"t\"): `execute` has to be a function, not a string",
    )
    .await;
    check(
        r#"register_tool(#{ name: "t", description: "d", execute: |a, b, c| 1 });"#,
        "t.rhai:1:1: register_tool(\"t\"): the function takes 3 parameters, but it is called with 2 (|args, ctx|)",
    )
    .await;
    check(
        r#"register_tool(#{ name: "t", execute: || 1 });"#,
        "t.rhai:1:1: register_tool(\"t\"): `description` is missing: say what the tool does, for the model",
    )
    .await;
    check(
        r#"register_tool(#{ name: "t", description: "d", parameters: "none", execute: || 1 });"#,
        "t.rhai:1:1: register_tool(\"t\"): `parameters` has to be a JSON Schema with type \"object\"",
    )
    .await;
    check(
        r#"register_tool(#{ name: "t", description: 5, execute: || 1 });"#,
        "t.rhai:1:1: register_tool(\"t\"): invalid type: integer `5`, expected a string",
    )
    .await;
}

//! `register_provider`.

use pliant_kernel::registry::Kind;
use serde_json::{Value, json};

use crate::kit::{Bench, load, load_error, request, user};

async fn stream(bench: &Bench, messages: &[Value]) -> Result<Value, pliant_sdk::Error> {
    bench
        .invoke(Kind::Provider, "p", "stream", request(messages))
        .await
}

#[tokio::test]
async fn a_provider_is_declared_with_its_models() {
    let bench = load(
        r#"register_provider("p", #{ label: "P", keyless: true, env: ["P_KEY"],
            models: ["small", #{ id: "big", name: "Big", contextWindow: 1000, reasoning: true }],
            stream: |request, out| out.text("x") });"#,
    )
    .await;
    let spec = &bench.contribution(Kind::Provider, "p").spec;
    assert_eq!(
        (
            &spec["name"],
            &spec["label"],
            &spec["keyless"],
            &spec["streams"],
            &spec["api"]
        ),
        (
            &json!("p"),
            &json!("P"),
            &json!(true),
            &json!(true),
            &json!("script")
        )
    );
    let models = bench
        .invoke(Kind::Provider, "p", "models", Value::Null)
        .await
        .unwrap();
    assert_eq!(models, spec["models"]);
    let facts = |m: &Value| {
        [
            m["id"].clone(),
            m["name"].clone(),
            m["provider"].clone(),
            m["contextWindow"].clone(),
        ]
    };
    assert_eq!(
        facts(&models[0]),
        [json!("small"), json!("small"), json!("p"), json!(128_000)]
    );
    assert_eq!(
        facts(&models[1]),
        [json!("big"), json!("Big"), json!("p"), json!(1_000)]
    );
}

#[tokio::test]
async fn models_may_be_asked_for_and_a_wire_may_speak() {
    let bench = load(
        r#"register_provider("p", #{ api: "openai-completions", baseUrl: "http://x/v1", models: || ["m"] });"#,
    )
    .await;
    let spec = &bench.contribution(Kind::Provider, "p").spec;
    assert_eq!(
        (&spec["streams"], spec.get("models")),
        (&json!(false), None)
    );
    let models = bench
        .invoke(Kind::Provider, "p", "models", Value::Null)
        .await
        .unwrap();
    assert_eq!(
        (&models[0]["baseUrl"], &models[0]["api"]),
        (&json!("http://x/v1"), &json!("openai-completions"))
    );
    assert_eq!(stream(&bench, &[]).await.unwrap_err().code, "unsupported");
    let error = load_error(r#"register_provider("p", #{ models: ["m"] });"#).await;
    assert!(
        error
            .message
            .contains("needs a `stream` function, or the name of a wire"),
        "{error}"
    );
}

#[tokio::test]
async fn an_answer_is_streamed_in_order_and_returned_whole() {
    let bench = load(
        r#"register_provider("p", #{ models: ["m"], stream: |request, out| {
            out.thinking("hm");
            out.text("a"); out.text("b");
            out.tool_call("read", #{ path: "x" }, "id1");
            out.usage(#{ input: 10, output: 2 });
            out.finish();
        } });"#,
    )
    .await;
    let message = stream(&bench, &[user("hi")]).await.unwrap();
    let kinds: Vec<String> = bench
        .emitted()
        .iter()
        .map(|event| {
            let delta = event
                .get("delta")
                .or(event.get("content"))
                .and_then(Value::as_str)
                .unwrap_or("");
            format!("{} {delta}", event["type"].as_str().unwrap())
                .trim_end()
                .to_owned()
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "start",
            "thinking_start",
            "thinking_delta hm",
            "thinking_end hm",
            "text_start",
            "text_delta a",
            "text_delta b",
            "text_end ab",
            "toolcall_start",
            "toolcall_delta {\"path\":\"x\"}",
            "toolcall_end",
        ]
    );
    assert_eq!(
        message["content"],
        json!([
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "ab"},
            {"type": "toolCall", "id": "id1", "name": "read", "arguments": {"path": "x"}},
        ])
    );
    assert_eq!(
        (
            &message["stopReason"],
            &message["provider"],
            &message["model"]
        ),
        (&json!("toolUse"), &json!("p"), &json!("m"))
    );
    assert_eq!(
        (&message["usage"]["totalTokens"], &message["usage"]["input"]),
        (&json!(12), &json!(10))
    );
}

#[tokio::test]
async fn an_answer_ends_by_itself_and_ids_are_made() {
    let bench = load(
        r#"register_provider("p", #{ models: ["m"], stream: |request, out| {
            out.tool_call("a", #{}); out.tool_call("b", #{});
        } });"#,
    )
    .await;
    let message = stream(&bench, &[]).await.unwrap();
    let (first, second) = (&message["content"][0]["id"], &message["content"][1]["id"]);
    assert!(
        first.as_str().unwrap().starts_with("call_") && first != second,
        "{message}"
    );
    let bench = load(
        r#"register_provider("p", #{ models: ["m"], stream: |r, out| out.finish("length") });"#,
    )
    .await;
    assert_eq!(stream(&bench, &[]).await.unwrap()["stopReason"], "length");
    assert_eq!(bench.emitted(), [json!({"type": "start"})]);
}

#[tokio::test]
async fn a_finished_answer_takes_no_more_and_a_wrong_reason_is_named() {
    let bench = load(
        r#"register_provider("p", #{ models: ["m"], stream: |r, out| { out.finish(); out.text("late"); } });"#,
    )
    .await;
    let error = stream(&bench, &[]).await.unwrap_err();
    assert!(error.message.contains("the answer is finished"), "{error}");
    let bench = load(
        r#"register_provider("p", #{ models: ["m"], stream: |r, out| out.finish("error") });"#,
    )
    .await;
    assert!(
        stream(&bench, &[])
            .await
            .unwrap_err()
            .message
            .contains("throw to report")
    );
}

#[tokio::test]
async fn a_throw_is_the_failure_of_the_request_and_nothing_is_announced() {
    let bench = load(
        r#"register_provider("p", #{ models: ["m"], stream: |r, out| throw "quota is used up" });"#,
    )
    .await;
    let error = stream(&bench, &[]).await.unwrap_err();
    assert_eq!(error.message, "t.rhai:1:59: quota is used up");
    assert!(bench.emitted().is_empty());
}

#[tokio::test]
async fn a_request_shows_messages_tools_and_session() {
    let bench = load(
        r#"register_provider("p", #{ models: ["m"], stream: |request, out| {
            let m = request.messages;
            out.text(json_stringify([
                m.len(), m.len, m.get(1).role, m[-1].role, m.last().content[0].text, m.last(2).len(),
                m.get(99), request.tools.map(|t| t.name), request.last_user_text, request.session_id,
                request.model.id,
            ]));
        } });"#,
    )
    .await;
    let message = stream(
        &bench,
        &[
            json!({"role": "system", "content": "", "toolsAdded": [{"name": "read"}, {"name": "ls"}]}),
            user("first"),
            json!({"role": "system", "content": "", "toolsRemoved": [{"name": "read"}], "toolsAdded": [{"name": "bash"}]}),
            json!({"role": "assistant", "content": [{"type": "text", "text": "ok"}]}),
            user("second"),
            json!({"role": "toolResult", "toolCallId": "1", "toolName": "ls", "content": [{"type": "text", "text": "out"}]}),
        ],
    )
    .await
    .unwrap();
    assert_eq!(
        message["content"][0]["text"],
        r#"[6,6,"user","toolResult","out",2,null,["ls","bash"],"second","s1","m"]"#
    );
}

#[tokio::test]
async fn a_conversation_is_held_between_requests() {
    let bench = load(
        r#"register_provider("p", #{ models: ["m"], stream: |request, out| out.text(`${request.messages.len}`) });"#,
    )
    .await;
    let mut payload = request(&[user("a"), user("b")]);
    payload["conversation"] = json!({"id": "c", "after": 0, "revision": 1, "keep": 0});
    let text = async |payload: Value| {
        let answer = bench.invoke(Kind::Provider, "p", "stream", payload).await;
        answer.map(|message| message["content"][0]["text"].clone())
    };
    assert_eq!(text(payload.clone()).await.unwrap(), "2");
    payload["conversation"] = json!({"id": "c", "after": 1, "revision": 2, "keep": 2});
    assert_eq!(text(payload.clone()).await.unwrap(), "4");
    payload["conversation"] = json!({"id": "unknown", "after": 2, "revision": 3, "keep": 2});
    assert_eq!(
        text(payload).await.unwrap_err().code,
        "conversation.unknown"
    );
}

//! `on`.

use serde_json::{Value, json};

use crate::kit::{Fake, load, load_with, unavailable};

fn call(command: &str) -> Value {
    json!({"type": "tool_call", "toolCallId": "c1", "toolName": "bash", "input": {"command": command, "a": 1}})
}

#[tokio::test]
async fn a_handler_blocks_a_call_or_answers_nothing() {
    let bench = load(
        r#"on("tool_call", |event, ctx| {
            if event.input.command.contains("rm") { #{ block: true, reason: `not in ${ctx.call_id}` } }
        });"#,
    )
    .await;
    assert_eq!(
        bench.hook("tool_call", call("rm x")).await.unwrap(),
        json!({"block": true, "reason": "not in c1"})
    );
    assert_eq!(
        bench.hook("tool_call", call("ls")).await.unwrap(),
        Value::Null
    );
}

#[tokio::test]
async fn edits_in_place_come_back_under_the_key_event() {
    // extensions §7.1: only the documented field is read back, and only if it changed.
    let bench = load(
        r#"on("tool_call", |event, ctx| {
            if event.input.command == "ls" { event.input.command = "ls -l"; event.toolName = "x"; }
            if event.input.command == "both" { event.input.remove("a"); return #{ terminate: true }; }
        });"#,
    )
    .await;
    assert_eq!(
        bench.hook("tool_call", call("ls")).await.unwrap(),
        json!({"event": {"input": {"command": "ls -l", "a": 1}}})
    );
    assert_eq!(
        bench.hook("tool_call", call("both")).await.unwrap(),
        json!({"event": {"input": {"command": "both"}}, "terminate": true})
    );
    assert_eq!(
        bench.hook("tool_call", call("other")).await.unwrap(),
        Value::Null
    );
}

#[tokio::test]
async fn events_that_are_not_edited_are_not_read_back() {
    let bench =
        load(r#"on("tool_result", |event| { event.isError = true; #{ details: 1 } });"#).await;
    let answer = bench.hook("tool_result", json!({"isError": false})).await;
    assert_eq!(answer.unwrap(), json!({"details": 1}));
}

#[tokio::test]
async fn captured_variables_are_shared_by_handlers_and_survive_calls() {
    let bench = load(
        r#"let seen = 0; let names = [];
        on("agent_start", |event| { seen += 1; names.push(event.who); });
        on("agent_end", || #{ seen: seen, names: names });"#,
    )
    .await;
    for who in ["a", "b"] {
        bench
            .hook("agent_start", json!({"who": who}))
            .await
            .unwrap();
    }
    let state = bench.hook("agent_end", json!({})).await.unwrap();
    assert_eq!(state, json!({"seen": 2, "names": ["a", "b"]}));
}

#[tokio::test]
async fn the_function_that_on_answers_ends_that_subscription_only() {
    let bench = load(
        r#"let off = on("turn_start", || #{ first: true });
        on("input", || { off.call(); });
        on("turn_end", || #{ still: true });"#,
    )
    .await;
    let first = bench.hook("turn_start", json!({})).await.unwrap();
    assert_eq!(first, json!({"first": true}));
    bench.hook("input", json!({})).await.unwrap();
    assert_eq!(
        bench.hook("turn_start", json!({})).await.unwrap(),
        Value::Null
    );
    assert_eq!(
        bench.hook("turn_end", json!({})).await.unwrap(),
        json!({"still": true})
    );
}

#[tokio::test]
async fn a_wrong_answer_is_an_error_where_answers_decide_and_nothing_elsewhere() {
    let bench = load(r#"on("tool_call", || false); on("turn_start", || [1]);"#).await;
    let error = bench.hook("tool_call", call("x")).await.unwrap_err();
    assert_eq!(
        error.message,
        "t.rhai: the handler of \"tool_call\" answered a bool; it has to answer a map or nothing"
    );
    assert_eq!(
        bench.hook("turn_start", json!({})).await.unwrap(),
        Value::Null
    );
}

#[tokio::test]
async fn the_reserved_word_continue_has_an_alias_both_ways() {
    // extensions §7.3
    let bench = load(
        r#"on("turn_end", |event| #{ proceed: !event.proceed, entries: [event["continue"]] });"#,
    )
    .await;
    let answer = bench
        .hook("turn_end", json!({"continue": true}))
        .await
        .unwrap();
    assert_eq!(answer, json!({"continue": false, "entries": [true]}));
}

#[tokio::test]
async fn a_thrown_value_is_the_error_of_the_handler() {
    let bench =
        load(r#"on("tool_call", || throw #{ message: "stop", code: "mine", details: [1] });"#)
            .await;
    let error = bench.hook("tool_call", call("x")).await.unwrap_err();
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("mine", "t.rhai:1:20: stop")
    );
    assert_eq!(error.details.as_deref(), Some(&json!([1])));
}

#[tokio::test]
async fn dialogs_answer_what_the_user_chose_and_nothing_where_nobody_is() {
    let script = r#"on("input", |event, ctx| {
        ctx.ui.notify("hello", "warning");
        #{
            sure: ctx.ui.confirm("Sure?", "really", #{ timeout: 9 }),
            pick: ctx.ui.select("Which?", ["a", 2]),
            line: ctx.ui.input("Name?"),
        }
    });"#;
    let fake = Fake::default()
        .on("ui.show", |_| Ok(Value::Null))
        .on("ui.ask", |question| {
            Ok(match question["method"].as_str() {
                Some("confirm") => json!(true),
                Some("select") => json!("a"),
                _ => json!("me"),
            })
        });
    let bench = load_with(script, fake).await;
    let answer = bench.hook("input", json!({})).await.unwrap();
    assert_eq!(answer, json!({"sure": true, "pick": "a", "line": "me"}));
    assert_eq!(
        bench.fake.asked("ui.show"),
        [json!({"method": "notify", "message": "hello", "notifyType": "warning"})]
    );
    assert_eq!(
        bench.fake.asked("ui.ask"),
        [
            json!({"method": "confirm", "title": "Sure?", "message": "really", "timeoutMs": 9}),
            json!({"method": "select", "title": "Which?", "options": ["a", "2"]}),
            json!({"method": "input", "title": "Name?", "placeholder": null}),
        ]
    );

    let mut fake = Fake::default();
    for service in ["ui.show", "ui.ask"] {
        fake = fake.on(service, unavailable);
    }
    let bench = load_with(script, fake).await;
    let answer = bench.hook("input", json!({})).await.unwrap();
    assert_eq!(answer, json!({"sure": false, "pick": null, "line": null}));
}

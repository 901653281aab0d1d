//! What scripts ask of the session, and what they may not ask when (`extensions.md` §5, §7.3).

use pliant_kernel::registry::Kind;
use pliant_sdk::Error;
use serde_json::{Value, json};

use crate::kit::{Fake, load_error, load_with};

/// A service that answers what it was asked.
fn echo(payload: Value) -> Result<Value, Error> {
    Ok(payload)
}

/// What is written, the service that is asked, and what it is asked.
fn questions() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        (
            r#"send_message(#{ customType: "note", content: "hi", display: true }, #{ deliverAs: "nextTurn", triggerTurn: false })"#,
            "session.send_message",
            json!({"message": {"content": "hi", "customType": "note", "display": true},
                   "options": {"deliverAs": "nextTurn", "triggerTurn": false}}),
        ),
        (
            r#"send_message(#{ customType: "note", content: "hi" })"#,
            "session.send_message",
            json!({"message": {"content": "hi", "customType": "note"}, "options": {}}),
        ),
        (
            r#"send_user_message("go on", #{ deliverAs: "followUp" })"#,
            "session.send_user_message",
            json!({"content": "go on", "options": {"deliverAs": "followUp"}}),
        ),
        (
            r#"send_user_message([#{ "type": "text", text: "a" }])"#,
            "session.send_user_message",
            json!({"content": [{"text": "a", "type": "text"}], "options": {}}),
        ),
        (
            r#"append_entry("todo", #{ done: [1] })"#,
            "session.append",
            json!({"customType": "todo", "data": {"done": [1]}}),
        ),
        (
            r#"append_entry("mark")"#,
            "session.append",
            json!({"customType": "mark"}),
        ),
        (
            r#"set_label("e1", "here")"#,
            "session.set_label",
            json!({"entryId": "e1", "label": "here"}),
        ),
        (
            r#"set_label("e1", ())"#,
            "session.set_label",
            json!({"entryId": "e1", "label": null}),
        ),
        (
            r#"set_session_name("x")"#,
            "session.set_name",
            json!({"name": "x"}),
        ),
        (
            r#"set_session_name(())"#,
            "session.set_name",
            json!({"name": null}),
        ),
        ("active_tools()", "tools.active", Value::Null),
        ("all_tools()", "tools.list", Value::Null),
        (
            r#"set_active_tools(["read", "bash"])"#,
            "tools.set_active",
            json!({"names": ["read", "bash"]}),
        ),
        (
            r#"set_model("p/m")"#,
            "session.set_model",
            json!({"model": "p/m"}),
        ),
        (
            r#"set_thinking_level("high")"#,
            "session.set_thinking_level",
            json!({"level": "high"}),
        ),
        (
            r#"bus_emit("news", #{ n: 1 })"#,
            "bus.emit",
            json!({"channel": "news", "data": {"n": 1}}),
        ),
        (
            r#"bus_emit("news")"#,
            "bus.emit",
            json!({"channel": "news", "data": null}),
        ),
        ("commands()", "session.commands", Value::Null),
        ("settings()", "config.get", json!({"key": null})),
        (
            r#"settings("theme")"#,
            "config.get",
            json!({"key": "theme"}),
        ),
        (
            "ctx.session.header()",
            "session.read",
            json!({"what": "header"}),
        ),
        (
            "ctx.session.entries()",
            "session.read",
            json!({"what": "entries"}),
        ),
        (
            "ctx.session.branch()",
            "session.read",
            json!({"what": "branch"}),
        ),
        (
            r#"ctx.session.branch("e1")"#,
            "session.read",
            json!({"what": "branch", "from": "e1"}),
        ),
        (
            "ctx.session.tree()",
            "session.read",
            json!({"what": "tree"}),
        ),
        (
            "ctx.session.leaf_id()",
            "session.read",
            json!({"what": "leafId"}),
        ),
        (
            "ctx.session.leaf_entry()",
            "session.read",
            json!({"what": "leafEntry"}),
        ),
        (
            "ctx.session.context_entries()",
            "session.read",
            json!({"what": "contextEntries"}),
        ),
        (
            "ctx.session.projection()",
            "session.read",
            json!({"what": "projection"}),
        ),
        (
            r#"ctx.session.entry("e1")"#,
            "session.read",
            json!({"what": "entry", "id": "e1"}),
        ),
        (
            r#"ctx.session.label("e1")"#,
            "session.read",
            json!({"what": "label", "id": "e1"}),
        ),
        (
            "ctx.session.file()",
            "session.read",
            json!({"what": "info"}),
        ),
        ("ctx.is_idle()", "session.is_idle", Value::Null),
        (
            "ctx.has_pending()",
            "session.has_pending_messages",
            Value::Null,
        ),
        ("ctx.system_prompt()", "session.system_prompt", Value::Null),
        (
            "ctx.is_project_trusted()",
            "session.is_project_trusted",
            Value::Null,
        ),
        ("ctx.usage()", "session.usage", Value::Null),
        ("ctx.abort()", "session.abort", Value::Null),
        ("ctx.wait_for_idle()", "session.wait_idle", Value::Null),
        (
            r#"ctx.compact(#{ customInstructions: "short" })"#,
            "session.compact",
            json!({"customInstructions": "short"}),
        ),
        ("ctx.compact()", "session.compact", json!({})),
        ("ctx.new_session()", "session.new", json!({})),
        (
            r#"ctx.new_session(#{ parentSession: "p", then: |ctx| log("then") })"#,
            "session.new",
            json!({"parentSession": "p"}),
        ),
        (
            r#"ctx.switch_session("/a.jsonl")"#,
            "session.switch",
            json!({"sessionPath": "/a.jsonl"}),
        ),
        (
            r#"ctx.fork_at("e1", #{ position: "at" })"#,
            "session.fork",
            json!({"entryId": "e1", "position": "at"}),
        ),
        (
            r#"ctx.navigate_tree("e1", #{ summarize: true, label: "l" })"#,
            "session.navigate",
            json!({"label": "l", "summarize": true, "targetId": "e1"}),
        ),
    ]
}

#[tokio::test]
async fn every_function_asks_its_service_what_the_service_reads() {
    for (written, service, expected) in questions() {
        let script = format!("register_command(\"c\", #{{ run: |args, ctx| {{ {written}; }} }});");
        let bench = load_with(&script, Fake::default().on(service, echo)).await;
        let ran = bench.invoke(Kind::Command, "c", "run", json!("")).await;
        assert!(ran.is_ok(), "{written}: {ran:?}");
        assert_eq!(bench.fake.asked(service), [expected], "{written}");
    }
}

#[tokio::test]
async fn what_needs_a_session_is_refused_while_the_script_is_loaded() {
    let without_ctx = questions()
        .into_iter()
        .filter(|(written, ..)| !written.contains("ctx."));
    for (written, ..) in without_ctx {
        let error = load_error(&format!("{written};")).await;
        let name = written.split('(').next().unwrap();
        let expected = format!("{name} is not there yet while the script is loaded");
        assert!(
            error.message.contains(&expected),
            "{written}: {}",
            error.message
        );
    }
}

#[tokio::test]
async fn a_misspelt_option_is_named() {
    let script =
        r#"register_command("c", #{ run: |args, ctx| send_message(#{ customtype: "n" }) });"#;
    let bench = load_with(script, Fake::default()).await;
    let error = bench
        .invoke(Kind::Command, "c", "run", json!(""))
        .await
        .unwrap_err();
    assert!(
        error
            .message
            .contains("has no option `customtype`; it takes customType, content, display, details"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn who_listens_to_a_channel_hears_what_is_said_there_until_he_stops() {
    let script = r#"
        let off = bus_on("news", |data| log(`heard ${data.n} ${data.cwd}`));
        register_command("stop", #{ run: |args, ctx| { off.call(); } });
    "#;
    let bench = load_with(script, Fake::default()).await;
    let hear = || bench.invoke(Kind::Hook, "bus:news", "bus", json!({"n": 1, "cwd": 7}));
    assert_eq!(hear().await, Ok(Value::Null));
    bench
        .invoke(Kind::Command, "stop", "run", json!(""))
        .await
        .unwrap();
    assert_eq!(hear().await, Ok(Value::Null));
    let heard: Vec<Value> = bench.fake.asked("log.write");
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0]["message"], "t.rhai: heard 1 7");
}

/// `extensions.md` §5.4: what a nested call comes to is an answer, never an exception.
#[tokio::test]
async fn a_tool_calls_another_and_sees_what_it_shows_and_comes_to() {
    let pieces = |_| {
        Ok(vec![
            json!({"update": {"content": [{"type": "text", "text": "half"}]}}).to_string().into_bytes(),
            json!({"end": {"toolCall": {"id": "c1/1", "name": "read", "arguments": {}},
                "result": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "structuredContent": {"n": 2}},
                "isError": true, "durationMs": 5}}).to_string().into_bytes(),
        ])
    };
    let script = r#"register_tool(#{ name: "t", description: "d", execute: |args, ctx| {
        let seen = [];
        let got = ctx.call_tool("read", #{ path: "x" }, #{ on_update: |part| seen.push(part.content[0].text) });
        `${seen} ${got.isError} ${got.text} ${got.structuredContent.n} ${got.id} ${got.durationMs}`
    } });"#;
    let bench = load_with(script, Fake::default().stream("tools.call", pieces)).await;
    let said = bench.tool_text("t", json!({})).await;
    assert_eq!(said, "[\"half\"] true a\nb 2 c1/1 5");
    assert_eq!(
        bench.fake.asked("tools.call"),
        [json!({"name": "read", "arguments": {"path": "x"}})]
    );
}

#[tokio::test]
async fn the_directory_of_a_call_is_the_sessions() {
    let script = r#"register_command("c", #{ run: |args, ctx| log(ctx.cwd) });"#;
    let fake = Fake::default().on("session.read", |_| Ok(json!({"cwd": "/of/session"})));
    let bench = load_with(script, fake).await;
    let ran = bench.invoke(Kind::Command, "c", "run", json!(""));
    ran.await.unwrap();
    assert_eq!(
        bench.fake.asked("log.write")[0]["message"],
        "t.rhai: /of/session"
    );
}

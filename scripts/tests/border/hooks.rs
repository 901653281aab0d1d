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

#[tokio::test]
async fn every_event_reaches_a_script_and_what_it_may_answer_comes_back() {
    // extensions §3: each event with what a handler may answer.
    let events = [
        ("project_trust", r#"#{ trusted: "yes", remember: true }"#),
        (
            "resources_discover",
            r#"#{ skillPaths: ["/s"], promptPaths: [], themePaths: [] }"#,
        ),
        ("mcp_servers_change", "()"),
        ("session_start", "()"),
        ("session_info_changed", "()"),
        ("session_before_switch", "#{ cancel: true }"),
        (
            "session_before_fork",
            "#{ cancel: true, skipConversationRestore: true }",
        ),
        (
            "session_before_compact",
            r#"#{ compaction: #{ summary: "s", firstKeptEntryId: "e", tokensBefore: 1 } }"#,
        ),
        ("session_compact", "()"),
        ("session_compact_failed", "()"),
        (
            "session_before_tree",
            r#"#{ summary: #{ summary: "s" }, label: "l" }"#,
        ),
        ("session_tree", "()"),
        ("session_shutdown", "()"),
        ("input", r#"#{ action: "transform", text: "t" }"#),
        ("before_agent_start", r#"#{ systemPrompt: "p" }"#),
        ("agent_start", "()"),
        ("agent_end", "()"),
        (
            "agent_before_settle",
            r#"#{ entries: [], "continue": true }"#,
        ),
        ("agent_settled", "()"),
        ("turn_start", "()"),
        ("turn_end", r#"#{ entries: [], "continue": false }"#),
        ("context", "#{ messages: [] }"),
        ("context_with_system", "#{ messages: [] }"),
        ("before_provider_headers", "()"),
        ("before_provider_request", "#{ payload: 1 }"),
        ("after_provider_response", "()"),
        ("provider_stream_event", "()"),
        ("cache_warming_decision", r#"#{ action: "stop" }"#),
        ("message_start", "()"),
        ("message_update", "()"),
        ("message_end", r#"#{ message: #{ role: "user" } }"#),
        ("tool_execution_start", "()"),
        (
            "tool_call",
            r#"#{ block: true, reason: "r", terminate: true }"#,
        ),
        ("tool_execution_update", "()"),
        ("tool_result", "#{ isError: true, content: [] }"),
        ("tool_execution_end", "()"),
        ("model_select", "()"),
        ("thinking_level_select", "()"),
        (
            "user_bash",
            r#"#{ result: #{ output: "", exitCode: (), cancelled: false, truncated: false } }"#,
        ),
        ("ui_prompt_start", "()"),
        ("ui_prompt_end", "()"),
    ];
    assert_eq!(events.len(), 41, "the catalogue has 41 events");
    for (event, answer) in events {
        let script = format!(
            r#"let seen = (); on("{event}", |event| {{ seen = event; {answer} }});
            let expected = json_stringify({answer});
            register_tool(#{{ name: "t", description: "d", execute: || [seen.type, seen.field, expected] }});"#
        );
        let bench = load(&script).await;
        let payload = json!({"type": event, "field": [1, {"a": null}]});
        let answered = bench.hook(event, payload).await.unwrap();
        let seen = bench.tool("t", json!({})).await.unwrap();
        let seen = &seen["structuredContent"];
        assert_eq!(
            (&seen[0], &seen[1]),
            (&json!(event), &json!([1, {"a": null}])),
            "{event}"
        );
        let expected: Value = serde_json::from_str(seen[2].as_str().unwrap()).unwrap();
        assert_eq!(answered, expected, "{event}");
    }
}

#[tokio::test]
async fn each_editable_field_is_read_back_and_no_other() {
    // extensions §7.1
    for (event, field) in [
        ("tool_call", "input"),
        ("before_provider_headers", "headers"),
        ("before_agent_start", "systemPromptOptions"),
        ("context", "messages"),
    ] {
        let bench = load(&format!(
            r#"on("{event}", |event| {{ event.other = 1; if event.edit {{ event.{field} = #{{ b: 2 }}; }} }});"#
        ))
        .await;
        let payload = |edit: bool| json!({"edit": edit, field: {"a": 1}, "other": 0});
        assert_eq!(
            bench.hook(event, payload(true)).await.unwrap(),
            json!({"event": {field: {"b": 2}}}),
            "{event}"
        );
        let unedited = bench.hook(event, payload(false)).await.unwrap();
        assert_eq!(unedited, Value::Null, "{event}");
    }
}

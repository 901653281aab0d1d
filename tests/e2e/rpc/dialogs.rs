//! Dialogs and displays of extensions (`interfaces.md` §9): of scripts and of native plugins alike.

use std::path::PathBuf;

use pliant_tests::{ModelServer, Reply, Rpc, TempHome, fixture_plugin, reply, workspace};
use serde_json::{Value, json};

/// The two fixtures that do the same.
fn fixtures() -> [PathBuf; 2] {
    let script = workspace().join("tests/fixtures/extensions/dialogs.rhai");
    [script, fixture_plugin("dialogs")]
}

fn with(home: &TempHome, extension: PathBuf) -> Rpc {
    home.rpc_with(&["-e", &extension.display().to_string()])
}

/// A script of the test.
fn scripted(
    replies: impl IntoIterator<Item = Reply>,
    script: &str,
) -> (ModelServer, TempHome, Rpc) {
    let server = ModelServer::start(replies);
    let home = TempHome::with_model(&server);
    let file = home.write_agent("test.rhai", script);
    let rpc = with(&home, file);
    (server, home, rpc)
}

/// A dialog without its id, and what was said of the answer.
fn asked(rpc: &mut Rpc, command: &str, answer: Value) -> (Value, String) {
    let id = rpc.send(json!({"type": "prompt", "message": command}));
    let mut dialog = rpc.dialog();
    rpc.tell(&dialog, answer);
    let notice = rpc.notice();
    assert_eq!(rpc.answer(&id)["data"], json!({"disposition": "handled"}));
    assert!(dialog["id"].take().is_string());
    (dialog, notice)
}

#[test]
fn every_dialog_asks_with_its_fields_and_answers_what_was_said() {
    for fixture in fixtures() {
        let server = ModelServer::start([]);
        let home = TempHome::with_model(&server);
        let mut rpc = with(&home, fixture);
        let kind = "extension_ui_request";
        let select = json!({"type": kind, "id": null, "method": "select", "title": "Pick", "options": ["red", "blue"]});
        let confirm = json!({"type": kind, "id": null, "method": "confirm", "title": "Sure?", "message": "Really do it"});
        let input = json!({"type": kind, "id": null, "method": "input", "title": "Name", "placeholder": "type here"});
        let editor = json!({"type": kind, "id": null, "method": "editor", "title": "Edit", "prefill": "prefilled"});
        let cancelled = json!({"cancelled": true});
        for (command, dialog, answer, said) in [
            (
                "/t-select",
                &select,
                json!({"value": "blue"}),
                "select=blue",
            ),
            ("/t-select", &select, cancelled.clone(), "select=none"),
            (
                "/t-confirm",
                &confirm,
                json!({"confirmed": true}),
                "confirm=true",
            ),
            (
                "/t-confirm",
                &confirm,
                json!({"confirmed": false}),
                "confirm=false",
            ),
            ("/t-confirm", &confirm, cancelled.clone(), "confirm=false"),
            (
                "/t-input",
                &input,
                json!({"value": "Ada \u{2028}"}),
                "input=Ada \u{2028}",
            ),
            ("/t-input", &input, json!({"value": ""}), "input="),
            (
                "/t-editor",
                &editor,
                json!({"value": "a\nb"}),
                "editor=a\nb",
            ),
            ("/t-editor", &editor, cancelled, "editor=none"),
            // Answers of the wrong kind are none.
            ("/t-input", &input, json!({"value": 5}), "input=none"),
            ("/t-input", &input, json!({"confirmed": true}), "input=none"),
            (
                "/t-confirm",
                &confirm,
                json!({"value": "true"}),
                "confirm=false",
            ),
            ("/t-select", &select, json!({}), "select=none"),
        ] {
            let (shown, notice) = asked(&mut rpc, command, answer);
            assert_eq!((&shown, &*notice), (dialog, said), "{command}");
        }
        rpc.end();
    }
}

#[test]
fn displays_are_told_and_nobody_waits_for_an_answer() {
    for fixture in fixtures() {
        let server = ModelServer::start([]);
        let home = TempHome::with_model(&server);
        let mut rpc = with(&home, fixture);
        rpc.ok(json!({"type": "prompt", "message": "/t-fire"}));
        rpc.ok(json!({"type": "prompt", "message": "/t-args a  b "}));
        let shown = rpc.since(0).into_iter().map(|mut record| {
            assert!(record["id"].take().is_string());
            record
        });
        let kind = "extension_ui_request";
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                json!({"type": kind, "id": null, "method": "setStatus", "statusKey": "k", "statusText": "v"}),
                json!({"type": kind, "id": null, "method": "setWidget", "widgetKey": "w", "widgetLines": ["l1", "l2"]}),
                json!({"type": kind, "id": null, "method": "setTitle", "title": "T"}),
                json!({"type": kind, "id": null, "method": "set_editor_text", "text": "E"}),
                json!({"type": kind, "id": null, "method": "notify", "message": "args=a  b ", "notifyType": "warning"}),
            ]
        );
        rpc.end();
    }
}

#[test]
fn a_dialog_closes_by_itself_when_its_time_is_over_and_a_late_answer_is_passed_by() {
    for fixture in fixtures() {
        let server = ModelServer::start([]);
        let home = TempHome::with_model(&server);
        let mut rpc = with(&home, fixture);
        rpc.send(json!({"type": "prompt", "message": "/t-timeout"}));
        let dialog = rpc.dialog();
        assert_eq!(dialog["timeout"], 300);
        assert_eq!(rpc.notice(), "timeout=none");
        rpc.tell(&dialog, json!({"value": "a"}));
        rpc.tell(&json!({"id": "nobody"}), json!({"value": "a"}));
        rpc.raw(
            "{\"type\":\"extension_ui_response\"}\n{\"type\":\"extension_ui_response\",\"id\":5}\n",
        );
        rpc.state();
        let ended = rpc.end();
        // The dialogs' answers have none.
        let answers = ended
            .records
            .iter()
            .filter(|record| record["type"] == "response");
        assert_eq!(answers.count(), 2);
    }
}

#[test]
fn two_dialogs_are_open_at_once_and_each_gets_its_first_answer() {
    for fixture in fixtures() {
        let server = ModelServer::start([]);
        let home = TempHome::with_model(&server);
        let mut rpc = with(&home, fixture);
        rpc.send(json!({"type": "prompt", "message": "/t-select"}));
        let first = rpc.dialog();
        rpc.send(json!({"type": "prompt", "message": "/t-select"}));
        let second = rpc.dialog();
        assert_ne!(first["id"], second["id"]);
        rpc.state();
        rpc.tell(&second, json!({"value": "blue"}));
        rpc.tell(&second, json!({"value": "red"}));
        assert_eq!(rpc.notice(), "select=blue");
        rpc.tell(&first, json!({"value": "red"}));
        assert_eq!(rpc.notice(), "select=red");
        rpc.end();
    }
}

#[test]
fn tools_and_handlers_ask_too_and_the_time_of_the_question_does_not_count() {
    // extensions §5.5, §6
    let replies = || {
        [
            reply::tool_call("t_tool", json!({"v": "gated"})),
            reply::tool_call("t_tool", json!({"v": "gated"})),
            reply::tool_call("t_tool", json!({"v": "ask"})),
            reply::text("Done."),
        ]
    };
    let server = ModelServer::start(replies());
    let home = TempHome::with_model(&server);
    home.settings(json!({"retry": {"enabled": false}, "extensions": {"handlerTimeoutMs": 300}}));
    let mut rpc = with(&home, fixture_plugin("dialogs"));
    rpc.ok(json!({"type": "prompt", "message": "Go."}));
    let gate = rpc.dialog();
    // Longer than a handler may take; `bash` is the only clock that a test has.
    rpc.ok(json!({"type": "bash", "command": "sleep 0.6"}));
    rpc.tell(&gate, json!({"confirmed": true}));
    let gate = rpc.dialog();
    rpc.tell(&gate, json!({"confirmed": false}));
    let question = rpc.dialog();
    assert_eq!(question["title"], "What?");
    rpc.tell(&question, json!({"value": "that"}));
    rpc.event("agent_settled");
    assert!(!super::kinds(rpc.records()).contains(&"extension_error"));
    rpc.end();
    let request = server.finish().pop().expect("requests");
    let results = [1, 2, 3].map(|number| request.tool_result(&reply::call_id(number)));
    let results = results.map(Option::unwrap_or_default);
    assert_eq!(
        results,
        [
            "t_tool:gated",
            "The user said no.",
            "answered:Some(\"that\")"
        ]
    );
}

#[test]
fn a_script_that_asks_in_a_handler_has_all_the_time_of_the_user() {
    let (server, _home, mut rpc) = scripted(
        [
            reply::tool_call("bash", json!({"command": "echo ran"})),
            reply::text("Done."),
        ],
        r#"on("tool_call", |event, ctx| if !ctx.ui.confirm("Run?", "") { #{ block: true, reason: "no" } });"#,
    );
    rpc.ok(json!({"type": "prompt", "message": "Go."}));
    let gate = rpc.dialog();
    rpc.tell(&gate, json!({"confirmed": true}));
    rpc.event("agent_settled");
    rpc.end();
    let request = server.finish().pop().expect("requests");
    assert_eq!(
        request.tool_result(&reply::call_id(1)).as_deref(),
        Some("ran\n")
    );
}

#[test]
fn an_abort_closes_the_dialogs_of_the_run() {
    for (fixture, v) in [(0, "ask"), (1, "ask"), (1, "gated")] {
        let server = ModelServer::start([reply::tool_call("t_tool", json!({ "v": v }))]);
        let home = TempHome::with_model(&server);
        let mut rpc = match fixture {
            0 => {
                let script = "register_tool(#{ name: \"t_tool\", description: \"t\", parameters: #{ type: \"object\", properties: #{ v: #{ type: \"string\" } } }, execute: |args, ctx| ctx.ui.input(\"What?\") });";
                let file = home.write_agent("test.rhai", script);
                with(&home, file)
            }
            _ => with(&home, fixture_plugin("dialogs")),
        };
        rpc.ok(json!({"type": "prompt", "message": "Go."}));
        let dialog = rpc.dialog();
        rpc.ok(json!({"type": "abort"}));
        assert_eq!(rpc.event("agent_settled")["aborted"], true);
        rpc.tell(&dialog, json!({"value": "late", "confirmed": true}));
        rpc.state();
        rpc.end();
        server.finish();
    }
}

const ASKS_AT_BOTH_ENDS: &str = r#"
    on("session_start", |event, ctx| ctx.ui.notify("begun " + event.reason + " " + ctx.ui.confirm("Begin?", "")));
    on("session_shutdown", |event, ctx| ctx.ui.notify("ended " + event.reason + " " + ctx.ui.confirm("End?", "")));
"#;

#[test]
fn handlers_of_a_sessions_beginning_and_end_ask_and_commands_wait_for_the_beginning() {
    let (_server, _home, mut rpc) = scripted([], ASKS_AT_BOTH_ENDS);
    let early = rpc.send(json!({"type": "get_state"}));
    let begin = rpc.dialog();
    assert_eq!(begin["title"], "Begin?");
    rpc.tell(&begin, json!({"confirmed": true}));
    assert_eq!(rpc.notice(), "begun startup true");
    assert_eq!(rpc.answer(&early)["success"], true);
    let replace = rpc.send(json!({"type": "new_session"}));
    let end = rpc.dialog();
    assert_eq!(end["title"], "End?");
    rpc.tell(&end, json!({"confirmed": true}));
    assert_eq!(rpc.notice(), "ended new true");
    let begin = rpc.dialog();
    rpc.state();
    rpc.tell(&begin, json!({"confirmed": true}));
    assert_eq!(rpc.notice(), "begun new true");
    assert_eq!(rpc.answer(&replace)["data"], json!({"cancelled": false}));
    // Nobody is there to answer any more.
    let ended = rpc.end();
    let last = ended.records.last().expect("records");
    assert_eq!(last["message"], "ended quit false");
}

#[test]
fn the_end_of_the_input_or_a_signal_closes_a_dialog_at_the_beginning() {
    for signal in [None, Some(libc::SIGTERM)] {
        let (_server, _home, mut rpc) = scripted([], ASKS_AT_BOTH_ENDS);
        rpc.dialog();
        match signal {
            None => rpc.close_input(),
            Some(signal) => rpc.signal(signal),
        }
        let ended = rpc.wait();
        assert_eq!(
            ended.status.code(),
            Some(signal.map_or(0, |_| 143)),
            "{ended:#?}"
        );
    }
}

#[test]
fn a_session_that_is_replaced_closes_its_dialogs() {
    for fixture in fixtures() {
        let server = ModelServer::start([]);
        let home = TempHome::with_model(&server);
        let mut rpc = with(&home, fixture);
        let asking = rpc.send(json!({"type": "prompt", "message": "/t-input"}));
        let dialog = rpc.dialog();
        let old = rpc.state();
        rpc.ok(json!({"type": "new_session"}));
        assert_eq!(
            rpc.answer(&asking)["data"],
            json!({"disposition": "handled"})
        );
        rpc.tell(&dialog, json!({"value": "late"}));
        assert_ne!(rpc.state()["sessionId"], old["sessionId"]);
        let (_, notice) = asked(&mut rpc, "/t-input", json!({"value": "new"}));
        assert_eq!(notice, "input=new");
        rpc.end();
    }
}

#[test]
fn the_process_ends_in_time_while_a_dialog_is_open() {
    for fixture in fixtures() {
        for signal in [None, Some((libc::SIGTERM, 143)), Some((libc::SIGHUP, 129))] {
            let server = ModelServer::start([]);
            let home = TempHome::with_model(&server);
            let mut rpc = with(&home, fixture.clone());
            let asking = rpc.send(json!({"type": "prompt", "message": "/t-select"}));
            rpc.dialog();
            match signal {
                None => rpc.close_input(),
                Some((signal, _)) => rpc.signal(signal),
            }
            let ended = rpc.wait();
            assert_eq!(
                ended.status.code(),
                Some(signal.map_or(0, |(_, status)| status)),
                "{ended:#?}"
            );
            let answer = ended.records.iter().find(|record| record["id"] == asking);
            assert!(answer.is_some(), "{ended:#?}");
        }
    }
}

#[test]
fn a_command_that_fails_is_told_and_handled_and_one_runs_during_a_run() {
    for fixture in fixtures() {
        let server = ModelServer::start([reply::text("x").hold_after(2)]);
        let home = TempHome::with_model(&server);
        let mut rpc = with(&home, fixture);
        let handled = json!({"disposition": "handled"});
        assert_eq!(
            rpc.ok(json!({"type": "prompt", "message": "/t-throw"})),
            handled
        );
        let failure = rpc.event("extension_error");
        assert_eq!(failure["event"], "command");
        assert!(
            failure["error"]
                .as_str()
                .is_some_and(|error| error.contains("deliberate")),
            "{failure}"
        );
        assert!(failure["extensionPath"].is_string());
        rpc.ok(json!({"type": "prompt", "message": "go"}));
        server.wait_for(1);
        assert_eq!(
            rpc.ok(json!({"type": "prompt", "message": "/t-args now"})),
            handled
        );
        rpc.error(json!({"type": "steer", "message": "/t-args no"}));
        rpc.error(json!({"type": "follow_up", "message": "/t-args no"}));
        rpc.ok(json!({"type": "abort"}));
        rpc.end();
    }
}

#[test]
fn a_plugin_may_end_the_program_once_nothing_runs() {
    for fixture in fixtures() {
        let server = ModelServer::start([]);
        let home = TempHome::with_model(&server);
        let mut rpc = with(&home, fixture);
        rpc.ok(json!({"type": "prompt", "message": "/t-stop"}));
        assert_eq!(rpc.wait().status.code(), Some(0));
    }
}

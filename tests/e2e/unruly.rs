//! Extensions and services that do what they should not: the run ends as it should, the session can be
//! continued, and the user is told whose fault it was.

use pliant_tests::{ModelServer, TempHome, reply};
use serde_json::json;

use super::signals::until;

/// A prompt with this extension; what was said on stderr.
fn told(server: &ModelServer, script: &str) -> String {
    let home = TempHome::with_model(server);
    let script = home.write_agent("x.rhai", script).display().to_string();
    let run = home.prompt("x").args(["-e", &script]).run().success();
    assert_eq!(run.stdout, "Here.\n");
    home.pliant_with_model()
        .args(["--continue", "-p", "still there?"])
        .run()
        .success();
    run.stderr
}

/// Two answers, and what the extension made the user read.
fn told_of_answers(script: &str) -> String {
    let server = ModelServer::start([reply::text("Here."), reply::text("Still here.")]);
    let told = told(&server, script);
    server.finish();
    told
}

#[test]
fn a_handler_that_fails_while_the_session_starts_is_told() {
    // G5: nobody has subscribed yet when it runs.
    let told = told_of_answers(r#"on("session_start", |event, ctx| { throw "no start"; });"#);
    assert!(
        told.contains("session_start") && told.contains("no start"),
        "{told}"
    );
}

#[test]
fn the_stream_of_events_holds_a_failure_from_before_it_began() {
    // G5
    let server = ModelServer::start([reply::text("Here.")]);
    let home = TempHome::with_model(&server);
    let script = home.write_agent(
        "x.rhai",
        r#"on("session_start", |event, ctx| { throw "no"; });"#,
    );
    let script = script.display().to_string();
    let output = home.json_prompt("x").args(["-e", &script]).run().success();
    let failures = output.events_of("extension_error");
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert_eq!(failures[0]["event"], "session_start");
    server.finish();
}

#[test]
fn an_answer_that_a_handler_calls_unfinished_is_stored_as_it_came() {
    // G7, M5: such a message cannot be stored, and the run ended there.
    let told = told_of_answers(
        r#"on("message_end", |event, ctx| {
            let message = event.message;
            message.stopReason = "pending";
            #{ message: message }
        });"#,
    );
    assert!(
        told.contains("message_end") && told.contains("pending"),
        "{told}"
    );
}

#[test]
fn a_result_is_not_given_to_another_call() {
    // G7, T8
    let server = ModelServer::start([
        reply::tool_call("bash", json!({"command": "echo one"})),
        reply::text("Here."),
        reply::text("Still here."),
    ]);
    let told = told(
        &server,
        r#"on("message_end", |event, ctx| {
            if event.message.role != "toolResult" { return; }
            let message = event.message;
            message.toolCallId = "another";
            #{ message: message }
        });"#,
    );
    assert!(told.contains("another"), "{told}");
    let requests = server.finish();
    let result = requests[1].tool_result("call_1").expect("it has its call");
    assert!(result.contains("one"), "{result}");
}

#[test]
fn a_handler_does_not_say_how_long_a_body_is() {
    // What is left of the body would be the next request of the connection.
    let told = told_of_answers(
        r#"on("before_provider_headers", |event, ctx| {
            event.headers["content-length"] = "3";
            ()
        });"#,
    );
    assert!(told.contains("content-length"), "{told}");
}

#[test]
fn a_message_that_says_nothing_is_nothing_to_go_on_from() {
    // R48: the request would end with the model's own answer.
    let told = told_of_answers(
        r#"on("agent_before_settle", |event, ctx| {
            let nothing = #{ type: "custom_message", customType: "x", content: "", display: true };
            #{ entries: [nothing], proceed: true }
        });"#,
    );
    assert!(told.contains("asked to continue"), "{told}");
}

#[test]
fn an_error_that_is_called_a_success_is_shown_and_a_page_is_not_asked_for_again() {
    let answers = [
        (
            r#"{"error": {"message": "No such deployment"}}"#,
            "No such deployment",
        ),
        ("<html>Sign in</html>", "baseUrl"),
    ];
    for (body, words) in answers {
        let server = ModelServer::start([reply::response(200, "text/html", body)]);
        let home = TempHome::with_model(&server);
        home.settings(json!({"retry": {"baseDelayMs": 1}}));
        home.prompt("x").run().failure(&[words]);
        assert_eq!(server.finish().len(), 1);
    }
}

#[test]
fn an_attempt_is_told_in_sentences() {
    let server = ModelServer::start([reply::error(503, "busy"), reply::text("Here.")]);
    let home = TempHome::with_model(&server);
    home.settings(json!({"retry": {"baseDelayMs": 1}}));
    let told = home.prompt("x").run().success().stderr;
    assert!(told.contains(". Attempt 1 of 3 follows in 1 s."), "{told}");
    server.finish();
}

/// Waits for a file of the project.
fn is_there(home: &TempHome, name: &str) {
    let file = home.project_dir().join(name);
    until(name, || file.exists().then_some(()));
}

/// Loops in every handler that is called when a run has been stopped.
const LOOPS_AT_THE_END: &str = r#"
    on("message_start", |event, ctx| { if event.message.role == "assistant" { exec("touch", ["begun"]); } });
    on("message_end", |event, ctx| { if event.message.role == "assistant" { loop {} } });
    on("turn_end", |event, ctx| { loop {} });
    on("agent_end", |event, ctx| { loop {} });
    on("agent_settled", |event, ctx| { loop {} });
    on("session_shutdown", |event, ctx| { loop {} });
"#;

#[test]
fn a_run_that_is_stopped_ends_with_all_its_events_whatever_loops_then() {
    // R51, extensions §6
    for mode in ["text", "json"] {
        let server = ModelServer::start([reply::text("Half of an answer.").hold_after(5)]);
        let home = TempHome::with_model(&server);
        let script = home.write_agent("x.rhai", LOOPS_AT_THE_END);
        let script = script.display().to_string();
        let running = home
            .prompt("Wait.")
            .args(["--mode", mode, "-e", &script])
            .spawn();
        is_there(&home, "begun");
        running.signal(libc::SIGTERM);
        let output = running.wait();
        assert_eq!(output.status.code(), Some(143), "{output:#?}");
        let told = match mode {
            "json" => {
                assert_eq!(output.events_of("agent_end").len(), 1);
                assert_eq!(output.events_of("agent_settled").len(), 1);
                let told = output.events_of("extension_error").into_iter();
                told.map(|event| event.to_string()).collect()
            }
            _ => output.stderr.clone(),
        };
        for event in ["message_end", "turn_end", "agent_end", "agent_settled"] {
            assert!(told.contains(event), "{event}: {told}");
        }
        assert!(
            told.contains("x.rhai") && told.contains("left behind"),
            "{told}"
        );
        assert!(output.stderr.contains("session_shutdown"), "{output:#?}");
        server.finish();
    }
}

#[test]
fn a_secret_that_a_handler_takes_out_does_not_get_by_when_the_run_is_stopped() {
    // R51, T15
    let command = "echo SECRET; mv ready begun; sleep 600";
    let server = ModelServer::start([reply::tool_call("bash", json!({"command": command}))]);
    let home = TempHome::with_model(&server);
    std::fs::write(home.project_dir().join("ready"), "").expect("the folder is there");
    let script = home.write_agent(
        "x.rhai",
        r#"on("tool_result", |event, ctx| {
            exec("sleep", ["0.2"]);
            let text = event.content[0].text;
            text.replace("SECRET", "***");
            let content = [#{ type: "text", text: text }];
            #{ content: content }
        });"#,
    );
    let script = script.display().to_string();
    let running = home.prompt("Wait.").args(["-e", &script]).spawn();
    is_there(&home, "begun");
    running.signal(libc::SIGINT);
    assert_eq!(running.wait().status.code(), Some(130));
    let results = home.stored_messages().into_iter();
    let result = results
        .filter(|message| message["role"] == "toolResult")
        .next_back();
    let result = result.expect("the call has its result").to_string();
    assert!(
        !result.contains("SECRET") && result.contains("***"),
        "{result}"
    );
    server.finish();
}

#[test]
fn code_that_brings_arguments_into_shape_has_a_limit_like_a_handler() {
    // T2: one that looped held the run until a signal came.
    let server = ModelServer::start([reply::tool_call("old", json!({})), reply::text("Here.")]);
    let home = TempHome::with_model(&server);
    home.settings(json!({"extensions": {"handlerTimeoutMs": 50}}));
    let script = home.write_agent(
        "x.rhai",
        r#"register_tool(#{
            name: "old", label: "Old", description: "Old.",
            parameters: #{ type: "object", properties: #{} },
            prepare: |args| { loop {} },
            execute: |args, ctx| "never"
        });"#,
    );
    let script = script.display().to_string();
    let output = home.prompt("x").args(["-e", &script]).run().success();
    assert_eq!(output.stdout, "Here.\n");
    let requests = server.finish();
    let result = requests[1].tool_result("call_1").expect("it has a result");
    for words in ["x.rhai", "within 50 ms", "extensions.handlerTimeoutMs"] {
        assert!(result.contains(words), "{result}");
    }
}

#[test]
fn a_handler_of_every_piece_of_an_answer_that_fails_is_told_a_few_times() {
    // G5, E09
    let text = "word ".repeat(300);
    let server = ModelServer::start([reply::text(&text)]);
    let home = TempHome::with_model(&server);
    let script = home.write_agent(
        "x.rhai",
        r#"on("message_update", |event, ctx| { throw "no"; });
        on("provider_stream_event", |event, ctx| { throw "no"; });"#,
    );
    let script = script.display().to_string();
    let told = home
        .prompt("x")
        .args(["-e", &script])
        .run()
        .success()
        .stderr;
    for event in ["message_update", "provider_stream_event"] {
        let lines = told.lines().filter(|line| line.contains(event));
        assert_eq!(lines.count(), 4, "{told}");
    }
    assert_eq!(told.matches("left out here").count(), 2, "{told}");
    server.finish();
}

//! Conversations that no service would take as they are stored: they go on, the user is told once,
//! and the stored part stays as it is. The model server refuses what services refuse.

use std::fs;
use std::path::{Path, PathBuf};

use pliant_tests::{ModelServer, Output, TempHome, reply};
use serde_json::{Value, json};

const TOLD: &str = "The conversation is repaired for the model";

/// A home with one run of two calls, and the session it left.
fn after_two_calls(server: &ModelServer) -> (TempHome, PathBuf) {
    let home = TempHome::with_model(server);
    home.write("a.txt", "alpha\n");
    home.write("b.txt", "beta\n");
    home.prompt("Read both.").run().success();
    let file = home.session_files().remove(0);
    (home, file)
}

/// The replies of that run, and one for the next.
fn two_calls(then: Option<&str>) -> ModelServer {
    let calls = reply::tool_calls([
        ("read", json!({"path": "a.txt"})),
        ("read", json!({"path": "b.txt"})),
    ]);
    let replies = [calls, reply::text("Done.")].into_iter();
    ModelServer::start(replies.chain(then.map(reply::text)))
}

fn is_result_of(entry: &Value, call: &str) -> bool {
    entry["message"]["toolCallId"] == call
}

/// Rewrites the entries; what followed a left out one follows the one before it.
fn edit(file: &Path, keep: impl Fn(&mut Value) -> bool) {
    let text = fs::read_to_string(file).expect("the session is text");
    let mut gone: Vec<(Value, Value)> = Vec::new();
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut entry: Value = serde_json::from_str(line).expect("every line is JSON");
        if let Some((_, parent)) = gone.iter().find(|(id, _)| *id == entry["parentId"]) {
            entry["parentId"] = parent.clone();
        }
        match keep(&mut entry) {
            true => lines.push(entry.to_string() + "\n"),
            false => gone.push((entry["id"].clone(), entry["parentId"].clone())),
        }
    }
    fs::write(file, lines.concat()).expect("the session is writable");
}

fn go_on(home: &TempHome) -> Output {
    home.prompt("Go on.").args(["--continue"]).run().success()
}

#[track_caller]
fn check_told(output: &Output, times: usize, words: &str) {
    assert_eq!(
        output.stderr.matches(TOLD).count(),
        times,
        "{}",
        output.stderr
    );
    assert!(output.stderr.contains(words), "{}", output.stderr);
}

#[test]
fn a_call_whose_result_line_was_deleted_gets_an_error_result_and_the_user_is_told_once() {
    // K04
    let server = two_calls(Some("Fine."));
    let (home, file) = after_two_calls(&server);
    edit(&file, |entry| !is_result_of(entry, "call_1"));
    let before = fs::read(&file).expect("the session is there");
    server.allow_rewritten_history();
    let output = go_on(&home);
    assert_eq!(output.stdout, "Fine.\n");
    check_told(&output, 1, "One tool call has no result");
    let after = fs::read(&file).expect("the session is there");
    assert!(
        after.starts_with(&before),
        "nothing is written into history"
    );
    assert!(
        !home
            .session()
            .iter()
            .any(|entry| is_result_of(entry, "call_1"))
    );
    let requests = server.finish();
    let missing = requests[2].tool_result("call_1");
    assert_eq!(missing.as_deref(), Some("No result provided"));
    assert!(
        requests[2]
            .tool_result("call_2")
            .is_some_and(|text| text.contains("beta"))
    );
}

#[test]
fn a_sound_conversation_is_not_said_to_be_repaired() {
    let server = two_calls(Some("Fine."));
    let (home, _) = after_two_calls(&server);
    let output = go_on(&home);
    check_told(&output, 0, "");
    server.finish();
}

#[test]
fn a_run_that_was_killed_during_its_tools_goes_on() {
    // K04, K05: the file ends with the answer that made the calls.
    let server = two_calls(Some("Fine."));
    let (home, file) = after_two_calls(&server);
    let text = fs::read_to_string(&file).expect("the session is text");
    let calls = text.find("\"toolCall\"").expect("an answer made calls");
    let end = calls + text[calls..].find('\n').expect("lines end") + 1;
    fs::write(&file, &text[..end]).expect("the session is writable");
    server.allow_rewritten_history();
    check_told(&go_on(&home), 1, "2 tool calls have no result");
    server.finish();
}

#[test]
fn an_entry_between_a_call_and_its_results_stays_and_follows_them() {
    let server = two_calls(Some("Fine."));
    let (home, file) = after_two_calls(&server);
    let mut lines = Vec::new();
    for line in fs::read_to_string(&file)
        .expect("the session is text")
        .lines()
    {
        let mut entry: Value = serde_json::from_str(line).expect("every line is JSON");
        if is_result_of(&entry, "call_1") {
            let injected = json!({"type": "message", "id": "0badcafe", "parentId": entry["parentId"],
                "timestamp": entry["timestamp"], "message": {"role": "user", "content": "Hurry."}});
            entry["parentId"] = json!("0badcafe");
            lines.push(injected.to_string() + "\n");
        }
        lines.push(entry.to_string() + "\n");
    }
    fs::write(&file, lines.concat()).expect("the session is writable");
    server.allow_rewritten_history();
    check_told(&go_on(&home), 1, "2 tool results stand apart");
    let requests = server.finish();
    let spoken = requests[2].conversation();
    let roles: Vec<&str> = spoken.iter().map(|(role, _)| *role).collect();
    assert_eq!(
        roles,
        [
            "user",
            "assistant",
            "tool",
            "tool",
            "user",
            "assistant",
            "user"
        ]
    );
}

#[test]
fn halves_of_surrogate_pairs_are_replaced_wherever_they_stand() {
    let server = two_calls(Some("Fine."));
    let (home, file) = after_two_calls(&server);
    let half = "half \\ud83d";
    edit(&file, |entry| {
        let message = &mut entry["message"];
        if message["role"] == "assistant" && message["content"][0]["type"] == "toolCall" {
            let call = &mut message["content"][0];
            call["arguments"] = json!({"HALF": {"HALF": ["HALF"]}});
            call["name"] = json!("HALF");
            let thinking =
                json!({"type": "thinking", "thinking": "HALF", "thinkingSignature": "reasoning"});
            message["content"]
                .as_array_mut()
                .expect("blocks")
                .insert(0, thinking);
        }
        true
    });
    let text = fs::read_to_string(&file).expect("the session is text");
    fs::write(&file, text.replace("HALF", half)).expect("the session is writable");
    server.allow_rewritten_history();
    check_told(
        &go_on(&home),
        1,
        "names a tool in a way that no service takes",
    );
    let requests = server.finish();
    let answer = requests[2]
        .messages()
        .iter()
        .find(|m| m["role"] == "assistant");
    let answer = answer.expect("the answer is sent");
    assert_eq!(answer["reasoning"], "half \u{fffd}");
    let call = &answer["tool_calls"][0]["function"];
    assert_eq!(call["name"], "half__");
    assert_eq!(
        call["arguments"],
        "{\"half \u{fffd}\":{\"half \u{fffd}\":[\"half \u{fffd}\"]}}"
    );
}

#[test]
fn a_provider_that_is_a_script_gets_a_sound_conversation_too() {
    let script = r#"
        register_provider("echo", #{
            models: ["one"],
            keyless: true,
            stream: |request, out, ctx| {
                let roles = "";
                for at in 0..request.messages.len { roles += request.messages[at].role + " "; }
                out.text(roles);
            },
        });
    "#;
    let server = two_calls(None);
    let (home, file) = after_two_calls(&server);
    edit(&file, |entry| !is_result_of(entry, "call_2"));
    let echo = home.write_agent("echo.rhai", script).display().to_string();
    let output = home
        .pliant()
        .args(["-p", "Go on.", "--continue", "-e", &echo])
        .args(["--provider", "echo", "--model", "one"])
        .run()
        .success();
    assert!(
        output
            .stdout
            .contains("assistant toolResult toolResult assistant"),
        "{}",
        output.stdout
    );
}

#[test]
fn a_stream_that_is_cut_inside_a_call_is_an_error_and_leaves_no_half_call() {
    // K09
    for events in 1..4 {
        let call = reply::tool_call("read", json!({"path": "a.txt"}));
        let server = ModelServer::start([call.cut_after(events), reply::text("Fine.")]);
        let home = TempHome::with_model(&server);
        home.write("a.txt", "alpha\n");
        home.prompt("Read a.txt.").run().failure(&[]);
        let output = go_on(&home);
        assert_eq!(output.stdout, "Fine.\n");
        // A failed answer is left out with its calls; that is nothing to mend.
        check_told(&output, 0, "");
        let requests = server.finish();
        let roles: Vec<&str> = requests[1]
            .conversation()
            .iter()
            .map(|(role, _)| *role)
            .collect();
        assert_eq!(roles, ["user", "user"], "{events} events");
    }
}

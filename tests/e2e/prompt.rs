//! One prompt in print and JSON mode: what the model is asked, what the user sees.

use pliant_tests::{MODEL, ModelServer, PROVIDER, TempHome, reply};
use serde_json::json;

#[test]
fn a_prompt_prints_the_answer_and_nothing_else() {
    let server = ModelServer::start([reply::thinking("Hm.").and_text("Hello, world.")]);
    let home = TempHome::with_model(&server);
    let output = home.prompt("Greet the world.").run().success();
    assert_eq!(output.stdout, "Hello, world.\n");
    assert_eq!(output.stderr, "");
    let requests = server.finish();
    assert_eq!(requests.len(), 1);
    assert_eq!(
        requests[0].conversation(),
        [("user", "Greet the world.".to_owned())]
    );
}

#[test]
fn the_request_carries_model_key_and_default_tools() {
    let server = ModelServer::start([reply::text("x")]);
    let home = TempHome::with_model(&server);
    home.prompt("x").run().success();
    let request = &server.finish()[0];
    assert_eq!(request.path, "/v1/chat/completions");
    assert_eq!(request.header("authorization"), Some("Bearer test-key"));
    let agent = request.header("user-agent").unwrap_or_default();
    assert!(agent.starts_with("pliant"), "{agent:?}");
    assert_eq!(request.body["model"], MODEL);
    let mut tools = request.tools();
    tools.sort_unstable();
    assert_eq!(tools, ["bash", "edit", "read", "write"]);
    let project = home.project_dir().display().to_string();
    assert!(
        request.system_prompt().contains(&project),
        "the prompt names the directory"
    );
}

#[test]
fn tools_are_chosen_by_flags() {
    let declared = |flags: &[&str]| {
        let server = ModelServer::start([reply::text("x")]);
        let home = TempHome::with_model(&server);
        home.prompt("x").args(flags).run().success();
        let requests = server.finish();
        let tools = requests[0].tools();
        tools.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(declared(&["--tools", "read,grep"]), ["read", "grep"]);
    assert!(declared(&["--no-tools"]).is_empty());
}

#[test]
fn only_the_last_answer_is_printed() {
    let server = ModelServer::start([
        reply::text("Let me look.").and_call("bash", json!({"command": "echo seen"})),
        reply::text("I have seen it."),
    ]);
    let home = TempHome::with_model(&server);
    let output = home.prompt("Look.").run().success();
    assert_eq!(output.stdout, "I have seen it.\n");
    server.finish();
}

#[test]
fn the_json_mode_tells_the_whole_run() {
    let server = ModelServer::start([
        reply::thinking("Hm.")
            .and_text("Let me look.")
            .and_call("bash", json!({"command": "echo seen"})),
        reply::text("Done."),
    ]);
    let home = TempHome::with_model(&server);
    let output = home.json_prompt("Look.").run().success();
    // The order is checked by `events`.
    let events = output.events();
    assert_eq!(events[0], home.session()[0]);
    let header_cwd = events[0]["cwd"].as_str().unwrap_or_default();
    assert_eq!(header_cwd, home.project_dir().display().to_string());
    let settled = events.last().expect("there are events");
    assert_eq!(*settled, json!({"type": "agent_settled", "aborted": false}));

    let ended = output.events_of("message_end");
    let told: Vec<_> = ended.into_iter().map(|mut e| e["message"].take()).collect();
    assert_eq!(
        told,
        home.stored_messages(),
        "what was told is what was stored"
    );
    let roles: Vec<_> = told
        .iter()
        .map(|message| message["role"].as_str())
        .collect();
    let roles: Vec<_> = roles
        .into_iter()
        .flatten()
        .filter(|role| *role != "system")
        .collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "assistant"]);

    let deltas = output.events_of("message_update");
    let joined = |kind: &str| -> String {
        let of_kind = deltas
            .iter()
            .map(|e| &e["assistantMessageEvent"])
            .filter(|e| e["type"] == kind);
        of_kind.filter_map(|e| e["delta"].as_str()).collect()
    };
    assert_eq!(joined("text_delta"), "Let me look.Done.");
    assert_eq!(joined("thinking_delta"), "Hm.");
    assert_eq!(joined("toolcall_delta"), r#"{"command":"echo seen"}"#);
    assert_eq!(output.events_of("turn_end").len(), 2);
    server.finish();
}

#[test]
fn a_provider_failure_in_json_mode_is_in_the_stream_and_not_in_the_status() {
    let server = ModelServer::start([reply::error(401, "the key is wrong")]);
    let home = TempHome::with_model(&server);
    let output = home.json_prompt("x").run().success();
    let ended = output.events_of("message_end");
    let reply = &ended.last().expect("there is a reply")["message"];
    assert_eq!(reply["stopReason"], "error");
    assert!(
        reply["errorMessage"]
            .to_string()
            .contains("the key is wrong"),
        "{reply}"
    );
    server.finish();
}

#[test]
fn the_models_of_models_json_are_listed() {
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let output = home.pliant().args(["--list-models", MODEL]).run().success();
    let listed = |line: &str| line.contains(PROVIDER) && line.contains(MODEL);
    assert!(output.stdout.lines().any(listed), "{output:#?}");
    server.finish();
}

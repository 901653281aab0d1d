//! Stdout belongs to the mode: whatever plugins, scripts and children print, a program that reads it
//! gets answers only (`interfaces.md` §2).

use pliant_tests::{ModelServer, TempHome, fixture_plugin, reply};
use serde_json::json;

/// A model that lets the fixture print, then answers.
fn server() -> ModelServer {
    ModelServer::start([
        reply::tool_call("print", json!({"text": "noise"})),
        reply::text("The answer."),
    ])
}

fn prints() -> String {
    fixture_plugin("prints").display().to_string()
}

const NOISE: [&str; 3] = [
    "noise of the start",
    "noise of the tool",
    "noise of a child",
];

#[test]
fn what_a_plugin_and_its_children_print_is_no_answer() {
    // R03
    let server = server();
    let home = TempHome::with_model(&server);
    let output = home.prompt("Go.").args(["--plugin", &prints()]).run();
    let output = output.success();
    assert_eq!(output.stdout, "The answer.\n");
    for noise in NOISE {
        assert!(
            output.stderr.contains(noise),
            "{noise:?} is not in {output:#?}"
        );
    }
    server.finish();
}

#[test]
fn what_a_plugin_and_its_children_print_is_no_event() {
    // R03
    let server = server();
    let home = TempHome::with_model(&server);
    let run = home.json_prompt("Go.").args(["--plugin", &prints()]);
    let output = run.run().success();
    // Each line is an event, or `events` fails.
    assert_eq!(output.events_of("agent_settled").len(), 1);
    for noise in NOISE {
        assert!(
            output.stderr.contains(noise),
            "{noise:?} is not in {output:#?}"
        );
    }
    server.finish();
}

#[test]
fn what_a_plugin_prints_is_not_in_a_list() {
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let run = home.pliant().args(["--list-models", "--plugin", &prints()]);
    let output = run.run().success();
    assert!(output.stdout.starts_with("provider "), "{output:#?}");
    server.finish();
}

#[test]
fn a_script_that_prints_writes_to_the_log() {
    let server = ModelServer::start([reply::text("The answer.")]);
    let home = TempHome::with_model(&server);
    let script = home.write_agent("x.rhai", "print(\"noise\"); debug(\"noise\");");
    let script = script.display().to_string();
    let log = home.tmp_dir().join("log").display().to_string();
    let output = home.prompt("Go.").args(["-e", &script, "--log-file", &log]);
    assert_eq!(output.run().success().stdout, "The answer.\n");
    let log = std::fs::read_to_string(log).expect("a log was asked for");
    assert!(log.contains("noise"), "{log}");
    server.finish();
}

//! Commands of the user.

use pliant_tests::{Gate, ModelServer, Rpc, TempHome, reply};
use serde_json::{Value, json};

fn idle() -> (ModelServer, TempHome, Rpc) {
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let rpc = home.rpc();
    (server, home, rpc)
}

fn stored(rpc: &mut Rpc) -> Vec<Value> {
    let mut messages = rpc.ok(json!({"type": "get_messages"}))["messages"].take();
    let messages = messages.as_array_mut().expect("a list").iter_mut();
    let mut commands: Vec<Value> = messages
        .filter(|message| message["role"] == "bashExecution")
        .map(Value::take)
        .collect();
    for command in &mut commands {
        assert!(command["timestamp"].take().is_i64());
    }
    commands
}

#[test]
fn a_command_that_fails_is_a_result_and_its_output_is_told_under_its_id() {
    let (_server, _home, mut rpc) = idle();
    let id = rpc.send(
        json!({"type": "bash", "command": "echo out; echo err >&2; exit 3", "id": {"a": [1]}}),
    );
    let answer = rpc.answer(&id);
    assert_eq!(
        answer["data"],
        json!({"output": "out\nerr\n", "exitCode": 3, "cancelled": false, "truncated": false})
    );
    let updates = rpc
        .records()
        .iter()
        .filter(|record| record["type"] == "bash_execution_update");
    let told: String = updates
        .inspect(|update| assert_eq!(update["id"], id))
        .filter_map(|update| update["delta"].as_str())
        .collect();
    assert_eq!(told, "out\nerr\n");
    // Killed by a signal, without output, without input.
    assert_eq!(
        rpc.ok(json!({"type": "bash", "command": "kill -9 $$"}))["exitCode"],
        137
    );
    assert_eq!(
        rpc.ok(json!({"type": "bash", "command": "cat"}))["output"],
        ""
    );
    rpc.end();
}

#[test]
fn a_command_joins_the_next_prompt_unless_it_is_kept_out() {
    let server = ModelServer::start([reply::text("Seen.")]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    rpc.ok(json!({"type": "bash", "command": "echo seen"}));
    rpc.ok(json!({"type": "bash", "command": "echo hidden", "excludeFromContext": true}));
    assert_eq!(
        stored(&mut rpc),
        [
            json!({"role": "bashExecution", "command": "echo seen", "output": "seen\n", "exitCode": 0,
                "cancelled": false, "truncated": false, "timestamp": null}),
            json!({"role": "bashExecution", "command": "echo hidden", "output": "hidden\n", "exitCode": 0,
                "cancelled": false, "truncated": false, "excludeFromContext": true, "timestamp": null}),
        ]
    );
    rpc.turn("Look.");
    rpc.end();
    let request = &server.finish()[0];
    let said = request.conversation();
    assert_eq!(said[0].1, "Ran `echo seen`\n```\nseen\n\n```");
    assert!(!request.body.to_string().contains("hidden"));
}

#[test]
fn a_command_during_a_run_is_recorded_after_it() {
    let gate = Gate::new();
    let server = ModelServer::start([
        reply::tool_call("bash", json!({"command": "echo tool"})),
        reply::text("Done.").gated_after(0, &gate),
    ]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    rpc.ok(json!({"type": "prompt", "message": "Go."}));
    server.wait_for(2);
    assert_eq!(
        rpc.ok(json!({"type": "bash", "command": "echo aside"}))["output"],
        "aside\n"
    );
    assert!(stored(&mut rpc).is_empty());
    gate.open();
    rpc.event("agent_settled");
    assert_eq!(stored(&mut rpc).len(), 1);
    rpc.end();
    let roles: Vec<_> = home
        .stored_messages()
        .into_iter()
        .map(|message| message["role"].clone())
        .collect();
    assert_eq!(roles.last(), Some(&json!("bashExecution")));
    server.finish();
}

#[test]
fn all_commands_are_stopped_with_their_children_and_an_abort_stops_none() {
    let (_server, home, mut rpc) = idle();
    let command = |name: &str| format!("sleep 600 & echo $$ $! > {name}; echo begun; wait");
    let ids = ["a", "b"].map(|name| {
        let id = rpc.send(json!({"type": "bash", "command": command(name)}));
        rpc.event("bash_execution_update");
        id
    });
    rpc.ok(json!({"type": "abort"}));
    assert!(
        !rpc.records()
            .iter()
            .any(|record| ids.contains(&record["id"]) && record["type"] == "response")
    );
    rpc.ok(json!({"type": "abort_bash"}));
    for id in &ids {
        let data = rpc.answer(id)["data"].take();
        assert_eq!(
            data,
            json!({"output": "begun\n", "cancelled": true, "truncated": false})
        );
    }
    rpc.end();
    for name in ["a", "b"] {
        let pids = home.read(name);
        let pids: Vec<_> = pids.split_whitespace().map(str::to_owned).collect();
        super::super::signals::are_gone(&pids);
    }
}

#[test]
fn long_output_is_told_whole_answered_in_part_and_saved() {
    let (_server, _home, mut rpc) = idle();
    let data = rpc.ok(json!({"type": "bash", "command": "seq 1 80000"}));
    assert_eq!(data["truncated"], true);
    let output = data["output"].as_str().expect("a text");
    assert!(output.contains("80000") && output.lines().count() <= 2010 && output.len() <= 52 << 10);
    let whole: String = (1..=80_000).map(|number| format!("{number}\n")).collect();
    let file = data["fullOutputPath"].as_str().expect("it is saved");
    assert_eq!(std::fs::read_to_string(file).expect("it is there"), whole);
    let updates = rpc
        .records()
        .iter()
        .filter(|record| record["type"] == "bash_execution_update");
    let told: String = updates
        .filter_map(|update| update["delta"].as_str())
        .collect();
    assert_eq!(told, whole);
    rpc.end();
}

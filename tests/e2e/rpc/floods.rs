//! Programs that read late or send much (`interfaces.md` §8.3): memory stays bounded, nothing is lost.

use std::fs;

use pliant_tests::{ModelServer, TempHome, reply};
use serde_json::json;

/// Resident memory of a process, in MiB.
fn memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.expect("the system counts memory") >> 10
}

#[test]
fn ten_thousand_questions_before_the_first_look_are_all_answered_in_order() {
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let mut rpc = home
        .pliant_with_model()
        .args(["--mode", "rpc"])
        .rpc_unread();
    let count = 10_000;
    for number in 0..count {
        rpc.raw(format!("{{\"type\":\"get_state\",\"id\":{number}}}\n"));
    }
    let used = memory(rpc.id());
    rpc.read_on();
    let ended = rpc.end();
    let ids: Vec<_> = ended
        .records
        .iter()
        .map(|record| record["id"].as_u64())
        .collect();
    assert_eq!(ids, (0..count).map(Some).collect::<Vec<_>>());
    assert!(used < 200, "{used} MiB");
}

#[test]
fn a_run_waits_for_its_reader_and_loses_nothing() {
    let deltas = 20_000;
    let said: String = (0..deltas).map(|number| format!("{number} ")).collect();
    let stream = pliant_tests::rpc::deltas(said.split_inclusive(' '));
    let server = ModelServer::start([reply::raw(&stream)]);
    let home = TempHome::with_model(&server);
    let mut rpc = home
        .pliant_with_model()
        .args(["--mode", "rpc"])
        .rpc_unread();
    rpc.send(json!({"type": "prompt", "message": "Talk."}));
    server.wait_for(1);
    // Signs of life without a look: the pipe is full, and nothing grows.
    rpc.send(json!({"type": "bash", "command": "touch alive", "id": "b"}));
    super::super::signals::until("the command", || {
        home.project_dir().join("alive").exists().then_some(())
    });
    let used = memory(rpc.id());
    rpc.read_on();
    rpc.event("agent_settled");
    let told = rpc
        .records()
        .iter()
        .filter(|record| record["assistantMessageEvent"]["type"] == "text_delta");
    let told: String = told
        .filter_map(|record| record["assistantMessageEvent"]["delta"].as_str())
        .collect();
    assert_eq!(told, said);
    assert!(used < 200, "{used} MiB");
    rpc.end();
    server.finish();
}

#[test]
fn a_line_of_a_hundred_megabytes_is_answered() {
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    let long = "x".repeat(100 << 20);
    rpc.raw(format!("{long}\n"));
    assert_eq!(rpc.event("response")["success"], false);
    rpc.raw(format!(
        "{{\"type\":\"get_state\",\"id\":1,\"x\":\"{long}\"}}\n"
    ));
    assert_eq!(rpc.answer(&json!(1))["success"], true);
    drop(long);
    let deep = format!(
        "{{\"type\":\"prompt\",\"id\":2,\"message\":\"x\",\"images\":{}{}}}\n",
        "[".repeat(1 << 20),
        "]".repeat(1 << 20)
    );
    rpc.raw(deep);
    assert_eq!(rpc.answer(&json!(2))["success"], false);
    rpc.raw("{\"type\":\"get_entries\",\"id\":3,\"since\":1e999999}\n");
    assert_eq!(rpc.answer(&json!(3))["success"], false);
    rpc.end();
}

//! Messages that wait: `steer`, `follow_up`, the modes, `clear_queue`.

use pliant_tests::{Gate, ModelServer, Rpc, TempHome, reply};
use serde_json::{Value, json};

/// A run whose first answer waits at the gate.
fn running(replies: usize) -> (ModelServer, TempHome, Rpc, Gate) {
    let gate = Gate::new();
    let first = reply::text("One.").gated_after(0, &gate);
    let others = (1..replies).map(|_| reply::text("More."));
    let server = ModelServer::start(std::iter::once(first).chain(others));
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    rpc.ok(json!({"type": "prompt", "message": "start"}));
    server.wait_for(1);
    (server, home, rpc, gate)
}

fn queues(rpc: &Rpc) -> Vec<Value> {
    let updates = rpc
        .records()
        .iter()
        .filter(|record| record["type"] == "queue_update");
    updates
        .map(|update| json!([update["steering"], update["followUp"]]))
        .collect()
}

/// What the user says in the requests, one list for each.
fn said(server: ModelServer) -> Vec<Vec<String>> {
    let of_user = |request: &pliant_tests::Request| {
        let spoken = request.conversation().into_iter();
        spoken
            .filter(|(role, _)| *role == "user")
            .map(|(_, text)| text)
            .collect()
    };
    server.finish().iter().map(of_user).collect()
}

#[test]
fn what_is_queued_is_told_whole_and_shorter_before_the_message_is_heard() {
    let (server, _home, mut rpc, gate) = running(3);
    let queued = json!({"disposition": "queued"});
    assert_eq!(rpc.ok(json!({"type": "steer", "message": "s"})), queued);
    assert_eq!(rpc.ok(json!({"type": "follow_up", "message": "f"})), queued);
    assert_eq!(rpc.state()["pendingMessageCount"], 2);
    gate.open();
    rpc.event("agent_settled");
    let all = [
        json!([["s"], []]),
        json!([["s"], ["f"]]),
        json!([[], ["f"]]),
        json!([[], []]),
    ];
    assert_eq!(queues(&rpc), all);
    let records = rpc.records();
    let shorter = records.iter().position(|record| {
        *record == json!({"type": "queue_update", "steering": [], "followUp": ["f"]})
    });
    let heard = records.iter().position(|record| {
        record["type"] == "message_start" && record["message"]["content"][0]["text"] == "s"
    });
    assert!(shorter < heard, "{shorter:?} {heard:?}");
    assert_eq!(rpc.state()["pendingMessageCount"], 0);
    rpc.end();
    assert_eq!(
        said(server),
        [vec!["start"], vec!["start", "s"], vec!["start", "s", "f"]]
    );
}

#[test]
fn a_prompt_says_how_it_is_queued() {
    let (server, _home, mut rpc, gate) = running(3);
    for (behavior, text) in [("followUp", "later"), ("steer", "now")] {
        let prompt = json!({"type": "prompt", "message": text, "streamingBehavior": behavior});
        assert_eq!(rpc.ok(prompt), json!({"disposition": "queued"}));
    }
    rpc.error(json!({"type": "prompt", "message": "x", "streamingBehavior": "soon"}));
    gate.open();
    rpc.event("agent_settled");
    rpc.end();
    assert_eq!(
        said(server)[1..],
        [vec!["start", "now"], vec!["start", "now", "later"]]
    );
}

#[test]
fn a_queue_delivers_one_or_all_as_its_mode_says_and_the_mode_is_kept() {
    for (mode, requests) in [("one-at-a-time", 3), ("all", 2)] {
        for (command, set, shown) in [
            ("steer", "set_steering_mode", "steeringMode"),
            ("follow_up", "set_follow_up_mode", "followUpMode"),
        ] {
            let (server, home, mut rpc, gate) = running(requests);
            assert_eq!(rpc.ok(json!({"type": set, "mode": mode})), Value::Null);
            assert_eq!(rpc.state()[shown], mode);
            for text in ["a", "b"] {
                rpc.ok(json!({"type": command, "message": text}));
            }
            gate.open();
            rpc.event("agent_settled");
            rpc.end();
            assert_eq!(said(server).len(), requests, "{command} {mode}");
            let settings =
                std::fs::read(home.agent_dir().join("settings.json")).expect("it is there");
            let settings: Value = serde_json::from_slice(&settings).expect("it is JSON");
            assert_eq!(settings[shown], mode);
            assert_eq!(home.rpc().state()[shown], mode);
        }
    }
}

#[test]
fn a_queue_can_be_taken_back() {
    let (server, _home, mut rpc, gate) = running(1);
    rpc.ok(json!({"type": "steer", "message": "s"}));
    rpc.ok(json!({"type": "follow_up", "message": "f"}));
    assert_eq!(
        rpc.ok(json!({"type": "clear_queue"})),
        json!({"steering": ["s"], "followUp": ["f"]})
    );
    assert_eq!(queues(&rpc).last(), Some(&json!([[], []])));
    assert_eq!(
        rpc.ok(json!({"type": "clear_queue"})),
        json!({"steering": [], "followUp": []})
    );
    gate.open();
    rpc.event("agent_settled");
    rpc.end();
    assert_eq!(said(server), [["start"]]);
}

#[test]
fn what_waits_while_nothing_runs_joins_the_next_run() {
    let server = ModelServer::start([reply::text("One."), reply::text("Two.")]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    rpc.ok(json!({"type": "steer", "message": "s"}));
    rpc.ok(json!({"type": "follow_up", "message": "f"}));
    assert_eq!(rpc.state()["pendingMessageCount"], 2);
    assert_eq!(rpc.state()["isStreaming"], false);
    rpc.turn("go");
    rpc.end();
    assert_eq!(said(server), [vec!["go", "s"], vec!["go", "s", "f"]]);
}

#[test]
fn what_waits_at_an_abort_joins_the_next_run() {
    for command in ["steer", "follow_up"] {
        let (server, _home, mut rpc, gate) = running(3);
        rpc.ok(json!({"type": command, "message": "kept"}));
        rpc.ok(json!({"type": "abort"}));
        gate.open();
        assert_eq!(rpc.state()["pendingMessageCount"], 1);
        rpc.turn("next");
        assert_eq!(rpc.state()["pendingMessageCount"], 0);
        // A follow-up needs a request of its own.
        if command == "steer" {
            rpc.turn("last");
        }
        rpc.end();
        let all = said(server);
        assert!(
            all.last()
                .expect("there were requests")
                .contains(&"kept".to_owned())
        );
    }
}

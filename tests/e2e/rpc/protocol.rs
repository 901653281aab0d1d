//! Lines, ids and answers (`interfaces.md` §8.1).

use pliant_tests::rpc::checked;
use pliant_tests::{MODEL, ModelServer, PROVIDER, Rpc, TempHome, reply};
use serde_json::{Value, json};

use super::{kinds, spoken};

fn idle() -> (ModelServer, TempHome, Rpc) {
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let rpc = home.rpc();
    (server, home, rpc)
}

#[test]
fn a_fresh_session_tells_how_it_stands() {
    let (_server, home, mut rpc) = idle();
    let mut state = rpc.state();
    let (id, file) = (state["sessionId"].take(), state["sessionFile"].take());
    assert_eq!(state["model"].take()["id"], MODEL);
    assert!(id.as_str().is_some_and(|id| id.len() == 36), "{id}");
    let file = file.as_str().expect("it will be stored");
    assert!(
        file.starts_with(&home.agent_dir().display().to_string()),
        "{file}"
    );
    assert!(file.ends_with(&format!("_{}.jsonl", id.as_str().unwrap_or_default())));
    assert_eq!(
        state,
        json!({
            "model": null, "thinkingLevel": "off", "isStreaming": false, "isCompacting": false,
            "steeringMode": "one-at-a-time", "followUpMode": "one-at-a-time", "sessionFile": null,
            "sessionId": null, "autoCompactionEnabled": true, "messageCount": 0,
            "pendingMessageCount": 0,
        })
    );
    rpc.end();
    // Nothing was said, so nothing is left behind.
    assert!(home.session_files().is_empty());
}

#[test]
fn what_is_no_command_is_refused_and_the_next_line_is_read() {
    // interfaces §17: JSON null too
    let (_server, _home, mut rpc) = idle();
    let deep = format!("{{\"type\":\"get_state\",\"x\":{}", "[".repeat(100_000));
    let lines: [&[u8]; 12] = [
        b"",
        b"   ",
        b"{",
        b"nonsense",
        b"null",
        b"7",
        b"[1,2]",
        b"\"text\"",
        b"\xff\xfe",
        b"{\"id\":}",
        b"{} {}",
        deep.as_bytes(),
    ];
    for line in lines {
        rpc.raw([line, b"\n"].concat());
        let answer = rpc.event("response");
        assert_eq!(answer["command"], "parse", "{answer}");
        assert_eq!(answer["success"], false, "{answer}");
        assert_eq!(answer.get("id"), None, "{answer}");
        let error = answer["error"].as_str().expect("it is explained");
        assert!(error.starts_with("Failed to parse command: "), "{error}");
    }
    rpc.state();
    rpc.end();
}

#[test]
fn an_object_without_a_name_and_an_unknown_name_are_answered_with_their_ids() {
    let (_server, _home, mut rpc) = idle();
    for line in [
        r#"{"id":"x1"}"#,
        r#"{"id":"x1","type":7}"#,
        r#"{"id":"x1","type":null}"#,
    ] {
        rpc.raw(format!("{line}\n"));
        let answer = rpc.event("response");
        assert_eq!(
            (&answer["id"], &answer["success"]),
            (&json!("x1"), &json!(false))
        );
    }
    let answer = rpc.call(json!({"type": "make_coffee"}));
    assert_eq!(answer["command"], "make_coffee");
    assert_eq!(answer["error"], "Unknown command: make_coffee");
    rpc.end();
}

#[test]
fn any_id_comes_back_as_it_was_written_and_none_stays_none() {
    let (_server, _home, mut rpc) = idle();
    for id in [
        "7",
        "-1.50",
        "12345678901234567890123",
        "null",
        "true",
        r#"{"a":[1,"\u00e9"]}"#,
        "\"\"",
    ] {
        rpc.raw(format!("{{\"id\":{id},\"type\":\"abort_bash\"}}\n"));
    }
    rpc.raw("{\"type\":\"abort_bash\"}\n");
    rpc.close_input();
    let ended = rpc.wait();
    let ids: Vec<_> = ended
        .records
        .iter()
        .map(|answer| answer.get("id").map(Value::to_string))
        .collect();
    let some = |id: &str| Some(id.to_owned());
    assert_eq!(ids[0], some("7"));
    assert_eq!(ids[1], some("-1.5"));
    assert_eq!(ids[3], some("null"));
    assert_eq!(ids[5], some(r#"{"a":[1,"é"]}"#));
    assert_eq!(ids[7], None);
    assert_eq!(ids.len(), 8);
}

#[test]
fn only_a_line_feed_ends_a_record_and_pieces_are_put_together() {
    // R02
    let (_server, _home, mut rpc) = idle();
    let name = "gr\u{f6}\u{df}e \u{1f642} a\u{2028}b\u{2029}c\u{85}d";
    let line = json!({"id": "n", "type": "set_session_name", "name": name}).to_string();
    for byte in line.bytes() {
        rpc.raw([byte]);
    }
    rpc.raw("\r\n");
    assert_eq!(rpc.answer(&json!("n"))["success"], true);
    assert_eq!(rpc.state()["sessionName"], name);
    // One that the end cuts off is a line.
    rpc.raw("{\"id\":\"last\",\"type\":\"get_state\"}");
    let ended = rpc.end();
    assert_eq!(
        ended.records.last().map(|answer| &answer["id"]),
        Some(&json!("last"))
    );
}

#[test]
fn the_messages_of_a_conversation_may_hold_any_character() {
    // R02
    let said = "a\u{2028}b\u{2029}c\u{85}d\u{0}e\u{7f}\"\\";
    let server = ModelServer::start([reply::text(said)]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    rpc.turn(said);
    let messages = rpc.ok(json!({"type": "get_messages"}));
    let both = ["user", "assistant"].map(|role| (role.to_owned(), said.to_owned()));
    assert_eq!(spoken(&messages["messages"]), both);
    rpc.end();
    server.finish();
}

#[test]
fn a_line_of_two_megabytes_is_a_line() {
    let server = ModelServer::start([reply::text("Long.")]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    let long = "\u{e4}x".repeat(700_000);
    checked(&rpc.turn(&long));
    assert_eq!(server.finish()[0].conversation()[0].1, long);
    rpc.end();
}

#[test]
fn quick_commands_of_one_write_are_answered_in_order() {
    let (_server, _home, mut rpc) = idle();
    let quick = [
        "get_state",
        "get_messages",
        "get_commands",
        "get_tree",
        "get_entries",
        "get_session_stats",
    ];
    let lines: String = (0..60)
        .map(|number| {
            format!(
                "{}\n",
                json!({"id": number, "type": quick[number % quick.len()]})
            )
        })
        .collect();
    rpc.raw(lines);
    let ended = rpc.end();
    let ids: Vec<_> = ended
        .records
        .iter()
        .map(|answer| answer["id"].as_u64())
        .collect();
    assert_eq!(ids, (0..60).map(Some).collect::<Vec<_>>());
}

#[test]
fn a_long_command_holds_up_nobody() {
    let (_server, home, mut rpc) = idle();
    let wait = rpc.send(
        json!({"type": "bash", "command": "until test -e go; do sleep 0.02; done; echo late"}),
    );
    rpc.state();
    assert!(!rpc.records().iter().any(|record| record["id"] == wait));
    home.write("go", "");
    assert_eq!(rpc.answer(&wait)["data"]["output"], "late\n");
    rpc.end();
}

#[test]
fn an_answer_stands_between_what_came_before_it_and_what_came_after() {
    let server = ModelServer::start([reply::text("Hello.")]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    rpc.turn("Greet me.");
    let kinds = kinds(rpc.records());
    // Accepted before the run begins; nothing of it is heard earlier.
    assert_eq!(&kinds[..3], ["response", "agent_start", "turn_start"]);
    rpc.end();
    server.finish();
}

#[test]
fn a_field_that_is_missing_or_of_the_wrong_type_is_named() {
    let (_server, _home, mut rpc) = idle();
    for (command, field) in [
        (json!({"type": "prompt"}), "message"),
        (json!({"type": "prompt", "message": 5}), "message"),
        (
            json!({"type": "prompt", "message": "x", "images": "no"}),
            "images",
        ),
        (
            json!({"type": "prompt", "message": "x", "images": [{"type": "text", "text": "x"}]}),
            "images",
        ),
        (json!({"type": "steer"}), "message"),
        (
            json!({"type": "set_model", "provider": PROVIDER}),
            "modelId",
        ),
        (
            json!({"type": "set_auto_retry", "enabled": "yes"}),
            "enabled",
        ),
        (
            json!({"type": "set_steering_mode", "mode": "sometimes"}),
            "sometimes",
        ),
        (
            json!({"type": "set_thinking_level", "level": "deep"}),
            "deep",
        ),
        (json!({"type": "bash"}), "command"),
        (json!({"type": "switch_session"}), "sessionPath"),
        (json!({"type": "set_label", "entryId": 1e300}), "entryId"),
        (json!({"type": "set_session_name"}), "name"),
    ] {
        let error = rpc.error(command.clone());
        assert!(error.contains(field), "{command}: {error}");
    }
    rpc.end();
}

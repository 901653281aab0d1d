//! `prompt` and `abort`: what is accepted, what it becomes, and what is heard of it.

use pliant_tests::rpc::checked;
use pliant_tests::{Gate, ModelServer, PROVIDER, TempHome, reply};
use serde_json::json;

use super::{kinds, spoken};

#[test]
fn a_run_is_heard_in_the_order_of_the_contract() {
    let server = ModelServer::start([
        reply::text("Let me look.").and_call("bash", json!({"command": "echo found"})),
        reply::text("Done."),
    ]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    let events = rpc.turn("Look.");
    checked(&events);
    let last = &events[events.len() - 2..];
    assert_eq!(kinds(last), ["agent_end", "agent_settled"]);
    assert_eq!(last[0]["willRetry"], false);
    assert_eq!(last[1], json!({"type": "agent_settled", "aborted": false}));
    assert_eq!(rpc.state()["messageCount"], 5);
    rpc.end();
    server.finish();
}

#[test]
fn a_prompt_during_a_run_is_refused_and_the_error_names_the_way_out() {
    let gate = Gate::new();
    let server = ModelServer::start([reply::text("One.").gated_after(0, &gate)]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    // The second of one write, too: the run is claimed at once (interfaces §17).
    let line = |id: &str| format!("{}\n", json!({"id": id, "type": "prompt", "message": id}));
    rpc.raw([line("a"), line("b")].concat());
    assert_eq!(
        rpc.answer(&json!("a"))["data"],
        json!({"disposition": "started"})
    );
    let refused = rpc.answer(&json!("b"));
    assert_eq!(refused["success"], false);
    let error = refused["error"].as_str().expect("it is explained");
    assert!(error.contains("streamingBehavior"), "{error}");
    server.wait_for(1);
    let state = rpc.state();
    assert_eq!(
        (&state["isStreaming"], &state["pendingMessageCount"]),
        (&json!(true), &json!(0))
    );
    gate.open();
    rpc.event("agent_settled");
    rpc.state();
    let settled = kinds(rpc.records())
        .into_iter()
        .filter(|kind| *kind == "agent_settled")
        .count();
    assert_eq!(settled, 1);
    rpc.end();
    server.finish();
}

#[test]
fn images_reach_the_model_and_the_file() {
    let server = ModelServer::start([reply::text("A picture.")]);
    let home = TempHome::with_model(&server);
    home.models(json!({PROVIDER: {
        "baseUrl": server.url(), "api": "openai-completions", "apiKey": "test-key",
        "models": [{"id": pliant_tests::MODEL, "input": ["text", "image"]}],
    }}));
    let mut rpc = home.rpc();
    // One pixel.
    let data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let image = json!({"type": "image", "data": data, "mimeType": "image/png"});
    let from = rpc.mark();
    rpc.ok(json!({"type": "prompt", "message": "What is it?", "images": [image]}));
    rpc.event("agent_settled");
    checked(&rpc.since(from));
    let messages = rpc.ok(json!({"type": "get_messages"}))["messages"].take();
    let user = messages
        .as_array()
        .expect("a list")
        .iter()
        .find(|message| message["role"] == "user");
    assert_eq!(
        user.expect("it was said")["content"],
        json!([{"type": "text", "text": "What is it?"}, image])
    );
    rpc.end();
    let request = &server.finish()[0];
    let url = format!("data:image/png;base64,{data}");
    assert!(request.body.to_string().contains(&url), "{}", request.body);
}

#[test]
fn without_a_key_the_mode_starts_and_the_prompt_is_refused() {
    // interfaces §1.5
    let server = ModelServer::start([]);
    let home = TempHome::new();
    home.models(json!({PROVIDER: {
        "baseUrl": server.url(), "api": "openai-completions", "apiKey": "$NO_SUCH_VARIABLE",
        "models": [{"id": pliant_tests::MODEL}],
    }}));
    let mut rpc = home.rpc();
    rpc.state();
    let error = rpc.error(json!({"type": "prompt", "message": "Hello?"}));
    assert!(error.contains("key"), "{error}");
    assert_eq!(rpc.state()["isStreaming"], false);
    rpc.end();
    server.finish();
}

#[test]
fn an_abort_is_answered_when_everything_about_the_run_was_said() {
    let server = ModelServer::start([
        reply::text("partial words").hold_after(4),
        reply::text("Next."),
    ]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    rpc.ok(json!({"type": "abort"}));
    rpc.ok(json!({"type": "prompt", "message": "Go."}));
    rpc.next("all the words", |record| {
        record["assistantMessageEvent"]["delta"] == "rds"
    });
    let id = rpc.send(json!({"type": "abort"}));
    rpc.answer(&id);
    let records = rpc.records();
    let [.., settled, answer] = records else {
        panic!("{records:#?}")
    };
    assert_eq!(settled, &json!({"type": "agent_settled", "aborted": true}));
    assert_eq!(answer["id"], id);
    assert_eq!(rpc.state()["isStreaming"], false);
    let last = rpc.ok(json!({"type": "get_last_assistant_text"}));
    // What was said so far stays, and is not sent again.
    assert_eq!(last, json!({"text": "partial words"}));
    rpc.turn("Next?");
    rpc.end();
    let request = server.finish().pop().expect("there were two");
    assert!(!request.body.to_string().contains("partial words"));
}

#[test]
fn an_abort_ends_a_tool_that_runs() {
    let command = "sleep 600 & echo $$ $! > begun; wait";
    let server = ModelServer::start([reply::tool_call("bash", json!({"command": command}))]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    rpc.ok(json!({"type": "prompt", "message": "Wait."}));
    rpc.event("tool_execution_start");
    rpc.ok(json!({"type": "abort"}));
    let messages = rpc.ok(json!({"type": "get_messages"}));
    let roles: Vec<_> = spoken(&messages["messages"])
        .into_iter()
        .map(|(role, _)| role)
        .collect();
    assert_eq!(&roles[..3], ["user", "assistant", "toolResult"]);
    rpc.end();
    server.finish();
}

#[test]
fn an_answer_that_failed_is_retried_and_what_failed_is_not_among_the_messages() {
    let server = ModelServer::start([reply::error(529, "overloaded"), reply::text("At last.")]);
    let home = TempHome::with_model(&server);
    home.settings(json!({"retry": {"enabled": true, "maxRetries": 2, "baseDelayMs": 1}}));
    let mut rpc = home.rpc();
    let events = rpc.turn("Try.");
    let kinds = kinds(&events);
    let told: Vec<_> = kinds
        .iter()
        .filter(|kind| kind.starts_with("auto_retry"))
        .collect();
    assert_eq!(told, [&"auto_retry_start", &"auto_retry_end"]);
    let messages = rpc.ok(json!({"type": "get_messages"}));
    let said = ["Try.", "At last."].map(str::to_owned);
    assert_eq!(
        spoken(&messages["messages"])
            .into_iter()
            .map(|(_, text)| text)
            .collect::<Vec<_>>(),
        said
    );
    let entries = rpc.ok(json!({"type": "get_entries"}))["entries"].take();
    let types: Vec<_> = entries
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| entry["type"].clone())
        .collect();
    assert!(types.contains(&json!("context_edit")), "{types:?}");
    rpc.end();
    server.finish();
}

#[test]
fn the_wait_for_another_attempt_can_be_ended_and_is_part_of_the_run() {
    for command in ["abort_retry", "abort"] {
        let server = ModelServer::start([reply::error(503, "unavailable")]);
        let home = TempHome::with_model(&server);
        home.settings(json!({"retry": {"enabled": true, "maxRetries": 3, "baseDelayMs": 600_000}}));
        let mut rpc = home.rpc();
        rpc.ok(json!({"type": "prompt", "message": "Try."}));
        let start = rpc.event("auto_retry_start");
        assert_eq!(
            (&start["attempt"], &start["maxAttempts"]),
            (&json!(1), &json!(3))
        );
        assert_eq!(rpc.state()["isStreaming"], true);
        rpc.error(json!({"type": "prompt", "message": "Another."}));
        rpc.ok(json!({"type": command}));
        let end = rpc.event("auto_retry_end");
        assert_eq!(
            (&end["success"], &end["finalError"]),
            (&json!(false), &json!("Retry cancelled"))
        );
        rpc.event("agent_settled");
        rpc.end();
        server.finish();
    }
}

#[test]
fn switching_the_retry_off_holds_at_once_and_is_kept() {
    let server = ModelServer::start([reply::error(503, "unavailable")]);
    let home = TempHome::with_model(&server);
    home.settings(
        json!({"retry": {"enabled": true, "maxRetries": 3, "baseDelayMs": 600_000}, "other": 1}),
    );
    let mut rpc = home.rpc();
    rpc.ok(json!({"type": "set_auto_retry", "enabled": false}));
    let events = rpc.turn("Try.");
    assert!(!kinds(&events).contains(&"auto_retry_start"));
    let settings = std::fs::read(home.agent_dir().join("settings.json")).expect("it is there");
    let settings: serde_json::Value = serde_json::from_slice(&settings).expect("it is JSON");
    assert_eq!(
        settings,
        json!({"retry": {"enabled": false, "maxRetries": 3, "baseDelayMs": 600_000}, "other": 1})
    );
    rpc.end();
    server.finish();
}

#[test]
fn a_run_that_ends_because_nothing_can_be_stored_says_so() {
    // S04: the sessions cannot have their folder
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    home.write_agent("sessions", "a file where a folder belongs");
    let mut rpc = home.rpc();
    rpc.ok(json!({"type": "prompt", "message": "hello"}));
    let told = rpc.event("notice")["message"].to_string();
    assert!(told.contains("sessions"), "{told}");
    rpc.state();
    rpc.close_input();
    let ended = rpc.wait();
    assert_eq!(ended.status.code(), Some(0));
    assert!(ended.stderr.contains("sessions"), "{}", ended.stderr);
}

#[test]
fn an_image_without_data_is_refused() {
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    for image in [
        json!({"type": "image"}),
        json!({"data": 5}),
        json!({"type": "text", "text": "x"}),
    ] {
        let prompt = json!({"type": "prompt", "message": "look", "images": [image]});
        let error = rpc.error(prompt);
        assert!(error.contains("Number 1 of the images"), "{error}");
    }
}

//! A model that fails for a while: it is asked again, the user sees it, and nothing of the failed
//! attempts is sent (`kernel.md` §6.3).

use pliant_tests::{ModelServer, Reply, TempHome, reply};
use serde_json::json;

/// Ways in which a service fails for a while.
fn failures() -> Vec<Reply> {
    let overloaded = r#"data: {"error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    vec![
        reply::error(529, "overloaded"),
        reply::error(429, "slow down"),
        reply::raw(&format!("{overloaded}\n\n")),
        reply::text("half of an answer").cut_after(3),
        reply::tool_call("bash", json!({"command": "echo never"})).cut_after(2),
    ]
}

#[test]
fn a_failure_that_passes_costs_an_attempt_and_is_seen() {
    // reports P07, K09
    for (at, failure) in failures().into_iter().enumerate() {
        let server = ModelServer::start([failure, reply::text("Fine.")]);
        let home = TempHome::with_model(&server);
        home.settings(json!({"retry": {"baseDelayMs": 1}}));
        let output = home.prompt("Go on.").run().success();
        assert_eq!(output.stdout, "Fine.\n", "{at}");
        assert!(output.stderr.contains("Attempt 1 of 3"), "{at}: {output:?}");
        let requests = server.finish();
        assert_eq!(requests[1].conversation(), [("user", "Go on.".to_owned())]);
    }
}

#[test]
fn the_stream_of_events_tells_the_attempts_and_the_last_failure() {
    let server = ModelServer::start((0..3).map(|_| reply::error(503, "unavailable")));
    let home = TempHome::with_model(&server);
    home.settings(json!({"retry": {"baseDelayMs": 1, "maxRetries": 2}}));
    let output = home.json_prompt("Go on.").run().success();
    let starts = output.events_of("auto_retry_start");
    let attempts: Vec<_> = starts.iter().map(|event| &event["attempt"]).collect();
    assert_eq!(attempts, [1, 2]);
    let [end] = &output.events_of("auto_retry_end")[..] else {
        panic!("a series of attempts ends once")
    };
    assert_eq!(
        (&end["success"], &end["attempt"]),
        (&json!(false), &json!(2))
    );
    assert_eq!(output.events_of("entry_appended").len(), 2);
    let will: Vec<_> = output.events_of("agent_end");
    let will: Vec<_> = will.iter().map(|event| &event["willRetry"]).collect();
    assert_eq!(will, [true, true, false]);
    server.finish();
}

#[test]
fn a_service_is_asked_again_when_it_wants_to_be_and_not_before() {
    // providers §7.1
    let busy = || reply::error(429, "slow down").header("retry-after", "0.25");
    let server = ModelServer::start([busy(), reply::text("Fine.")]);
    let home = TempHome::with_model(&server);
    home.settings(json!({"retry": {"baseDelayMs": 1}}));
    let output = home.json_prompt("Go on.").run().success();
    let [start] = &output.events_of("auto_retry_start")[..] else {
        panic!("one attempt follows")
    };
    assert_eq!(start["delayMs"], 250);
    server.finish();
}

#[test]
fn nobody_waits_longer_than_the_settings_allow() {
    // providers §7.1
    let long = || reply::error(429, "slow down").header("retry-after", "90");
    let server = ModelServer::start([long()]);
    let home = TempHome::with_model(&server);
    home.settings(json!({"retry": {"baseDelayMs": 1}}));
    let said = "Server requested 90s retry delay (max: 60s). 429";
    home.prompt("Go on.").run().failure(&[said]);
    assert_eq!(server.finish().len(), 1);

    let server = ModelServer::start([reply::error(503, "busy").header("retry-after", "1")]);
    let home = TempHome::with_model(&server);
    home.settings(json!({"retry": {"provider": {"maxRetryDelayMs": 500}}}));
    let said = "Server requested 1s retry delay (max: 1s). 503";
    home.prompt("Go on.").run().failure(&[said]);
    assert_eq!(server.finish().len(), 1);
}

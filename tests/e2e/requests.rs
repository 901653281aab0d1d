//! Requests to services that do what services do (`kernel.md` §3.5, §6.3, §6.5): every kind of failure,
//! slow, cut and garbled streams, odd endings and figures. The session is well after each of them.

use std::time::Duration;

use pliant_tests::{Gate, ModelServer, Output, Reply, TempHome, failures, reply};
use serde_json::{Value, json};

/// A home in which failures are tried again at once.
fn patient(server: &ModelServer) -> TempHome {
    let home = TempHome::with_model(server);
    home.settings(json!({"retry": {"baseDelayMs": 1}, "compaction": {"keepRecentTokens": 8}}));
    home
}

/// Asks once; the run, and what is stored of the answer.
fn answer_of(answer: Reply) -> (Output, Value) {
    let server = ModelServer::start([answer]);
    let home = TempHome::with_model(&server);
    let output = home.json_prompt("Go on.").run().success();
    let stored = home.stored_messages().pop().expect("the answer is stored");
    assert_eq!(stored["role"], "assistant");
    server.finish();
    (output, stored)
}

#[test]
fn failures_that_pass_are_tried_again_whoever_says_them() {
    // L21, R6
    for (kind, failure) in failures::passing() {
        let server = ModelServer::start([failure, reply::text("Fine.")]);
        let output = patient(&server).prompt("Go on.").run().success();
        assert_eq!(output.stdout, "Fine.\n", "{kind}");
        assert_eq!(server.finish().len(), 2, "{kind}");
    }
}

#[test]
fn failures_that_stay_are_told_and_not_tried_again() {
    // L16, L21, R6
    for (kind, failure, told) in failures::lasting() {
        let server = ModelServer::start([failure]);
        let home = patient(&server);
        let output = home.prompt("Go on.").run().failure(&[told]);
        assert_eq!(output.stdout, "", "{kind}");
        assert_eq!(server.finish().len(), 1, "{kind}");
        let last = home.stored_messages().pop().expect("the failure is stored");
        assert_eq!(last["stopReason"], "error", "{kind}");
    }
}

#[test]
fn a_request_that_is_too_large_is_made_shorter_whatever_the_service_calls_it() {
    // R20, R22
    for (service, overflow) in failures::overflows() {
        let server = ModelServer::start([
            reply::tool_call("read", json!({"path": "a.txt"})),
            overflow,
            reply::text("## Goal\nTo know what is in a.txt."),
            reply::text("It fits."),
        ]);
        server.allow_rewritten_history();
        let home = patient(&server);
        home.write("a.txt", "alpha\n".repeat(50));
        let output = home.json_prompt("What is in a.txt?").run().success();
        let [end] = &output.events_of("compaction_end")[..] else {
            panic!("{service}: one compaction ends");
        };
        assert_eq!(
            (&end["reason"], &end["willRetry"]),
            (&json!("overflow"), &json!(true))
        );
        assert_eq!(server.finish().len(), 4, "{service}");
    }
}

#[test]
fn a_slow_answer_is_shown_as_it_comes() {
    // L22: each gate opens only after what was sent before it has been shown.
    let (head, middle) = (Gate::new(), Gate::new());
    let slow = reply::text("one two three")
        .gated_after(0, &head)
        .gated_after(2, &middle);
    let server = ModelServer::start([slow.slow(Duration::from_millis(1))]);
    let home = TempHome::with_model(&server);
    let running = home.json_prompt("Count.").spawn();
    head.wait_reached();
    assert_eq!(server.requests().len(), 1);
    head.open();
    middle.wait_reached();
    middle.open();
    let output = running.wait().success();
    let deltas = output.events_of("message_update");
    let texts = deltas
        .iter()
        .filter_map(|event| event["assistantMessageEvent"]["delta"].as_str());
    assert_eq!(texts.collect::<String>(), "one two three");
    server.finish();
}

#[test]
fn garbage_in_a_stream_is_an_error_with_what_came_before_it() {
    // L21-L23
    for garbage in [
        "data: {\"choices\": [\n\n",
        "data: nonsense\n\n",
        "data: \u{fffd}\u{0}\n\n",
    ] {
        let (output, stored) = answer_of(reply::text("half an answer").garbage_after(3, garbage));
        assert_eq!(stored["stopReason"], "error", "{garbage:?}");
        let told = stored["errorMessage"].as_str().expect("it says why");
        assert!(told.contains("malformed"), "{told}");
        assert_eq!(stored["content"][0]["text"], "half an an", "{garbage:?}");
        assert_eq!(answers(&output), ["message_start", "message_end"]);
    }
    // What is no event, and what nobody asked for, is no harm.
    for noise in [
        ": keep-alive\n\n",
        "event: ping\n\n",
        "\n\n\n",
        "retry: 5\n\n",
        "data: {}\n\n",
    ] {
        let (_, stored) = answer_of(reply::text("whole").garbage_after(2, noise));
        assert_eq!(stored["content"][0]["text"], "whole", "{noise:?}");
    }
}

/// Starts and ends of answers.
fn answers(output: &Output) -> Vec<String> {
    let events = output.events().into_iter();
    let answers = events.filter(|event| event["message"]["role"] == "assistant");
    let kinds = answers.filter_map(|event| event["type"].as_str().map(str::to_owned));
    kinds.filter(|kind| kind.starts_with("message_")).collect()
}

#[test]
fn stop_reasons_are_understood_and_an_unknown_one_is_an_error() {
    // L22, M5
    for (reason, stored_as) in [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "error"),
        ("bored", "error"),
    ] {
        let (output, stored) = answer_of(reply::text("so far").finish_reason(reason));
        assert_eq!(stored["stopReason"], stored_as, "{reason}");
        assert_eq!(stored["content"][0]["text"], "so far");
        assert_eq!(answers(&output), ["message_start", "message_end"]);
    }
    let (_, stored) = answer_of(reply::text("whole").without_done());
    assert_eq!(
        (&stored["stopReason"], &stored["content"][0]["text"]),
        (&json!("stop"), &json!("whole"))
    );
}

#[test]
fn figures_of_usage_are_kept_as_the_service_says_them() {
    // M3
    let (_, stored) = answer_of(reply::text("x").usage(1_000, 50).cached(400).reasoned(20));
    let usage = &stored["usage"];
    let figures =
        ["input", "cacheRead", "output", "reasoning", "totalTokens"].map(|key| &usage[key]);
    assert_eq!(
        figures,
        [
            &json!(600),
            &json!(400),
            &json!(50),
            &json!(20),
            &json!(1_050)
        ]
    );
    let (_, stored) = answer_of(reply::text("x").without_usage());
    assert_eq!(
        (&stored["stopReason"], &stored["usage"]["totalTokens"]),
        (&json!("stop"), &json!(0))
    );
}

#[test]
fn calls_that_come_side_by_side_are_told_apart() {
    // L22, T1
    let calls = ["a.txt", "b.txt", "c.txt"].map(|path| ("read", json!({"path": path})));
    let server = ModelServer::start([reply::tool_calls(calls).interleaved(), reply::text("Read.")]);
    let home = TempHome::with_model(&server);
    for (name, text) in [("a", "alpha"), ("b", "beta"), ("c", "gamma")] {
        home.write(&format!("{name}.txt"), text);
    }
    home.prompt("Read them.").run().success();
    let requests = server.finish();
    for (number, text) in [(1, "alpha"), (2, "beta"), (3, "gamma")] {
        let result = requests[1].tool_result(&reply::call_id(number));
        assert!(
            result
                .as_deref()
                .is_some_and(|result| result.contains(text)),
            "{result:?}"
        );
    }
}

#[test]
fn headers_of_a_response_reach_who_waits_for_them() {
    // providers §7.1: the host waits as the service asks, within one request
    let busy = reply::error(429, "slow down").header("retry-after-ms", "1");
    let server = ModelServer::start([busy, reply::text("Fine.")]);
    let home = TempHome::with_model(&server);
    home.settings(json!({"retry": {"enabled": false, "provider": {"maxRetries": 1}}}));
    let output = home.json_prompt("Go on.").run().success();
    assert_eq!(answers(&output), ["message_start", "message_end"]);
    assert_eq!(server.finish().len(), 2);
}

/// What handlers hear they throw, for a report is seen in the stream of events.
const HANDLERS: &str = r#"
on("context", |event, ctx| {
    event.messages.push(#{ role: "user", content: "(in one word)" });
});
on("before_provider_headers", |event, ctx| {
    event.headers["x-tenant"] = "blue";
    event.headers["accept"] = ();
});
on("before_provider_request", |event, ctx| {
    let payload = event.payload;
    payload.temperature = 0.5;
    payload
});
on("after_provider_response", |event, ctx| {
    throw `status ${event.status}, ${event.headers["x-served-by"]}`;
});
on("provider_stream_event", |event, ctx| {
    if event.data == "[DONE]" { throw `${event.provider} is done`; }
});
"#;

#[test]
fn a_script_edits_what_a_compiled_wire_sends_and_hears_what_it_gets() {
    // G6, G8, extensions §3.3
    let server = ModelServer::start([reply::text("Yes.").header("x-served-by", "seven")]);
    let home = TempHome::with_model(&server);
    let handlers = home.write_agent("handlers.rhai", HANDLERS);
    let handlers = handlers.display().to_string();
    let run = home.json_prompt("Is it so?").args(["-e", &handlers]).run();
    let reports = run.success().events_of("extension_error");
    let [response, frame] = &reports[..] else {
        panic!("two handlers throw, once each: {reports:?}");
    };
    for (report, told) in [(response, "status 200, seven"), (frame, "mock is done")] {
        let error = report["error"].as_str().expect("a report has a text");
        assert!(error.contains(told), "{error}");
    }
    let [request] = &server.finish()[..] else {
        panic!("one request");
    };
    let said = |text: &str| ("user", text.to_owned());
    assert_eq!(
        request.conversation(),
        [said("Is it so?"), said("(in one word)")]
    );
    assert!(request.system_prompt().contains("pliant"));
    assert_eq!(request.header("x-tenant"), Some("blue"));
    assert_eq!(request.header("authorization"), Some("Bearer test-key"));
    assert_ne!(request.header("accept"), Some("application/json"));
    assert_eq!(request.body["temperature"], 0.5);
    assert_eq!(home.stored_messages().len(), 3);
}

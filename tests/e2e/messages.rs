//! The wire anthropic-messages from end to end: what a run sends and shows over it, its failures, and
//! conversations that change between wires. The server checks every request.

use pliant_tests::{MODEL, ModelServer, PROVIDER, Reply, TempHome, failures, reply};
use serde_json::{Value, json};

/// A home in which failures are tried again at once.
fn patient(server: &ModelServer) -> TempHome {
    let home = TempHome::with_messages_model(server);
    home.settings(json!({"retry": {"baseDelayMs": 1}, "compaction": {"keepRecentTokens": 8}}));
    home
}

/// The blocks of a message in the body of a request, by role and place.
fn blocks<'a>(body: &'a Value, role: &str, place: usize) -> &'a [Value] {
    let messages = body["messages"].as_array().expect("a body has messages");
    let of_role = messages.iter().filter(|message| message["role"] == role);
    let message = of_role.clone().nth(place).expect("the message is there");
    message["content"].as_array().map_or(&[], Vec::as_slice)
}

/// How many assistant answers are stored, and how many of them failed.
fn stored_answers(home: &TempHome) -> (usize, usize) {
    let stored = home.stored_messages();
    let answers = stored
        .iter()
        .filter(|message| message["role"] == "assistant");
    let failed = answers
        .clone()
        .filter(|answer| answer["stopReason"] == "error");
    (answers.count(), failed.count())
}

#[test]
fn a_prompt_is_answered_and_pliant_says_who_it_is() {
    // providers §3.1
    let server = ModelServer::start([reply::text("Hello.")]);
    let home = TempHome::with_messages_model(&server);
    let output = home.prompt("Greet me.").run().success();
    assert_eq!(output.stdout, "Hello.\n");
    let [request] = &server.finish()[..] else {
        panic!("one request");
    };
    assert_eq!(request.path, "/v1/messages?beta=true");
    assert_eq!(request.conversation(), [("user", "Greet me.".to_owned())]);
    assert!(request.system_prompt().contains("pliant"));
    assert!(request.tools().contains(&"read"));
    let header = |name| request.header(name);
    assert_eq!(header("x-api-key"), Some("test-key"));
    assert_eq!(header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(header("authorization"), None);
    assert!(header("user-agent").is_some_and(|agent| agent.starts_with("pliant/")));
    assert!(
        request
            .headers
            .iter()
            .all(|(_, value)| !value.contains("claude"))
    );
}

#[test]
fn thinking_is_shown_and_goes_back_with_its_signature() {
    // providers §2.2, §6 rule 3
    let server = ModelServer::start([
        reply::thinking("I should look.").and_call("read", json!({"path": "a.txt"})),
        reply::thinking("Now I know.").and_text("It says alpha."),
    ]);
    let home = TempHome::with_messages_model(&server);
    home.write("a.txt", "alpha");
    let run = home
        .json_prompt("What is in a.txt?")
        .args(["--thinking", "low"]);
    let output = run.run().success();
    let shown: String = output
        .events_of("message_update")
        .iter()
        .filter(|event| event["assistantMessageEvent"]["type"] == "thinking_delta")
        .filter_map(|event| event["assistantMessageEvent"]["delta"].as_str())
        .collect();
    assert_eq!(shown, "I should look.Now I know.");
    let requests = server.finish();
    assert_eq!(requests[0].body["thinking"]["budget_tokens"], 2048);
    let said = &blocks(&requests[1].body, "assistant", 0)[0];
    let signed = json!({"type": "thinking", "thinking": "I should look.",
        "signature": reply::signature(0)});
    assert_eq!(*said, signed);
    let stored = home.stored_messages();
    let answer = stored.iter().find(|message| message["role"] == "assistant");
    let thought = &answer.expect("the answer is stored")["content"][0];
    assert_eq!(thought["thinkingSignature"], reply::signature(0));
}

#[test]
fn calls_of_one_answer_are_answered_in_one_message() {
    // providers §3.1, T1
    let calls = ["a.txt", "b.txt"].map(|path| ("read", json!({"path": path})));
    let both = reply::text("Reading.").and_call(calls[0].0, calls[0].1.clone());
    let both = both.and_call(calls[1].0, calls[1].1.clone());
    let server = ModelServer::start([both, reply::text("Read.")]);
    let home = TempHome::with_messages_model(&server);
    home.write("a.txt", "alpha");
    home.prompt("Read them.").run().success();
    let requests = server.finish();
    let results = blocks(&requests[1].body, "user", 1);
    let failed: Vec<&Value> = results.iter().map(|result| &result["is_error"]).collect();
    assert_eq!(failed, [false, true], "there is no b.txt");
    let first = requests[1].tool_result(&reply::call_id(1));
    assert!(first.is_some_and(|text| text.contains("alpha")));
}

#[test]
fn arguments_that_are_missing_or_broken_are_an_answer_to_the_model() {
    // P08, L14
    for (arguments, told) in [("", "path"), ("{\"path\": \"a", "Invalid arguments")] {
        let call = reply::tool_call_text("read", arguments);
        let server = ModelServer::start([call, reply::text("Well.")]);
        let home = TempHome::with_messages_model(&server);
        let output = home.prompt("Read it.").run().success();
        assert_eq!(output.stdout, "Well.\n");
        let requests = server.finish();
        let result = requests[1]
            .tool_result(&reply::call_id(1))
            .unwrap_or_default();
        assert!(result.contains(told), "{arguments:?}: {result}");
    }
}

#[test]
fn a_call_that_comes_twice_runs_once() {
    // P09
    let event = |data: Value| {
        let name = data["type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {data}\n\n")
    };
    let call = |index: u64| {
        let block = json!({"type": "tool_use", "id": "same", "name": "bash",
            "input": {"command": "echo ran >> log"}});
        let opens = json!({"type": "content_block_start", "index": index, "content_block": block});
        event(opens) + &event(json!({"type": "content_block_stop", "index": index}))
    };
    let ends = json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}});
    let stream = event(json!({"type": "message_start", "message": {"id": "m", "model": MODEL}}))
        + &call(0)
        + &call(1)
        + &event(ends)
        + &event(json!({"type": "message_stop"}));
    let server = ModelServer::start([reply::raw(&stream), reply::text("Done.")]);
    let home = TempHome::with_messages_model(&server);
    home.prompt("Do it.").run().success();
    assert_eq!(home.read("log"), "ran\n");
    let requests = server.finish();
    assert_eq!(blocks(&requests[1].body, "user", 1).len(), 1);
}

#[test]
fn failures_that_pass_are_tried_again() {
    // L21, R6, P07
    for (kind, failure) in failures::passing() {
        let server = ModelServer::start([failure, reply::text("Fine.")]);
        let home = patient(&server);
        let output = home.prompt("Go on.").run().success();
        assert_eq!(output.stdout, "Fine.\n", "{kind}");
        assert_eq!(server.finish().len(), 2, "{kind}");
        assert_eq!(stored_answers(&home), (2, 1), "{kind}");
    }
}

#[test]
fn failures_that_stay_are_told_and_not_tried_again() {
    // L16, L21, R6
    for (kind, failure, told) in failures::lasting() {
        let server = ModelServer::start([failure]);
        let output = patient(&server).prompt("Go on.").run().failure(&[told]);
        assert_eq!(output.stdout, "", "{kind}");
        assert_eq!(server.finish().len(), 1, "{kind}");
    }
}

#[test]
fn an_overloaded_service_breaks_off_and_the_turn_is_taken_again() {
    // P07: before any content, after text, inside the arguments of a call.
    let overloaded = reply::error_event("overloaded_error", "Overloaded");
    let call = reply::tool_call("bash", json!({"command": "touch ran"}));
    let cut: [(&str, Reply); 3] = [
        (
            "at once",
            reply::text("never").garbage_after(0, &overloaded),
        ),
        (
            "after text",
            reply::text("half an answer").garbage_after(3, &overloaded),
        ),
        ("inside a call", call.garbage_after(4, &overloaded)),
    ];
    for (place, reply_cut) in cut {
        let server = ModelServer::start([reply_cut, reply::text("Done.")]);
        let home = patient(&server);
        let output = home.json_prompt("Do it.").run().success();
        assert!(!home.project_dir().join("ran").exists(), "{place}");
        let [retry] = &output.events_of("auto_retry_start")[..] else {
            panic!("{place}: one retry is shown");
        };
        let told = retry["errorMessage"].as_str().unwrap_or_default();
        assert!(told.contains("overloaded_error"), "{place}: {told}");
        assert_eq!(stored_answers(&home), (2, 1), "{place}");
        // The half answer is no part of the next request.
        assert_eq!(server.finish()[1].conversation().len(), 1, "{place}");
    }
}

#[test]
fn a_request_that_is_too_large_is_made_shorter() {
    // R20, R22, providers §7.4
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
        let output = home.prompt("What is in a.txt?").run().success();
        assert_eq!(output.stdout, "It fits.\n", "{service}");
        assert_eq!(server.finish().len(), 4, "{service}");
    }
}

#[test]
fn usage_and_cost_are_kept_as_the_service_says_them() {
    // M3, providers §2.4
    let answer = reply::thinking("Hm.").and_text("x");
    let server = ModelServer::start([answer.usage(1_000, 50).cached(400).reasoned(20)]);
    let home = TempHome::with_messages_model(&server);
    home.prompt("Go on.").run().success();
    server.finish();
    let stored = home.stored_messages().pop().expect("the answer is stored");
    let usage = &stored["usage"];
    let counts = ["input", "cacheRead", "output", "reasoning", "totalTokens"];
    let counts = counts.map(|name| usage[name].as_u64().unwrap_or_default());
    assert_eq!(counts, [600, 400, 50, 20, 1_050]);
    let cost = usage["cost"]["total"].as_f64().unwrap_or_default();
    assert!((cost - 900e-6).abs() < 1e-12, "{cost}");
}

#[test]
fn stop_reasons_are_understood() {
    // L22, M5, providers §2.5
    for (reason, stored_as, told) in [
        ("max_tokens", "length", None),
        ("pause_turn", "stop", None),
        (
            "refusal",
            "error",
            Some("The model refused to complete the request"),
        ),
        ("bored", "error", Some("Unhandled stop reason: bored")),
    ] {
        let server = ModelServer::start([reply::text("so far").finish_reason(reason)]);
        let home = TempHome::with_messages_model(&server);
        home.json_prompt("Go on.").run();
        server.finish();
        let stored = home.stored_messages().pop().expect("the answer is stored");
        assert_eq!(stored["stopReason"], stored_as, "{reason}");
        assert_eq!(stored["errorMessage"].as_str(), told, "{reason}");
        assert_eq!(stored["content"][0]["text"], "so far");
    }
}

/// Two services, one for each wire, behind one server.
fn two_services(server: &ModelServer) -> TempHome {
    let home = TempHome::with_model(server);
    let model = json!([{"id": MODEL, "reasoning": true}]);
    home.models(json!({
        PROVIDER: {"baseUrl": server.url(), "api": "openai-completions", "apiKey": "test-key",
            "models": model},
        "other": {"baseUrl": server.messages_url(), "api": "anthropic-messages",
            "apiKey": "test-key", "models": model},
    }));
    home
}

/// Asks one of them to go on in the same session.
fn ask(home: &TempHome, provider: &str, text: &str) {
    let run = home
        .pliant()
        .args(["--provider", provider, "--model", MODEL]);
    run.args(["--thinking", "low", "--continue", "-p", text])
        .run()
        .success();
}

#[test]
fn models_of_two_wires_take_turns_in_one_session() {
    // P10, providers §6: what another model thought is dropped, one's own comes back.
    let thinks = |tool: &str| reply::thinking("A thought.").and_call("read", json!({"path": tool}));
    let replies = [
        thinks("a.txt"),
        reply::thinking("More.").and_text("First."),
        thinks("a.txt"),
        reply::text("Second."),
        reply::text("Third."),
        reply::text("Fourth."),
    ];
    let server = ModelServer::start(replies);
    let home = two_services(&server);
    home.write("a.txt", "alpha");
    ask(&home, "other", "one");
    ask(&home, PROVIDER, "two");
    ask(&home, "other", "three");
    ask(&home, PROVIDER, "four");
    let requests = server.finish();
    let bodies: Vec<String> = requests
        .iter()
        .map(|request| request.body.to_string())
        .collect();
    // The signed thought is the other wire's, and nothing of it crosses.
    assert!(!bodies[2].contains("A thought.") && !bodies[2].contains(&reply::signature(0)));
    let back = blocks(&requests[4].body, "assistant", 0);
    assert_eq!(back[0]["signature"], reply::signature(0));
    // Between its own turns it hears what was said and called, not what was thought.
    assert_eq!(bodies[4].matches("A thought.").count(), 1);
    assert_eq!(bodies[5].matches("A thought.").count(), 1);
    let mut own = requests[5].messages().iter();
    assert!(own.any(|message| message["reasoning_content"] == "A thought."));
    for (number, text) in [(4, "Second."), (5, "First.")] {
        let mut heard = requests[number].conversation().into_iter();
        assert!(
            heard.any(|said| said == ("assistant", text.to_owned())),
            "{number}"
        );
    }
    let results = |number: usize| {
        let ids = [1, 2].map(reply::call_id);
        ids.map(|id| requests[number].tool_result(&id).is_some())
    };
    assert_eq!((results(4), results(5)), ([true, true], [true, true]));
}

#[test]
fn a_wire_that_nobody_asks_is_not_loaded() {
    // G14
    let server = ModelServer::start([reply::text("Yes."), reply::text("Yes.")]);
    let home = two_services(&server);
    for (provider, wire) in [
        (PROVIDER, "openai-completions"),
        ("other", "anthropic-messages"),
    ] {
        let run = home
            .pliant()
            .args(["--provider", provider, "--model", MODEL]);
        let run = run.args(["--no-tools", "-p", "Well?", "--log-file", "log"]);
        run.env("PLIANT_LOG", "pliant=debug").run().success();
        let log = home.read("log");
        let loaded: Vec<&str> = log
            .lines()
            .filter_map(|line| line.split_once("loaded plugin=")?.1.split(' ').next())
            .collect();
        assert_eq!(loaded, [wire]);
        std::fs::remove_file(home.project_dir().join("log")).expect("the log is there");
    }
    server.finish();
}

#[test]
fn a_service_that_speaks_two_wires_lists_the_models_of_both() {
    // providers §1: a provider is a table of wires.
    let home = TempHome::new();
    let listed = home
        .pliant()
        .env("OPENROUTER_API_KEY", "test-key")
        .args(["--list-models"]);
    let listed = listed.run().success().stdout;
    for model in ["anthropic/claude-opus-5.5", "moonshotai/kimi-k2.7-code"] {
        assert!(listed.contains(model), "{model} is listed");
    }
    let anthropic = home
        .pliant()
        .env("ANTHROPIC_API_KEY", "test-key")
        .args(["--list-models"]);
    assert!(anthropic.run().success().stdout.contains("claude-opus-5-5"));
}

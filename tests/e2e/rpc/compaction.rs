//! `compact`, and what it means for the numbers.

use pliant_tests::{ModelServer, Reply, Rpc, TempHome, reply};
use serde_json::{Value, json};

use super::{kinds, spoken};

fn long(tag: &str) -> String {
    format!("{tag} {}", "lorem ipsum ".repeat(120))
}

/// Two long exchanges, then the replies.
fn conversation(replies: impl IntoIterator<Item = Reply>) -> (ModelServer, TempHome, Rpc) {
    let two = [
        reply::text(&long("A1")).usage(300, 20),
        reply::text(&long("A2")).usage(600, 30),
    ];
    let server = ModelServer::start(two.into_iter().chain(replies));
    server.allow_rewritten_history();
    let home = TempHome::with_model(&server);
    home.settings(json!({"retry": {"enabled": false}, "compaction": {"reserveTokens": 1000, "keepRecentTokens": 500}}));
    let mut rpc = home.rpc();
    rpc.turn(&long("Q1"));
    rpc.turn(&long("Q2"));
    (server, home, rpc)
}

#[test]
fn a_summary_takes_the_place_of_what_is_old_and_the_numbers_say_so() {
    let (server, _home, mut rpc) = conversation([
        reply::text("SUM").usage(50, 7),
        reply::text("On.").usage(80, 5),
    ]);
    let before = rpc.ok(json!({"type": "get_session_stats"}));
    assert_eq!(before["contextUsage"]["tokens"], 630);
    let from = rpc.mark();
    let data = rpc.ok(json!({"type": "compact", "customInstructions": "Dwell upon penguins."}));
    assert_eq!(data["summary"], "SUM");
    assert_eq!(data["tokensBefore"], 630);
    assert_eq!(data["usage"]["output"], 7);
    assert!(
        data["estimatedTokensAfter"].is_u64() && data["firstKeptEntryId"].is_string(),
        "{data}"
    );
    assert_eq!(
        data["details"],
        json!({"readFiles": [], "modifiedFiles": []})
    );
    let events = rpc.since(from);
    assert_eq!(kinds(&events), ["compaction_start", "compaction_end"]);
    assert_eq!(
        events[0],
        json!({"type": "compaction_start", "reason": "manual"})
    );
    let mut end = events[1].clone();
    assert_eq!(end["result"].take(), data);
    assert_eq!(
        end,
        json!({"type": "compaction_end", "reason": "manual", "result": null, "aborted": false, "willRetry": false})
    );
    let after = rpc.ok(json!({"type": "get_session_stats"}));
    assert_eq!(
        (
            &after["contextUsage"]["tokens"],
            &after["contextUsage"]["percent"]
        ),
        (&Value::Null, &Value::Null)
    );
    // The summary cost something too.
    assert_eq!(after["tokens"]["output"], 20 + 30 + 7);
    assert_eq!(after["userMessages"], 2);
    assert_eq!(rpc.state()["isCompacting"], false);
    assert_eq!(rpc.error(json!({"type": "compact"})), "Already compacted");
    let messages = rpc.ok(json!({"type": "get_messages"}))["messages"].take();
    assert_eq!(messages[1]["role"], "compactionSummary");
    assert_eq!(messages[1]["summary"], "SUM");
    rpc.turn("And now?");
    let later = rpc.ok(json!({"type": "get_session_stats"}));
    assert_eq!(later["contextUsage"]["tokens"], 85);
    rpc.end();
    let requests = server.finish();
    assert!(
        requests[2]
            .body
            .to_string()
            .contains("Dwell upon penguins.")
    );
    let last = requests[3].body.to_string();
    assert!(last.contains("SUM") && last.contains("And now?") && !last.contains("Q1 lorem"));
}

#[test]
fn with_nothing_to_compact_nothing_is_asked() {
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    let error = rpc.error(json!({"type": "compact"}));
    assert_eq!(error, "Nothing to compact (session too small)");
    rpc.end();
    server.finish();
}

#[test]
fn an_abort_ends_a_compaction_and_prompts_are_refused_meanwhile() {
    let (server, _home, mut rpc) =
        conversation([reply::text("SU").hold_after(2), reply::text("On.")]);
    let compact = rpc.send(json!({"type": "compact"}));
    server.wait_for(3);
    assert_eq!(rpc.state()["isCompacting"], true);
    rpc.error(json!({"type": "prompt", "message": "Now?"}));
    rpc.ok(json!({"type": "abort"}));
    assert_eq!(rpc.answer(&compact)["error"], "Compaction cancelled");
    let end = rpc.event("compaction_end");
    assert_eq!(
        (&end["aborted"], end.get("errorMessage")),
        (&json!(true), None)
    );
    let entries = rpc.ok(json!({"type": "get_entries"}))["entries"].take();
    assert!(!kinds(entries.as_array().expect("a list")).contains(&"compaction"));
    rpc.turn("On?");
    rpc.end();
    server.finish();
}

#[test]
fn a_compaction_ends_the_run_first() {
    let (server, _home, mut rpc) =
        conversation([reply::text("partial").hold_after(2), reply::text("SUM")]);
    rpc.ok(json!({"type": "prompt", "message": "Go."}));
    server.wait_for(3);
    rpc.ok(json!({"type": "compact"}));
    let kinds = kinds(rpc.records());
    let settled = kinds.iter().rposition(|kind| *kind == "agent_settled");
    let begun = kinds.iter().position(|kind| *kind == "compaction_start");
    assert!(settled < begun, "{kinds:?}");
    rpc.end();
    server.finish();
}

#[test]
fn a_summary_that_fails_leaves_the_conversation_as_it_is() {
    let (server, _home, mut rpc) = conversation([reply::error(400, "no summary for you")]);
    let before = spoken(&rpc.ok(json!({"type": "get_messages"}))["messages"]);
    let error = rpc.error(json!({"type": "compact"}));
    assert!(error.contains("no summary for you"), "{error}");
    let end = rpc.event("compaction_end");
    assert_eq!(end["aborted"], false);
    assert!(
        end["errorMessage"]
            .as_str()
            .is_some_and(|text| text.contains("no summary for you"))
    );
    assert_eq!(
        spoken(&rpc.ok(json!({"type": "get_messages"}))["messages"]),
        before
    );
    rpc.end();
    server.finish();
}

#[test]
fn automatic_compaction_can_be_switched_off_and_that_is_kept() {
    let server = ModelServer::start([]);
    let home = TempHome::with_model(&server);
    let mut rpc = home.rpc();
    rpc.ok(json!({"type": "set_auto_compaction", "enabled": false}));
    assert_eq!(rpc.state()["autoCompactionEnabled"], false);
    rpc.end();
    let mut rpc = home.rpc();
    assert_eq!(rpc.state()["autoCompactionEnabled"], false);
    rpc.end();
}

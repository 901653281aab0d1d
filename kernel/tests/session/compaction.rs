//! A session whose conversation becomes too long: when it is compacted, what is sent then, and that it
//! neither stops nor goes round in circles. Rules of `kernel.md` §6.5 and §6.6 are named at each test.

use std::sync::Arc;
use std::time::Duration;

use pliant_kernel::compaction::CompactionError;
use pliant_kernel::pipeline::{Prompt, PromptError, WhenActive};
use pliant_sdk::message::{Message, joined_text};
use pliant_sdk::{Event, Plugin};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::*;

/// Little is kept, and more than 10,000 tokens are too many.
pub fn small() -> Value {
    json!({"retry": {"baseDelayMs": 1},
        "compaction": {"reserveTokens": 118_000, "keepRecentTokens": 10}})
}

async fn open(replies: impl IntoIterator<Item = Reply>) -> Scene {
    let plugin = Plugin::new().tool(echo("echo"));
    scene_with(Script::new(replies), plugin, small()).await
}

pub const TOO_LARGE: &str = "400: prompt is too long: 210000 tokens > 200000 maximum";

/// An answer that says how full the context is.
pub fn costly(text: &str, input: u64) -> Reply {
    Reply::Answer(json!({"content": [{"type": "text", "text": text}],
        "usage": {"input": input, "output": 5, "totalTokens": input + 5}}))
}

/// The events of compactions and attempts, and the ends of runs.
fn told(scene: &mut Scene) -> Vec<String> {
    let told = ["compaction", "auto_retry", "agent_end", "agent_settled"];
    let mut events = scene.events();
    events.retain(|event| told.iter().any(|kind| event.starts_with(kind)));
    events
}

fn said(message: &Message) -> String {
    message
        .as_assistant()
        .map(|answer| joined_text(&answer.content, ""))
        .unwrap_or_default()
}

/// The last request, without its prompt.
pub fn last_request(scene: &Scene) -> Vec<String> {
    let mut last = scene.script.requests().pop().unwrap();
    last.retain(|message| message != "system");
    last
}

/// Returns when the model was asked a second time.
pub async fn second_request(scene: &Scene) {
    for _ in 0..5_000 {
        if scene.script.requests().len() == 2 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("no second request is made");
}

pub fn entries(scene: &Scene, kind: &str) -> Vec<Value> {
    let file = std::fs::read_to_string(scene.session.file().unwrap()).unwrap();
    let lines = file.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.filter(|line: &Value| line["type"] == kind).collect()
}

#[tokio::test]
async fn a_run_that_leaves_too_little_room_is_compacted_and_the_next_one_goes_on_from_the_summary()
{
    // R13, R15, R24, R26, R27, R32, S33
    let replies = [
        costly(
            "A long answer that stays as it is, word for word, as the last one.",
            10_000,
        ),
        Reply::Text("SUMMARY"),
        Reply::Text("Going on."),
    ];
    let mut scene = open(replies).await;
    scene.prompt("first").await;
    assert_eq!(
        told(&mut scene),
        [
            "agent_end",
            "compaction_start Threshold",
            "compaction_end Threshold done",
            "agent_settled"
        ]
    );
    let [_, summary] = &scene.script.requests()[..] else {
        panic!("one request for the answer, one for the summary");
    };
    assert_eq!(summary.len(), 2);
    assert!(summary[1].starts_with("user:<conversation>\n[User]: first\n</conversation>"));
    let options = scene.script.options.lock().unwrap().clone();
    assert_ne!(options[0].session_id, options[1].session_id);
    assert_eq!(options[1].cache_retention.as_deref(), Some("none"));

    scene.prompt("second").await;
    let request = last_request(&scene);
    assert!(request[0].contains("<summary>\nNothing came before this turn."));
    assert!(request[0].contains("SUMMARY\n</summary>"), "{request:?}");
    assert!(request[1].starts_with("assistant:A long answer"));
    assert_eq!(request[2..], ["user:second"]);
    let [entry] = &entries(&scene, "compaction")[..] else {
        panic!("one compaction is stored");
    };
    assert_eq!(entry["tokensBefore"], 10_005);
    assert_eq!(entry["systemMessage"]["role"], "system");
    assert_eq!(
        entry["details"],
        json!({"readFiles": [], "modifiedFiles": []})
    );
    assert!(
        told(&mut scene)
            .iter()
            .all(|event| !event.starts_with("compaction"))
    );
}

#[tokio::test]
async fn a_request_that_did_not_fit_is_made_shorter_and_sent_once_more() {
    // R19-R22, R9, reports K06
    let replies = [
        Reply::Text("An answer of some length, so that there is something to summarise."),
        Reply::Fail(TOO_LARGE),
        Reply::Text("SUMMARY"),
        Reply::Text("It fits."),
    ];
    let mut scene = open(replies).await;
    scene.prompt("first").await;
    scene.events();
    let end = scene.prompt("second").await;
    assert_eq!(said(&end.last.unwrap()), "It fits.");
    assert_eq!(
        told(&mut scene),
        [
            "agent_end",
            "compaction_start Overflow",
            "compaction_end Overflow done willRetry",
            "agent_end",
            "agent_settled"
        ]
    );
    assert_eq!(entries(&scene, "context_edit").len(), 1);
    assert!(last_request(&scene)[0].contains("SUMMARY"));
}

#[tokio::test]
async fn a_request_that_never_fits_ends_with_an_error_and_not_in_circles() {
    // R22, R23, invariants 21 and 22, reports K06
    let replies = [
        Reply::Text("An answer of some length, so that there is something to summarise."),
        Reply::Fail(TOO_LARGE),
        Reply::Text("SUMMARY"),
        Reply::Fail(TOO_LARGE),
        Reply::Text("Shorter."),
    ];
    let mut scene = open(replies).await;
    scene.prompt("first").await;
    scene.events();
    scene.prompt("second").await;
    assert_eq!(
        told(&mut scene),
        [
            "agent_end",
            "compaction_start Overflow",
            "compaction_end Overflow done willRetry",
            "agent_end",
            "compaction_end Overflow failed",
            "agent_settled"
        ]
    );
    assert_eq!(scene.script.requests().len(), 4);
    // What did not fit is left out when the next prompt comes (P37), and nothing is left to summarise.
    let end = scene.prompt("third").await;
    assert_eq!(said(&end.last.unwrap()), "Shorter.");
}

#[tokio::test]
async fn a_result_that_fills_the_context_is_compacted_away_before_the_next_request() {
    // R12, L19, reports K07
    let long = "word ".repeat(1_600);
    let replies = [
        costly(
            "An answer of some length, and a context that is nearly full.",
            9_000,
        ),
        calls([("a", "echo", json!({ "text": long }))]),
        Reply::Text("HISTORY"),
        Reply::Text("TURN"),
        Reply::Text("Read."),
    ];
    let mut scene = open(replies).await;
    scene.prompt("first").await;
    scene.events();
    let end = scene.prompt("second").await;
    assert_eq!(said(&end.last.unwrap()), "Read.");
    let events = scene.events();
    let at = |wanted: &str| events.iter().position(|event| event == wanted).unwrap();
    assert!(
        at("turn_end") < at("compaction_start Threshold"),
        "{events:?}"
    );
    let turns = events.iter().rposition(|event| event == "turn_start");
    assert!(
        at("compaction_end Threshold done") < turns.unwrap(),
        "{events:?}"
    );
    // The call stays with its result; the rest of the turn is told apart.
    let request = last_request(&scene);
    assert!(request[0].contains("HISTORY\n\n---\n\n**Turn Context (split turn):**\n\nTURN"));
    assert_eq!(request[1], "assistant:");
    assert!(request[2].starts_with("result:word"));
    assert_eq!(request.len(), 3);
}

#[tokio::test]
async fn a_summary_that_fails_is_told_and_the_run_goes_on() {
    // R26, R35, reports K06
    let long = "word ".repeat(10_000);
    let call = || calls([("a", "echo", json!({ "text": long.clone() }))]);
    let replies = [
        call(),
        Reply::Fail("400: no"),
        call(),
        Reply::Text("Done all the same."),
    ];
    let mut scene = open(replies).await;
    let end = scene.prompt("go").await;
    assert_eq!(said(&end.last.unwrap()), "Done all the same.");
    // It is not tried, and paid, again in every turn.
    assert_eq!(
        told(&mut scene),
        [
            "compaction_start Threshold",
            "compaction_end Threshold failed",
            "agent_end",
            "agent_settled"
        ]
    );
    assert!(entries(&scene, "compaction").is_empty());
}

#[tokio::test]
async fn a_summary_that_fails_for_a_while_is_asked_for_again() {
    // R35
    let replies = [
        costly(
            "A long answer that stays as it is, word for word, as the last one.",
            10_000,
        ),
        Reply::Fail("503 unavailable"),
        Reply::Fail("503 unavailable"),
        Reply::Text("SUMMARY"),
    ];
    let mut scene = open(replies).await;
    scene.prompt("first").await;
    let events = scene.events();
    let from = events
        .iter()
        .position(|e| e.starts_with("compaction_start"));
    assert_eq!(
        events[from.unwrap()..],
        [
            "compaction_start Threshold",
            "summarization_retry_scheduled",
            "summarization_retry_attempt_start",
            "summarization_retry_scheduled",
            "summarization_retry_attempt_start",
            "summarization_retry_finished",
            "compaction_end Threshold done",
            "agent_settled"
        ]
    );
}

#[tokio::test]
async fn an_answer_that_was_cut_short_by_a_full_window_is_asked_for_again() {
    // R21, R22
    let replies = [
        Reply::Text("An answer of some length, so that there is something to summarise."),
        Reply::Answer(json!({"content": [{"type": "text", "text": "Half an"}],
            "stopReason": "length", "usage": {"input": 100, "output": 3}})),
        Reply::Text("SUMMARY"),
        Reply::Text("A whole answer."),
    ];
    let mut scene = open(replies).await;
    scene.prompt("first").await;
    scene.events();
    let end = scene.prompt("second").await;
    assert_eq!(said(&end.last.unwrap()), "A whole answer.");
    assert!(
        last_request(&scene)
            .iter()
            .all(|message| !message.contains("Half"))
    );
}

#[tokio::test]
async fn an_answer_that_was_cut_short_stays_where_nothing_can_be_summarised() {
    // R22; `interfaces.md` §17: it is all that the model said, and no request was too large.
    let replies = [
        Reply::Answer(json!({"content": [{"type": "text", "text": "Half an"}],
            "stopReason": "length", "usage": {"input": 100, "output": 3}})),
        Reply::Text("The other half."),
    ];
    let mut scene = open(replies).await;
    scene.prompt("first").await;
    let events = scene.events();
    let told = |kind: &str| events.iter().any(|event| event.starts_with(kind));
    assert!(!told("notice") && !told("entry_appended"), "{events:?}");
    scene.prompt("go on").await;
    let request = last_request(&scene).join("\n");
    assert!(request.contains("Half an"), "{request}");
}

/// Queues a prompt that is to be answered when the run would stop.
async fn follow_up(scene: &Scene, text: &str) {
    let queued = Prompt {
        when_active: Some(WhenActive::FollowUp),
        ..Prompt::text(text)
    };
    scene.session.prompt(queued, |_| ()).await.unwrap();
}

#[tokio::test]
async fn what_is_queued_during_a_compaction_is_answered_after_it() {
    // §6.2 (6), R24, P29
    let let_go = Arc::new(Notify::new());
    let replies = [
        costly(
            "A long answer that stays as it is, word for word, as the last one.",
            10_000,
        ),
        Reply::When(Arc::clone(&let_go), "SUMMARY"),
        Reply::Text("Later it is."),
    ];
    let mut scene = open(replies).await;
    let session = scene.session.clone();
    let run = tokio::spawn(async move { session.prompt(Prompt::text("first"), |_| ()).await });
    second_request(&scene).await;
    follow_up(&scene, "later").await;
    let_go.notify_one();
    let end = run.await.unwrap().unwrap();
    assert_eq!(said(&end.last.unwrap()), "Later it is.");
    let requests = scene.script.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[2].last().unwrap(), "user:later");
    assert_eq!(
        told(&mut scene),
        [
            "agent_end",
            "compaction_start Threshold",
            "compaction_end Threshold done",
            "agent_end",
            "agent_settled"
        ]
    );
}

#[tokio::test]
async fn an_abort_ends_a_compaction_of_a_run_and_leaves_what_is_queued() {
    // R51, L11, invariant 27
    let replies = [
        costly(
            "A long answer that stays as it is, word for word, as the last one.",
            10_000,
        ),
        Reply::Hang("SUM"),
    ];
    let mut scene = open(replies).await;
    let session = scene.session.clone();
    let run = tokio::spawn(async move { session.prompt(Prompt::text("first"), |_| ()).await });
    second_request(&scene).await;
    follow_up(&scene, "later").await;
    scene.session.abort().await;
    run.await.unwrap().unwrap();
    assert_eq!(
        told(&mut scene)[1..],
        [
            "compaction_start Threshold",
            "compaction_end Threshold aborted",
            "agent_settled"
        ]
    );
    assert!(entries(&scene, "compaction").is_empty());
    // Before the next run the conversation is compacted after all (P37).
    let next = ["SUMMARY", "One.", "Two."].map(Reply::Text);
    scene.script.replies.lock().unwrap().extend(next);
    scene.prompt("second").await;
    assert_eq!(last_request(&scene).last().unwrap(), "user:later");
    assert_eq!(entries(&scene, "compaction").len(), 1);
}

#[tokio::test]
async fn the_user_compacts_with_a_focus_and_twice_is_once_too_often() {
    // R25, R26, invariant 34
    let replies = [
        Reply::Text("An answer of some length, so that there is something to summarise."),
        Reply::Text("Another answer of some length, so that it alone is what is kept."),
        Reply::Text("HISTORY"),
        Reply::Text("TURN"),
    ];
    let mut scene = open(replies).await;
    assert_eq!(
        scene.session.compact(None).await,
        Err(CompactionError::Nothing)
    );
    scene.prompt("first").await;
    scene.prompt("second").await;
    scene.events();
    let done = scene.session.compact(Some("the tests")).await.unwrap();
    assert!(done.estimated_tokens_after < 10_000 && done.tokens_before > 0);
    assert!(done.summary.starts_with("HISTORY") && done.summary.ends_with("TURN"));
    assert_eq!(
        told(&mut scene),
        ["compaction_start Manual", "compaction_end Manual done"]
    );
    assert!(last_request(&scene)[0].ends_with("Additional focus: the tests"));
    assert_eq!(
        scene.session.compact(None).await,
        Err(CompactionError::Compacted)
    );
    assert!(told(&mut scene).is_empty());
}

#[tokio::test]
async fn a_compaction_that_is_stopped_leaves_everything_as_it_was() {
    // R25, R51, P4
    let replies = [
        Reply::Text("An answer of some length, so that there is something to summarise."),
        Reply::Hang("SUM"),
        Reply::Text("Still here."),
    ];
    let mut scene = open(replies).await;
    scene.prompt("first").await;
    scene.events();
    let before = scene.session.messages();
    let session = scene.session.clone();
    let compacting = tokio::spawn(async move { session.compact(None).await });
    second_request(&scene).await;
    let refused = scene.session.prompt(Prompt::text("now"), |_| ()).await;
    assert_eq!(refused.unwrap_err(), PromptError::Compacting);
    assert!(!scene.session.is_running());
    scene.session.abort().await;
    assert_eq!(compacting.await.unwrap(), Err(CompactionError::Aborted));
    assert_eq!(
        told(&mut scene),
        ["compaction_start Manual", "compaction_end Manual aborted"]
    );
    assert_eq!(scene.session.messages(), before);
    let end = scene.prompt("second").await;
    assert_eq!(said(&end.last.unwrap()), "Still here.");
}

#[tokio::test]
async fn settings_that_cannot_be_used_are_told_and_stop_nothing() {
    // §6.5
    let settings = json!({"compaction": {"reserveTokens": "all"}});
    let script = Script::new([Reply::Text("Fine.")]);
    let mut scene = scene_with(script, Plugin::new(), settings).await;
    scene.prompt("go").await;
    let mut notices = Vec::new();
    while let Ok(event) = scene.events.try_recv() {
        if let Event::Notice { message } = &*event {
            notices.push(message.clone());
        }
    }
    assert_eq!(notices.len(), 1);
    assert!(
        notices[0].contains("compaction.reserveTokens"),
        "{notices:?}"
    );
    let error = scene.session.compact(None).await.unwrap_err();
    assert!(
        error.to_string().contains("compaction.reserveTokens"),
        "{error}"
    );
}

#[tokio::test]
async fn nothing_is_compacted_unasked_when_that_is_switched_off() {
    // R18
    let mut settings = small();
    settings["compaction"]["enabled"] = json!(false);
    let script = Script::new([costly("Long.", 100_000), Reply::Fail(TOO_LARGE)]);
    let mut scene = scene_with(script, Plugin::new(), settings).await;
    scene.prompt("first").await;
    scene.prompt("second").await;
    assert!(
        told(&mut scene)
            .iter()
            .all(|event| event.starts_with("agent"))
    );
    assert_eq!(scene.script.requests().len(), 2);
}

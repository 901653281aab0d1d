//! Handlers around a compaction: what they are shown, what they may decide, and in which order they
//! hear of it. Rules of `kernel.md` §6.5 and §6.6 and of `extensions.md` §3.1.

use std::sync::Arc;

use pliant_kernel::compaction::CompactionError;
use pliant_sdk::hook::{CompactAnswer, SessionBeforeCompact, SessionCompact, SuppliedCompaction};
use pliant_sdk::{Event, Plugin};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::compaction::{TOO_LARGE, costly, entries, last_request, small};
use crate::heard::Heard;
use crate::support::*;

const HEARD: [&str; 2] = ["session_compact", "session_compact_failed"];
const LONG: &str = "An answer of some length, so that there is something to summarise.";
const TOLD: [&str; 3] = ["compaction", "summarization", "extension_error"];

async fn open(plugin: Plugin, heard: &Heard, replies: impl IntoIterator<Item = Reply>) -> Scene {
    let scene = scene_with(Script::new(replies), plugin.tool(echo("echo")), small()).await;
    heard.listen(&scene.session);
    scene
}

#[tokio::test]
async fn handlers_see_what_will_be_summarised_and_hear_that_it_was() {
    // R26, R28, R31, extensions §2.8, §3.1
    let heard = Heard::default();
    let plugin = heard.hearing(Plugin::new(), &["session_before_compact"]);
    let plugin = heard.hearing(plugin, &HEARD);
    let replies = [
        Reply::Text("Yes."),
        costly(LONG, 10_000),
        Reply::Text("HISTORY"),
        Reply::Text("TURN"),
    ];
    let scene = open(plugin, &heard, replies).await;
    scene.prompt("first").await;
    scene.prompt("second").await;
    assert_eq!(
        heard.told(&TOLD),
        [
            "compaction_start Threshold",
            "<session_before_compact>",
            "<session_compact>",
            "compaction_end Threshold done"
        ]
    );
    let [before, after] = &heard.payloads()[..] else {
        panic!("two handlers were called")
    };
    let roles = |list: &Value| -> Vec<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|m| m["role"].as_str().unwrap().to_owned())
            .collect()
    };
    let preparation = &before["preparation"];
    assert_eq!(
        roles(&preparation["messagesToSummarize"]),
        ["user", "assistant"]
    );
    assert_eq!(roles(&preparation["turnPrefixMessages"]), ["user"]);
    assert_eq!(preparation["isSplitTurn"], true);
    assert_eq!(preparation["tokensBefore"], 10_005);
    assert_eq!(preparation["previousSummary"], Value::Null);
    assert_eq!(
        preparation["fileOps"],
        json!({"read": [], "written": [], "edited": []})
    );
    let settings = json!({"enabled": true, "reserveTokens": 118_000, "keepRecentTokens": 10});
    assert_eq!(preparation["settings"], settings);
    let branch = before["branchEntries"].as_array().unwrap();
    assert_eq!(
        branch.last().unwrap()["id"],
        preparation["firstKeptEntryId"]
    );
    assert_eq!(before["reason"], "threshold");
    assert_eq!(
        (&before["willRetry"], &before["customInstructions"]),
        (&json!(false), &Value::Null)
    );

    let [entry] = &entries(&scene, "compaction")[..] else {
        panic!("one compaction is stored")
    };
    let heard_of = json!({"type": "session_compact", "compactionEntry": entry,
        "fromExtension": false, "reason": "threshold", "willRetry": false});
    assert_eq!(*after, heard_of);
}

#[tokio::test]
async fn the_last_summary_of_a_handler_takes_the_place_of_the_models() {
    // R26, R37, S9, extensions §3.1
    let heard = Heard::default();
    let event = "session_before_compact";
    let given = |text: &str| json!({"compaction": {"summary": text, "details": {"by": text}}});
    let astray = json!({"compaction": {"summary": "C", "firstKeptEntryId": "nowhere"}});
    let mut plugin = Plugin::new();
    for answer in [
        given("A"),
        given("B"),
        given(" \n"),
        astray,
        json!({"compaction": 7}),
        json!({}),
    ] {
        plugin = heard.answering(plugin, event, answer);
    }
    let plugin = heard.hearing(plugin, &HEARD);
    let scene = open(plugin, &heard, [Reply::Text(LONG), Reply::Text("Goes on.")]).await;
    scene.prompt("first").await;
    heard.told(&[]);
    let done = scene.session.compact(Some("the tests")).await.unwrap();
    assert_eq!(done.summary, "B");
    assert_eq!(done.details, Some(json!({"by": "B"})));
    let told = heard.told(&TOLD);
    assert_eq!(
        told.iter()
            .filter(|word| *word == "<session_before_compact>")
            .count(),
        6
    );
    assert_eq!(
        told[told.len() - 5..],
        [
            "<session_compact>",
            // What failed is told at the next event: an empty summary, an entry that is not there, and an
            // answer that is none.
            "extension_error session_before_compact",
            "extension_error session_before_compact",
            "extension_error session_before_compact",
            "compaction_end Manual done"
        ]
    );
    let payloads = heard.payloads();
    assert_eq!(payloads[0]["customInstructions"], "the tests");
    assert_eq!(payloads.last().unwrap()["fromExtension"], true);
    let [entry] = &entries(&scene, "compaction")[..] else {
        panic!("one compaction is stored")
    };
    assert_eq!(
        (&entry["fromHook"], &entry["usage"]),
        (&json!(true), &Value::Null)
    );
    // It keeps nothing, because it names no entry (S34).
    assert_eq!(entry["firstKeptEntryId"], entry["id"]);
    scene.prompt("second").await;
    assert_eq!(scene.script.requests().len(), 2);
    let request = last_request(&scene);
    assert!(
        request[0].contains("<summary>\nB\n</summary>"),
        "{request:?}"
    );
    assert_eq!(request[1..], ["user:second"]);
}

#[tokio::test]
async fn a_handler_that_cancels_ends_the_dispatch_and_the_compaction() {
    // R25, R26, extensions §3.1
    let heard = Heard::default();
    let event = "session_before_compact";
    let plugin = heard.answering(Plugin::new(), event, json!({"cancel": true}));
    let plugin = heard.answering(plugin, event, json!({"compaction": {"summary": "late"}}));
    let plugin = heard.hearing(plugin, &HEARD);
    let scene = open(plugin, &heard, [Reply::Text(LONG)]).await;
    scene.prompt("first").await;
    let before = scene.session.messages();
    heard.told(&[]);
    assert_eq!(
        scene.session.compact(None).await,
        Err(CompactionError::Aborted)
    );
    assert_eq!(
        heard.told(&TOLD),
        [
            "compaction_start Manual",
            "<session_before_compact>",
            "compaction_end Manual aborted",
            "<session_compact_failed idle>"
        ]
    );
    let failed = json!({"type": "session_compact_failed", "reason": "manual", "aborted": true,
        "willRetry": false, "fromExtension": false});
    assert_eq!(heard.payloads()[1], failed);
    assert_eq!(scene.session.messages(), before);
    assert_eq!(scene.script.requests().len(), 1);
}

#[tokio::test]
async fn a_handler_may_cancel_at_every_turn() {
    // R12, R26: a cancel is no failure, which would not be tried again in the same run.
    let heard = Heard::default();
    let cancel = json!({"cancel": true});
    let plugin = heard.answering(Plugin::new(), "session_before_compact", cancel);
    let long = "word ".repeat(10_000);
    let call = || calls([("a", "echo", json!({ "text": long.clone() }))]);
    let replies = [call(), call(), Reply::Text("Done.")];
    let scene = open(plugin, &heard, replies).await;
    scene.prompt("go").await;
    let told = heard.told(&["compaction_end"]);
    let ends = told
        .iter()
        .filter(|word| *word == "compaction_end Threshold aborted");
    assert_eq!(ends.count(), 3, "{told:?}");
}

#[tokio::test]
async fn what_a_summary_cost_that_failed_stays_in_the_sum() {
    // R26, R35, S2.3, invariant 36
    let heard = Heard::default();
    let plugin = heard.hearing(Plugin::new(), &HEARD);
    let cut = json!({"content": [{"type": "text", "text": "Half a summ"}], "stopReason": "length",
        "usage": {"input": 70, "output": 3, "totalTokens": 73}});
    let scene = open(plugin, &heard, [Reply::Text(LONG), Reply::Answer(cut)]).await;
    scene.prompt("first").await;
    heard.told(&[]);
    let error = scene.session.compact(None).await.unwrap_err();
    assert!(error.to_string().contains("cut off"), "{error}");
    assert_eq!(
        heard.told(&["compaction", "entry_appended"]),
        [
            "compaction_start Manual",
            "entry_appended",
            "compaction_end Manual failed",
            "<session_compact_failed idle>"
        ]
    );
    let failed = &heard.payloads()[0];
    assert_eq!(
        (&failed["aborted"], &failed["reason"]),
        (&json!(false), &json!("manual"))
    );
    assert_eq!(failed["errorMessage"], json!(error.to_string()));
    let [usage] = &entries(&scene, "usage")[..] else {
        panic!("one entry tells the cost")
    };
    assert_eq!(usage["kind"], "compaction");
    assert_eq!(
        (&usage["provider"], &usage["model"]),
        (&json!("fake"), &json!("m"))
    );
    assert_eq!(usage["usage"]["totalTokens"], 73);
    // It is no part of the conversation, which can be compacted as before.
    scene
        .script
        .replies
        .lock()
        .unwrap()
        .push_back(Reply::Text("SUMMARY"));
    scene.session.compact(None).await.unwrap();
}

#[tokio::test]
async fn a_summary_costs_what_all_attempts_at_it_have_cost() {
    // R34, R35, S9
    let heard = Heard::default();
    let failed = json!({"stopReason": "error", "errorMessage": "503 unavailable",
        "usage": {"input": 70, "totalTokens": 70}});
    let whole = json!({"content": [{"type": "text", "text": "SUMMARY"}],
        "usage": {"input": 70, "output": 5, "totalTokens": 75}});
    let replies = [
        Reply::Text(LONG),
        Reply::Answer(failed),
        Reply::Answer(whole),
    ];
    let scene = open(Plugin::new(), &heard, replies).await;
    scene.prompt("first").await;
    let done = scene.session.compact(None).await.unwrap();
    assert_eq!(done.usage.unwrap().total_tokens, 145);
    assert!(entries(&scene, "usage").is_empty());
}

#[tokio::test]
async fn a_request_that_still_does_not_fit_is_a_compaction_that_failed() {
    // R22, invariants 21 and 22
    let heard = Heard::default();
    let plugin = heard.hearing(Plugin::new(), &HEARD);
    let replies = [
        Reply::Text(LONG),
        Reply::Fail(TOO_LARGE),
        Reply::Text("HISTORY"),
        // The prompt itself was too much (R30).
        Reply::Text("TURN"),
        Reply::Fail(TOO_LARGE),
        Reply::Text("Shorter."),
    ];
    let scene = open(plugin, &heard, replies).await;
    scene.prompt("first").await;
    heard.told(&[]);
    scene
        .prompt("A prompt that is longer than what is kept of a conversation.")
        .await;
    assert_eq!(
        heard.told(&TOLD),
        [
            "compaction_start Overflow",
            "<session_compact>",
            "compaction_end Overflow done willRetry",
            "compaction_end Overflow failed",
            "<session_compact_failed>"
        ]
    );
    let payloads = heard.payloads();
    assert_eq!(
        (&payloads[0]["reason"], &payloads[0]["willRetry"]),
        (&json!("overflow"), &json!(true))
    );
    assert_eq!(
        (&payloads[1]["reason"], &payloads[1]["willRetry"]),
        (&json!("overflow"), &json!(false))
    );
    assert!(
        payloads[1]["errorMessage"]
            .as_str()
            .unwrap()
            .contains("too large")
    );
    // Nothing good came since, so no other recovery precedes the next message of the user.
    scene.prompt("third").await;
    assert!(heard.told(&TOLD).is_empty());
}

#[tokio::test]
async fn a_good_answer_lets_the_conversation_be_made_shorter_again() {
    // R22, R23, invariant 21
    let heard = Heard::default();
    let replies = [
        Reply::Text(LONG),
        Reply::Fail(TOO_LARGE),
        Reply::Text("SUMMARY"),
        calls([(
            "a",
            "echo",
            json!({"text": "A result that is longer than what is kept."}),
        )]),
        Reply::Fail(TOO_LARGE),
        Reply::Text("HISTORY"),
        Reply::Text("TURN"),
        Reply::Text("It fits."),
    ];
    let scene = open(Plugin::new(), &heard, replies).await;
    scene.prompt("first").await;
    heard.told(&[]);
    let end = scene.prompt("second").await;
    assert!(
        end.last
            .unwrap()
            .as_assistant()
            .unwrap()
            .error_message
            .is_none()
    );
    let told = heard.told(&["compaction_end"]);
    assert_eq!(told, ["compaction_end Overflow done willRetry"; 2]);
}

#[tokio::test]
async fn a_request_that_does_not_fit_and_cannot_be_made_shorter_says_what_helps() {
    // R22, R26
    let settings = json!({"compaction": {"keepRecentTokens": 20_000}});
    let script = Script::new([Reply::Fail(TOO_LARGE)]);
    let mut scene = scene_with(script, Plugin::new(), settings).await;
    scene.prompt("first").await;
    let mut notices = Vec::new();
    while let Ok(event) = scene.events.try_recv() {
        assert!(!matches!(
            &*event,
            Event::CompactionStart { .. } | Event::CompactionEnd { .. }
        ));
        if let Event::Notice { message } = &*event {
            notices.push(message.clone());
        }
    }
    assert_eq!(notices.len(), 1);
    assert!(notices[0].contains("Send less at once"), "{notices:?}");
    assert_eq!(scene.script.requests().len(), 1);
}

#[tokio::test]
async fn an_aborted_answer_counts_before_the_next_prompt_and_not_after_its_run() {
    // R18, P37
    let heard = Heard::default();
    let replies = [
        costly(LONG, 9_000),
        Reply::Hang("I am"),
        Reply::Text("HISTORY"),
    ];
    let scene = open(Plugin::new(), &heard, replies).await;
    scene.prompt("first").await;
    let session = scene.session.clone();
    let long = "word ".repeat(1_000);
    let run = tokio::spawn(async move {
        let prompt = pliant_kernel::pipeline::Prompt::text(long);
        session.prompt(prompt, |_| ()).await
    });
    crate::compaction::second_request(&scene).await;
    scene.session.abort().await;
    run.await.unwrap().unwrap();
    assert!(heard.told(&["compaction"]).is_empty());
    let rest = ["TURN", "Goes on."].map(Reply::Text);
    scene.script.replies.lock().unwrap().extend(rest);
    scene.prompt("third").await;
    assert_eq!(
        heard.told(&["compaction"]),
        [
            "compaction_start Threshold",
            "compaction_end Threshold done"
        ]
    );
}

#[tokio::test]
async fn a_finished_answer_that_filled_the_window_is_not_asked_for_again() {
    // R20, R22
    let heard = Heard::default();
    let plugin = heard.hearing(Plugin::new(), &HEARD);
    let replies = [costly(LONG, 130_000), Reply::Text("SUMMARY")];
    let scene = open(plugin, &heard, replies).await;
    let end = scene.prompt("first").await;
    assert!(
        end.last
            .unwrap()
            .as_assistant()
            .unwrap()
            .error_message
            .is_none()
    );
    assert_eq!(
        heard.told(&["compaction", "agent_end"]),
        [
            "agent_end",
            "compaction_start Overflow",
            "<session_compact>",
            "compaction_end Overflow done"
        ]
    );
    assert_eq!(heard.payloads()[0]["willRetry"], false);
    assert!(entries(&scene, "context_edit").is_empty());
    assert_eq!(scene.script.requests().len(), 2);
}

#[tokio::test]
async fn a_recovery_that_fails_leaves_the_attempt_out_and_asks_no_more() {
    // R22
    let heard = Heard::default();
    let plugin = heard.hearing(Plugin::new(), &HEARD);
    let replies = [
        Reply::Text(LONG),
        Reply::Fail(TOO_LARGE),
        Reply::Fail("400: no"),
    ];
    let scene = open(plugin, &heard, replies).await;
    scene.prompt("first").await;
    heard.told(&[]);
    scene.prompt("second").await;
    assert_eq!(
        heard.told(&["compaction", "agent_end", "agent_settled"]),
        [
            "agent_end",
            "compaction_start Overflow",
            "compaction_end Overflow failed",
            "<session_compact_failed>",
            "agent_settled"
        ]
    );
    let failed = &heard.payloads()[0];
    // That there was to be another attempt, which there is not.
    assert_eq!(
        (&failed["reason"], &failed["willRetry"]),
        (&json!("overflow"), &json!(true))
    );
    assert_eq!(entries(&scene, "context_edit").len(), 1);
    assert_eq!(scene.script.requests().len(), 3);
}

#[tokio::test]
async fn a_plugin_with_types_keeps_what_would_have_been_kept() {
    // R26, R27, extensions §3.1
    let plugin = Plugin::new()
        .on(|event: SessionBeforeCompact, _| async move {
            assert_eq!(event.branch_entries[0].parent_id, None);
            let prepared = event.preparation;
            let told = prepared.messages_to_summarize.len() + prepared.turn_prefix_messages.len();
            let supplied = SuppliedCompaction {
                summary: format!("{told} messages"),
                first_kept_entry_id: prepared.first_kept_entry_id,
                ..SuppliedCompaction::default()
            };
            Ok(CompactAnswer::from(supplied))
        })
        .on(|event: SessionCompact, ctx| async move {
            let entry = event.compaction_entry;
            ctx.host()
                .session()
                .set_label(&entry.id, Some("by a plugin"))
                .await
        });
    let replies = [Reply::Text("Yes."), Reply::Text(LONG)];
    let scene = open(plugin, &Heard::default(), replies).await;
    scene.prompt("first").await;
    scene.prompt("second").await;
    let before = scene.session.messages();
    let done = scene.session.compact(None).await.unwrap();
    assert_eq!(done.summary, "3 messages");
    assert!(done.tokens_before > done.estimated_tokens_after);
    assert_eq!(scene.session.messages()[2..], before[before.len() - 1..]);
    let entry = entries(&scene, "compaction")[0]["id"]
        .as_str()
        .unwrap()
        .into();
    assert_eq!(scene.session.label(&entry).as_deref(), Some("by a plugin"));
}

#[tokio::test]
async fn an_abort_ends_a_handler_and_no_model_is_asked() {
    // R26, R51
    let called = Arc::new(Notify::new());
    let calling = Arc::clone(&called);
    let plugin = Plugin::new().on_event("session_before_compact", move |_, _| {
        let calling = Arc::clone(&calling);
        async move {
            calling.notify_one();
            std::future::pending().await
        }
    });
    let heard = Heard::default();
    let plugin = heard.hearing(plugin, &HEARD);
    let scene = open(plugin, &heard, [Reply::Text(LONG)]).await;
    scene.prompt("first").await;
    heard.told(&[]);
    let session = scene.session.clone();
    let compacting = tokio::spawn(async move { session.compact(None).await });
    called.notified().await;
    scene.session.abort().await;
    assert_eq!(compacting.await.unwrap(), Err(CompactionError::Aborted));
    assert_eq!(
        heard.told(&TOLD),
        [
            "compaction_start Manual",
            "compaction_end Manual aborted",
            "<session_compact_failed idle>"
        ]
    );
    assert_eq!(scene.script.requests().len(), 1);
}

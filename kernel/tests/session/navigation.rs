//! Going to another place of the session's tree: when it is refused, where the session stands then,
//! and what it is told of the branch that was left. Rules of `kernel.md` §6.7 and `extensions.md` §3.1.

use std::sync::Arc;

use pliant_kernel::pipeline::{Prompt, PromptError};
use pliant_kernel::run::{NavigateError, NavigateOptions};
use pliant_kernel::tree::EntryId;
use pliant_sdk::hook::{SessionBeforeTree, SessionTree, SuppliedSummary, TreeAnswer};
use pliant_sdk::session::{MessageDraft, MessageOptions, SessionEntry};
use pliant_sdk::{Error, Plugin};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::compaction::{entries, last_request};
use crate::heard::Heard;
use crate::support::*;

const HEARD: [&str; 2] = ["session_before_tree", "session_tree"];
const SUMMARY: NavigateOptions = NavigateOptions {
    summarize: true,
    instructions: None,
    replace_instructions: false,
    label: None,
};

fn plain() -> NavigateOptions {
    NavigateOptions::default()
}

/// A session in which "one" and "two" were answered.
async fn talked(plugin: Plugin, heard: &Heard, more: impl IntoIterator<Item = Reply>) -> Scene {
    let replies = ["Answer one.", "Answer two."].map(Reply::Text);
    let script = Script::new(replies.into_iter().chain(more));
    let scene = scene(script, plugin).await;
    scene.prompt("one").await;
    scene.prompt("two").await;
    heard.listen(&scene.session);
    scene
}

/// The stored message that says this.
fn said(scene: &Scene, text: &str) -> EntryId {
    let all = entries(scene, "message");
    let says = |entry: &&Value| entry["message"]["content"][0]["text"] == text;
    let entry = all.iter().rev().find(says).unwrap();
    entry["id"].as_str().unwrap().into()
}

fn leaf(scene: &Scene) -> String {
    scene.session.leaf().unwrap().as_str().to_owned()
}

#[tokio::test]
async fn going_to_what_the_user_said_is_standing_before_it_with_its_text() {
    // R40, S22, extensions §2.8
    let heard = Heard::default();
    let plugin = heard.hearing(Plugin::new(), &HEARD);
    let scene = talked(plugin, &heard, [Reply::Text("Better.")]).await;
    let (old, target) = (leaf(&scene), said(&scene, "two"));
    let arrival = scene.session.navigate_tree(&target, plain()).await.unwrap();
    assert_eq!(arrival.editor_text.as_deref(), Some("two"));
    let new = said(&scene, "Answer one.");
    assert_eq!(scene.session.leaf(), Some(new.clone()));
    // Whoever hears of the new place finds the session idle.
    assert_eq!(
        heard.told(&["agent"]),
        ["<session_before_tree>", "<session_tree idle>"]
    );
    let [before, after] = &heard.payloads()[..] else {
        panic!("two handlers were called")
    };
    let preparation = &before["preparation"];
    assert_eq!(preparation["targetId"], target.as_str());
    assert_eq!(preparation["oldLeafId"], *old);
    // What is common to both branches ends with the target, which is said anew.
    assert_eq!(preparation["commonAncestorId"], target.as_str());
    let left = preparation["entriesToSummarize"].as_array().unwrap();
    assert_eq!(
        left.iter()
            .map(|entry| entry["id"].as_str())
            .collect::<Vec<_>>(),
        [Some(&*old)]
    );
    assert_eq!(preparation["userWantsSummary"], false);
    let moved = json!({"type": "session_tree", "newLeafId": new, "oldLeafId": old});
    assert_eq!(*after, moved);

    scene.prompt("better").await;
    let request = last_request(&scene);
    assert_eq!(
        request,
        ["user:one", "assistant:Answer one.", "user:better"]
    );
}

#[tokio::test]
async fn any_other_entry_is_where_the_session_then_stands() {
    // R38, R40, S36
    let heard = Heard::default();
    let plugin = heard.hearing(Plugin::new(), &HEARD);
    let scene = talked(plugin, &heard, []).await;
    let answer = said(&scene, "Answer one.");
    let arrival = scene.session.navigate_tree(&answer, plain()).await.unwrap();
    assert_eq!(arrival.editor_text, None);
    assert_eq!(leaf(&scene), answer.as_str());
    heard.told(&[]);
    // Where it stands already, nothing happens.
    scene.session.navigate_tree(&answer, SUMMARY).await.unwrap();
    assert!(heard.told(&[]).is_empty());
    // The first message of all has nothing before it but what the prompt is made of.
    let first = said(&scene, "one");
    scene.session.navigate_tree(&first, plain()).await.unwrap();
    let roles: Vec<String> = scene
        .session
        .messages()
        .iter()
        .map(|m| m.role().to_owned())
        .collect();
    assert_eq!(roles, ["system"]);
}

#[tokio::test]
async fn a_branch_that_is_left_is_told_of_at_the_new_place() {
    // R39, R40, R41, S23, S9, M-table of §1.5
    let heard = Heard::default();
    let plugin = heard.hearing(Plugin::new(), &HEARD);
    let replies = ["WHAT HAPPENED", "On we go."].map(Reply::Text);
    let scene = talked(plugin, &heard, replies).await;
    let (old, target) = (leaf(&scene), said(&scene, "two"));
    let options = NavigateOptions {
        label: Some("fork in the road".into()),
        instructions: Some("the names".into()),
        ..SUMMARY
    };
    let arrival = scene.session.navigate_tree(&target, options).await.unwrap();
    let asked = last_request(&scene);
    assert!(asked[0].starts_with("user:<conversation>\n[Assistant]: Answer two.\n</conversation>"));
    assert!(
        asked[0].ends_with("Additional focus: the names"),
        "{}",
        asked[0]
    );

    let [summary] = &entries(&scene, "branch_summary")[..] else {
        panic!("one summary is stored")
    };
    assert_eq!(summary["id"], arrival.summary.unwrap().id().as_str());
    assert_eq!(summary["fromId"], *old);
    assert_eq!(summary["parentId"], said(&scene, "Answer one.").as_str());
    assert!(
        summary["summary"]
            .as_str()
            .unwrap()
            .ends_with("\n\nWHAT HAPPENED")
    );
    assert_eq!(
        summary["details"],
        json!({"readFiles": [], "modifiedFiles": []})
    );
    let [label] = &entries(&scene, "label")[..] else {
        panic!("one label is stored")
    };
    assert_eq!(
        (&label["targetId"], &label["label"]),
        (&summary["id"], &json!("fork in the road"))
    );
    assert_eq!(leaf(&scene), label["id"].as_str().unwrap());
    let moved = &heard.payloads()[1];
    assert_eq!(moved["newLeafId"], label["id"]);
    assert_eq!(
        (&moved["summaryEntry"], &moved["fromExtension"]),
        (summary, &json!(false))
    );

    scene.prompt("on").await;
    let request = last_request(&scene);
    assert_eq!(request.len(), 4);
    assert!(
        request[2].ends_with("WHAT HAPPENED</summary>"),
        "{request:?}"
    );
}

#[tokio::test]
async fn a_label_without_a_summary_names_the_entry_itself() {
    // R40, S25
    let scene = talked(Plugin::new(), &Heard::default(), []).await;
    let answer = said(&scene, "Answer one.");
    let options = NavigateOptions {
        label: Some("here".into()),
        ..plain()
    };
    scene.session.navigate_tree(&answer, options).await.unwrap();
    let [label] = &entries(&scene, "label")[..] else {
        panic!("one label is stored")
    };
    assert_eq!(
        (&label["targetId"], &label["parentId"]),
        (&json!(answer), &json!(answer))
    );
    assert_eq!(scene.session.label(&answer).as_deref(), Some("here"));
    scene.session.set_label(&answer, None).unwrap();
    assert_eq!(scene.session.label(&answer), None);
    assert!(
        scene
            .session
            .set_label(&"nowhere".into(), Some("x"))
            .is_err()
    );
}

#[tokio::test]
async fn a_handler_may_tell_what_happened_and_how_it_is_asked() {
    // R39, extensions §3.1
    let heard = Heard::default();
    let given = |text: &str| json!({"summary": {"summary": text, "details": 1}, "label": text});
    let plugin = heard.answering(Plugin::new(), HEARD[0], given("A"));
    let plugin = heard.answering(plugin, HEARD[0], given("B"));
    let plugin = heard.answering(plugin, HEARD[0], json!({}));
    let plugin = heard.answering(plugin, HEARD[0], given(""));
    let plugin = heard.answering(plugin, HEARD[0], json!({"label": {"not": "a text"}}));
    let scene = talked(plugin, &heard, []).await;
    let target = said(&scene, "Answer one.");
    // Without being asked for one, nobody is told of anything; the label holds.
    scene.session.navigate_tree(&target, plain()).await.unwrap();
    assert!(entries(&scene, "branch_summary").is_empty());
    assert_eq!(scene.session.label(&target).as_deref(), Some("B"));
    let told = heard.told(&["extension_error"]);
    assert_eq!(told.last().unwrap(), "extension_error session_before_tree");

    let target = said(&scene, "Answer two.");
    let arrival = scene.session.navigate_tree(&target, SUMMARY).await.unwrap();
    let [summary] = &entries(&scene, "branch_summary")[..] else {
        panic!("one summary is stored")
    };
    assert_eq!(
        (&summary["summary"], &summary["fromHook"]),
        (&json!("B"), &json!(true))
    );
    assert_eq!(summary["details"], 1);
    let label = scene.session.label(arrival.summary.unwrap().id());
    assert_eq!(label.as_deref(), Some("B"));
    assert_eq!(scene.script.requests().len(), 2);
}

#[tokio::test]
async fn a_handler_may_ask_for_the_summary_in_other_words() {
    // R39, R41
    let heard = Heard::default();
    let other = json!({"customInstructions": "In one word.", "replaceInstructions": true});
    let plugin = heard.answering(Plugin::new(), HEARD[0], other);
    let scene = talked(plugin, &heard, [Reply::Text("WORD")]).await;
    let target = said(&scene, "Answer one.");
    scene.session.navigate_tree(&target, SUMMARY).await.unwrap();
    let asked = last_request(&scene);
    assert!(
        asked[0].ends_with("</conversation>\n\nIn one word."),
        "{}",
        asked[0]
    );
}

#[tokio::test]
async fn a_cancel_an_abort_and_a_failure_change_nothing() {
    // R38, R40, R51
    let heard = Heard::default();
    let plugin = Plugin::new().on_event("session_before_tree", |event, _| async move {
        let cancel = event["preparation"]["customInstructions"] == "cancel";
        Ok(json!({ "cancel": cancel }))
    });
    let plugin = heard.hearing(plugin, &["session_tree"]);
    let replies = [Reply::Hang("WHAT"), Reply::Fail("400: no")];
    let scene = talked(plugin, &heard, replies).await;
    let file = || std::fs::read_to_string(scene.session.file().unwrap()).unwrap();
    let (stored, old, target) = (file(), leaf(&scene), said(&scene, "one"));
    let cancelled = NavigateOptions {
        instructions: Some("cancel".into()),
        ..SUMMARY
    };
    let refused = scene.session.navigate_tree(&target, cancelled).await;
    assert_eq!(refused.unwrap_err(), NavigateError::Cancelled);

    let (session, to) = (scene.session.clone(), target.clone());
    let going = tokio::spawn(async move { session.navigate_tree(&to, SUMMARY).await });
    requests(&scene, 3).await;
    assert!(!scene.session.is_idle() && !scene.session.is_running());
    scene.session.abort().await;
    assert_eq!(going.await.unwrap().unwrap_err(), NavigateError::Aborted);

    let failed = scene
        .session
        .navigate_tree(&target, SUMMARY)
        .await
        .unwrap_err();
    assert!(failed.to_string().contains("400: no"), "{failed}");
    let unknown = scene
        .session
        .navigate_tree(&"nowhere".into(), plain())
        .await;
    assert!(
        unknown
            .unwrap_err()
            .to_string()
            .contains("no entry nowhere")
    );
    assert_eq!((file(), leaf(&scene)), (stored, old));
    assert!(heard.told(&[]).is_empty());
    assert!(scene.session.is_idle());
}

/// Returns when the model was asked so often.
async fn requests(scene: &Scene, count: usize) {
    for _ in 0..5_000 {
        if scene.script.requests().len() == count {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    panic!("there are no {count} requests");
}

#[tokio::test]
async fn a_summary_that_fails_for_a_while_is_asked_for_again_and_says_what_for() {
    // R35, R41, invariant 36
    let half = json!({"content": [{"type": "text", "text": "Half"}], "stopReason": "length",
        "usage": {"input": 9, "totalTokens": 9}});
    let replies = [Reply::Fail("503 unavailable"), Reply::Answer(half)];
    let mut scene = talked(Plugin::new(), &Heard::default(), replies).await;
    scene.events();
    let target = said(&scene, "one");
    scene
        .session
        .navigate_tree(&target, SUMMARY)
        .await
        .unwrap_err();
    let mut told = Vec::new();
    while let Ok(event) = scene.events.try_recv() {
        told.push(serde_json::to_value(&*event).unwrap());
    }
    let kinds: Vec<&str> = told
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "summarization_retry_scheduled",
            "summarization_retry_attempt_start",
            "summarization_retry_finished",
            "entry_appended"
        ]
    );
    assert_eq!(
        (&told[1]["source"], &told[1]["reason"]),
        (&json!("branchSummary"), &Value::Null)
    );
    assert_eq!(told[3]["entry"]["kind"], "branch_summary");
    assert_eq!(told[3]["entry"]["usage"]["totalTokens"], 9);
}

#[tokio::test]
async fn nobody_moves_while_something_else_has_the_session() {
    // R38, R52, P7, stage 2 of §5.1
    let let_go = Arc::new(Notify::new());
    let replies = [
        Reply::When(Arc::clone(&let_go), "WHAT HAPPENED"),
        Reply::Hang("Run"),
    ];
    let scene = talked(Plugin::new(), &Heard::default(), replies).await;
    let target = said(&scene, "one");
    let (session, to) = (scene.session.clone(), target.clone());
    let going = tokio::spawn(async move { session.navigate_tree(&to, SUMMARY).await });
    requests(&scene, 3).await;
    let again = scene.session.navigate_tree(&target, plain()).await;
    assert_eq!(again.unwrap_err(), NavigateError::Busy);
    let refused = scene.session.prompt(Prompt::text("now"), |_| ()).await;
    assert_eq!(refused.unwrap_err(), PromptError::Navigating);
    let_go.notify_one();
    going.await.unwrap().unwrap();

    let session = scene.session.clone();
    let run = tokio::spawn(async move { session.prompt(Prompt::text("run"), |_| ()).await });
    requests(&scene, 4).await;
    let refused = scene.session.navigate_tree(&target, plain()).await;
    assert_eq!(refused.unwrap_err(), NavigateError::Busy);
    scene.session.abort().await;
    run.await.unwrap().unwrap();
    scene.session.navigate_tree(&target, plain()).await.unwrap();
}

#[tokio::test]
async fn nobody_moves_while_a_prompt_is_on_its_way() {
    // P7
    let (arrived, let_go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, wait) = (Arc::clone(&arrived), Arc::clone(&let_go));
    let plugin = Plugin::new().on_event("input", move |event, _| {
        let (tell, wait) = (Arc::clone(&tell), Arc::clone(&wait));
        async move {
            if event["text"] == "three" {
                tell.notify_one();
                wait.notified().await;
            }
            Ok::<_, Error>(Value::Null)
        }
    });
    let scene = talked(plugin, &Heard::default(), [Reply::Text("Answer three.")]).await;
    let target = said(&scene, "Answer one.");
    let session = scene.session.clone();
    let prompt = tokio::spawn(async move { session.prompt(Prompt::text("three"), |_| ()).await });
    arrived.notified().await;
    let refused = scene.session.navigate_tree(&target, plain()).await;
    assert_eq!(refused.unwrap_err(), NavigateError::Busy);
    let_go.notify_one();
    prompt.await.unwrap().unwrap();
    assert_eq!(last_request(&scene).last().unwrap(), "user:three");
    scene.session.navigate_tree(&target, plain()).await.unwrap();
}

#[tokio::test]
async fn an_edit_is_not_seen_from_before_it() {
    // Invariants 8 and 13, S35
    let replies = [
        Reply::Fail("503 unavailable"),
        Reply::Text("Answer three."),
        Reply::Text("Other."),
        Reply::Text("Again."),
    ];
    let scene = talked(Plugin::new(), &Heard::default(), replies).await;
    let before = scene.session.messages();
    scene.prompt("three").await;
    let three = leaf(&scene);
    let after = scene.session.messages();
    let target = said(&scene, "Answer two.");
    scene.session.navigate_tree(&target, plain()).await.unwrap();
    assert_eq!(scene.session.messages(), before);
    scene.prompt("other").await;
    let request = last_request(&scene);
    assert_eq!(request[4..], ["user:other"]);
    // What happened on another branch changes nothing on this one.
    let target = three.as_str().into();
    scene.session.navigate_tree(&target, plain()).await.unwrap();
    assert_eq!(scene.session.messages(), after);
    scene.prompt("four").await;
    assert_eq!(
        last_request(&scene)[4..],
        ["user:three", "assistant:Answer three.", "user:four"]
    );
}

#[tokio::test]
async fn what_a_plugin_says_meanwhile_stands_at_the_new_place() {
    // R40, P4, L31
    let plugin = Plugin::new().on_event("session_before_tree", |_, ctx| async move {
        let note = MessageDraft::text("note", "Said meanwhile.");
        let session = ctx.host().session();
        session
            .send_message(note, MessageOptions::default())
            .await?;
        Ok(Value::Null)
    });
    let more = [Reply::Text("WHAT HAPPENED"), Reply::Text("On we go.")];
    let scene = talked(plugin, &Heard::default(), more).await;
    let target = said(&scene, "Answer one.");
    scene.session.navigate_tree(&target, SUMMARY).await.unwrap();
    scene.prompt("on").await;
    let request = last_request(&scene);
    assert!(
        request[2].ends_with("WHAT HAPPENED</summary>"),
        "{request:?}"
    );
    assert_eq!(request[3..], ["user:Said meanwhile.", "user:on"]);
}

#[tokio::test]
async fn a_plugin_with_types_tells_of_the_entries_that_are_left() {
    // R39, extensions §3.1
    let heard = Heard::default();
    let plugin = Plugin::new()
        .on(|event: SessionBeforeTree, _| async move {
            let left = event.preparation.entries_to_summarize;
            let said = left.iter().filter_map(SessionEntry::message).count();
            let summary = SuppliedSummary {
                summary: format!("{said} messages were left"),
                ..SuppliedSummary::default()
            };
            Ok(TreeAnswer::from(summary))
        })
        .on(|event: SessionTree, ctx| async move {
            let entry = event.summary_entry.unwrap_or_default();
            ctx.host()
                .session()
                .set_name(entry.fields["summary"].as_str())
                .await
        });
    let scene = talked(plugin, &heard, []).await;
    let target = said(&scene, "Answer one.");
    scene.session.navigate_tree(&target, SUMMARY).await.unwrap();
    assert_eq!(
        scene.session.name().as_deref(),
        Some("2 messages were left")
    );
}

//! The boundaries of a run: what handlers of `turn_end` and `agent_before_settle` are shown, and what
//! becomes of what they propose.

use std::sync::{Arc, Mutex, OnceLock};

use pliant_kernel::pipeline::{Prompt, WhenActive};
use pliant_kernel::session::Session;
use pliant_sdk::hook::{BoundaryAnswer, EntryDraft, TurnEndEvent};
use pliant_sdk::{Error, Event, Plugin};
use serde_json::{Value, json};

use crate::support::*;

/// The events a handler was given.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<Value>>>);

impl Heard {
    fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A handler that answers from a list, then nothing.
fn answering(
    plugin: Plugin,
    event: &'static str,
    answers: impl IntoIterator<Item = Value>,
) -> (Plugin, Heard) {
    let heard = Heard::default();
    let answers: Vec<Value> = answers.into_iter().collect();
    let answers = Arc::new(Mutex::new(answers.into_iter()));
    let noted = heard.clone();
    let plugin = plugin.on_event(event, move |payload: Value, _| {
        noted.0.lock().unwrap().push(payload);
        let answer = answers.lock().unwrap().next();
        async move { Ok(answer.unwrap_or_default()) }
    });
    (plugin, heard)
}

fn note(text: &str) -> Value {
    json!({"type": "custom_message", "customType": "note", "content": text, "display": true})
}

fn stored(scene: &Scene) -> Vec<Value> {
    let file = std::fs::read_to_string(scene.session.file().unwrap()).unwrap();
    let lines = file.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.skip(1).collect()
}

fn stored_kinds(scene: &Scene) -> Vec<String> {
    let kind = |entry: &Value| match entry["message"]["role"].as_str() {
        Some(role) => role.to_owned(),
        None => entry["type"].as_str().unwrap().to_owned(),
    };
    let mut kinds: Vec<_> = stored(scene).iter().map(kind).collect();
    kinds.retain(|kind| !matches!(&**kind, "model_change" | "thinking_level_change" | "system"));
    kinds
}

fn ids_of(entries: &[Value], role: &str) -> Vec<Value> {
    let of = |entry: &&Value| entry["message"]["role"] == role;
    entries
        .iter()
        .filter(of)
        .map(|entry| entry["id"].clone())
        .collect()
}

/// Failures that were told, as event and text.
fn failures(scene: &mut Scene) -> Vec<(String, String)> {
    let mut failures = Vec::new();
    while let Ok(event) = scene.events.try_recv() {
        if let Event::ExtensionError { event, error, .. } = &*event {
            failures.push((event.clone(), error.clone()));
        }
    }
    failures
}

#[tokio::test]
async fn a_turn_ends_with_a_boundary_that_knows_the_turn_and_the_conversation() {
    // R47, R49, extensions §3.2: turn_start and turn_end
    let (plugin, ended) = answering(Plugin::new().tool(echo("echo")), "turn_end", []);
    let (plugin, begun) = answering(plugin, "turn_start", []);
    let replies = [
        calls([
            ("a", "echo", json!({"text": "A"})),
            ("b", "echo", json!({"text": "B"})),
        ]),
        Reply::Text("done"),
        Reply::Text("again"),
    ];
    let scene = scene(Script::new(replies), plugin).await;
    scene.prompt("go").await;
    let first = ended.take();
    scene.prompt("more").await;
    let entries = stored(&scene);
    let (answers, results) = (
        ids_of(&entries, "assistant"),
        ids_of(&entries, "toolResult"),
    );

    let [calls, done] = &first[..] else {
        panic!("two turns: {first:?}")
    };
    assert_eq!(
        (&calls["turnIndex"], &done["turnIndex"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(calls["messageEntryId"], answers[0]);
    assert_eq!(calls["toolResultEntryIds"], json!(results));
    assert_eq!(calls["toolResults"][1]["content"][0]["text"], "B");
    assert_eq!(done["message"]["content"][0]["text"], "done");
    assert_eq!(
        (&done["messageEntryId"], &done["toolResultEntryIds"]),
        (&answers[1], &json!([]))
    );
    assert_eq!(
        (&done["outcome"], &done["entries"], &done["continue"]),
        (&json!("completed"), &json!([]), &json!(false))
    );
    // The results are stored by now, so they are part of what is shown.
    let context = &calls["context"];
    let roles = |list: &Value| -> Vec<String> {
        let role = |message: &Value| message["role"].as_str().unwrap().to_owned();
        list.as_array().unwrap().iter().map(role).collect()
    };
    let expected = ["system", "user", "assistant", "toolResult", "toolResult"];
    assert_eq!(roles(&context["contextMessages"]), expected);
    assert_eq!(roles(&context["llmMessages"]), expected);
    let last = context["contextEntries"].as_array().unwrap().last();
    assert_eq!(last.unwrap()["id"], results[1]);
    assert_eq!(
        (&context["canContinue"], &done["context"]["canContinue"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(context["pendingMessages"], json!([]));
    // Each low-level run counts anew.
    assert_eq!(ended.take()[0]["turnIndex"], 0);
    let begun: Vec<_> = begun
        .take()
        .iter()
        .map(|event| event["turnIndex"].clone())
        .collect();
    assert_eq!(begun, [0, 1, 0]);
}

#[tokio::test]
async fn handlers_of_a_boundary_chain_and_what_they_agree_on_is_stored_and_answered_once() {
    // R47, R48, L18, L32, extensions §3.2
    let mine = json!({"type": "custom", "customType": "mark", "data": {"n": 1}});
    let first = json!({"entries": [mine], "continue": true});
    let (plugin, _) = answering(Plugin::new(), "turn_end", [first]);
    // It keeps the flag by leaving it out, and has to repeat what it wants to keep.
    let both = json!({"entries": [mine, note("think again")]});
    let (plugin, second) = answering(plugin, "turn_end", [both]);
    let (plugin, third) = answering(plugin, "turn_end", []);
    let replies = [Reply::Text("one"), Reply::Text("two"), Reply::Text("never")];
    let mut scene = scene(Script::new(replies), plugin).await;
    scene.prompt("go").await;

    let seen = &second.take()[0];
    assert_eq!(
        (&seen["entries"], &seen["continue"]),
        (&json!([mine]), &json!(true))
    );
    assert_eq!(seen["context"]["canContinue"], false);
    let seen = &third.take()[0];
    let preview = seen["context"]["contextMessages"].as_array().unwrap();
    assert_eq!(preview.last().unwrap()["content"], "think again");
    let sent = seen["context"]["llmMessages"].as_array().unwrap();
    assert_eq!(sent.last().unwrap()["role"], "user");
    assert_eq!(seen["context"]["canContinue"], true);

    assert_eq!(
        scene.script.requests()[1..],
        [["system", "user:go", "assistant:one", "user:think again"]]
    );
    assert_eq!(
        stored_kinds(&scene),
        ["user", "assistant", "custom", "custom_message", "assistant"]
    );
    let events = scene.events();
    let at = |word: &str| events.iter().position(|event| event == word).unwrap();
    assert_eq!(
        events
            .iter()
            .filter(|event| *event == "entry_appended")
            .count(),
        2
    );
    assert!(at("entry_appended") < at("turn_end"), "{events:?}");
}

#[tokio::test]
async fn a_handler_that_does_not_need_the_conversation_is_not_sent_it() {
    // Issue: the time of a turn does not grow with the conversation
    let plugin = Plugin::new().on(|event: TurnEndEvent, _| async move {
        assert_eq!((event.turn_index, &*event.outcome), (0, "completed"));
        assert!(
            event.message.unwrap().as_assistant().is_some() && event.message_entry_id.is_some()
        );
        let mark = EntryDraft::Custom {
            custom_type: "mark".into(),
            data: None,
        };
        Ok(BoundaryAnswer::add(event.entries, mark))
    });
    let (plugin, full) = answering(plugin, "turn_end", []);
    let scene = scene(Script::new([Reply::Text("one")]), plugin).await;
    scene.prompt("go").await;
    // The next one, which does, sees what the first proposed.
    let entries = full.take()[0]["context"]["contextEntries"].clone();
    assert_eq!(
        entries.as_array().unwrap().last().unwrap()["customType"],
        "mark"
    );
    assert_eq!(stored_kinds(&scene), ["user", "assistant", "custom"]);
}

#[tokio::test]
async fn a_last_proposal_that_cannot_be_stored_is_none_and_a_later_handler_can_mend_it() {
    // R47, extensions §9.8
    let lost = json!({"type": "context_edit", "targetId": "nowhere", "replacement": null});
    let bad = json!({"entries": [note("a"), lost], "continue": true});
    let (plugin, _) = answering(Plugin::new(), "turn_end", [bad.clone(), bad]);
    let (plugin, second) = answering(
        plugin,
        "turn_end",
        [Value::Null, json!({"entries": [note("b")]})],
    );
    let replies = [Reply::Text("one"), Reply::Text("two"), Reply::Text("three")];
    let mut scene = scene(Script::new(replies), plugin).await;
    scene.prompt("go").await;
    assert_eq!(stored_kinds(&scene), ["user", "assistant"]);
    let told = failures(&mut scene);
    let [(event, why)] = &told[..] else {
        panic!("one failure: {told:?}")
    };
    assert!(event == "turn_end" && why.contains("nowhere"), "{told:?}");
    // What the second handler is shown is the last proposal that could be stored.
    let seen = &second.take()[0];
    assert_eq!(seen["entries"].as_array().unwrap().len(), 2);
    assert_eq!(
        seen["context"]["contextMessages"].as_array().unwrap().len(),
        3
    );

    scene.prompt("again").await;
    assert_eq!(
        stored_kinds(&scene)[2..],
        ["user", "assistant", "custom_message", "assistant"]
    );
    assert_eq!(scene.script.requests()[2].last().unwrap(), "user:b");
}

#[tokio::test]
async fn answers_that_are_no_proposals_are_told_and_change_nothing() {
    // R47, extensions §1.3, §3.2
    let no_kept = json!({"type": "compaction", "summary": "s", "firstKeptEntryId": "nowhere"});
    for answer in [
        json!({"entries": {}}),
        json!({"continue": "yes"}),
        json!("continue"),
        json!({"entries": [{"type": "message"}]}),
        json!({"entries": [{"type": "custom"}]}),
        json!({"entries": [{"type": "context_edit", "targetId": "x"}]}),
        json!({"entries": [{"type": "compaction", "summary": "s"}]}),
        json!({"entries": [{"type": "custom_message", "customType": "c", "content": 3, "display": true}]}),
        json!({"entries": [no_kept]}),
    ] {
        let (plugin, _) = answering(Plugin::new(), "turn_end", [answer.clone()]);
        let mut scene = scene(Script::new([Reply::Text("one")]), plugin).await;
        scene.prompt("go").await;
        assert_eq!(failures(&mut scene).len(), 1, "{answer}");
        assert_eq!(stored_kinds(&scene), ["user", "assistant"], "{answer}");
    }
}

#[tokio::test]
async fn a_boundary_continues_only_if_there_is_something_to_answer() {
    // R48
    for event in ["turn_end", "agent_before_settle"] {
        let (plugin, _) = answering(Plugin::new(), event, [json!({"continue": true})]);
        let mut scene = scene(
            Script::new([Reply::Text("one"), Reply::Text("never")]),
            plugin,
        )
        .await;
        scene.prompt("go").await;
        assert_eq!(scene.script.requests().len(), 1);
        let told = failures(&mut scene);
        assert!(
            told.len() == 1 && told[0].1.contains("ends with an answer"),
            "{told:?}"
        );
    }
}

#[tokio::test]
async fn a_wish_to_continue_after_a_failed_answer_is_passed_by_and_its_entries_are_stored() {
    // R48, L16, extensions §3.2, §9.7
    let wish = json!({"entries": [note("noted")], "continue": true});
    let (plugin, heard) = answering(Plugin::new(), "turn_end", [wish]);
    let (plugin, settling) = answering(plugin, "agent_before_settle", []);
    let mut scene = scene(Script::new([Reply::Fail("401: no")]), plugin).await;
    scene.prompt("go").await;
    assert_eq!(heard.take()[0]["outcome"], "error");
    assert_eq!(settling.take()[0]["outcome"], "error");
    assert_eq!(
        stored_kinds(&scene),
        ["user", "assistant", "custom_message"]
    );
    assert_eq!(scene.script.requests().len(), 1);
    assert_eq!(failures(&mut scene), []);
}

#[tokio::test]
async fn edits_and_compactions_of_a_boundary_count_from_the_next_request_on() {
    // R14, R47, S26, S33, S34
    let scene = {
        let plugin = Plugin::new().tool(echo("echo")).on_event("turn_end", |event: Value, _| async move {
            if event["turnIndex"] != 0 {
                return Ok(Value::Null);
            }
            let edit = json!({"type": "context_edit", "targetId": event["toolResultEntryIds"][0],
                "replacement": {"content": "short"}});
            Ok(json!({"entries": [edit]}))
        });
        let compacts = json!({"entries": [{"type": "compaction", "summary": "ALL", "firstKeptEntryId": null}]});
        let (plugin, _) = answering(plugin, "agent_before_settle", [compacts]);
        let replies = [
            calls([("a", "echo", json!({"text": "long"}))]),
            Reply::Text("done"),
            Reply::Text("next"),
        ];
        scene(Script::new(replies), plugin).await
    };
    scene.prompt("go").await;
    assert_eq!(scene.script.requests()[1].last().unwrap(), "result:short");
    scene.prompt("more").await;
    let request = &scene.script.requests()[2];
    assert!(
        request[0] == "system" && request[1].contains("<summary>\nALL\n"),
        "{request:?}"
    );
    assert_eq!(request[2..], ["user:more"]);
    let entries = stored(&scene);
    let compaction = entries
        .iter()
        .find(|entry| entry["type"] == "compaction")
        .unwrap();
    assert_eq!(
        (&compaction["fromHook"], &compaction["firstKeptEntryId"]),
        (&json!(true), &compaction["id"])
    );
    assert!(compaction["tokensBefore"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn a_handler_that_never_stops_continuing_is_stopped() {
    // extensions §3.2: extensions.maxContinuations
    for event in ["turn_end", "agent_before_settle"] {
        let wish = json!({"entries": [note("more")], "continue": true});
        let (plugin, _) = answering(Plugin::new(), event, vec![wish; 9]);
        let replies = ["1", "2", "3", "4", "5", "6"].map(Reply::Text);
        let settings = json!({"extensions": {"maxContinuations": 2}});
        let mut scene = scene_with(Script::new(replies), plugin, settings).await;
        scene.prompt("go").await;
        assert_eq!(scene.script.requests().len(), 3, "{event}");
        let told = failures(&mut scene);
        assert!(
            told.len() == 1 && told[0].1.contains("maxContinuations"),
            "{told:?}"
        );
        // The next run has its own.
        scene.prompt("again").await;
        assert_eq!(scene.script.requests().len(), 6, "{event}");
    }
}

#[tokio::test]
async fn nothing_is_settled_before_everybody_had_a_chance_to_continue() {
    // R50, R3, L18
    let wish = json!({"entries": [note("one more thing")], "continue": true});
    let (plugin, heard) = answering(Plugin::new(), "agent_before_settle", [wish]);
    let mut scene = scene(
        Script::new([Reply::Text("one"), Reply::Text("two")]),
        plugin,
    )
    .await;
    scene.prompt("go").await;
    let heard = heard.take();
    assert_eq!(heard.len(), 2);
    assert_eq!(
        (&heard[0]["outcome"], &heard[0]["type"]),
        (&json!("completed"), &json!("agent_before_settle"))
    );
    assert_eq!(
        scene.script.requests()[1].last().unwrap(),
        "user:one more thing"
    );
    let mut events = scene.events();
    events.retain(|event| event.starts_with("agent_") || event == "entry_appended");
    assert_eq!(
        events,
        [
            "agent_start",
            "agent_end",
            "entry_appended",
            "agent_start",
            "agent_end",
            "agent_settled"
        ]
    );
}

#[tokio::test]
async fn an_abort_during_the_last_boundary_keeps_its_entries_and_asks_for_nothing() {
    // R50, R51
    let wish = json!({"entries": [note("kept")], "continue": true});
    let (plugin, _) = answering(Plugin::new(), "agent_before_settle", [wish]);
    let plugin = plugin.on_event("agent_before_settle", |_: Value, ctx| async move {
        ctx.host().session().abort().await?;
        Ok(Value::Null)
    });
    let (plugin, settled) = answering(plugin, "agent_settled", []);
    let scene = scene(
        Script::new([Reply::Text("one"), Reply::Text("never")]),
        plugin,
    )
    .await;
    scene.prompt("go").await;
    assert_eq!(
        stored_kinds(&scene),
        ["user", "assistant", "custom_message"]
    );
    assert_eq!(scene.script.requests().len(), 1);
    assert_eq!(settled.take()[0]["aborted"], true);
    assert!(scene.session.is_idle());
}

#[tokio::test]
async fn a_run_that_was_aborted_is_not_asked_for_more() {
    // R50, R1
    let (plugin, settling) = answering(Plugin::new(), "agent_before_settle", []);
    let (plugin, ended) = answering(plugin, "turn_end", [json!({"continue": true})]);
    let mut scene = scene(Script::new([Reply::Hang("half")]), plugin).await;
    let session = scene.session.clone();
    let (_, ()) = tokio::join!(scene.prompt("go"), async {
        while scene.script.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        session.abort().await;
    });
    assert_eq!(ended.take()[0]["outcome"], "aborted");
    assert_eq!(settling.take().len(), 0);
    assert_eq!(failures(&mut scene), []);
}

/// A plugin that queues texts from `event`, the first time it hears it.
fn queueing(
    event: &'static str,
    texts: &'static [&'static str],
) -> (Plugin, Arc<OnceLock<Session>>) {
    let slot = Arc::new(OnceLock::<Session>::new());
    let (session, once) = (Arc::clone(&slot), Arc::new(OnceLock::new()));
    let plugin = Plugin::new().on_event(event, move |_: Value, _| {
        let (session, once) = (Arc::clone(&session), Arc::clone(&once));
        async move {
            if once.set(()).is_ok() {
                for text in texts {
                    let prompt = Prompt {
                        when_active: Some(WhenActive::Steer),
                        ..Prompt::text(*text)
                    };
                    let queued = session.get().unwrap().prompt(prompt, |_| ()).await;
                    queued.map_err(|error| Error::failed(error.to_string()))?;
                }
            }
            Ok(Value::Null)
        }
    });
    (plugin, slot)
}

#[tokio::test]
async fn what_is_queued_when_a_run_has_ended_is_answered_batch_by_batch_before_it_settles() {
    // §6.2 step 6, R50, L3, L8, invariant 26
    for event in ["agent_end", "agent_before_settle"] {
        let (plugin, slot) = queueing(event, &["S1", "S2"]);
        let replies = ["1", "2", "3"].map(Reply::Text);
        let mut scene = scene(Script::new(replies), plugin).await;
        slot.set(scene.session.clone()).unwrap();
        scene.prompt("go").await;
        let last: Vec<_> = scene
            .script
            .requests()
            .iter()
            .map(|r| r.last().unwrap().clone())
            .collect();
        assert_eq!(last, ["user:go", "user:S1", "user:S2"], "{event}");
        let mut events = scene.events();
        events.retain(|event| event.starts_with("agent_"));
        assert_eq!(
            events,
            [
                "agent_start",
                "agent_end",
                "agent_start",
                "agent_end",
                "agent_settled"
            ],
            "{event}"
        );
    }
}

#[tokio::test]
async fn what_waits_in_a_queue_is_shown_at_the_boundary_and_no_wish_is_needed_for_it() {
    // R48, L12
    let (plugin, slot) = queueing("message_start", &["S1", "S2"]);
    let (plugin, heard) = answering(plugin, "turn_end", [json!({"continue": true})]);
    let replies = ["1", "2", "3"].map(Reply::Text);
    let mut scene = scene(Script::new(replies), plugin).await;
    slot.set(scene.session.clone()).unwrap();
    scene.prompt("go").await;
    let heard = heard.take();
    // The first was taken together with the prompt.
    let pending: Vec<_> = heard
        .iter()
        .map(|event| event["context"]["pendingMessages"].clone())
        .collect();
    assert_eq!(pending[0][0]["content"][0]["text"], "S2");
    assert_eq!(pending[1], json!([]));
    assert_eq!(heard[0]["context"]["canContinue"], true);
    assert_eq!(scene.script.requests().len(), 2);
    assert_eq!(failures(&mut scene), []);
}

#[tokio::test]
async fn an_attempt_whose_question_is_left_out_is_not_made() {
    // L3, R7, invariant 20: a request never ends with an answer
    let plugin = Plugin::new().on_event("turn_end", |event: Value, _| async move {
        if event["outcome"] != "error" {
            return Ok(Value::Null);
        }
        let entries = event["context"]["contextEntries"].as_array().cloned();
        let asked = entries.unwrap_or_default().into_iter().rev();
        let mut asked = asked.filter(|entry| entry["message"]["role"] == "user");
        let id = asked.next().unwrap()["id"].clone();
        Ok(json!({"entries": [{"type": "context_edit", "targetId": id, "replacement": null}]}))
    });
    let replies = [Reply::Text("one"), Reply::Fail("503"), Reply::Text("never")];
    let mut scene = scene(Script::new(replies), plugin).await;
    scene.prompt("go").await;
    scene.events();
    scene.prompt("again").await;
    assert_eq!(scene.script.requests().len(), 2);
    let mut events = scene.events();
    events.retain(|event| event.starts_with("a"));
    assert_eq!(
        events,
        [
            "agent_start",
            "agent_end willRetry",
            "auto_retry_start 1/3",
            "auto_retry_end false 1 Some(\"503\")",
            "agent_settled"
        ]
    );
}

//! Turns and their ends, as a whole session has them: what stops one, what is stored when, and what an
//! abort leaves. Rules of `kernel.md` §3 and §6.11 are named at each test.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use pliant_kernel::pipeline::{Prompt, PromptError};
use pliant_kernel::registry::{InProcess, Rank, Source};
use pliant_kernel::session::{BashOptions, Disposition, Session};
use pliant_kernel::{Kernel, KernelOptions};
use pliant_sdk::hook::{ToolCallAnswer, ToolCallEvent};
use pliant_sdk::message::{Message, MessageContent, StopReason, joined_text};
use pliant_sdk::session::{MessageDraft, MessageOptions};
use pliant_sdk::tool::ExecutionMode;
use pliant_sdk::{Event, Plugin, StreamEvent};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::*;

/// A place for the session, for handlers that are made before it is.
#[derive(Clone, Default)]
struct Slot(Arc<OnceLock<Session>>);

impl Slot {
    fn fill(&self, session: &Session) {
        assert!(self.0.set(session.clone()).is_ok());
    }

    fn session(&self) -> &Session {
        self.0.get().unwrap()
    }
}

fn stop_reason(message: &Message) -> StopReason {
    message.as_assistant().unwrap().stop_reason
}

/// Checks the nesting of a session's events, in words (L23, L32).
fn assert_nested(events: &[String]) {
    let (mut run, mut turn, mut message, mut settled) = (false, false, None, false);
    for event in events {
        let (kind, rest) = event.split_once(' ').unwrap_or((event, ""));
        match kind {
            "agent_start" => assert!(!std::mem::replace(&mut run, true), "{events:?}"),
            "agent_end" => assert!(!turn && std::mem::take(&mut run), "{events:?}"),
            "turn_start" => assert!(run && !std::mem::replace(&mut turn, true), "{events:?}"),
            "turn_end" => assert!(message.is_none() && std::mem::take(&mut turn), "{events:?}"),
            "message_start" => {
                assert!(turn && message.replace(rest).is_none(), "{events:?}");
            }
            "message_end" => assert_eq!(message.take(), Some(rest), "{events:?}"),
            "agent_settled" => {
                assert!(!run && !std::mem::replace(&mut settled, true), "{events:?}");
            }
            _ => {}
        }
    }
    assert!(settled, "{events:?}");
}

#[tokio::test]
async fn every_end_of_a_turn_nests() {
    // L23, L32, invariants 15 and 18
    let replies = [
        calls([
            ("a", "echo", json!({"text": "A"})),
            ("b", "none", json!({})),
        ]),
        Reply::Fail("503"),
        Reply::Text("done"),
        Reply::Fail("401"),
        Reply::Answer(json!({"stopReason": "deferred"})),
    ];
    let mut scene = scene(Script::new(replies), Plugin::new().tool(echo("echo"))).await;
    let mut told = 0;
    for _ in 0..3 {
        scene.prompt("go").await;
        let events = scene.events();
        assert_nested(&events);
        told += events
            .iter()
            .filter(|event| event.starts_with("message_end"))
            .count();
    }
    let file = std::fs::read_to_string(scene.session.file().unwrap()).unwrap();
    let stored = file
        .lines()
        .filter(|line| line.contains(r#""type":"message""#))
        .count();
    assert_eq!(told, stored);
}

#[tokio::test]
async fn an_answer_that_comes_later_or_stops_for_an_unknown_reason_ends_its_turn_like_any_other() {
    // M5, L14
    for (reason, stored) in [
        ("deferred", "deferred"),
        ("on_holiday", "stop"),
        ("pending", "error"),
    ] {
        let content = json!([{"type": "text", "text": "so far"}]);
        let reply = Reply::Answer(json!({"content": content, "stopReason": reason}));
        let mut scene = scene(Script::new([reply, Reply::Text("never")]), Plugin::new()).await;
        let end = scene.prompt("go").await;
        assert_eq!(stop_reason(&end.last.unwrap()).as_str(), stored);
        assert_eq!(scene.script.requests().len(), 1, "{reason}");
        assert_nested(&scene.events());
    }
}

#[tokio::test]
async fn calls_are_run_because_they_are_there_and_not_because_of_the_stop_reason() {
    // L14
    let call = json!({"type": "toolCall", "id": "a", "name": "echo", "arguments": {"text": "ran"}});
    let replies = [
        Reply::Answer(json!({"content": [call], "stopReason": "stop"})),
        Reply::Text("done"),
    ];
    let scene = scene(Script::new(replies), Plugin::new().tool(echo("echo"))).await;
    scene.prompt("go").await;
    assert_eq!(result_texts(&scene.session), [("ran".to_owned(), false)]);
}

#[tokio::test]
async fn calls_of_an_answer_that_was_cut_off_are_not_run_and_the_model_is_told() {
    // L15
    let tool = echo("echo");
    let ran = Arc::clone(&tool.ran);
    let call =
        |id| json!({"type": "toolCall", "id": id, "name": "echo", "arguments": {"text": "x"}});
    let cut = json!({"content": [call("a"), call("b")], "stopReason": "length",
        "usage": {"input": 5, "output": 900_000, "totalTokens": 6}});
    let script = Script::new([Reply::Answer(cut), Reply::Text("shorter")]);
    let mut scene = scene(script, Plugin::new().tool(tool)).await;
    scene.prompt("go").await;
    assert_eq!(ran.load(std::sync::atomic::Ordering::SeqCst), 0);
    let results = result_texts(&scene.session);
    assert!(
        results.len() == 2
            && results
                .iter()
                .all(|(text, failed)| *failed && text.contains("output limit"))
    );
    let mut events = scene.events();
    events.retain(|event| event.contains("tool_execution") || event.contains("toolResult"));
    // Call by call.
    assert_eq!(
        events,
        [
            "tool_execution_start a",
            "tool_execution_end a",
            "message_start toolResult",
            "message_end toolResult",
            "tool_execution_start b",
            "tool_execution_end b",
            "message_start toolResult",
            "message_end toolResult",
        ]
    );
    assert_eq!(scene.script.requests().len(), 2);
}

#[tokio::test]
async fn an_answer_that_never_began_to_stream_is_announced_when_it_is_whole() {
    // L22, L23
    let mut scene = scene(Script::new([Reply::Answer(json!({}))]), Plugin::new()).await;
    scene.prompt("go").await;
    let mut started = Vec::new();
    while let Ok(event) = scene.events.try_recv() {
        assert!(!matches!(&*event, Event::MessageUpdate { .. }));
        if let Event::MessageStart { message } = &*event
            && message.as_assistant().is_some()
        {
            started.push(stop_reason(message));
        }
    }
    assert_eq!(started, [StopReason::Stop]);
}

#[tokio::test]
async fn steering_waits_for_the_calls_of_the_turn_and_stops_none_of_them() {
    // L10, invariant 24
    let tool = Echo {
        mode: ExecutionMode::Sequential,
        ..echo("echo")
    };
    let running = Arc::clone(&tool.running);
    let replies = [
        calls([
            ("a", "echo", json!({"text": "A", "wait": 20})),
            ("b", "echo", json!({"text": "B"})),
        ]),
        Reply::Text("done"),
    ];
    let scene = scene(Script::new(replies), Plugin::new().tool(tool)).await;
    let session = scene.session.clone();
    tokio::join!(scene.prompt("go"), async {
        running.notified().await;
        session.steer("wait", Vec::new()).await.unwrap();
    });
    assert_eq!(
        scene.script.requests()[1][2..],
        ["assistant:", "result:A", "result:B", "user:wait"]
    );
}

#[tokio::test]
async fn an_abort_during_calls_ends_in_an_empty_answer_after_a_result_for_every_call() {
    // L28, measured; L27, T8
    let tool = Echo {
        mode: ExecutionMode::Sequential,
        ..echo("echo")
    };
    let running = Arc::clone(&tool.running);
    let two = calls([
        ("a", "echo", json!({"text": "A", "wait": 60_000})),
        ("b", "echo", json!({"text": "B"})),
    ]);
    let mut scene = scene(Script::new([two]), Plugin::new().tool(tool)).await;
    let session = scene.session.clone();
    let (end, ()) = tokio::join!(scene.prompt("go"), async {
        running.notified().await;
        session.abort().await;
        // Twice is as good as once.
        session.abort().await;
    });
    let last = end.last.unwrap();
    let answer = last.as_assistant().unwrap();
    assert_eq!(
        (answer.stop_reason, joined_text(&answer.content, "")),
        (StopReason::Aborted, String::new())
    );
    let results = result_texts(&scene.session);
    assert!(
        results
            .iter()
            .all(|(text, failed)| *failed && text.contains("Operation aborted"))
    );
    let events = scene.events();
    let from = events
        .iter()
        .position(|event| event == "tool_execution_end a")
        .unwrap();
    assert_eq!(
        events[from..],
        [
            "tool_execution_end a",
            "message_start toolResult",
            "message_end toolResult",
            "tool_execution_start b",
            "tool_execution_end b",
            "message_start toolResult",
            "message_end toolResult",
            "turn_end",
            "turn_start",
            "message_start assistant",
            "message_end assistant",
            "turn_end",
            "agent_end",
            "agent_settled"
        ]
    );
    assert_eq!(scene.script.requests().len(), 1);
}

#[tokio::test]
async fn an_abort_while_a_run_is_prepared_lets_it_ask_nothing() {
    // L29, measured: no provider is called
    let slot = Slot::default();
    let mut scene = scene(Script::new([Reply::Text("never")]), Plugin::new()).await;
    slot.fill(&scene.session);
    let told = slot.clone();
    let accepted = move |disposition| {
        assert_eq!(disposition, Disposition::Started);
        told.session().cancel();
    };
    let end = scene
        .session
        .prompt(Prompt::text("go"), accepted)
        .await
        .unwrap();
    assert_eq!(stop_reason(&end.last.unwrap()), StopReason::Aborted);
    assert_eq!(scene.script.requests().len(), 0);
    let events = scene.events();
    assert_nested(&events);
    assert_eq!(events[..2], ["agent_start", "turn_start"]);
    assert!(events.contains(&"message_end user".to_owned()));
}

#[tokio::test]
async fn a_subscriber_that_does_not_read_holds_the_run_and_loses_nothing() {
    // L5: the run is active until everybody has heard of its end
    let long: &str = "word ".repeat(400).leak();
    let mut scene = scene(Script::new([Reply::Text(long)]), Plugin::new()).await;
    let mut quick = scene.session.subscribe();
    let session = scene.session.clone();
    let run =
        tokio::spawn(async move { session.prompt(Prompt::text("go"), |_| ()).await.map(drop) });
    let mut heard = 0;
    // The other one does not hear more than the first, which was there before it, can take.
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
        while quick.try_recv().is_ok() {
            heard += 1;
        }
    }
    assert!((1..400).contains(&heard) && scene.session.is_running() && !run.is_finished());
    let reads = tokio::spawn(async move {
        while let Some(event) = quick.recv().await {
            if matches!(&*event, Event::AgentSettled { .. }) {
                break;
            }
        }
    });
    let mut text = String::new();
    loop {
        match &*scene.events.recv().await.unwrap() {
            Event::MessageUpdate {
                assistant_message_event: StreamEvent::TextDelta { delta, .. },
                ..
            } => text.push_str(delta),
            Event::AgentSettled { .. } => break,
            _ => {}
        }
    }
    assert_eq!(text, long);
    run.await.unwrap().unwrap();
    reads.await.unwrap();
}

#[tokio::test]
async fn a_gate_sees_the_answer_stored_and_subscribers_hear_of_stored_messages_only() {
    // L6, L30, L31, interfaces §7 (9)
    let slot = Slot::default();
    let (gate, replaced) = (slot.clone(), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&replaced);
    let plugin = Plugin::new()
        .tool(echo("echo"))
        .on_event("message_end", |event: Value, _| async move {
            let mut message = event["message"].clone();
            if message["role"] != "assistant" {
                return Ok(Value::Null);
            }
            message["responseId"] = json!("replaced");
            Ok(json!({ "message": message }))
        })
        .on(move |call: ToolCallEvent, _| {
            let messages = gate.session().messages();
            let last = messages.last().unwrap().as_assistant().unwrap();
            assert!(
                last.tool_calls()
                    .any(|stored| stored.id == call.tool_call_id)
            );
            seen.lock().unwrap().push(last.response_id.clone());
            async { Ok(ToolCallAnswer::default()) }
        });
    let replies = [
        calls([("a", "echo", json!({"text": "A"}))]),
        Reply::Text("done"),
    ];
    let mut scene = scene(Script::new(replies), plugin).await;
    slot.fill(&scene.session);
    let session = scene.session.clone();
    let run =
        tokio::spawn(async move { session.prompt(Prompt::text("go"), |_| ()).await.map(drop) });
    loop {
        let event = scene.events.recv().await.unwrap();
        match &*event {
            Event::MessageEnd { message } => {
                let stored = scene.session.messages();
                assert!(stored.iter().any(|stored| Arc::ptr_eq(stored, message)));
            }
            Event::AgentSettled { .. } => break,
            _ => {}
        }
    }
    run.await.unwrap().unwrap();
    assert_eq!(*replaced.lock().unwrap(), [Some("replaced".to_owned())]);
}

#[tokio::test]
async fn handlers_that_come_during_a_run_hear_the_rest_of_it() {
    // L33, G10
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("agent");
    let kernel = Kernel::boot(KernelOptions::new(dir.path().to_path_buf(), home)).unwrap();
    let replies = [
        calls([("a", "echo", json!({"text": "A"}))]),
        Reply::Text("done"),
    ];
    let script = Script::new(replies);
    let wire = Plugin::new()
        .wire(ScriptedWire(script))
        .provider(ScriptedProvider);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listening = |generation: u32| {
        let heard = Arc::clone(&heard);
        Plugin::new()
            .tool(echo("echo"))
            .on_event("turn_end", move |event: Value, _| {
                heard
                    .lock()
                    .unwrap()
                    .push((generation, event["turnIndex"].clone()));
                async { Ok(Value::Null) }
            })
    };
    let as_source = |name: &str, plugin| {
        Arc::new(InProcess::new(Source::inline(name, Rank::User), plugin).unwrap())
    };
    let registry = Arc::clone(kernel.registry());
    let second = Mutex::new(Some(as_source("extension", listening(2))));
    let first = listening(1).on_event("turn_end", move |_: Value, _| {
        if let Some(second) = second.lock().unwrap().take() {
            registry.publish(second);
        }
        async { Ok(Value::Null) }
    });
    kernel.registry().publish(as_source("fake", wire));
    kernel.registry().publish(as_source("extension", first));
    let session = open_session(&kernel).await;
    session.prompt(Prompt::text("go"), |_| ()).await.unwrap();
    assert_eq!(*heard.lock().unwrap(), [(1, json!(0)), (2, json!(1))]);
}

#[tokio::test]
async fn a_held_message_can_be_continued_with() {
    // R48, R42 path 6
    let plugin = Plugin::new().on_event("turn_end", |event: Value, ctx| async move {
        if event["turnIndex"] != 0 {
            return Ok(Value::Null);
        }
        let note = MessageDraft {
            custom_type: "note".into(),
            content: MessageContent::Text("look again".into()),
            display: true,
            ..MessageDraft::default()
        };
        let options = MessageOptions {
            trigger_turn: Some(false),
            ..MessageOptions::default()
        };
        ctx.host().session().send_message(note, options).await?;
        Ok(json!({"continue": true}))
    });
    let replies = [Reply::Text("one"), Reply::Text("two"), Reply::Text("never")];
    let mut scene = scene(Script::new(replies), plugin).await;
    scene.prompt("go").await;
    assert_eq!(scene.script.requests().len(), 2);
    assert_eq!(
        scene.script.requests()[1].last().unwrap(),
        "user:look again"
    );
    assert!(
        !scene
            .events()
            .iter()
            .any(|event| event.starts_with("extension_error"))
    );
}

#[tokio::test]
async fn a_session_is_idle_when_nothing_has_it_and_waiting_for_that_is_over_at_once() {
    // R52, L2
    let let_go = Arc::new(Notify::new());
    let script = Script::new([Reply::When(Arc::clone(&let_go), "done")]);
    let scene = scene(script, Plugin::new()).await;
    let session = scene.session.clone();
    assert!(session.is_idle());
    session.wait_idle().await;
    tokio::join!(scene.prompt("go"), async {
        while scene.script.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        assert!(session.is_running() && !session.is_idle());
        let refused = session.prompt(Prompt::text("me too"), |_| ()).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused, PromptError::Busy);
        let text = refused.to_string().to_lowercase();
        assert!(text.contains("steer") && text.contains("follow"), "{text}");
        let_go.notify_one();
        session.wait_idle().await;
        assert!(session.is_idle());
    });
}

#[tokio::test]
async fn closing_ends_everything_and_never_fails() {
    // R54, invariant 27
    let scene = scene(Script::new([Reply::Hang("half")]), Plugin::new()).await;
    let session = scene.session.clone();
    let mark = scene.dir.path().join("mark");
    let command = format!("echo begun; sleep 600; touch {}", mark.display());
    let mut events = session.subscribe();
    let (end, ran, ()) = tokio::join!(
        scene.prompt("go"),
        session.execute_bash(&command, BashOptions::default()),
        async {
            let mut begun = 0;
            while begun < 2 {
                match &*events.recv().await.unwrap() {
                    Event::BashExecutionUpdate { .. } | Event::MessageUpdate { .. } => begun += 1,
                    _ => {}
                }
            }
            tokio::time::timeout(Duration::from_secs(5), session.close("quit"))
                .await
                .unwrap();
        }
    );
    assert_eq!(stop_reason(&end.last.unwrap()), StopReason::Aborted);
    assert!(ran.is_err() || ran.unwrap().cancelled);
    assert!(session.is_idle() && !mark.exists());
    session.close("quit").await;
    let refused = session.prompt(Prompt::text("more"), |_| ()).await;
    assert_eq!(refused.unwrap_err(), PromptError::Closed);
}

//! A session from prompt to settled, over in-process sources: a scripted wire, tools and handlers
//! made with the SDK's own builder. Rules of `kernel.md` and `extensions.md` are named at each test.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pliant_kernel::pipeline::{Prompt, PromptError, WhenActive};
use pliant_kernel::registry::{InProcess, Rank, Source};
use pliant_kernel::session::Disposition;
use pliant_kernel::tree::Lease;
use pliant_kernel::{Kernel, KernelOptions, OpenOptions, SessionChoice};
use pliant_sdk::command::{Command, CommandCtx, CommandSpec};
use pliant_sdk::hook::{InputAnswer, InputEvent, ToolCallAnswer, ToolCallEvent};
use pliant_sdk::message::{AssistantMessage, Message, StopReason, joined_text};
use pliant_sdk::provider::{StreamOut, StreamRequest, Wire};
use pliant_sdk::stream::MessageWriter;
use pliant_sdk::tool::ExecutionMode;
use pliant_sdk::{Error, Event, Plugin};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::*;

#[tokio::test]
async fn a_prompt_passes_in_the_order_of_events_that_clients_rely_on() {
    // interfaces §7 (1), L13, L32
    let mut scene = scene(Script::new([Reply::Text("hello there")]), Plugin::new()).await;
    let end = scene.prompt("hi").await;
    assert_eq!(
        joined_text(&end.last.unwrap().as_assistant().unwrap().content, ""),
        "hello there"
    );
    assert_eq!(
        scene.events(),
        [
            "agent_start",
            "turn_start",
            "message_start system",
            "message_end system",
            "message_start user",
            "message_end user",
            "message_start assistant",
            "message_end assistant",
            "turn_end",
            "agent_end",
            "agent_settled"
        ]
    );
    assert_eq!(scene.script.requests(), [["system", "user:hi"]]);
}

#[tokio::test]
async fn results_stand_in_the_order_of_the_calls_whatever_finishes_first() {
    // §4.2, invariants 16 and 17
    let slow_first = calls([
        ("a", "echo", json!({"text": "A", "wait": 60})),
        ("b", "echo", json!({"text": "B"})),
    ]);
    let mut scene = scene(
        Script::new([slow_first, Reply::Text("done")]),
        Plugin::new().tool(echo("echo")),
    )
    .await;
    scene.prompt("go").await;
    let events = scene.events();
    let of = |kind: &str| -> Vec<String> {
        events
            .iter()
            .filter(|event| event.starts_with(&format!("{kind} ")))
            .cloned()
            .collect()
    };
    assert_eq!(
        of("tool_execution_start"),
        ["tool_execution_start a", "tool_execution_start b"]
    );
    assert_eq!(
        of("tool_execution_end"),
        ["tool_execution_end b", "tool_execution_end a"]
    );
    assert_eq!(of("tool_execution_update").len(), 2);
    assert_eq!(
        result_texts(&scene.session),
        [("A".into(), false), ("B".into(), false)]
    );
    assert_eq!(
        scene.script.requests()[1][2..],
        ["assistant:", "result:A", "result:B"]
    );
}

#[tokio::test]
async fn one_sequential_tool_makes_the_whole_batch_sequential() {
    // T1
    let both = calls([
        ("a", "slow", json!({"text": "A", "wait": 30})),
        ("b", "echo", json!({"text": "B"})),
    ]);
    let slow = Echo {
        mode: ExecutionMode::Sequential,
        ..echo("slow")
    };
    let plugin = Plugin::new().tool(echo("echo")).tool(slow);
    let mut scene = scene(Script::new([both, Reply::Text("done")]), plugin).await;
    scene.prompt("go").await;
    let events = scene.events();
    let at = |word: &str| events.iter().position(|event| event == word).unwrap();
    assert!(at("tool_execution_end a") < at("tool_execution_start b"));
}

#[tokio::test]
async fn bad_calls_get_an_error_result_and_the_run_goes_on() {
    // T2, T8, T13, P09
    let ran = echo("echo");
    let counter = Arc::clone(&ran.ran);
    let bad = calls([
        ("1", "nothing", json!({})),
        ("2", "echo", json!({"wait": 1})),
        ("3", "echo", json!({"text": 5})),
        ("3", "echo", json!({"text": "again"})),
    ]);
    let scene = scene(
        Script::new([bad, Reply::Text("done")]),
        Plugin::new().tool(ran),
    )
    .await;
    scene.prompt("go").await;
    let results = result_texts(&scene.session);
    assert!(
        results[0].0.contains("no tool \"nothing\"") && results[0].1,
        "{results:?}"
    );
    assert!(
        results[1]
            .0
            .starts_with("Validation failed for tool \"echo\":\n  - text: missing"),
        "{results:?}"
    );
    assert_eq!(results[2], ("5".into(), false));
    assert!(
        results[3].1 && results[3].0.contains("appeared twice"),
        "{results:?}"
    );
    assert_eq!(counter.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_handler_can_change_or_block_a_call_and_a_failing_one_blocks() {
    // T9, T14, extensions §9.2 and §9.3
    let plugin = Plugin::new()
        .tool(echo("echo"))
        .on(|call: ToolCallEvent, _| async move {
            match call.input["text"].as_str() {
                Some("block") => Ok(ToolCallAnswer::block("not that")),
                Some("fail") => Err(Error::failed("the gate is broken")),
                _ => Ok(ToolCallAnswer::with_input(
                    json!({"text": 7}).as_object().cloned().unwrap(),
                )),
            }
        });
    let three = calls([
        ("1", "echo", json!({"text": "block"})),
        ("2", "echo", json!({"text": "fail"})),
        ("3", "echo", json!({"text": "change"})),
    ]);
    let mut scene = scene(Script::new([three, Reply::Text("done")]), plugin).await;
    scene.prompt("go").await;
    let results = result_texts(&scene.session);
    assert_eq!(results[0], ("not that".into(), true));
    assert!(
        results[1].1 && results[1].0.contains("the gate is broken"),
        "{results:?}"
    );
    // The changed arguments are not validated again: a number reaches a tool that wants a string.
    assert!(
        results[2].1 && results[2].0.contains("do not fit the tool"),
        "{results:?}"
    );
    assert!(
        scene
            .events()
            .contains(&"extension_error tool_call".to_owned())
    );
    let messages = scene.session.messages();
    let stored = messages
        .iter()
        .find_map(|message| message.as_assistant()?.tool_calls().nth(2).cloned())
        .unwrap();
    assert_eq!(stored.arguments["text"], "change");
}

#[tokio::test]
async fn steering_enters_before_the_next_request_and_follow_ups_at_the_end() {
    // L9, P30, P32, invariants 24 and 25
    let tool = echo("echo");
    let running = Arc::clone(&tool.running);
    let first = calls([("1", "echo", json!({"text": "x", "wait": 50}))]);
    let script = Script::new([first, Reply::Text("one"), Reply::Text("two")]);
    let mut scene = scene(script, Plugin::new().tool(tool)).await;
    let session = scene.session.clone();
    let queueing = async {
        running.notified().await;
        for (text, when) in [("later", WhenActive::FollowUp), ("now", WhenActive::Steer)] {
            let prompt = Prompt {
                when_active: Some(when),
                ..Prompt::text(text)
            };
            let said = Said::default();
            session.prompt(prompt, said.listener()).await.unwrap();
            assert_eq!(said.take(), [Disposition::Queued]);
        }
        let refused = session.prompt(Prompt::text("neither"), |_| ()).await;
        assert_eq!(refused.unwrap_err(), PromptError::Busy);
    };
    tokio::join!(scene.prompt("go"), queueing);
    let requests = scene.script.requests();
    assert_eq!(requests[1][2..], ["assistant:", "result:x", "user:now"]);
    assert_eq!(requests[2][5..], ["assistant:one", "user:later"]);
    let events = scene.events();
    let settled = events
        .iter()
        .filter(|event| *event == "agent_settled")
        .count();
    assert_eq!(
        (settled, events.last().map(String::as_str)),
        (1, Some("agent_settled"))
    );
    assert!(events.contains(&"queue_update [] []".to_owned()));
}

#[tokio::test]
async fn of_two_prompts_at_once_one_starts_and_the_other_is_refused() {
    // P6, invariant 40
    let slow = calls([("1", "echo", json!({"text": "x", "wait": 20}))]);
    let script = Script::new([slow, Reply::Text("one")]);
    let mut scene = scene(script, Plugin::new().tool(echo("echo"))).await;
    let (a, b) = tokio::join!(
        scene.session.prompt(Prompt::text("a"), |_| ()),
        scene.session.prompt(Prompt::text("b"), |_| ())
    );
    assert!(a.is_ok());
    assert_eq!(b.unwrap_err(), PromptError::Busy);
    assert_eq!(scene.script.requests().len(), 2);
    assert_eq!(
        scene
            .events()
            .iter()
            .filter(|event| *event == "agent_settled")
            .count(),
        1
    );
}

#[tokio::test]
async fn an_abort_keeps_what_was_said_answers_every_call_and_leaves_the_session_usable() {
    // L28, K04, K05, invariant 27
    let tool = echo("echo");
    let ran = Arc::clone(&tool.ran);
    let three = calls([
        ("1", "echo", json!({"text": "x", "wait": 60000})),
        ("2", "echo", json!({"text": "y", "wait": 60000})),
        ("3", "nothing", json!({})),
    ]);
    let script = Script::new([three, Reply::Text("again"), Reply::Hang("half ")]);
    let mut scene = scene(script, Plugin::new().tool(tool)).await;
    let session = scene.session.clone();
    let (end, ()) = tokio::join!(scene.prompt("go"), async {
        while ran.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        session.abort().await;
        assert!(!session.is_running());
    });
    let last = end.last.unwrap();
    assert_eq!(
        last.as_assistant().unwrap().stop_reason,
        StopReason::Aborted
    );
    let results = result_texts(&scene.session);
    assert_eq!(results.len(), 3);
    assert_eq!(results[0], ("so farOperation aborted".into(), true));
    assert_eq!(
        scene.events().last().map(String::as_str),
        Some("agent_settled")
    );

    scene.prompt("again").await;
    let session = scene.session.clone();
    let (end, ()) = tokio::join!(scene.prompt("and again"), async {
        while !session
            .messages()
            .iter()
            .any(|m| format!("{m:?}").contains("and again"))
        {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        session.abort().await;
    });
    let last = end.last.unwrap();
    let answer = last.as_assistant().unwrap();
    assert_eq!(
        (answer.stop_reason, joined_text(&answer.content, "")),
        (StopReason::Aborted, "half ".into())
    );
}

#[tokio::test]
async fn a_failing_provider_is_a_message_and_the_next_prompt_works() {
    // L16, L21
    let script = Script::new([Reply::Fail("the service is down"), Reply::Text("fine")]);
    let mut scene = scene(script, Plugin::new()).await;
    let end = scene.prompt("go").await;
    let last = end.last.unwrap();
    let answer = last.as_assistant().unwrap();
    assert_eq!(answer.stop_reason, StopReason::Error);
    assert_eq!(answer.error_message.as_deref(), Some("the service is down"));
    assert_eq!(
        scene.events().last().map(String::as_str),
        Some("agent_settled")
    );
    scene.prompt("again").await;
    assert_eq!(
        scene.script.requests()[1].last().map(String::as_str),
        Some("user:again")
    );
}

/// The events that say how runs and attempts follow each other.
fn attempts(events: Vec<String>) -> Vec<String> {
    let about = ["agent_", "auto_retry", "entry_appended"];
    let is_about = |word: &String| about.iter().any(|about| word.starts_with(about));
    events.into_iter().filter(is_about).collect()
}

#[tokio::test]
async fn a_failure_that_may_pass_is_asked_for_again_and_left_out() {
    // R6-R11, L32, invariants 19 and 20, reports P07
    let script = Script::new([
        Reply::Fail("503: overloaded"),
        Reply::Fail("read ECONNRESET"),
        Reply::Text("fine"),
        Reply::Text("still fine"),
    ]);
    let mut scene = scene(script, Plugin::new()).await;
    let end = scene.prompt("go").await;
    let last = end.last.unwrap();
    assert_eq!(
        joined_text(&last.as_assistant().unwrap().content, ""),
        "fine"
    );
    assert_eq!(
        attempts(scene.events()),
        [
            "agent_start",
            "agent_end willRetry",
            "auto_retry_start 1/3",
            "entry_appended",
            "agent_start",
            "agent_end willRetry",
            "auto_retry_start 2/3",
            "entry_appended",
            "agent_start",
            "auto_retry_end true 2 None",
            "agent_end",
            "agent_settled",
        ]
    );
    assert_eq!(scene.script.requests(), [["system", "user:go"]; 3]);
    scene.prompt("on").await;
    assert_eq!(
        scene.script.requests()[3],
        ["system", "user:go", "assistant:fine", "user:on"]
    );
    // The attempts stay in the file.
    let stored = std::fs::read_to_string(scene.session.file().unwrap()).unwrap();
    assert_eq!(stored.matches("\"stopReason\":\"error\"").count(), 2);
    assert_eq!(stored.matches("\"type\":\"context_edit\"").count(), 2);
}

#[tokio::test]
async fn attempts_have_an_end_and_a_bill_is_not_asked_for_again() {
    // R5-R7, R10
    let script = Script::new(std::iter::repeat_with(|| Reply::Fail("529")).take(4));
    let mut scene = scene(script, Plugin::new()).await;
    let end = scene.prompt("go").await;
    assert!(end.last.unwrap().as_assistant().unwrap().stop_reason == StopReason::Error);
    let events = attempts(scene.events());
    assert_eq!(
        events[events.len() - 3..],
        [
            "agent_end",
            "auto_retry_end false 3 Some(\"529\")",
            "agent_settled"
        ]
    );
    assert_eq!(scene.script.requests().len(), 4);

    let script = Script::new([Reply::Fail("429: insufficient_quota")]);
    let mut scene = self::scene(script, Plugin::new()).await;
    scene.prompt("go").await;
    assert_eq!(
        attempts(scene.events()),
        ["agent_start", "agent_end", "agent_settled"]
    );

    let script = Script::new([Reply::Fail("529")]);
    let off = json!({"retry": {"enabled": false}});
    let mut scene = scene_with(script, Plugin::new(), off).await;
    scene.prompt("go").await;
    assert_eq!(
        attempts(scene.events()),
        ["agent_start", "agent_end", "agent_settled"]
    );
}

#[tokio::test]
async fn an_abort_ends_the_wait_for_the_next_attempt() {
    // R7
    let script = Script::new([Reply::Fail("503"), Reply::Text("later")]);
    let long = json!({"retry": {"baseDelayMs": 3_600_000, "maxAgentDelayMs": 3_600_000}});
    let mut scene = scene_with(script, Plugin::new(), long).await;
    let session = scene.session.clone();
    let mut events = session.subscribe();
    let (end, ()) = tokio::join!(scene.prompt("go"), async {
        while let Some(event) = events.recv().await {
            if matches!(*event, Event::AutoRetryStart { .. }) {
                session.cancel();
                return;
            }
        }
    });
    assert!(end.failure.is_none());
    let events = attempts(scene.events());
    assert_eq!(
        events[events.len() - 2..],
        [
            "auto_retry_end false 1 Some(\"Retry cancelled\")",
            "agent_settled"
        ]
    );
    scene.prompt("again").await;
    let requests = scene.script.requests();
    assert_eq!(requests[1], ["system", "user:go", "user:again"]);
}

#[tokio::test]
async fn input_handlers_chain_and_one_that_handles_ends_it() {
    // P16, extensions §9.1, invariant 30
    let plugin = Plugin::new()
        .on(|input: InputEvent, _| async move {
            match input.text.as_str() {
                "mine" => Ok(InputAnswer::Handled),
                text => Ok(InputAnswer::Transform {
                    text: format!("A<{text}>"),
                    images: None,
                }),
            }
        })
        .on(|_: InputEvent, _| async move { Err::<InputAnswer, _>(Error::failed("broken")) })
        .on(|input: InputEvent, _| async move {
            Ok(InputAnswer::Transform {
                text: format!("{}B", input.text),
                images: None,
            })
        });
    let mut scene = scene(Script::new([Reply::Text("ok")]), plugin).await;
    let said = Said::default();
    let mine = scene.session.prompt(Prompt::text("mine"), said.listener());
    mine.await.unwrap();
    assert_eq!(said.take(), [Disposition::Handled]);
    assert!(scene.script.requests().is_empty());
    scene.prompt("hello").await;
    assert_eq!(scene.script.requests(), [["system", "user:A<hello>B"]]);
    assert!(scene.events().contains(&"extension_error input".to_owned()));
}

struct Fails;

impl Command for Fails {
    fn spec(&self) -> CommandSpec {
        CommandSpec::new("fails", "Always.")
    }

    async fn run(&self, args: String, _: CommandCtx) -> Result<(), Error> {
        Err(Error::failed(format!("args were {args:?}")))
    }
}

#[tokio::test]
async fn a_command_consumes_the_input_even_when_it_fails_and_unknown_ones_are_text() {
    // P11
    let mut scene = scene(
        Script::new([Reply::Text("ok")]),
        Plugin::new().command(Fails),
    )
    .await;
    scene.prompt("/fails a b").await;
    assert!(scene.script.requests().is_empty());
    assert_eq!(scene.events(), ["extension_error command"]);
    scene.prompt("/unknown x").await;
    assert_eq!(scene.script.requests(), [["system", "user:/unknown x"]]);
}

#[tokio::test]
async fn a_message_end_handler_replaces_what_is_stored_but_not_the_role() {
    // G7, extensions §9.5
    let plugin = Plugin::new().on_event("message_end", |event, _| async move {
        let mut message = event["message"].clone();
        match message["role"].as_str() {
            Some("user") => message["content"] = json!("rewritten"),
            Some("assistant") => message["role"] = json!("user"),
            _ => return Ok(Value::Null),
        }
        Ok(json!({ "message": message }))
    });
    let scene = scene(Script::new([Reply::Text("ok")]), plugin).await;
    scene.prompt("hello").await;
    assert_eq!(scene.script.requests(), [["system", "user:rewritten"]]);
    assert_eq!(scene.session.messages().last().unwrap().role(), "assistant");
}

#[tokio::test]
async fn a_tool_that_appears_between_turns_is_declared_and_the_prompt_patched() {
    // L24, L26, R12, invariant 14
    let dir = tempfile::tempdir().unwrap();
    let kernel = Kernel::boot(KernelOptions::new(
        dir.path().to_path_buf(),
        dir.path().join("agent"),
    ))
    .unwrap();
    let script = Script::new([
        calls([("1", "echo", json!({"text": "x"}))]),
        Reply::Text("a"),
        Reply::Text("b"),
    ]);
    let registry = Arc::clone(kernel.registry());
    let publish = |name: &str, plugin: Plugin| {
        let source = Source::inline(name, Rank::User);
        registry.publish(Arc::new(InProcess::new(source, plugin).unwrap()));
    };
    publish(
        "fake",
        Plugin::new()
            .wire(ScriptedWire(script.clone()))
            .provider(ScriptedProvider),
    );
    let adding = Arc::clone(kernel.registry());
    publish(
        "extension",
        Plugin::new()
            .tool(echo("echo"))
            .on(move |_: ToolCallEvent, _| {
                let late = Plugin::new().tool(echo("late"));
                adding.publish(Arc::new(
                    InProcess::new(Source::inline("late", Rank::User), late).unwrap(),
                ));
                async { Ok(ToolCallAnswer::default()) }
            }),
    );
    let session = open_session(&kernel).await;
    session.prompt(Prompt::text("go"), |_| ()).await.unwrap();
    let requests = script.requests.lock().unwrap().clone();
    let added = |message: &Arc<Message>| match &**message {
        Message::System(system) => system.tools_added.clone(),
        _ => None,
    };
    let last: Vec<_> = requests[1]
        .iter()
        .filter_map(added)
        .flatten()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(last, ["echo", "late"]);
    assert!(
        requests[0]
            .iter()
            .zip(&requests[1])
            .all(|(a, b)| Arc::ptr_eq(a, b) || a == b)
    );
}

#[tokio::test]
async fn an_abort_ends_a_waiting_gate_and_leaves_queued_messages_queued() {
    // L11, L27, R51
    let entered = Arc::new(Notify::new());
    let gate = Arc::clone(&entered);
    let plugin = Plugin::new()
        .tool(echo("echo"))
        .on(move |_: ToolCallEvent, _| {
            gate.notify_one();
            async { std::future::pending::<Result<ToolCallAnswer, Error>>().await }
        });
    let call = calls([("1", "echo", json!({"text": "x"}))]);
    let mut scene = scene(Script::new([call, Reply::Text("after")]), plugin).await;
    let session = scene.session.clone();
    tokio::join!(scene.prompt("go"), async {
        entered.notified().await;
        let steer = Prompt {
            when_active: Some(WhenActive::Steer),
            ..Prompt::text("steered")
        };
        session.prompt(steer, |_| ()).await.unwrap();
        session.abort().await;
    });
    let results = result_texts(&scene.session);
    assert_eq!(results.len(), 1);
    assert!(results[0].1, "{results:?}");
    assert_eq!(scene.script.requests().len(), 1);
    assert_eq!(
        scene.events().last().map(String::as_str),
        Some("agent_settled")
    );
    // It enters with the next run, right after that run's prompt.
    scene.prompt("next").await;
    let requests = scene.script.requests();
    assert_eq!(
        requests[1][requests[1].len() - 2..],
        ["user:next", "user:steered"]
    );
}

#[tokio::test]
async fn an_answer_that_was_aborted_before_it_began_still_names_its_model() {
    // V3: else the session would go on with another model
    let tool = echo("echo");
    let ran = Arc::clone(&tool.ran);
    let call = calls([("1", "echo", json!({"text": "x", "wait": 60000}))]);
    let scene = scene(Script::new([call]), Plugin::new().tool(tool)).await;
    let session = scene.session.clone();
    let (end, ()) = tokio::join!(scene.prompt("go"), async {
        while ran.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        session.abort().await;
    });
    let last = end.last.unwrap();
    let answer = last.as_assistant().unwrap();
    assert_eq!(
        (answer.provider.as_str(), answer.model.as_str()),
        ("fake", "m")
    );
    assert_eq!(answer.stop_reason, StopReason::Aborted);
}

#[tokio::test]
async fn a_prompt_that_arrives_while_a_run_settles_starts_when_everybody_has_heard() {
    // R3, invariant 18
    let entered = Arc::new(Notify::new());
    let settling = Arc::clone(&entered);
    let plugin = Plugin::new().on_event("agent_settled", move |_, ctx| {
        settling.notify_one();
        async move {
            ctx.host().sleep_ms(30).await?;
            Ok(Value::Null)
        }
    });
    let mut scene = scene(
        Script::new([Reply::Text("one"), Reply::Text("two")]),
        plugin,
    )
    .await;
    let session = scene.session.clone();
    let second = async {
        entered.notified().await;
        assert!(!session.is_running());
        session.prompt(Prompt::text("b"), |_| ()).await.unwrap();
    };
    tokio::join!(scene.prompt("a"), second);
    let events = scene.events();
    let order: Vec<_> = events
        .iter()
        .filter(|e| matches!(e.as_str(), "agent_start" | "agent_settled"))
        .collect();
    assert_eq!(
        order,
        [
            "agent_start",
            "agent_settled",
            "agent_start",
            "agent_settled"
        ]
    );
}

/// Keeps what it was given to send events with.
struct Hoarder(Mutex<Vec<StreamOut>>);

impl Wire for Hoarder {
    fn api(&self) -> &'static str {
        "scripted"
    }

    async fn stream(
        &self,
        request: StreamRequest,
        out: StreamOut,
    ) -> Result<AssistantMessage, Error> {
        let mut writer = MessageWriter::new(request.answer(), &out);
        writer.text("kept");
        let answer = writer.finish(None);
        self.0.lock().unwrap().push(out);
        Ok(answer)
    }
}

#[tokio::test]
async fn a_wire_that_keeps_its_sender_does_not_hold_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let kernel = Kernel::boot(KernelOptions::new(
        dir.path().to_path_buf(),
        dir.path().join("agent"),
    ))
    .unwrap();
    let plugin = Plugin::new()
        .wire(Hoarder(Mutex::default()))
        .provider(ScriptedProvider);
    let source = Source::inline("hoarder", Rank::User);
    kernel
        .registry()
        .publish(Arc::new(InProcess::new(source, plugin).unwrap()));
    let session = open_session(&kernel).await;
    let end = tokio::time::timeout(
        Duration::from_secs(5),
        session.prompt(Prompt::text("x"), |_| ()),
    )
    .await;
    let last = end.expect("ends").unwrap().last.unwrap();
    assert_eq!(
        joined_text(&last.as_assistant().unwrap().content, ""),
        "kept"
    );
}

#[tokio::test]
async fn a_gate_whose_answer_cannot_be_read_blocks() {
    // G5: safety gates fail closed
    let plugin = Plugin::new()
        .tool(echo("echo"))
        .on_event("tool_call", |_, _| async {
            Ok(json!({"block": "certainly"}))
        });
    let call = calls([("1", "echo", json!({"text": "x"}))]);
    let scene = scene(Script::new([call, Reply::Text("done")]), plugin).await;
    scene.prompt("go").await;
    let results = result_texts(&scene.session);
    assert!(
        results[0].1 && results[0].0.contains("neither a block nor nothing"),
        "{results:?}"
    );
}

#[tokio::test]
async fn a_session_whose_model_is_gone_says_so_and_goes_on_with_another() {
    // V3
    let first = scene(Script::new([Reply::Text("one")]), Plugin::new()).await;
    first.prompt("a").await;
    first.session.close("quit").await;
    let file = first.session.file().unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        text.replace("\"modelId\":\"m\"", "\"modelId\":\"gone\"")
            .replace("\"model\":\"m\"", "\"model\":\"gone\""),
    )
    .unwrap();
    let cwd = first.dir.path().to_path_buf();
    let kernel = Kernel::boot(KernelOptions::new(cwd.clone(), cwd.join("agent"))).unwrap();
    let fake = Plugin::new()
        .wire(ScriptedWire(Script::default()))
        .provider(ScriptedProvider);
    kernel.registry().publish(Arc::new(
        InProcess::new(Source::inline("fake", Rank::User), fake).unwrap(),
    ));
    let open = OpenOptions {
        session: SessionChoice::Continue,
        ..OpenOptions::default()
    };
    let session = kernel.open_session(open).await.unwrap();
    assert_eq!(session.model().unwrap().id, "m");
    assert!(
        session.notices()[0].contains("fake/gone"),
        "{:?}",
        session.notices()
    );
}

#[tokio::test]
async fn what_another_program_does_to_the_file_is_told_and_ends_no_run() {
    // S18
    let script = Script::new([Reply::Text("one"), Reply::Text("two"), Reply::Text("three")]);
    let mut scene = scene(script, Plugin::new()).await;
    scene.prompt("a").await;
    let file = scene.session.file().unwrap();
    let theirs =
        r#"{"type":"custom","id":"7e1e0001","parentId":null,"timestamp":"t","customType":"x"}"#;
    let mut text = std::fs::read_to_string(&file).unwrap();
    text.push_str(&format!("{theirs}\n"));
    std::fs::write(&file, text).unwrap();
    scene.events();
    scene.prompt("b").await;
    assert_eq!(
        scene
            .events()
            .iter()
            .filter(|word| *word == "notice")
            .count(),
        1
    );

    std::fs::remove_file(&file).unwrap();
    let end = scene.prompt("c").await;
    assert!(end.failure.is_none());
    assert_eq!(
        scene
            .events()
            .iter()
            .filter(|word| *word == "notice")
            .count(),
        1
    );
    let stored = std::fs::read_to_string(&file).unwrap();
    assert!(stored.contains(theirs) && stored.contains("three"));
    assert_eq!(
        scene.script.requests()[2],
        [
            "system",
            "user:a",
            "assistant:one",
            "user:b",
            "assistant:two",
            "user:c"
        ]
    );
}

#[tokio::test]
async fn a_run_whose_file_was_cut_stops_and_says_why() {
    // S12, reports S04
    let script = Script::new([Reply::Text("one"), Reply::Text("two")]);
    let scene = scene(script, Plugin::new()).await;
    scene.prompt("a").await;
    let file = scene.session.file().unwrap();
    std::fs::write(&file, "").unwrap();
    let end = scene.prompt("b").await;
    let failure = end.failure.unwrap().to_string();
    assert!(failure.contains("was cut from"), "{failure}");
    assert_eq!(
        std::fs::read(&file).unwrap(),
        b"",
        "nothing was written into it"
    );
    scene.session.close("quit").await;
}

#[tokio::test]
async fn a_closed_session_is_open_for_others() {
    // S18
    let scene = scene(Script::new([Reply::Text("one")]), Plugin::new()).await;
    scene.prompt("a").await;
    let file = scene.session.file().unwrap();
    assert!(Lease::acquire(&file).is_err());
    scene.session.close("quit").await;
    assert!(Lease::acquire(&file).is_ok());
}

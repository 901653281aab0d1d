//! What is asked of a session before a run: who is told what becomes of it, queues, refusals.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pliant_kernel::pipeline::{Prompt, PromptError, WhenActive};
use pliant_kernel::registry::{InProcess, Rank, Source};
use pliant_kernel::session::{Delivery, Disposition};
use pliant_kernel::settings::QueueMode;
use pliant_sdk::command::{Command, CommandCtx, CommandSpec};
use pliant_sdk::hook::{InputAnswer, InputEvent};
use pliant_sdk::message::MessageContent;
use pliant_sdk::session::{MessageDraft, MessageOptions, UserMessageOptions};
use pliant_sdk::{Error, Event, Plugin};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::*;

/// A command that waits until nothing is left to do.
#[derive(Clone, Default)]
struct Wait(Arc<Mutex<Vec<String>>>);

impl Command for Wait {
    fn spec(&self) -> CommandSpec {
        CommandSpec::new("wait", "Waits.")
    }

    async fn run(&self, args: String, ctx: CommandCtx) -> Result<(), Error> {
        ctx.host().session().wait_idle().await?;
        self.0.lock().unwrap().push(args);
        Ok(())
    }
}

/// The source of the scripted model.
fn fake(script: &Script) -> Arc<InProcess> {
    let plugin = Plugin::new()
        .wire(ScriptedWire(script.clone()))
        .provider(ScriptedProvider);
    Arc::new(InProcess::new(Source::inline("fake", Rank::User), plugin).unwrap())
}

fn steered(text: &str) -> Prompt {
    Prompt {
        when_active: Some(WhenActive::Steer),
        ..Prompt::text(text)
    }
}

#[tokio::test]
async fn whoever_asked_is_told_once_what_becomes_of_it() {
    // P1, P2, P4, invariants 28 and 29
    let tool = echo("echo");
    let running = Arc::clone(&tool.running);
    let wait = Wait::default();
    let plugin =
        Plugin::new()
            .tool(tool)
            .command(wait.clone())
            .on(|input: InputEvent, _| async move {
                Ok(match input.text.as_str() {
                    "mine" => InputAnswer::Handled,
                    _ => InputAnswer::Continue,
                })
            });
    let call = calls([("1", "echo", json!({"text": "x", "wait": 40}))]);
    let script = Script::new([call, Reply::Text("a"), Reply::Text("b")]);
    let mut scene = scene(script, plugin).await;
    let said = Said::default();
    for (text, becomes) in [
        ("/wait now", Disposition::Handled),
        ("mine", Disposition::Handled),
        (" \n", Disposition::Rejected),
    ] {
        let asked = scene.session.prompt(Prompt::text(text), said.listener());
        assert_eq!(asked.await.is_err(), becomes == Disposition::Rejected);
        assert_eq!(said.take(), [becomes], "{text:?}");
    }
    assert_eq!(*wait.0.lock().unwrap(), ["now"]);
    assert!(scene.events().is_empty());
    assert!(!scene.session.file().unwrap().exists());
    let session = scene.session.clone();
    let beside = async {
        running.notified().await;
        let queued = session.prompt(steered("soon"), said.listener()).await;
        queued.unwrap();
        let refused = session.prompt(Prompt::text("neither"), said.listener());
        assert_eq!(refused.await.unwrap_err(), PromptError::Busy);
        said.take()
    };
    let started = Said::default();
    let (script, requests) = (scene.script.clone(), Arc::new(Mutex::new(None)));
    let (tell, seen) = (started.listener(), Arc::clone(&requests));
    let prompt = session.prompt(Prompt::text("go"), move |disposition| {
        *seen.lock().unwrap() = Some(script.requests().len());
        tell(disposition);
    });
    let (end, others) = tokio::join!(prompt, beside);
    end.unwrap();
    assert_eq!(others, [Disposition::Queued, Disposition::Rejected]);
    assert_eq!(started.take(), [Disposition::Started]);
    assert_eq!(*requests.lock().unwrap(), Some(0));
}

#[tokio::test]
async fn a_prompt_that_nobody_can_answer_says_what_to_do_and_leaves_nothing() {
    // P34, P35, P4, 5.7
    let dir = tempfile::tempdir().unwrap();
    let kernel = kernel_in(dir.path());
    let script = Script::new([Reply::Text("a")]);
    let registry = kernel.registry();
    registry.publish(fake(&script));
    let session = open_session(&kernel).await;
    registry.withdraw("fake");
    let mut events = session.subscribe();
    let said = Said::default();
    let refused = session.prompt(Prompt::text("hi"), said.listener()).await;
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("\"fake\"") && refused.contains("models.json"),
        "{refused}"
    );
    assert_eq!(said.take(), [Disposition::Rejected]);
    assert!(events.try_recv().is_err());
    assert!(session.is_idle() && !session.file().unwrap().exists());
    // A message that is to start a run is refused as well.
    let act = MessageOptions {
        trigger_turn: Some(true),
        ..MessageOptions::default()
    };
    let draft = MessageDraft::text("note", "x");
    let refused = session.send_message(draft, act, None).await.unwrap_err();
    assert!(refused.to_string().contains("\"fake\""), "{refused}");
    // Whether it can be answered is looked at afresh for each.
    registry.publish(fake(&script));
    session.prompt(Prompt::text("hi"), |_| ()).await.unwrap();
    assert_eq!(script.requests().len(), 1);
}

#[tokio::test]
async fn messages_are_queued_while_idle_and_enter_the_next_run() {
    // P31, P12, L9, L11, P32, invariant 23
    let plugin = Plugin::new()
        .command(Wait::default())
        .on(|input: InputEvent, _| async move {
            // No run is active, so nothing is said of how it will wait.
            assert_eq!(input.streaming_behavior, None);
            Ok(match input.text.as_str() {
                "mine" => InputAnswer::Handled,
                " " => InputAnswer::Continue,
                text => InputAnswer::Transform {
                    text: format!("<{text}>"),
                    images: None,
                },
            })
        });
    let script = Script::new([Reply::Text("a"), Reply::Text("b"), Reply::Text("c")]);
    let mut scene = scene(script, plugin).await;
    let session = scene.session.clone();
    let queued = Ok(Disposition::Queued);
    assert_eq!(session.follow_up("late", vec![]).await, queued);
    assert_eq!(session.steer("soon", vec![]).await, queued);
    assert_eq!(
        session.steer("mine", vec![]).await,
        Ok(Disposition::Handled)
    );
    assert_eq!(session.steer(" ", vec![]).await, Err(PromptError::Empty));
    let refused = session.steer("/wait x", vec![]).await.unwrap_err();
    assert!(refused.to_string().contains("/wait"), "{refused}");
    assert_eq!(session.peek_queue().len(), 1);
    assert_eq!(
        scene.events(),
        [
            r#"queue_update [] ["<late>"]"#,
            r#"queue_update ["<soon>"] ["<late>"]"#,
        ]
    );
    scene.prompt("go").await;
    let requests = scene.script.requests();
    assert_eq!(requests[0], ["system", "user:<go>", "user:<soon>"]);
    assert_eq!(requests[1].last().unwrap(), "user:<late>");
    assert_eq!(session.queued(), (vec![], vec![]));
}

#[tokio::test]
async fn the_queues_are_cleared_of_everything_and_change_their_mode_at_once() {
    // L8, L11, R53
    let script = Script::new([Reply::Text("a"), Reply::Text("b")]);
    let scene = scene(script, Plugin::new()).await;
    let session = &scene.session;
    let tool = Delivery::Steer;
    assert_eq!(session.queue_mode(tool), QueueMode::OneAtATime);
    session.set_queue_mode(tool, QueueMode::All);
    for text in ["one", "two"] {
        session.steer(text, vec![]).await.unwrap();
    }
    assert_eq!(session.peek_queue().len(), 2);
    scene.prompt("go").await;
    assert_eq!(
        scene.script.requests(),
        [["system", "user:go", "user:one", "user:two"]]
    );
    session.steer("three", vec![]).await.unwrap();
    let cleared = session.clear_queue().await;
    assert_eq!(cleared, (vec!["three".to_owned()], vec![]));
    assert!(session.peek_queue().is_empty());
}

#[tokio::test]
async fn handlers_learn_how_a_prompt_will_wait_while_a_run_is_active() {
    // extensions §3.2, P18, P30
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let plugin = Plugin::new().on(move |input: InputEvent, _| {
        let heard = (input.text, input.source, input.streaming_behavior);
        log.lock().unwrap().push(heard);
        async { Ok(InputAnswer::Continue) }
    });
    let let_go = Arc::new(Notify::new());
    let script = Script::new([Reply::When(Arc::clone(&let_go), "a"), Reply::Text("b")]);
    let scene = scene(script, plugin).await;
    let session = scene.session.clone();
    let mut events = session.subscribe();
    let beside = async {
        while let Some(event) = events.recv().await {
            if matches!(&*event, Event::MessageEnd { message } if message.role() == "user") {
                break;
            }
        }
        session.prompt(steered("soon"), |_| ()).await.unwrap();
        let_go.notify_one();
    };
    tokio::join!(scene.prompt("go"), beside);
    let source = || "interactive".to_owned();
    assert_eq!(
        *seen.lock().unwrap(),
        [
            ("go".to_owned(), source(), None),
            ("soon".to_owned(), source(), Some("steer".to_owned())),
        ]
    );
}

#[tokio::test]
async fn a_literal_prompt_names_no_command_and_is_heard_by_handlers() {
    // P19
    let wait = Wait::default();
    let plugin = Plugin::new()
        .command(wait.clone())
        .on(|input: InputEvent, _| async move {
            Ok(InputAnswer::Transform {
                text: format!("{}!", input.text),
                images: None,
            })
        });
    let scene = scene(Script::new([Reply::Text("a")]), plugin).await;
    let literal = Prompt {
        literal: true,
        ..Prompt::text("/wait")
    };
    scene.session.prompt(literal, |_| ()).await.unwrap();
    assert_eq!(scene.script.requests(), [["system", "user:/wait!"]]);
    assert!(wait.0.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_input_answer_of_a_wrong_type_is_reported_and_passed_by() {
    // P16, P17
    let plugin = Plugin::new()
        .on_event("input", async |_, _| Ok(json!({"action": "explode"})))
        .on_event("input", async |_, _| {
            Ok(json!({"action": "transform", "text": 7}))
        })
        .on_event("input", async |_, _| Ok(json!({"action": "continue"})));
    let mut scene = scene(Script::new([Reply::Text("a")]), plugin).await;
    scene.prompt("hi").await;
    assert_eq!(scene.script.requests(), [["system", "user:hi"]]);
    let events = scene.events();
    let reported = events.iter().filter(|e| *e == "extension_error input");
    assert_eq!(reported.count(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_prompts_from_several_threads_one_starts_a_run_at_a_time() {
    // P6, invariants 18 and 40
    let replies = std::iter::repeat_with(|| Reply::Text("ok")).take(64);
    let scene = scene(Script::new(replies), Plugin::new()).await;
    // Read meanwhile: a subscription that is full holds the runs.
    let mut events = scene.events;
    let settled = tokio::spawn(async move {
        let mut settled = 0;
        while let Some(event) = events.recv().await {
            settled += usize::from(matches!(*event, Event::AgentSettled { .. }));
        }
        settled
    });
    let said = Said::default();
    let tasks: Vec<_> = (0..24)
        .map(|number| {
            let (session, listener) = (scene.session.clone(), said.listener());
            tokio::spawn(async move {
                let prompt = Prompt {
                    when_active: (number % 2 == 0).then_some(WhenActive::FollowUp),
                    ..Prompt::text(format!("n{number}"))
                };
                session.prompt(prompt, listener).await
            })
        })
        .collect();
    let mut refused = 0;
    for task in tasks {
        let end = tokio::time::timeout(Duration::from_secs(20), task).await;
        match end.expect("settles").unwrap() {
            Err(error) => {
                assert_eq!(error, PromptError::Busy);
                refused += 1;
            }
            Ok(end) => assert!(end.failure.is_none()),
        }
    }
    scene.session.wait_idle().await;
    let said = said.take();
    let count = |kind| said.iter().filter(|said| **said == kind).count();
    assert_eq!(said.len(), 24);
    assert_eq!(count(Disposition::Rejected), refused);
    scene.session.end_subscriptions();
    assert_eq!(count(Disposition::Started), settled.await.unwrap());
    let asked = scene.session.messages();
    let users = asked.iter().filter(|message| message.role() == "user");
    assert_eq!(users.count(), 24 - refused);
    assert_eq!(scene.session.queued(), (vec![], vec![]));
}

#[tokio::test]
async fn a_prompt_put_off_returns_at_once_and_its_observer_is_told_later() {
    // stage 0, P2, R4
    let entered = Arc::new(Notify::new());
    let go_on = Arc::new(Notify::new());
    let (enter, wait) = (Arc::clone(&entered), Arc::clone(&go_on));
    let once = Mutex::new(true);
    let plugin = Plugin::new().on_event("agent_settled", move |_, _| {
        let first = std::mem::take(&mut *once.lock().unwrap());
        let (enter, wait) = (Arc::clone(&enter), Arc::clone(&wait));
        async move {
            if first {
                enter.notify_one();
                wait.notified().await;
            }
            Ok(Value::Null)
        }
    });
    let script = Script::new([Reply::Text("a"), Reply::Text("b")]);
    let scene = scene(script, plugin).await;
    let session = scene.session.clone();
    let said = Said::default();
    let second = async {
        entered.notified().await;
        let end = session
            .prompt(Prompt::text("second"), said.listener())
            .await;
        assert!(end.unwrap().deferred);
        let end = session.prompt(Prompt::text(""), said.listener()).await;
        assert!(end.unwrap().deferred);
        assert!(said.take().is_empty());
        go_on.notify_one();
    };
    tokio::join!(scene.prompt("first"), second);
    // The first prompt returns after what was put off to its settlement (P5).
    assert_eq!(said.take(), [Disposition::Started, Disposition::Rejected]);
    assert_eq!(scene.script.requests().len(), 2);
}

#[tokio::test]
async fn a_command_sent_while_a_run_settles_may_wait_for_the_session() {
    // P12, R43: it would otherwise wait for itself
    let wait = Wait::default();
    let plugin = Plugin::new()
        .command(wait.clone())
        .on_event("agent_settled", async |_, ctx| {
            let options = UserMessageOptions {
                expand_prompt_templates: true,
                ..UserMessageOptions::default()
            };
            let command = MessageContent::Text("/wait there".to_owned());
            let session = ctx.host().session();
            session.send_user_message(command, options).await?;
            Ok(Value::Null)
        });
    let scene = scene(Script::new([Reply::Text("a")]), plugin).await;
    scene.prompt("go").await;
    scene.session.wait_idle().await;
    for _ in 0..1000 {
        if !wait.0.lock().unwrap().is_empty() {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(*wait.0.lock().unwrap(), ["there"]);
}

#[tokio::test]
async fn input_handlers_speak_in_load_order_and_then_in_that_of_their_registration() {
    // P15, G4
    let dir = tempfile::tempdir().unwrap();
    let kernel = kernel_in(dir.path());
    let script = Script::new([Reply::Text("a")]);
    kernel.registry().publish(fake(&script));
    let marks = |mark: &'static str| {
        move |input: InputEvent, _| {
            let text = format!("{}{mark}", input.text);
            std::future::ready(Ok(InputAnswer::Transform { text, images: None }))
        }
    };
    for (name, rank, marked) in [
        ("late", Rank::BuiltIn, ["5", "6"]),
        ("middle", Rank::User, ["3", "4"]),
        ("early", Rank::CommandLine, ["1", "2"]),
    ] {
        let plugin = Plugin::new().on(marks(marked[0])).on(marks(marked[1]));
        let source = Source::inline(name, rank);
        let plugin = InProcess::new(source, plugin).unwrap();
        kernel.registry().publish(Arc::new(plugin));
    }
    let session = open_session(&kernel).await;
    session.prompt(Prompt::text("0"), |_| ()).await.unwrap();
    assert_eq!(script.requests(), [["system", "user:0123456"]]);
}

#[tokio::test]
async fn a_prompt_is_accepted_whatever_comes_of_its_answer() {
    // P3, P5
    let script = Script::new([Reply::Fail("the service is down")]);
    let mut scene = scene(script, Plugin::new()).await;
    let said = Said::default();
    let end = scene.session.prompt(Prompt::text("go"), said.listener());
    let last = end.await.unwrap().last.unwrap();
    assert!(last.as_assistant().unwrap().error_message.is_some());
    assert_eq!(said.take(), [Disposition::Started]);
    assert_eq!(scene.events().last().unwrap(), "agent_settled");
}

/// A command that keeps what it was given and uses it later.
#[derive(Clone, Default)]
struct Keeps(Arc<Mutex<Option<CommandCtx>>>);

impl Command for Keeps {
    fn spec(&self) -> CommandSpec {
        CommandSpec::new("keep", "Keeps.")
    }

    async fn run(&self, _: String, ctx: CommandCtx) -> Result<(), Error> {
        ctx.host().session().wait_idle().await?;
        *self.0.lock().unwrap() = Some(ctx);
        Ok(())
    }
}

#[tokio::test]
async fn a_command_may_wait_for_the_session_and_what_it_keeps_is_stale_when_that_has_ended() {
    // P14
    let keeps = Keeps::default();
    let plugin = Plugin::new().command(keeps.clone());
    let scene = scene(Script::new([]), plugin).await;
    scene.prompt("/keep").await;
    scene.session.close("quit").await;
    let kept = keeps.0.lock().unwrap().take().unwrap();
    let stale = kept.host().session().append("x", None).await.unwrap_err();
    assert!(stale.to_string().contains("has ended"), "{stale}");
}

#[tokio::test]
async fn nothing_waits_in_the_queues_of_a_session_that_has_ended() {
    // P31, R54
    let scene = scene(Script::new([]), Plugin::new()).await;
    scene.session.close("quit").await;
    let refused = scene.session.steer("late", Vec::new()).await;
    assert_eq!(refused, Err(PromptError::Closed));
    assert_eq!(scene.session.queued(), (Vec::new(), Vec::new()));
}

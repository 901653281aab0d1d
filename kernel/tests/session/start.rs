//! A run is prepared: what `before_agent_start` handlers make of its messages, prompt and tools.

use std::sync::{Arc, Mutex};

use pliant_kernel::pipeline::Prompt;
use pliant_kernel::registry::{InProcess, Rank, Source};
use pliant_kernel::{OpenOptions, SessionChoice};
use pliant_sdk::hook::{BeforeAgentStart, BeforeAgentStartAnswer};
use pliant_sdk::message::{Message, SystemMessage};
use pliant_sdk::session::{MessageDraft, MessageOptions, SendAs};
use pliant_sdk::{Error, Plugin, Tool, ToolSpec};
use serde_json::{Value, json};

use crate::support::*;

fn note(text: &str) -> MessageDraft {
    MessageDraft::text("note", text)
}

fn adding(text: &'static str) -> BeforeAgentStartAnswer {
    BeforeAgentStartAnswer {
        message: Some(note(text)),
        ..BeforeAgentStartAnswer::default()
    }
}

fn forcing(prompt: &str) -> BeforeAgentStartAnswer {
    BeforeAgentStartAnswer {
        system_prompt: Some(prompt.to_owned()),
        ..BeforeAgentStartAnswer::default()
    }
}

/// Edits the options in place, as scripts do.
fn edited(
    mut event: BeforeAgentStart,
    edit: impl FnOnce(&mut serde_json::Map<String, Value>),
) -> BeforeAgentStartAnswer {
    edit(&mut event.system_prompt_options);
    BeforeAgentStartAnswer::with_options(event.system_prompt_options)
}

fn with_style(event: BeforeAgentStart, style: &str) -> BeforeAgentStartAnswer {
    edited(event, |options| {
        options["sections"]["style"] = json!(style);
    })
}

/// The system messages of a request.
fn systems(script: &Script, request: usize) -> Vec<SystemMessage> {
    let requests = script.requests.lock().unwrap();
    let system = |message: &Arc<Message>| match &**message {
        Message::System(system) => Some(system.clone()),
        _ => None,
    };
    requests[request].iter().filter_map(system).collect()
}

fn sections(system: &SystemMessage) -> Value {
    json!(system.sections)
}

#[tokio::test]
async fn the_messages_of_a_run_stand_in_their_order() {
    // P40, P41
    let plugin = Plugin::new()
        .on(|_: BeforeAgentStart, _| async { Ok(adding("one")) })
        .on(|_: BeforeAgentStart, _| async { Err::<BeforeAgentStartAnswer, _>(Error::failed("x")) })
        .on(|_: BeforeAgentStart, _| async { Ok(adding("two")) });
    let mut scene = scene(Script::new([Reply::Text("ok")]), plugin).await;
    let options = MessageOptions {
        deliver_as: Some(SendAs::NextTurn),
        ..MessageOptions::default()
    };
    let sent = scene.session.send_message(note("kept"), options, None);
    sent.await.unwrap();
    scene.prompt("hi").await;
    assert_eq!(
        scene.script.requests(),
        [["system", "user:hi", "user:kept", "user:one", "user:two"]]
    );
    let events = scene.events();
    assert_eq!(events[0], "extension_error before_agent_start");
    assert_eq!(events[1], "agent_start");
}

#[tokio::test]
async fn handlers_learn_what_starts_the_run() {
    // P39
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let plugin = Plugin::new().on_event("before_agent_start", move |event, _| {
        let said = (
            event["messageType"].clone(),
            event["prompt"].clone(),
            event["message"]["content"].clone(),
        );
        log.lock().unwrap().push(said);
        async { Ok(Value::Null) }
    });
    let script = Script::new([Reply::Text("a"), Reply::Text("b")]);
    let scene = scene(script, plugin).await;
    scene.prompt("hi").await;
    let options = MessageOptions {
        trigger_turn: Some(true),
        ..MessageOptions::default()
    };
    let sent = scene.session.send_message(note("act"), options, None);
    sent.await.unwrap();
    scene.session.wait_idle().await;
    assert_eq!(
        *seen.lock().unwrap(),
        [
            (json!("user"), json!("hi"), Value::Null),
            (json!("custom"), Value::Null, json!("act")),
        ]
    );
}

#[tokio::test]
async fn each_handler_sees_what_the_ones_before_it_made_of_the_prompt() {
    // P39, M14, extensions §3.6
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let plugin = Plugin::new()
        .on(|event: BeforeAgentStart, _| async { Ok(with_style(event, "Rhyme.")) })
        .on(|event: BeforeAgentStart, _| async {
            Ok(edited(event, |options| {
                options["sections"] = json!({"Not A Name": "x"});
            }))
        })
        .on_event("before_agent_start", async |_, _| {
            Ok(json!({"message": {"customType": "note", "content": 5}}))
        })
        .on(move |event: BeforeAgentStart, ctx| {
            let style = event.system_prompt_options["sections"]["style"].clone();
            let shown = event.system_prompt.ends_with("<style>\nRhyme.\n</style>");
            log.lock().unwrap().push((style, shown));
            async move {
                let prompt = ctx.host().session().system_prompt().await?;
                assert_eq!(prompt, event.system_prompt);
                let options = ctx.host().session().system_prompt_options().await;
                assert!(
                    options
                        .unwrap_err()
                        .to_string()
                        .contains("in a command only")
                );
                Ok(BeforeAgentStartAnswer::default())
            }
        });
    let mut scene = scene(Script::new([Reply::Text("ok")]), plugin).await;
    scene.prompt("hi").await;
    assert_eq!(*seen.lock().unwrap(), [(json!("Rhyme."), true)]);
    let [system] = &systems(&scene.script, 0)[..] else {
        panic!("not one system message")
    };
    assert_eq!(sections(system)["style"], "<style>\nRhyme.\n</style>");
    let events = scene.events();
    let failed = events.iter().filter(|e| e.starts_with("extension_error"));
    assert_eq!(failed.count(), 2, "{events:?}");
    // It holds for the run only (extensions §5.2).
    assert!(!scene.session.system_prompt().contains("Rhyme."));
}

#[tokio::test]
async fn an_edit_of_the_prompt_holds_for_the_whole_run_and_no_longer() {
    // R12, P43, M15, R11
    let once = Arc::new(Mutex::new(true));
    let plugin = Plugin::new()
        .tool(echo("echo"))
        .on(move |event: BeforeAgentStart, _| {
            let first = std::mem::take(&mut *once.lock().unwrap());
            async move {
                Ok(if first {
                    with_style(event, "Rhyme.")
                } else {
                    BeforeAgentStartAnswer::default()
                })
            }
        });
    let script = Script::new([
        calls([("1", "echo", json!({"text": "x"}))]),
        Reply::Fail("503: overloaded"),
        Reply::Text("a"),
        Reply::Text("b"),
    ]);
    let scene = scene(script, plugin).await;
    scene.prompt("hi").await;
    for request in 0..3 {
        assert_eq!(
            systems(&scene.script, request).len(),
            1,
            "request {request}"
        );
    }
    scene.prompt("again").await;
    let after = systems(&scene.script, 3);
    assert_eq!(after.len(), 2);
    assert_eq!(sections(&after[1]), json!({"style": null}));
}

#[tokio::test]
async fn a_forced_prompt_is_sent_in_the_whole_run_and_never_stored() {
    // P40, P42, P43
    let runs = Arc::new(Mutex::new(0));
    let forces = Arc::clone(&runs);
    let plugin = Plugin::new()
        .tool(echo("echo"))
        .on(move |event: BeforeAgentStart, _| {
            *forces.lock().unwrap() += 1;
            async { Ok(with_style(event, "Rhyme.")) }
        })
        .on(|_: BeforeAgentStart, _| async { Ok(forcing("Not this.")) })
        .on(move |event: BeforeAgentStart, _| {
            assert_eq!(event.system_prompt, "Not this.");
            let first = *runs.lock().unwrap() == 1;
            async move {
                Ok(if first {
                    forcing("Only this.")
                } else {
                    edited(event, |options| {
                        options.insert("forceSystemPrompt".to_owned(), Value::Null);
                    })
                })
            }
        });
    let script = Script::new([
        calls([("1", "echo", json!({"text": "x"}))]),
        Reply::Fail("503: overloaded"),
        Reply::Text("a"),
        Reply::Text("b"),
    ]);
    let scene = scene(script, plugin).await;
    scene.prompt("hi").await;
    for request in 0..3 {
        let [system] = &systems(&scene.script, request)[..] else {
            panic!("not one system message in request {request}")
        };
        assert_eq!(system.content.joined_text(""), "Only this.");
        assert_eq!(system.sections, None);
        let tools = system.tools_added.as_ref().unwrap();
        assert!(tools.iter().any(|tool| tool.name == "echo"));
    }
    let stored = std::fs::read_to_string(scene.session.file().unwrap()).unwrap();
    assert!(!stored.contains("Only this.") && stored.contains("Rhyme."));
    scene.prompt("again").await;
    let [system] = &systems(&scene.script, 3)[..] else {
        panic!("not one system message")
    };
    assert_eq!(sections(system)["style"], "<style>\nRhyme.\n</style>");
}

/// A tool that is there and not active.
struct Quiet;

impl Tool for Quiet {
    type Input = EchoInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            default_active: Some(false),
            ..ToolSpec::new("quiet", "Says nothing.").snippet("say nothing")
        }
    }

    async fn execute(
        &self,
        input: EchoInput,
        _: pliant_sdk::ToolCtx,
    ) -> Result<pliant_sdk::ToolResult, Error> {
        Ok(pliant_sdk::ToolResult::text(input.text))
    }
}

#[tokio::test]
async fn selected_tools_are_the_active_ones_from_the_first_request_on() {
    // P40, T23
    let plugin = Plugin::new()
        .tool(echo("echo"))
        .tool(Quiet)
        .on(|event: BeforeAgentStart, _| async {
            Ok(edited(event, |options| {
                options["selectedTools"] = json!(["quiet", "nobody"]);
            }))
        })
        .on(|event: BeforeAgentStart, _| async move {
            let selected = &event.system_prompt_options["selectedTools"];
            assert_eq!(*selected, json!(["quiet", "nobody"]));
            Ok(BeforeAgentStartAnswer::default())
        });
    let script = Script::new([
        calls([("1", "quiet", json!({"text": "x"}))]),
        Reply::Text("a"),
    ]);
    let mut scene = scene(script, plugin).await;
    scene.prompt("hi").await;
    let [system] = &systems(&scene.script, 0)[..] else {
        panic!("not one system message")
    };
    let tools = system.tools_added.as_ref().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["quiet"]);
    let listed = "<tools>\n- quiet: say nothing\n</tools>";
    assert_eq!(sections(system)["tools"], listed);
    assert_eq!(result_texts(&scene.session), [("x".to_owned(), false)]);
    let failed = |event: &String| event.starts_with("extension_error");
    assert!(!scene.events().iter().any(failed));
}

#[tokio::test]
async fn an_abort_while_a_run_is_prepared_sends_nothing() {
    // L29, P4: what waits for the next turn is not lost
    let plugin = Plugin::new().on_event("before_agent_start", async |_, ctx| {
        ctx.host().session().abort().await?;
        Ok(Value::Null)
    });
    let mut scene = scene(Script::new([Reply::Text("never")]), plugin).await;
    let end = scene.prompt("hi").await;
    let last = end.last.unwrap();
    let reason = last.as_assistant().unwrap().stop_reason;
    assert_eq!(reason, pliant_sdk::message::StopReason::Aborted);
    assert!(scene.script.requests().is_empty());
    assert_eq!(scene.events().last().unwrap(), "agent_settled");
}

#[tokio::test]
async fn what_is_held_during_the_preparation_comes_before_the_runs_own_messages() {
    // P8, 6.8 path 6
    let runs = Arc::new(Mutex::new(0));
    let plugin = Plugin::new().on_event("before_agent_start", move |_, ctx| {
        *runs.lock().unwrap() += 1;
        let (run, ctx) = (*runs.lock().unwrap(), ctx);
        async move {
            let session = ctx.host().session();
            let options = MessageOptions {
                trigger_turn: Some(false),
                ..MessageOptions::default()
            };
            let aside = note(&format!("aside {run}"));
            session.send_message(aside, options).await?;
            session
                .send_message(note("joins"), MessageOptions::default())
                .await?;
            Ok(Value::Null)
        }
    });
    let script = Script::new([Reply::Text("a"), Reply::Text("b")]);
    let scene = scene(script, plugin).await;
    scene.prompt("one").await;
    scene.prompt("two").await;
    let requests = scene.script.requests();
    let first = ["user:aside 1", "system", "user:one", "user:joins"];
    assert_eq!(requests[0], first);
    let second = ["assistant:a", "user:aside 2", "user:two", "user:joins"];
    assert_eq!(requests[1][4..], second);
}

#[tokio::test]
async fn a_compaction_before_a_prompt_only_compacts() {
    // P37, P38: the prompt takes the place of the answer that did not fit
    use crate::compaction::{TOO_LARGE, small};
    let off = json!({"compaction": {"enabled": false}});
    let replies = [
        Reply::Text("A long answer that stays as it is, word for word, as the last one."),
        Reply::Fail(TOO_LARGE),
    ];
    let first = scene_with(Script::new(replies), Plugin::new(), off).await;
    first.prompt("one").await;
    first.prompt("two").await;
    first.session.close("quit").await;
    let dir = first.dir.path();
    std::fs::write(dir.join("agent/settings.json"), small().to_string()).unwrap();
    let kernel = kernel_in(dir);
    let script = Script::new(["SUMMARY", "SUMMARY", "three is answered"].map(Reply::Text));
    let fake = Plugin::new()
        .wire(ScriptedWire(script.clone()))
        .provider(ScriptedProvider);
    let source = Source::inline("fake", Rank::User);
    let fake = Arc::new(InProcess::new(source, fake).unwrap());
    kernel.registry().publish(fake);
    let open = OpenOptions {
        session: SessionChoice::Continue,
        ..OpenOptions::default()
    };
    let session = kernel.open_session(open).await.unwrap();
    let mut events = session.subscribe();
    session.prompt(Prompt::text("three"), |_| ()).await.unwrap();
    let mut told = Vec::new();
    while let Ok(event) = events.try_recv() {
        told.extend(word(&event));
    }
    let began = |word: &&String| word.starts_with("compaction_start") || *word == "agent_start";
    let began: Vec<_> = told.iter().filter(began).collect();
    assert_eq!(began, ["compaction_start Overflow", "agent_start"]);
    let requests = script.requests();
    let answered = requests
        .iter()
        .filter(|r| r.last().unwrap() == "user:three");
    assert_eq!(answered.count(), 1);
    assert_eq!(requests.last().unwrap().last().unwrap(), "user:three");
}

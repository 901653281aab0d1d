//! Messages and entries of plugins: the ways they take, and what is put off until a run has settled.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pliant_kernel::registry::{InProcess, Rank, Source};
use pliant_kernel::session::Session;
use pliant_sdk::hook::{InputAnswer, InputEvent, ToolCallAnswer, ToolCallEvent};
use pliant_sdk::message::MessageContent;
use pliant_sdk::session::{MessageDraft, MessageOptions, SendAs, UserMessageOptions};
use pliant_sdk::{Error, Host, Plugin};
use serde_json::{Value, json};

use crate::support::*;

fn note(text: &str) -> MessageDraft {
    MessageDraft::text("note", text)
}

fn as_(deliver_as: SendAs) -> MessageOptions {
    MessageOptions {
        deliver_as: Some(deliver_as),
        ..MessageOptions::default()
    }
}

fn turn(trigger_turn: bool) -> MessageOptions {
    MessageOptions {
        trigger_turn: Some(trigger_turn),
        ..MessageOptions::default()
    }
}

/// Says something in the user's name.
async fn say(host: &Host, text: &str, deliver_as: Option<SendAs>) -> Result<(), Error> {
    let options = UserMessageOptions {
        deliver_as,
        ..UserMessageOptions::default()
    };
    let content = MessageContent::Text(text.to_owned());
    host.session().send_user_message(content, options).await
}

/// Does something in every call of the tool `echo`, before it runs.
fn in_each_call<F>(act: impl Fn(Host) -> F + Send + Sync + 'static) -> Plugin
where
    F: Future<Output = Result<(), Error>> + Send + 'static,
{
    let act = Arc::new(act);
    Plugin::new()
        .tool(echo("echo"))
        .on(move |_: ToolCallEvent, ctx| {
            let act = Arc::clone(&act);
            async move {
                act(ctx.host().clone()).await?;
                Ok(ToolCallAnswer::default())
            }
        })
}

fn one_call() -> Reply {
    calls([("1", "echo", json!({"text": "x"}))])
}

async fn idle(session: &Session) {
    let idle = tokio::time::timeout(Duration::from_secs(10), session.wait_idle());
    idle.await.expect("is idle");
}

fn count(events: &[String], word: &str) -> usize {
    events.iter().filter(|event| *event == word).count()
}

#[tokio::test]
async fn a_message_for_the_next_turn_waits_for_the_next_prompt() {
    // R42 path 1, P41
    let mut scene = scene(Script::new([Reply::Text("ok")]), Plugin::new()).await;
    for text in ["first", "second"] {
        let sent = scene
            .session
            .send_message(note(text), as_(SendAs::NextTurn), None);
        sent.await.unwrap();
    }
    idle(&scene.session).await;
    assert!(scene.events().is_empty());
    scene.prompt("hi").await;
    assert_eq!(
        scene.script.requests(),
        [["system", "user:hi", "user:first", "user:second"]]
    );
    let stored = std::fs::read_to_string(scene.session.file().unwrap()).unwrap();
    assert_eq!(stored.matches("\"type\":\"custom_message\"").count(), 2);
}

#[tokio::test]
async fn while_a_run_is_active_messages_join_its_queues_unseen() {
    // R42 paths 2 and 3, P32
    let plugin = in_each_call(async |host: Host| {
        let session = host.session();
        session
            .send_message(note("late"), as_(SendAs::FollowUp))
            .await?;
        session
            .send_message(note("soon"), MessageOptions::default())
            .await
    });
    let script = Script::new([one_call(), Reply::Text("a"), Reply::Text("b")]);
    let mut scene = scene(script, plugin).await;
    scene.prompt("go").await;
    let requests = scene.script.requests();
    assert_eq!(requests[1][2..], ["assistant:", "result:x", "user:soon"]);
    assert_eq!(requests[2][5..], ["assistant:a", "user:late"]);
    let events = scene.events();
    assert_eq!(count(&events, "message_end custom"), 2);
    let told = |event: &&String| event.starts_with("queue_update");
    assert_eq!(events.iter().find(told), None);
}

#[tokio::test]
async fn a_message_that_wants_no_turn_stands_behind_the_results_of_the_turn() {
    // R42 path 6, L30 (7), invariants 11 and 37
    let plugin = in_each_call(async |host: Host| {
        host.session()
            .send_message(note("aside"), turn(false))
            .await
    });
    let two = calls([
        ("1", "echo", json!({"text": "x"})),
        ("2", "echo", json!({"text": "y"})),
    ]);
    let mut scene = scene(Script::new([two, Reply::Text("done")]), plugin).await;
    scene.prompt("go").await;
    let requests = scene.script.requests();
    assert_eq!(
        requests[1][2..],
        [
            "assistant:",
            "result:x",
            "result:y",
            "user:aside",
            "user:aside"
        ]
    );
    let events = scene.events();
    let at = |word: &str| events.iter().position(|event| event == word).unwrap();
    assert!(at("turn_end") < at("message_start custom"));
    assert!(at("message_end custom") < events.iter().rposition(|e| e == "turn_start").unwrap());
}

#[tokio::test]
async fn a_message_to_an_idle_session_is_stored_and_announced_or_starts_a_run() {
    // R42 paths 4 and 5, R2
    let script = Script::new([Reply::Text("hello"), Reply::Text("noted")]);
    let mut scene = scene(script, Plugin::new()).await;
    scene.prompt("hi").await;
    scene.events();
    let sent = scene
        .session
        .send_message(note("stored"), MessageOptions::default(), None);
    sent.await.unwrap();
    assert_eq!(
        scene.events(),
        ["message_start custom", "message_end custom"]
    );
    assert_eq!(scene.script.requests().len(), 1);
    let sent = scene.session.send_message(note("act"), turn(true), None);
    sent.await.unwrap();
    idle(&scene.session).await;
    assert_eq!(scene.script.requests()[1][3..], ["user:stored", "user:act"]);
    let events = scene.events();
    assert_eq!(events[0], "agent_start");
    assert_eq!(events.last().unwrap(), "agent_settled");
}

#[tokio::test]
async fn a_message_that_cannot_start_its_run_is_an_error_of_its_sender() {
    // extensions §5.3: errors are reported as send_message
    let plugin = Plugin::new().on_event("agent_settled", async |_, ctx| {
        let options = json!({"triggerTurn": true});
        let message = json!({"customType": "note", "content": 5});
        let payload = json!({"message": message, "options": options});
        let sent: Result<Value, Error> = ctx.host().call("session.send_message", &payload).await;
        let error = sent.unwrap_err().to_string();
        assert!(error.contains("text and image blocks"), "{error}");
        Ok(Value::Null)
    });
    let mut scene = scene(Script::new([Reply::Text("a")]), plugin).await;
    scene.prompt("go").await;
    assert_eq!(count(&scene.events(), "agent_settled"), 1);
    let session = scene.session.clone();
    session.close("quit").await;
    let refused = session.send_message(note("x"), turn(true), None).await;
    assert!(refused.unwrap_err().to_string().contains("has ended"));
}

#[tokio::test]
async fn a_message_in_the_users_name_needs_a_place_while_a_run_is_active() {
    // R43, P30, extensions §5.3
    let plugin = in_each_call(async |host: Host| {
        say(&host, "placeless", None).await?;
        say(&host, "/unknown first", Some(SendAs::Steer)).await?;
        say(&host, "second", Some(SendAs::Steer)).await
    });
    let script = Script::new([one_call(), Reply::Text("a"), Reply::Text("b")]);
    let mut scene = scene(script, plugin).await;
    scene.prompt("go").await;
    let requests = scene.script.requests();
    assert_eq!(requests[1].last().unwrap(), "user:/unknown first");
    assert_eq!(requests[2].last().unwrap(), "user:second");
    let events = scene.events();
    assert_eq!(count(&events, "extension_error send_user_message"), 1);
    assert_eq!(events.last().unwrap(), "agent_settled");
}

#[tokio::test]
async fn a_message_sent_when_a_run_ends_still_joins_it() {
    // 6.2 step 6, R43
    let once = Arc::new(Mutex::new(true));
    let plugin = Plugin::new().on_event("agent_end", move |_, ctx| {
        let first = std::mem::take(&mut *once.lock().unwrap());
        async move {
            if first {
                say(ctx.host(), "one more", Some(SendAs::FollowUp)).await?;
            }
            Ok(Value::Null)
        }
    });
    let mut scene = scene(Script::new([Reply::Text("a"), Reply::Text("b")]), plugin).await;
    scene.prompt("go").await;
    assert_eq!(scene.script.requests()[1].last().unwrap(), "user:one more");
    let events = scene.events();
    assert_eq!(count(&events, "agent_start"), 2);
    assert_eq!(count(&events, "agent_settled"), 1);
}

#[tokio::test]
async fn what_is_asked_while_a_run_settles_follows_in_order_when_all_have_heard() {
    // R3, R4, P5, invariant 18
    let once = Arc::new(Mutex::new(true));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (first_heard, second_heard) = (Arc::clone(&heard), Arc::clone(&heard));
    let plugin = Plugin::new()
        .on_event("agent_settled", move |_, ctx| {
            let first = std::mem::take(&mut *once.lock().unwrap());
            let heard = Arc::clone(&first_heard);
            async move {
                if first {
                    say(ctx.host(), "one", None).await?;
                    let session = ctx.host().session();
                    session.send_message(note("two"), turn(true)).await?;
                    say(ctx.host(), "three", None).await?;
                    assert!(session.is_idle().await?);
                }
                heard.lock().unwrap().push("first");
                Ok(Value::Null)
            }
        })
        .on_event("agent_settled", move |_, _| {
            second_heard.lock().unwrap().push("second");
            async { Ok(Value::Null) }
        })
        .on_event("agent_start", move |_, _| {
            heard.lock().unwrap().push("start");
            async { Ok(Value::Null) }
        });
    let heard = {
        let replies = ["a", "b", "c", "d"].map(Reply::Text);
        let mut scene = scene(Script::new(replies), plugin).await;
        scene.prompt("go").await;
        // The prompt returns after all of them.
        let requests = scene.script.requests();
        let said: Vec<_> = requests
            .iter()
            .map(|r| r.last().unwrap().as_str())
            .collect();
        assert_eq!(said[0], "user:go");
        let mut after = said[1..].to_vec();
        after.sort_unstable();
        assert_eq!(after, ["user:one", "user:three", "user:two"]);
        assert!(scene.session.is_idle());
        let events = scene.events();
        assert_eq!(count(&events, "agent_settled"), 4);
        assert_eq!(events.last().unwrap(), "agent_settled");
        events
    };
    let order: Vec<_> = heard
        .iter()
        .filter(|event| matches!(event.as_str(), "agent_start" | "agent_settled"))
        .collect();
    assert_eq!(order.len(), 8);
    assert!(order.chunks(2).all(|pair| pair[0] == "agent_start"));
}

/// The events that a run of one tool call dispatches.
const EVERY_EVENT: [&str; 15] = [
    "input",
    "before_agent_start",
    "agent_start",
    "agent_end",
    "agent_settled",
    "turn_start",
    "turn_end",
    "context",
    "message_start",
    "message_update",
    "message_end",
    "tool_execution_start",
    "tool_call",
    "tool_result",
    "tool_execution_end",
];

#[tokio::test]
async fn a_prompt_from_every_event_is_answered_and_none_hangs() {
    // R4, R43, invariant 39
    let sent = Arc::new(Mutex::new(HashSet::new()));
    let plugin = EVERY_EVENT
        .into_iter()
        .fold(Plugin::new().tool(echo("echo")), |plugin, event| {
            let sent = Arc::clone(&sent);
            plugin.on_event(event, move |_, ctx| {
                let first = sent.lock().unwrap().insert(event);
                async move {
                    if first {
                        say(ctx.host(), event, Some(SendAs::FollowUp)).await?;
                    }
                    Ok(Value::Null)
                }
            })
        });
    let answers = std::iter::repeat_with(|| Reply::Text("ok")).take(20);
    let script = Script::new(std::iter::once(one_call()).chain(answers));
    let mut scene = scene(script, plugin).await;
    // The prompt of the `input` handler may come first, and this one is then refused or queued.
    let prompt = pliant_kernel::pipeline::Prompt {
        when_active: Some(pliant_kernel::pipeline::WhenActive::FollowUp),
        ..pliant_kernel::pipeline::Prompt::text("go")
    };
    let prompted = scene.session.prompt(prompt, |_| ());
    let end = tokio::time::timeout(Duration::from_secs(20), prompted);
    end.await.expect("settles").unwrap();
    idle(&scene.session).await;
    let asked = scene.script.requests().pop().unwrap();
    let sent = sent.lock().unwrap();
    for event in sent.iter() {
        let said = format!("user:{event}");
        assert!(asked.contains(&said), "{event} of {asked:?}");
    }
    assert!(sent.len() >= 14, "{sent:?}");
    let events = scene.events();
    assert_eq!(
        count(&events, "extension_error send_user_message"),
        0,
        "{events:?}"
    );
    assert_eq!(events.last().unwrap(), "agent_settled");
}

#[tokio::test]
async fn an_entry_of_a_plugin_is_told_and_no_model_sees_it() {
    // extensions §5.3 appendEntry
    let plugin = in_each_call(async |host: Host| {
        let data = json!({"count": 1});
        let entry = host.session().append("state", Some(data)).await?;
        assert_eq!(entry["customType"], "state");
        Ok(())
    });
    let mut scene = scene(Script::new([one_call(), Reply::Text("a")]), plugin).await;
    scene.prompt("go").await;
    assert_eq!(count(&scene.events(), "entry_appended"), 1);
    assert_eq!(scene.script.requests()[1].len(), 4);
    let stored = std::fs::read_to_string(scene.session.file().unwrap()).unwrap();
    assert!(
        stored.contains(r#""customType":"state","data":{"count":1}"#),
        "{stored}"
    );
}

#[tokio::test]
async fn a_session_that_ends_takes_no_more_prompts_and_its_end_is_reached() {
    // invariant 39; a handler of the end must not keep the session
    let plugin = Plugin::new()
        .on_event("agent_settled", async |_, ctx| {
            say(ctx.host(), "again", None).await?;
            Ok(Value::Null)
        })
        .on_event("session_shutdown", async |_, ctx| {
            say(ctx.host(), "after the end", None).await?;
            Ok(Value::Null)
        });
    let mut scene = scene(Script::new([Reply::Hang("half")]), plugin).await;
    let session = scene.session.clone();
    let mut events = session.subscribe();
    let closing = async {
        while let Some(event) = events.recv().await {
            if matches!(*event, pliant_sdk::Event::MessageUpdate { .. }) {
                break;
            }
        }
        session.close("quit").await;
    };
    tokio::join!(scene.prompt("go"), closing);
    assert_eq!(scene.script.requests().len(), 1);
    let events = scene.events();
    assert_eq!(
        count(&events, "extension_error send_user_message"),
        2,
        "{events:?}"
    );
}

#[tokio::test]
async fn a_handler_that_registers_others_does_not_change_the_dispatch_it_is_in() {
    // G3, invariant 38
    let dir = tempfile::tempdir().unwrap();
    let kernel = kernel_in(dir.path());
    let registry = Arc::clone(kernel.registry());
    let script = Script::new([Reply::Text("a"), Reply::Text("b")]);
    let transform = |text: String| InputAnswer::Transform { text, images: None };
    let marks = move |mark: &'static str| {
        move |input: InputEvent, _| {
            std::future::ready(Ok(transform(format!("{}{mark}", input.text))))
        }
    };
    let publish = move |registry: &pliant_kernel::registry::Registry, name: &str, plugin| {
        let source = Source::inline(name, Rank::User);
        registry.publish(Arc::new(InProcess::new(source, plugin).unwrap()));
    };
    let fake = Plugin::new()
        .wire(ScriptedWire(script.clone()))
        .provider(ScriptedProvider);
    publish(&registry, "fake", fake);
    let inner = Arc::clone(&registry);
    let old = Plugin::new()
        .on(move |input: InputEvent, _| {
            let new = Plugin::new().on(marks("-new")).on(marks("-new2"));
            publish(&inner, "extension", new);
            std::future::ready(Ok(transform(format!("{}-old", input.text))))
        })
        .on(marks("-old2"));
    publish(&registry, "extension", old);
    let session = open_session(&kernel).await;
    for text in ["1", "2"] {
        let prompt = pliant_kernel::pipeline::Prompt::text(text);
        session.prompt(prompt, |_| ()).await.unwrap();
    }
    let requests = script.requests();
    assert_eq!(requests[0].last().unwrap(), "user:1-old-old2");
    assert_eq!(requests[1].last().unwrap(), "user:2-new-new2");
}

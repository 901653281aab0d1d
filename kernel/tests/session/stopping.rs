//! An abort while handlers work: what they were to decide is decided by them or kept back, what hangs is
//! left behind and named, and the run ends as every run does (`kernel.md` R51, `extensions.md` §6).

use std::future::pending;
use std::sync::{Arc, Mutex};

use pliant_kernel::pipeline::{Prompt, PromptError};
use pliant_kernel::session::Session;
use pliant_sdk::message::StopReason;
use pliant_sdk::plugin::CallCtx;
use pliant_sdk::{Error, Plugin};
use serde_json::{Value, json};

use crate::support::*;

async fn abort(ctx: &CallCtx) {
    ctx.host().session().abort().await.unwrap();
}

/// A call of a tool that tells a secret, and an answer that is not asked for.
fn told() -> Script {
    let call = calls([("1", "echo", json!({"text": "SECRET"}))]);
    Script::new([call, Reply::Text("Not asked for.")])
}

/// Everything that is stored.
fn stored(session: &Session) -> String {
    let entries = session.entries();
    entries
        .iter()
        .map(|entry| entry.to_json().to_string() + "\n")
        .collect()
}

/// What the handlers of a run that was stopped were told off for, and that it ended as it should.
fn ended(scene: &mut Scene) -> Vec<String> {
    let events = scene.events();
    let last = |kind: &str| events.iter().rposition(|event| event == kind);
    assert!(last("agent_end") < last("agent_settled"), "{events:?}");
    assert_eq!(last("agent_settled"), Some(events.len() - 1), "{events:?}");
    let told = events
        .iter()
        .filter_map(|event| event.strip_prefix("extension_error "));
    told.map(ToOwned::to_owned).collect()
}

#[tokio::test]
async fn a_result_that_a_handler_works_on_is_stored_as_the_handler_leaves_it() {
    // R51, T15: a secret must not get by because the user gave up.
    let plugin = Plugin::new()
        .tool(echo("echo"))
        .on_event("tool_result", |_, ctx| async move {
            abort(&ctx).await;
            for _ in 0..5 {
                tokio::task::yield_now().await;
            }
            Ok(json!({"content": "[taken out]"}))
        })
        .on_event("tool_result", |event: Value, _| async move {
            assert_eq!(event["content"][0]["text"], "[taken out]");
            Ok(json!({"content": "[taken out twice]"}))
        });
    let mut scene = scene(told(), plugin).await;
    scene.prompt("go").await;
    assert_eq!(ended(&mut scene), [""; 0]);
    let results = result_texts(&scene.session);
    assert_eq!(results, [("[taken out twice]".to_owned(), false)]);
    assert_eq!(scene.script.requests().len(), 1);
}

/// Hangs once the user has given up, with what is to be kept back before it.
fn hangs_at(event: &'static str) -> Plugin {
    Plugin::new()
        .tool(echo("echo"))
        .on_event(event, |event: Value, ctx| async move {
            let role = &event["message"]["role"];
            if role.is_null() || role == "toolResult" {
                abort(&ctx).await;
                pending::<()>().await;
            }
            Ok(Value::Null)
        })
}

#[tokio::test]
async fn a_result_that_a_handler_does_not_finish_with_is_kept_back() {
    // R51, T15, G7
    let at = async |event: &'static str| {
        let mut scene = scene(told(), hangs_at(event)).await;
        scene.prompt("go").await;
        assert_eq!(ended(&mut scene), [event]);
        let [(text, is_error)] = &result_texts(&scene.session)[..] else {
            panic!("one call has one result (T8)")
        };
        assert!(*is_error && text.contains("\"extension\""), "{text}");
        let stored = stored(&scene.session);
        let results = stored.lines().filter(|line| line.contains("toolResult"));
        assert!(
            results.clone().all(|line| !line.contains("SECRET")),
            "{stored}"
        );
        assert_eq!(results.count(), 1);
        // The call stays with its arguments: the handler was not at work on them.
        let end = scene.prompt("and now?").await;
        assert_eq!(scene.script.requests().len(), 2);
        assert_eq!(
            end.last.unwrap().as_assistant().unwrap().stop_reason,
            StopReason::Stop
        );
    };
    tokio::join!(at("tool_result"), at("message_end"));
}

#[tokio::test]
async fn an_answer_that_a_handler_does_not_finish_with_is_kept_back_with_its_calls() {
    // R51, G7, L16
    let plugin =
        Plugin::new()
            .tool(echo("echo"))
            .on_event("message_end", |event: Value, ctx| async move {
                if event["message"]["role"] == "assistant" {
                    abort(&ctx).await;
                    pending::<()>().await;
                }
                Ok(Value::Null)
            });
    let mut scene = scene(told(), plugin).await;
    let last = scene.prompt("go").await.last.unwrap();
    let answer = last.as_assistant().unwrap();
    assert_eq!(
        (answer.stop_reason, answer.tool_calls().count()),
        (StopReason::Aborted, 0)
    );
    assert_eq!(ended(&mut scene), ["message_end"]);
    assert!(!stored(&scene.session).contains("SECRET"));
}

#[tokio::test]
async fn a_prompt_whose_handler_is_stopped_is_not_sent_as_it_was_typed() {
    // R51, P16, P4
    let plugin = Plugin::new().on_event("input", |_, ctx| async move {
        abort(&ctx).await;
        pending::<Result<Value, Error>>().await
    });
    let mut scene = scene(told(), plugin).await;
    let refused = scene.session.prompt(Prompt::text("SECRET"), |_| ()).await;
    let extension = "extension".to_owned();
    assert_eq!(refused.unwrap_err(), PromptError::Stopped { extension });
    assert_eq!(scene.events(), [""; 0]);
    assert!(!stored(&scene.session).contains("SECRET"));
    assert_eq!(scene.script.requests().len(), 0);
}

#[tokio::test]
async fn handlers_that_hang_after_an_abort_are_named_and_the_run_ends_with_all_its_events() {
    // R51, L32, extensions §6, invariant 18
    let after = ["message_end", "turn_end", "agent_end", "agent_settled"];
    let given_up = Arc::new(Mutex::new(false));
    let abort_at_the_call = |given_up: Arc<Mutex<bool>>| {
        move |_: Value, ctx: CallCtx| {
            let given_up = Arc::clone(&given_up);
            async move {
                abort(&ctx).await;
                *given_up.lock().unwrap() = true;
                Ok(Value::Null)
            }
        }
    };
    let plugin = Plugin::new().tool(echo("echo")).on_event(
        "tool_execution_end",
        abort_at_the_call(Arc::clone(&given_up)),
    );
    let plugin = after.iter().fold(plugin, |plugin, event| {
        let given_up = Arc::clone(&given_up);
        plugin.on_event(event, move |_, _| {
            let hangs = *given_up.lock().unwrap();
            async move {
                match hangs {
                    true => pending().await,
                    false => Ok(Value::Null),
                }
            }
        })
    });
    let mut scene = scene(told(), plugin).await;
    scene.prompt("go").await;
    let told = ended(&mut scene);
    for event in after {
        assert!(told.iter().any(|told| told == event), "{event}: {told:?}");
    }
    assert!(scene.session.is_idle());
}

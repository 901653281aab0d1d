//! What handlers, tools and commands may ask of their session.

use std::sync::{Arc, Mutex};

use pliant_kernel::registry::Registry;
use pliant_sdk::error::code;
use pliant_sdk::message::AssistantMessage;
use pliant_sdk::provider::{StreamOut, StreamRequest, Wire};
use pliant_sdk::stream::MessageWriter;
use pliant_sdk::{Error, Host, Plugin};
use serde_json::{Value, json};

use crate::support::*;

#[tokio::test]
async fn session_control_is_refused_outside_commands_instead_of_hanging() {
    // extensions §5.1, §9.16
    let said = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&said);
    let plugin = Plugin::new().on_event("turn_end", move |_, ctx| {
        let heard = Arc::clone(&heard);
        async move {
            let waited = ctx.host().session().wait_idle().await;
            heard.lock().unwrap().push(waited.unwrap_err().to_string());
            let idle = ctx.host().session().is_idle().await;
            assert!(!idle.unwrap());
            Ok(Value::Null)
        }
    });
    let scene = scene(Script::new([Reply::Text("hello")]), plugin).await;
    scene.prompt("hi").await;
    let said = said.lock().unwrap();
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("in a command only"), "{}", said[0]);
}

#[tokio::test]
async fn a_session_that_has_ended_answers_nobody_who_kept_a_handle() {
    // G2, extensions §6 (1, 2)
    let kept = Arc::new(Mutex::new(None));
    let keeps = Arc::clone(&kept);
    let plugin = Plugin::new().on_event("session_start", move |_, ctx| {
        *keeps.lock().unwrap() = Some(ctx.host().clone());
        async { Ok(Value::Null) }
    });
    let scene = scene(Script::new([]), plugin).await;
    let host = kept.lock().unwrap().take().unwrap();
    assert!(host.session().is_idle().await.unwrap());
    scene.session.close("quit").await;
    let refused = host.session().is_idle().await.unwrap_err();
    assert!(refused.is(code::STALE), "{refused}");
    assert!(refused.to_string().contains("has ended"), "{refused}");
}

#[tokio::test]
async fn extensions_hear_what_others_say_on_a_channel_and_failures_are_theirs() {
    // extensions §4.11
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&heard);
    let plugin = Plugin::new()
        .on_bus("news", |_, _| async { Err(Error::failed("deaf")) })
        .on_bus("news", move |data, _| {
            hears.lock().unwrap().push(data);
            async { Ok(()) }
        })
        .on_bus("other", |_, _| async { panic!("never said") })
        .on_event("turn_end", |_, ctx| async move {
            let said = ctx.host().session().emit("news", &json!({"n": 1})).await;
            said.map(|()| Value::Null)
        });
    let mut scene = scene(Script::new([Reply::Text("hello")]), plugin).await;
    scene.prompt("hi").await;
    assert_eq!(*heard.lock().unwrap(), [json!({"n": 1})]);
    let mut errors = scene.events();
    errors.retain(|event| event.starts_with("extension_error"));
    assert_eq!(errors, ["extension_error events:news"]);
}

#[tokio::test]
async fn a_handler_that_causes_its_own_event_comes_to_an_end() {
    // Invariant 39, extensions §4.11
    let plugin = Plugin::new()
        .on_bus("echo", |data, ctx| async move {
            let _ = ctx.host().session().emit("echo", &data).await;
            Ok(())
        })
        .on_event("session_info_changed", |event, ctx| async move {
            let name = format!("{}x", event["name"].as_str().unwrap_or_default());
            let host = ctx.host();
            host.call::<Value>("session.set_name", &json!({"name": name}))
                .await
        })
        .on_event("thinking_level_select", |event, ctx| async move {
            let level = match event["level"].as_str() {
                Some("high") => "low",
                _ => "high",
            };
            let host = ctx.host();
            host.call::<Value>("session.set_thinking_level", &json!({"level": level}))
                .await
        })
        .on_event("turn_end", |_, ctx| async move {
            let host = ctx.host();
            let _ = host.session().emit("echo", &json!(1)).await;
            let name = json!({"name": "x"});
            let _ = host.call::<Value>("session.set_name", &name).await;
            let level = json!({"level": "high"});
            let _ = host
                .call::<Value>("session.set_thinking_level", &level)
                .await;
            Ok(Value::Null)
        });
    let scene = scene(Script::new([Reply::Text("hello")]), plugin).await;
    scene.prompt("hi").await;
    assert!(scene.session.is_idle());
}

#[tokio::test]
async fn what_code_was_lent_ends_when_it_is_replaced_and_its_last_call_is_over() {
    // G2, extensions §6 (1, 2)
    let kept = Arc::new(Mutex::new(None));
    let keeps = Arc::clone(&kept);
    let plugin = Plugin::new().on_event("turn_start", move |_, ctx| {
        *keeps.lock().unwrap() = Some(ctx.host().clone());
        async { Ok(Value::Null) }
    });
    let scene = scene(Script::new([Reply::Text("a"), Reply::Text("b")]), plugin).await;
    scene.prompt("hi").await;
    let host = kept.lock().unwrap().take().unwrap();
    assert!(host.session().is_idle().await.unwrap());
    // Also of a session that does nothing: what it kept of the last run is not kept for the code.
    scene.publish("extension", Plugin::new());
    let refused = host.session().is_idle().await.unwrap_err();
    assert!(refused.is(code::STALE), "{refused}");
    scene.prompt("again").await;
}

#[tokio::test]
async fn what_ends_with_its_generation_may_change_the_registry() {
    // G10, invariant 40
    struct Registers(Arc<Registry>);
    impl Drop for Registers {
        fn drop(&mut self) {
            self.0.withdraw("nobody");
        }
    }
    let scene = scene(
        Script::new([Reply::Text("a"), Reply::Text("b")]),
        Plugin::new(),
    )
    .await;
    let registers = Registers(Arc::clone(&scene.registry));
    let plugin = Plugin::new()
        .tool(echo("echo"))
        .on_event("turn_start", move |_, _| {
            let _ = &registers;
            async { Ok(Value::Null) }
        });
    scene.publish("other", plugin);
    scene.prompt("hi").await;
    let before = scene.registry.snapshot().number();
    scene.registry.withdraw("other");
    assert_eq!(scene.registry.snapshot().number(), before + 2);
    scene.prompt("again").await;
}

#[tokio::test]
async fn what_a_wire_was_lent_ends_with_it() {
    // G2, extensions §6 (1, 2)
    #[derive(Clone, Default)]
    struct Keeps(Arc<Mutex<Option<Host>>>);
    impl Wire for Keeps {
        fn api(&self) -> &'static str {
            "scripted"
        }

        async fn stream(
            &self,
            request: StreamRequest,
            out: StreamOut,
        ) -> Result<AssistantMessage, Error> {
            *self.0.lock().unwrap() = Some(out.host().clone());
            Ok(MessageWriter::new(request.answer(), &out).finish(None))
        }
    }
    let keeps = Keeps::default();
    let scene = scene(Script::new([]), Plugin::new()).await;
    let fake = |wire| Plugin::new().wire(wire).provider(ScriptedProvider);
    scene.publish("fake", fake(keeps.clone()));
    scene.prompt("hi").await;
    let host = keeps.0.lock().unwrap().take().unwrap();
    host.sleep_ms(0).await.unwrap();
    let other = Script::new([Reply::Text("hello")]);
    let plugin = Plugin::new()
        .wire(ScriptedWire(other))
        .provider(ScriptedProvider);
    scene.publish("fake", plugin);
    scene.prompt("again").await;
    let refused = host.sleep_ms(0).await.unwrap_err();
    assert!(refused.is(code::STALE), "{refused}");
}

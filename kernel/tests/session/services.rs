//! What handlers, tools and commands may ask of their session.

use std::sync::{Arc, Mutex};

use pliant_sdk::Plugin;
use pliant_sdk::error::code;
use serde_json::Value;

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

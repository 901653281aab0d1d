//! Fixture: calls that cost nothing but themselves, to be measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use pliant_sdk::{Error, Host, Init, Plugin};
use serde_json::{Value, json};

/// What is emitted: about as much as a piece of an answer.
const PIECE: &[u8] = br#"{"type":"text_delta","contentIndex":0,"delta":" token"}"#;

/// Notes when it is dropped, nanoseconds since 1970.
struct Dropped(Arc<AtomicU64>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(0));
        self.0.store(now, Ordering::SeqCst);
    }
}

fn create(host: Host, _init: Init) -> Result<Plugin, Error> {
    let dropped: Arc<AtomicU64> = Arc::default();
    let when = Arc::clone(&dropped);
    Ok(Plugin::new()
        // Answers at once.
        .on_event("agent_start", |_, _| async { Ok(Value::Null) })
        // Emits so many pieces.
        .on_event("agent_end", |count, ctx| async move {
            for _ in 0..count.as_u64().unwrap_or(0) {
                ctx.emit(PIECE);
            }
            Ok(Value::Null)
        })
        // Answers what it is sent.
        .on_event("turn_start", |payload, _| async { Ok(payload) })
        // Waits for ever, and notes when it is given up.
        .on_event("turn_end", move |_, _| {
            let dropped = Dropped(Arc::clone(&dropped));
            async move {
                let _dropped = dropped;
                std::future::pending().await
            }
        })
        // Asks with what the plugin was created with, and answers the code of the error.
        .on_event("message_end", move |_, _| {
            let host = host.clone();
            async move {
                let asked = host.config("theme").await;
                Ok(asked.map_or_else(|error| json!(error.code), |_| json!("answered")))
            }
        })
        .control("nothing", |(): ()| Ok(()))
        .control("dropped", move |(): ()| {
            Ok(json!(when.load(Ordering::SeqCst)))
        }))
}

pliant_sdk::export! {
    name: "bench",
    provides: { hook "agent_start", hook "agent_end", hook "turn_start", hook "turn_end",
        hook "message_end" },
    create: create,
}

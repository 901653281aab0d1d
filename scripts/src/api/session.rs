//! `ctx.session`: reading the session's tree. What is answered is of the moment: ask again instead of
//! keeping it.

use std::sync::Arc;

use rhai::{Dynamic, Engine, EvalAltResult, Map};
use serde_json::{Value, json};

use super::Ctx;
use super::ask::ask_of;
use crate::call::{Call, ScriptResult};

/// The session of one call, for reading.
#[derive(Clone)]
pub(crate) struct SessionView {
    call: Arc<Call>,
}

impl SessionView {
    fn read(&self, question: &Value) -> ScriptResult<Dynamic> {
        ask_of(&self.call, "session.read", question)
    }

    /// One line of what the session is.
    fn info(&self, field: &str) -> ScriptResult<Dynamic> {
        let info = self.read(&json!({"what": "info"}))?;
        let info = info.try_cast::<Map>().unwrap_or_default();
        Ok(info.get(field).cloned().unwrap_or_default())
    }
}

/// Questions without an argument, by the function that asks them.
const WHAT: [(&str, &str); 8] = [
    ("header", "header"),
    ("entries", "entries"),
    ("branch", "branch"),
    ("tree", "tree"),
    ("leaf_id", "leafId"),
    ("leaf_entry", "leafEntry"),
    ("context_entries", "contextEntries"),
    ("projection", "projection"),
];

/// What the session is, by the function that answers it.
const INFO: [(&str, &str); 5] = [
    ("cwd", "cwd"),
    ("dir", "sessionDir"),
    ("id", "sessionId"),
    ("file", "sessionFile"),
    ("name", "sessionName"),
];

pub(super) fn install(engine: &mut Engine) {
    engine.register_type_with_name::<SessionView>("Session");
    engine.register_get("session", |ctx: &mut Ctx| SessionView {
        call: Arc::clone(ctx.call()),
    });
    for (function, what) in WHAT {
        engine.register_fn(function, move |session: &mut SessionView| {
            session.read(&json!({ "what": what }))
        });
    }
    for (function, field) in INFO {
        engine.register_fn(function, move |session: &mut SessionView| {
            session.info(field)
        });
    }
    engine.register_fn("branch", |session: &mut SessionView, id: &str| {
        session.read(&json!({"what": "branch", "from": id}))
    });
    for what in ["entry", "label"] {
        engine.register_fn(
            what,
            move |session: &mut SessionView, id: &str| -> Result<Dynamic, Box<EvalAltResult>> {
                session.read(&json!({"what": what, "id": id}))
            },
        );
    }
}

//! `commands()` and `settings()`: what can be called by a slash, and the user's settings.

use rhai::{Dynamic, Engine};
use serde_json::{Value, json};

use super::ask::ask;
use crate::call::ScriptResult;

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("commands", || {
        ask("commands", "session.commands", &Value::Null)
    });
    engine.register_fn("settings", || settings(&Value::Null));
    engine.register_fn("settings", |key: &str| settings(&json!(key)));
}

/// All settings, or one by its key, `a.b.c`; nothing where it is not set.
fn settings(key: &Value) -> ScriptResult<Dynamic> {
    ask("settings", "config.get", &json!({ "key": key }))
}

//! `set_label(id, text)` and `set_session_name(text)`: names of places in the tree and of the session;
//! `()` takes one away.

use rhai::{Dynamic, Engine};
use serde_json::{Value, json};

use super::ask::ask;
use crate::call::ScriptResult;
use crate::convert;

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("set_label", |id: &str, label: Dynamic| {
        let payload = json!({"entryId": id, "label": text(&label)});
        ask("set_label", "session.set_label", &payload).map(drop)
    });
    engine.register_fn("set_session_name", |name: Dynamic| -> ScriptResult<()> {
        let payload = json!({"name": text(&name)});
        ask("set_session_name", "session.set_name", &payload).map(drop)
    });
}

fn text(given: &Dynamic) -> Value {
    match given.is_unit() {
        true => Value::Null,
        false => convert::display(given).into(),
    }
}

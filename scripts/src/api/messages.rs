//! `send_message`, `send_user_message`, `append_entry`: what a script adds to the conversation, or to
//! its tree beside it (`extensions.md` §5.3).

use rhai::{Dynamic, Engine, Map};
use serde_json::{Value, json};

use super::ask::ask;
use super::options;
use crate::call::{ScriptResult, fail};
use crate::convert;

/// When a message enters the conversation.
const DELIVER_AS: &str = "deliverAs";

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("send_message", |message: Map| {
        send_message(message, Map::new())
    });
    engine.register_fn("send_message", send_message);
    engine.register_fn("send_user_message", |content: Dynamic| {
        send_user_message(&content, Map::new())
    });
    engine.register_fn("send_user_message", |content: Dynamic, options: Map| {
        send_user_message(&content, options)
    });
    engine.register_fn("append_entry", |kind: &str| {
        append_entry(kind, &Dynamic::UNIT)
    });
    engine.register_fn("append_entry", |kind: &str, data: Dynamic| {
        append_entry(kind, &data)
    });
}

/// Without an answer: it is often the last thing a handler does, whose answer it would become.
fn send_message(message: Map, given: Map) -> ScriptResult<()> {
    let known = ["customType", "content", "display", "details"];
    let message: Value = options("the message of send_message", message, &known)?;
    let given: Value = options("send_message", given, &[DELIVER_AS, "triggerTurn"])?;
    let payload = json!({"message": message, "options": given});
    ask("send_message", "session.send_message", &payload).map(drop)
}

fn send_user_message(content: &Dynamic, given: Map) -> ScriptResult<()> {
    let known = [DELIVER_AS, "expandPromptTemplates"];
    let given: Value = options("send_user_message", given, &known)?;
    let content: Value = convert::to_typed(content)?;
    let payload = json!({"content": content, "options": given});
    ask("send_user_message", "session.send_user_message", &payload).map(drop)
}

/// Answers the id of the entry.
fn append_entry(kind: &str, data: &Dynamic) -> ScriptResult<Dynamic> {
    if kind.is_empty() {
        return Err(fail(
            "append_entry needs a type, by which you find the entry again",
        ));
    }
    let mut payload = json!({"customType": kind});
    if !data.is_unit() {
        payload["data"] = convert::to_typed(data)?;
    }
    ask("append_entry", "session.append", &payload)
}

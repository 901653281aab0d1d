//! `on("event", |event, ctx| …)`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pliant_kernel::registry::Kind;
use pliant_sdk::Error;
use rhai::{Dynamic, Map};
use serde_json::json;

use super::{Handler, Registration, Running, function};
use crate::call::ScriptResult;
use crate::convert;
use crate::program::{Callback, Program};

/// The field of an event that a handler may edit in place (`extensions.md` §7.1).
const EDITABLE: [(&str, &str); 4] = [
    ("tool_call", "input"),
    ("before_provider_headers", "headers"),
    ("before_agent_start", "systemPromptOptions"),
    ("context", "messages"),
];

/// Events whose answer decides something: an answer of a wrong type is an error there. Elsewhere
/// the value of a closure's last statement is not meant.
const ANSWERED: [&str; 18] = [
    "agent_before_settle",
    "before_agent_start",
    "before_provider_request",
    "cache_warming_decision",
    "context",
    "context_with_system",
    "input",
    "message_end",
    "project_trust",
    "resources_discover",
    "session_before_compact",
    "session_before_fork",
    "session_before_switch",
    "session_before_tree",
    "tool_call",
    "tool_result",
    "turn_end",
    "user_bash",
];

/// A JSON name that is a reserved word in Rhai, and its other name.
const ALIAS: (&str, &str) = ("continue", "proceed");

/// Whether a handler still listens; shared with the function that unsubscribes it.
pub(crate) type Listening = Arc<AtomicBool>;

struct Hook {
    handle: Callback,
    listening: Listening,
}

/// Reads a handler's declaration, `#{handle, listening}`.
pub(crate) fn declare(
    program: &Program,
    event: &str,
    mut fields: Map,
) -> ScriptResult<Registration> {
    let listening = fields
        .remove("listening")
        .and_then(Dynamic::try_cast::<Listening>)
        .unwrap_or_else(|| Arc::new(AtomicBool::new(true)));
    let handle = function(program, &mut fields, "handle", &["event", "ctx"])?;
    Ok(Registration {
        kind: Kind::Hook,
        name: event.to_owned(),
        spec: json!({"name": event}),
        handler: Arc::new(Hook { handle, listening }),
    })
}

impl Handler for Hook {
    fn run(&self, event: &str, payload: &[u8], running: &Running<'_>) -> Result<Vec<u8>, Error> {
        if !self.listening.load(Ordering::Relaxed) {
            return Ok(b"null".to_vec());
        }
        let mut argument = convert::from_json(payload)?;
        add_alias(&mut argument);
        // What comes over the bus is anybody's, so its fields say nothing of the call.
        let ctx = match event {
            "bus" => running.ctx("", None),
            _ => {
                let cwd = text(&argument, "cwd");
                running.ctx(&text(&argument, "toolCallId"), Some(&cwd))
            }
        };
        let field = EDITABLE
            .iter()
            .find(|(name, _)| *name == event)
            .map(|(_, field)| *field);
        let Some(field) = field else {
            let answer = running.run(&self.handle, [argument, ctx])?;
            return reply(event, answer, running);
        };
        let before = json_of(&argument, field, running)?;
        // Shared, so that the closure edits this value and not a copy of it.
        let shared = argument.into_shared();
        let answer = running.run(&self.handle, [shared.clone(), ctx])?;
        let after = json_of(&shared, field, running)?;
        let mut answer = reply(event, answer, running)?;
        if before != after {
            add_event(&mut answer, field, &after);
        }
        Ok(answer)
    }
}

/// The answer as JSON: null, or an object.
fn reply(event: &str, mut answer: Dynamic, running: &Running<'_>) -> Result<Vec<u8>, Error> {
    if answer.is_unit() {
        return Ok(b"null".to_vec());
    }
    if !answer.is_map() {
        return match ANSWERED.contains(&event) {
            true => {
                let what = format!("the handler of \"{event}\"");
                Err(running.wrong_answer(&what, "a map or nothing", &answer))
            }
            false => Ok(b"null".to_vec()),
        };
    }
    if let Ok(mut map) = answer.as_map_mut()
        && let Some(value) = map.remove(ALIAS.1)
    {
        map.insert(ALIAS.0.into(), value);
    }
    running.json(&answer)
}

fn add_alias(event: &mut Dynamic) {
    if let Ok(mut map) = event.as_map_mut()
        && let Some(value) = map.get(ALIAS.0).cloned()
    {
        map.insert(ALIAS.1.into(), value);
    }
}

fn text(event: &Dynamic, field: &str) -> String {
    let map = event.as_map_ref().ok();
    let value = map.as_ref().and_then(|map| map.get(field));
    value.map(convert::display).unwrap_or_default()
}

fn json_of(event: &Dynamic, field: &str, running: &Running<'_>) -> Result<Vec<u8>, Error> {
    let map = event.as_map_ref().map_err(|_| {
        let kind = convert::a_kind_of(event);
        Error::invalid(format!(
            "the event has to stay a map, but the handler made it {kind}"
        ))
    })?;
    match map.get(field) {
        Some(value) => running.json(value),
        None => Ok(b"null".to_vec()),
    }
}

/// Puts the edited field under the key `event` of an answer that is null or an object.
fn add_event(answer: &mut Vec<u8>, field: &str, edited: &[u8]) {
    let joined = [b"{\"event\":{\"", field.as_bytes(), b"\":", edited, b"}"].concat();
    let rest: &[u8] = match answer.as_slice() {
        b"null" | b"{}" => b"}",
        object => &[b",", &object[1..]].concat(),
    };
    *answer = [joined.as_slice(), rest].concat();
}

//! A message is complete: handlers may replace it before it is stored.

use std::ops::ControlFlow;

use pliant_sdk::message::StopReason;
use pliant_sdk::{Error, Message};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{with_handlers, withheld};
use crate::registry::HookPoint;
use crate::run::RunHost;

/// `message_end`: a chain; a replacement must be a message of the same role, else it is reported and
/// ignored (G7). What a handler had not finished with when the user gave up is not stored as it was.
pub(in crate::run) async fn message_end<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
    message: Message,
) -> Message {
    with_handlers(
        host,
        cancel,
        HookPoint::MessageEnd,
        message,
        async |dispatcher, mut message| {
            let payload = |message: &Message| json!({"type": "message_end", "message": message});
            let take = |message: &mut Message, answer: Value| {
                replace(message, answer)?;
                Ok(ControlFlow::Continue(()))
            };
            match dispatcher.each(&mut message, payload, take).await {
                Ok(()) => message,
                Err(kept_from) => withheld::message(message, &kept_from),
            }
        },
    )
    .await
}

/// `{message}`; null is as good as nothing.
fn replace(message: &mut Message, mut answer: Value) -> Result<(), Error> {
    if !answer.is_object() {
        return Err(ignored("it is not an object with a \"message\""));
    }
    let given = answer.get_mut("message").map(Value::take);
    let Some(given) = given.filter(|given| !given.is_null()) else {
        return Ok(());
    };
    let replacement = Message::from(given.clone());
    if replacement.role() != message.role() {
        let (role, other) = (message.role(), replacement.role());
        return Err(Error::invalid(format!(
            "it answered a message of the role \"{other}\" for one of the role \"{role}\", which is ignored"
        )));
    }
    is_whole(&given, &replacement)?;
    keeps_its_place(message, &replacement)?;
    *message = replacement;
    Ok(())
}

fn ignored(why: impl std::fmt::Display) -> Error {
    Error::invalid(format!("its answer is ignored, because {why}"))
}

/// Reading a message passes by what has another shape; of an answer that would lose something silently.
fn is_whole(given: &Value, read: &Message) -> Result<(), Error> {
    let has = |field: &&&str| given.get(field).is_some_and(|value| !value.is_null());
    let fields = required(read);
    if let Some(missing) = fields.iter().find(|field| !has(field)) {
        return Err(ignored(format_args!("its message has no \"{missing}\"")));
    }
    let is_block = |block: &Value| block.get("type").is_some_and(Value::is_string);
    let content = &given["content"];
    let said = match content {
        Value::String(_) => true,
        Value::Array(blocks) => blocks.iter().all(is_block),
        _ => false,
    };
    if !said {
        return Err(ignored(
            "the \"content\" of its message is neither a text nor a list of blocks",
        ));
    }
    let read = serde_json::to_value(read)?;
    // A text is as good as a block of it.
    let is_text = |field: &str| field == "content" && content.is_string();
    let mut fields = given.as_object().into_iter().flatten();
    match fields.find(|(field, value)| !is_text(field) && !survives(value, read.get(*field))) {
        None => Ok(()),
        Some((field, _)) => Err(ignored(format_args!(
            "the \"{field}\" of its message is none that a message can have"
        ))),
    }
}

/// What a message of that role cannot be without (`kernel.md` §1.2), apart from its role and time.
fn required(message: &Message) -> &'static [&'static str] {
    match message {
        Message::Assistant(_) => &["content", "api", "provider", "model", "usage", "stopReason"],
        Message::ToolResult(_) => &["content", "toolCallId", "toolName", "isError"],
        Message::Custom(_) => &["content", "customType"],
        _ => &["content"],
    }
}

/// Whether everything that was given is there after it was read. Null is nothing, and numbers may be
/// written otherwise.
fn survives(given: &Value, read: Option<&Value>) -> bool {
    match (given, read) {
        (Value::Null, _) => true,
        (Value::Number(given), Some(Value::Number(read))) => given.as_f64() == read.as_f64(),
        (Value::Array(given), Some(Value::Array(read))) => {
            let pairs = || given.iter().zip(read);
            given.len() == read.len() && pairs().all(|(given, read)| survives(given, Some(read)))
        }
        (Value::Object(given), Some(read)) if read.is_object() => {
            let mut fields = given.iter();
            fields.all(|(field, value)| survives(value, read.get(field)))
        }
        (given, read) => Some(given) == read,
    }
}

/// What makes a message part of the conversation is not for handlers to change: a result belongs to its
/// call, what is complete is not streaming any more, and prompt and tools are the kernel's.
fn keeps_its_place(message: &Message, replacement: &Message) -> Result<(), Error> {
    match (message, replacement) {
        (Message::ToolResult(result), Message::ToolResult(other))
            if result.tool_call_id != other.tool_call_id =>
        {
            Err(ignored(format_args!(
                "it gives the result of the call \"{}\" to the call \"{}\"",
                result.tool_call_id, other.tool_call_id
            )))
        }
        (_, Message::Assistant(answer)) if answer.stop_reason == StopReason::Pending => Err(
            ignored("its \"stopReason\" is \"pending\", but the message is complete"),
        ),
        (Message::System(system), Message::System(other))
            if system.tools_added != other.tools_added
                || system.tools_removed != other.tools_removed =>
        {
            Err(ignored(
                "it changes the tools that a system message declares; a before_agent_start handler can select other tools",
            ))
        }
        (Message::System(_), Message::System(_)) if says_something(message) => {
            match says_something(replacement) {
                true => Ok(()),
                false => Err(ignored(
                    "it leaves nothing of the prompt in a system message",
                )),
            }
        }
        _ => Ok(()),
    }
}

fn says_something(message: &Message) -> bool {
    let Message::System(system) = message else {
        return true;
    };
    let sections = system.sections.iter().flatten();
    !system.content.joined_text("").is_empty() || sections.count() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(stored: &Value, answer: Value) {
        let mut message = Message::from(stored.clone());
        let refused = replace(&mut message, json!({"message": answer}));
        assert!(refused.is_err(), "{answer}");
        assert_eq!(message, Message::from(stored.clone()));
    }

    #[test]
    fn a_replacement_is_a_message_of_the_same_role_and_nothing_is_none() {
        // G7
        let mut message = Message::user("a", 1);
        for nothing in [json!({}), json!({"message": null})] {
            replace(&mut message, nothing).unwrap();
        }
        let other_role = json!({"message": {"role": "assistant", "content": []}});
        for wrong in [json!(7), json!([]), json!({"message": 7}), other_role] {
            replace(&mut message, wrong).unwrap_err();
        }
        assert_eq!(message, Message::user("a", 1));
        let other = json!({"message": {"role": "user", "content": "b", "timestamp": 1}});
        replace(&mut message, other).unwrap();
        assert_eq!(serde_json::to_value(&message).unwrap()["content"], "b");
    }

    fn answer() -> Value {
        let usage = json!({"input": 1, "output": 2, "totalTokens": 3, "cost": {"total": 0.5}});
        json!({"role": "assistant", "content": [{"type": "text", "text": "a"}], "api": "x",
            "provider": "p", "model": "m", "usage": usage, "stopReason": "stop", "timestamp": 1})
    }

    #[test]
    fn an_answer_that_reading_would_change_is_ignored_as_a_whole() {
        // G7: the content 7 was stored as no content.
        let user = json!({"role": "user", "content": "a", "timestamp": 1});
        for content in [json!(7), json!(null), json!({}), json!([7]), json!([{}])] {
            refused(
                &user,
                json!({"role": "user", "content": content, "timestamp": 1}),
            );
        }
        refused(&user, json!({"role": "user", "timestamp": 1}));
        refused(
            &user,
            json!({"role": "user", "content": "b", "timestamp": "now"}),
        );
        for (field, wrong) in [
            ("content", json!([{"type": "text", "text": 7}])),
            ("usage", json!(7)),
            ("stopReason", json!("whenever")),
            ("errorMessage", json!(7)),
            ("model", Value::Null),
        ] {
            let mut changed = answer();
            changed[field] = wrong;
            refused(&answer(), changed);
        }
        refused(&answer(), json!({"role": "assistant", "content": []}));
    }

    #[test]
    fn numbers_nulls_texts_and_unknown_fields_may_be_as_a_script_writes_them() {
        // G7, M7
        let mut changed = answer();
        changed["content"] = json!("b");
        changed["usage"]["input"] = json!(1.0);
        changed["timestamp"] = json!(2.0);
        changed["errorMessage"] = Value::Null;
        changed["mine"] = json!({"a": [1]});
        let mut message = Message::from(answer());
        replace(&mut message, json!({"message": changed})).unwrap();
        let stored = serde_json::to_value(&message).unwrap();
        assert_eq!(stored["content"], json!([{"type": "text", "text": "b"}]));
        assert_eq!(stored["mine"], json!({"a": [1]}));
        assert_eq!(
            (&stored["timestamp"], &stored["usage"]["input"]),
            (&json!(2), &json!(1))
        );
    }

    #[test]
    fn a_result_stays_with_its_call_and_a_complete_answer_stays_complete() {
        // G7, T8, M5
        let result = |call: &str| {
            json!({"role": "toolResult", "toolCallId": call, "toolName": "t",
                "content": [], "isError": false, "timestamp": 1})
        };
        refused(&result("a"), result("b"));
        let mut pending = answer();
        pending["stopReason"] = json!("pending");
        refused(&answer(), pending);
    }

    #[test]
    fn a_system_message_keeps_its_tools_and_something_of_the_prompt() {
        // G7, M9, invariant 14
        let tool = json!({"name": "t", "description": "d", "parameters": {"type": "object"}});
        let system = json!({"role": "system", "content": "", "sections": {"preamble": "You are."},
            "toolsAdded": [tool], "timestamp": 1});
        let with = |field: &str, value: Value| {
            let mut changed = system.clone();
            changed[field] = value;
            changed
        };
        refused(&system, with("toolsAdded", Value::Null));
        refused(&system, with("toolsRemoved", json!([{"name": "t"}])));
        refused(&system, with("sections", Value::Null));
        let mut message = Message::from(system.clone());
        let other = with("sections", json!({"preamble": "You were."}));
        replace(&mut message, json!({"message": other})).unwrap();
        assert_eq!(message, Message::from(other));
    }
}

//! A message is complete: handlers may replace it before it is stored.

use std::ops::ControlFlow;

use pliant_sdk::message::StopReason;
use pliant_sdk::{Error, Message};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::with_handlers;
use crate::registry::HookPoint;
use crate::run::RunHost;

/// `message_end`: a chain; a replacement must keep the role, else it is reported and ignored (G7).
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
            // The point does not fail closed, so the dispatch has no failure of its own.
            let _ = dispatcher.each(&mut message, payload, take).await;
            message
        },
    )
    .await
}

/// `{message}`; null is as good as nothing.
fn replace(message: &mut Message, mut answer: Value) -> Result<(), Error> {
    if !answer.is_object() {
        return Err(Error::invalid(
            "its answer is ignored, because it is not an object with a \"message\"",
        ));
    }
    let replacement = answer.get_mut("message").map(Value::take);
    let Some(replacement) = replacement.filter(|replacement| !replacement.is_null()) else {
        return Ok(());
    };
    let replacement = Message::from(replacement);
    if replacement.role() != message.role() {
        let (role, other) = (message.role(), replacement.role());
        return Err(Error::invalid(format!(
            "it answered a message of the role \"{other}\" for one of the role \"{role}\", which is ignored"
        )));
    }
    keeps_its_place(message, &replacement)?;
    *message = replacement;
    Ok(())
}

/// What makes a message part of the conversation is not for handlers to change: a result belongs to its
/// call, and what is complete is not streaming any more.
fn keeps_its_place(message: &Message, replacement: &Message) -> Result<(), Error> {
    match (message, replacement) {
        (Message::ToolResult(result), Message::ToolResult(other))
            if result.tool_call_id != other.tool_call_id =>
        {
            Err(Error::invalid(format!(
                "its answer is ignored, because it gives the result of the call \"{}\" to the call \"{}\"",
                result.tool_call_id, other.tool_call_id
            )))
        }
        (_, Message::Assistant(answer)) if answer.stop_reason == StopReason::Pending => {
            Err(Error::invalid(
                "its answer is ignored, because its \"stopReason\" is \"pending\", but the message is complete",
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_result_stays_with_its_call_and_a_complete_answer_stays_complete() {
        // G7, T8, M5
        let refused = |stored: Value, answer: Value| {
            let mut message = Message::from(stored.clone());
            replace(&mut message, json!({"message": answer})).unwrap_err();
            assert_eq!(message, Message::from(stored));
        };
        let result = |call: &str| {
            json!({"role": "toolResult", "toolCallId": call, "toolName": "t",
                "content": [], "isError": false, "timestamp": 1})
        };
        refused(result("a"), result("b"));
        let answer = |reason: &str| {
            json!({"role": "assistant", "content": [], "api": "x", "provider": "p", "model": "m",
                "stopReason": reason, "timestamp": 1})
        };
        refused(answer("stop"), answer("pending"));
    }
}

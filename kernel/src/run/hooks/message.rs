//! A message is complete: handlers may replace it before it is stored.

use std::ops::ControlFlow;

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
    with_handlers(host, cancel, HookPoint::MessageEnd, message, async |dispatcher, mut message| {
        let payload = |message: &Message| json!({"type": "message_end", "message": message});
        let take = |message: &mut Message, mut answer: Value| {
            if let Some(replacement) = answer.get_mut("message").map(Value::take) {
                let replacement = Message::from(replacement);
                if replacement.role() != message.role() {
                    let (role, other) = (message.role(), replacement.role());
                    return Err(Error::invalid(format!(
                        "it answered a message of the role \"{other}\" for one of the role \"{role}\", which is ignored"
                    )));
                }
                *message = replacement;
            }
            Ok(ControlFlow::Continue(()))
        };
        // The point does not fail closed, so the dispatch has no failure of its own.
        let _ = dispatcher.each(&mut message, payload, take).await;
        message
    })
    .await
}

//! The conversation is about to be sent: handlers may change what is sent of it (G8). What they make
//! is repaired like everything else that is sent; the session stays as it is.

use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::sync::Arc;

use pliant_sdk::{Error, Message};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{listens, with_handlers};
use crate::registry::HookPoint;
use crate::run::RunHost;

/// `context`, then `context_with_system`: the messages to send, or `None` when nobody listens.
pub(in crate::run) async fn context<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
) -> Option<Vec<Arc<Message>>> {
    let with_system = listens(host, HookPoint::ContextWithSystem);
    if !with_system && !listens(host, HookPoint::Context) {
        return None;
    }
    let mut whole = host.context();
    let is_said = |message: &&Arc<Message>| message.role() != "system";
    let said = Draft::new(whole.iter().filter(is_said).cloned().collect());
    let said = chain(host, cancel, HookPoint::Context, said).await;
    if said.changed {
        // Prompt and tools are the kernel's: they stay in force whatever became of the rest.
        let state = host.assemble(|_, assembly| assembly.system_state(&whole));
        whole = state.into_iter().chain(said.messages).collect();
    }
    if with_system {
        let draft = Draft::new(whole);
        whole = chain(host, cancel, HookPoint::ContextWithSystem, draft)
            .await
            .messages;
    }
    Some(whole)
}

/// The messages as the handlers so far left them.
struct Draft {
    messages: Vec<Arc<Message>>,
    changed: bool,
    /// The payload, written once for all handlers that are shown the same.
    payload: OnceCell<Vec<u8>>,
}

impl Draft {
    fn new(messages: Vec<Arc<Message>>) -> Self {
        Self {
            messages,
            changed: false,
            payload: OnceCell::new(),
        }
    }

    fn payload(&self, point: HookPoint) -> Vec<u8> {
        let write = || {
            let event = json!({"type": point.name(), "messages": self.messages});
            serde_json::to_vec(&event).unwrap_or_default()
        };
        self.payload.get_or_init(write).clone()
    }

    /// Takes what a handler answered. An error is for the report; whether it also passes the answer
    /// by is decided here.
    fn take(&mut self, point: HookPoint, answer: Value) -> Result<(), Error> {
        let Some(answered) = messages_of(answer)? else {
            return Ok(());
        };
        let messages = known(&self.messages, answered);
        let leads = |messages: &[Arc<Message>]| {
            messages
                .first()
                .is_some_and(|first| first.role() == "system")
        };
        if point == HookPoint::Context && messages.iter().any(|m| m.role() == "system") {
            return Err(Error::invalid(
                "its answer is ignored, because it holds a system message; those are for handlers of context_with_system",
            ));
        }
        if same(&self.messages, &messages) {
            return Ok(());
        }
        let lost = leads(&self.messages) && !leads(&messages);
        *self = Self {
            changed: true,
            ..Self::new(messages)
        };
        match lost {
            true => Err(Error::invalid(
                "it left out the leading system message, so the model gets neither the prompt nor the tools that it declares",
            )),
            false => Ok(()),
        }
    }
}

async fn chain<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
    point: HookPoint,
    draft: Draft,
) -> Draft {
    with_handlers(host, cancel, point, draft, async |dispatcher, mut draft| {
        let payload = |draft: &Draft| draft.payload(point);
        let take = |draft: &mut Draft, answer: Value| {
            draft.take(point, answer)?;
            Ok(ControlFlow::Continue(()))
        };
        // The point does not fail closed, so the dispatch has no failure of its own.
        let _ = dispatcher.each_encoded(&mut draft, payload, take).await;
        draft
    })
    .await
}

/// `{messages}`, or the edited event under `event`; `None` when it holds neither.
fn messages_of(mut answer: Value) -> Result<Option<Vec<Value>>, Error> {
    if !answer.is_object() {
        return Err(Error::invalid(
            "its answer is ignored, because it is not an object with \"messages\"",
        ));
    }
    let mut field = |path: &str| answer.pointer_mut(path).map(Value::take);
    let messages = field("/messages").filter(|messages| !messages.is_null());
    let Some(messages) = messages.or_else(|| field("/event/messages")) else {
        return Ok(None);
    };
    let Value::Array(messages) = messages else {
        return Err(Error::invalid(
            "its answer is ignored, because its \"messages\" are not a list",
        ));
    };
    let without_role = |message: &Value| !message.get("role").is_some_and(Value::is_string);
    match messages.iter().position(without_role) {
        None => Ok(Some(messages)),
        Some(at) => Err(Error::invalid(format!(
            "its answer is ignored, because messages[{at}] is not a message: it has no \"role\""
        ))),
    }
}

/// The answered messages; one that says what it said before is the same value as before. It is
/// looked for at the same place, counted from the front and from the end.
fn known(before: &[Arc<Message>], answered: Vec<Value>) -> Vec<Arc<Message>> {
    let count = answered.len();
    let one = |(at, value): (usize, Value)| {
        let mut message = Message::from(value);
        let from_end = (before.len() + at).checked_sub(count);
        for place in [Some(at), from_end].into_iter().flatten() {
            if let Some(old) = before.get(place) {
                restore_unsent(&mut message, old);
                if message == **old {
                    return Arc::clone(old);
                }
            }
        }
        Arc::new(message)
    };
    answered.into_iter().enumerate().map(one).collect()
}

/// What is never sent is not the handler's to change; and its numbers may be written otherwise by a
/// handler that changed nothing.
fn restore_unsent(message: &mut Message, old: &Message) {
    match (message, old) {
        (Message::Assistant(message), Message::Assistant(old)) => {
            message.usage.clone_from(&old.usage);
        }
        (Message::ToolResult(message), Message::ToolResult(old)) => {
            message.details.clone_from(&old.details);
            message.usage.clone_from(&old.usage);
            message.nested_calls.clone_from(&old.nested_calls);
        }
        (Message::Custom(message), Message::Custom(old)) => {
            message.details.clone_from(&old.details);
        }
        _ => {}
    }
}

fn same(one: &[Arc<Message>], other: &[Arc<Message>]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| Arc::ptr_eq(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<Arc<Message>> {
        let message = |text: &&str| Arc::new(Message::user(*text, 1));
        texts.iter().map(message).collect()
    }

    fn values(messages: &[Arc<Message>]) -> Vec<Value> {
        let value = |message: &Arc<Message>| serde_json::to_value(message).unwrap();
        messages.iter().map(value).collect()
    }

    #[test]
    fn what_a_handler_left_alone_stays_the_same_value() {
        let before = texts(&["a", "b", "c", "d"]);
        let mut answered = values(&before);
        assert!(same(&before, &known(&before, answered.clone())));
        answered.remove(1);
        let after = known(&before, answered.clone());
        assert!(same(
            &after,
            &[before[0].clone(), before[2].clone(), before[3].clone()]
        ));
        answered.insert(1, json!({"role": "user", "content": "new"}));
        let after = known(&before, answered);
        assert!(Arc::ptr_eq(&after[0], &before[0]) && Arc::ptr_eq(&after[3], &before[3]));
        assert_eq!(after[1].role(), "user");
    }

    #[test]
    fn an_answer_is_messages_or_the_edited_event() {
        let list = |answer: Value| messages_of(answer).map(|found| found.map(|list| list.len()));
        let message = json!({"role": "user"});
        assert_eq!(list(json!({"messages": [message]})), Ok(Some(1)));
        assert_eq!(
            list(json!({"event": {"messages": [message, message]}})),
            Ok(Some(2))
        );
        for nothing in [json!({}), json!({"messages": null}), json!({"event": {}})] {
            assert_eq!(list(nothing), Ok(None));
        }
        for wrong in [
            json!([message]),
            json!("x"),
            json!({"messages": 3}),
            json!({"messages": [3]}),
        ] {
            assert!(list(wrong).is_err());
        }
    }
}

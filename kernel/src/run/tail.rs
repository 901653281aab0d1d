//! What a run goes on from: the end of the conversation as a model sees it (L3, R48). A request that
//! ends with an answer asks for nothing, so such a conversation needs something new first.

use std::sync::Arc;

use pliant_sdk::Message;
use pliant_sdk::message::MessageContent;

use super::RunHost;
use super::convert::convert;
use crate::agent::Begin;

/// Whether the conversation ends with something that a model can answer.
pub(super) fn is_open(messages: &[Arc<Message>]) -> bool {
    let conversation = messages
        .iter()
        .rev()
        .filter(|message| !matches!(***message, Message::System(_)) && !is_blank(message));
    let last = conversation.filter_map(convert).next();
    last.is_some_and(|last| !matches!(*last, Message::Assistant(_)))
}

/// Whether a plugin's message says nothing: wires send none of it.
fn is_blank(message: &Message) -> bool {
    match message {
        Message::Custom(custom) => match &custom.content {
            MessageContent::Text(text) => text.is_empty(),
            MessageContent::Blocks(blocks) => blocks
                .iter()
                .all(|block| block.as_text().is_some_and(str::is_empty)),
        },
        _ => false,
    }
}

/// How the run goes on without a prompt; `None` when there is nothing to answer.
pub(super) fn goes_on<H: RunHost>(host: &H) -> Option<Begin> {
    if host.look(|tree| is_open(tree.context())) {
        return Some(Begin::Tail);
    }
    let steering = host.take_steering();
    let batch = match steering.is_empty() {
        true => host.take_follow_up(),
        false => steering,
    };
    (!batch.is_empty()).then_some(Begin::Queued(batch))
}

#[cfg(test)]
mod tests {
    use pliant_sdk::message::{
        AssistantMessage, BashExecutionMessage, CustomMessage, SystemMessage,
    };

    use super::*;

    #[test]
    fn only_what_a_model_is_sent_and_did_not_say_itself_is_open() {
        // L3, R48
        let user = || Message::user("hi", 1);
        let answer = || Message::Assistant(AssistantMessage::default());
        let system = || Message::System(SystemMessage::default());
        let command = |hidden| {
            Message::BashExecution(BashExecutionMessage {
                command: "ls".into(),
                exclude_from_context: Some(hidden),
                ..BashExecutionMessage::default()
            })
        };
        let open = |messages: Vec<Message>| {
            let messages: Vec<_> = messages.into_iter().map(Arc::new).collect();
            is_open(&messages)
        };
        assert!(open(vec![user()]) && open(vec![user(), system()]));
        assert!(open(vec![answer(), command(false)]));
        assert!(!open(vec![]) && !open(vec![system()]));
        assert!(!open(vec![user(), answer(), system()]));
        assert!(!open(vec![user(), answer(), command(true)]));
        let note = |content: &str| {
            Message::Custom(CustomMessage {
                content: MessageContent::Text(content.into()),
                ..CustomMessage::default()
            })
        };
        assert!(open(vec![user(), answer(), note("go on")]));
        assert!(!open(vec![user(), answer(), note("")]));
    }
}

//! The answer that a session is giving, put together from its events: for front ends that show the
//! whole of it, while every event carries only what is new.

use crate::event::Event;
use crate::message::{AssistantMessage, Message};
use crate::stream::Assembler;

/// The answer so far. Each event costs what it adds, not what the answer holds.
///
/// ```
/// use pliant_sdk::{Draft, Event};
///
/// fn show(draft: &mut Draft, event: &Event) {
///     if let Some(answer) = draft.take(event) {
///         println!("{} blocks, {} tokens", answer.content.len(), answer.usage.output);
///     }
/// }
/// ```
#[derive(Debug, Default)]
pub struct Draft(Option<Assembler>);

impl Draft {
    /// Takes an event, and gives the answer so far if the event changed it. The last one is the answer
    /// as it was stored.
    pub fn take<'a>(&'a mut self, event: &'a Event) -> Option<&'a AssistantMessage> {
        match event {
            Event::MessageStart { message } => {
                let Message::Assistant(begun) = &**message else {
                    return None;
                };
                self.0 = Some(Assembler::new(begun.clone()));
                self.message()
            }
            Event::MessageUpdate {
                assistant_message_event,
                ..
            } => {
                let fits = self.0.as_mut()?.push(assistant_message_event);
                self.message().filter(|_| fits)
            }
            Event::MessageEnd { message } => {
                let ended = message.as_assistant()?;
                self.0 = None;
                Some(ended)
            }
            _ => None,
        }
    }

    /// The answer that is being given now. Arguments of open calls are in [`Draft::assembler`].
    #[must_use]
    pub fn message(&self) -> Option<&AssistantMessage> {
        self.0.as_ref().map(Assembler::message)
    }

    /// What puts it together.
    #[must_use]
    pub fn assembler(&self) -> Option<&Assembler> {
        self.0.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::message::{StopReason, Usage, joined_text};
    use crate::stream::StreamEvent;

    fn piece(event: StreamEvent) -> Event {
        Event::MessageUpdate {
            usage: Usage::default(),
            assistant_message_event: event,
        }
    }

    fn delta(text: &str) -> Event {
        piece(StreamEvent::TextDelta {
            content_index: 0,
            delta: text.to_owned(),
        })
    }

    #[test]
    fn the_answer_so_far_is_known_between_its_beginning_and_its_end() {
        // interfaces §15
        let answer = |reason| AssistantMessage {
            stop_reason: reason,
            ..AssistantMessage::default()
        };
        let start = Event::MessageStart {
            message: Arc::new(Message::Assistant(answer(StopReason::Pending))),
        };
        let mut draft = Draft::default();
        assert!(
            draft
                .take(&delta("of an answer that began before"))
                .is_none()
        );
        assert!(
            draft
                .take(&start)
                .is_some_and(|so_far| so_far.content.is_empty())
        );
        let open = piece(StreamEvent::TextStart { content_index: 0 });
        assert!(draft.take(&open).is_some());
        for (event, so_far) in [(delta("Good "), "Good "), (delta("day"), "Good day")] {
            let message = draft.take(&event).unwrap();
            assert_eq!(joined_text(&message.content, ""), so_far);
        }
        assert!(draft.take(&Event::TurnStart).is_none());
        let user = Event::MessageEnd {
            message: Arc::new(Message::user("meanwhile", 1)),
        };
        assert!(draft.take(&user).is_none() && draft.message().is_some());
        let end = Event::MessageEnd {
            message: Arc::new(Message::Assistant(answer(StopReason::Stop))),
        };
        let ended = draft.take(&end).unwrap();
        assert_eq!(ended.stop_reason, StopReason::Stop);
        assert!(draft.message().is_none());
    }

    #[test]
    fn an_event_goes_out_as_it_is() {
        // interfaces §7, §15
        let line = delta("x").to_wire().unwrap();
        assert!(line.starts_with(r#"{"type":"message_update""#), "{line}");
        assert!(
            line.contains(r#""delta":"x""#) && !line.contains('\n'),
            "{line}"
        );
    }
}

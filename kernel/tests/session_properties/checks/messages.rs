//! Messages begin and end, one after another.

use pliant_sdk::{Event, Message};

use super::{Broken, require};

/// Invariants 15 and 24: pairs that do not nest, and nothing said inside a turn once it is answered.
#[derive(Default)]
pub struct Messages {
    /// Role of the message that has begun.
    open: Option<String>,
    /// The turn has its answer.
    answered: bool,
}

impl Messages {
    pub fn see(&mut self, event: &Event) -> Broken {
        match event {
            Event::MessageStart { message } => {
                let role = message.role().to_owned();
                require(self.open.is_none(), "messages do not nest")?;
                require(
                    !self.answered || matches!(role.as_str(), "toolResult" | "custom"),
                    format!("a {role} message begins inside a turn that has its answer"),
                )?;
                self.open = Some(role);
                Ok(())
            }
            Event::MessageUpdate { .. } => require(
                self.open.as_deref() == Some("assistant"),
                "only an open answer is updated",
            ),
            Event::MessageEnd { message } => {
                let role = message.role();
                require(
                    self.open.take().as_deref() == Some(role),
                    format!("a {role} message ends that has not begun"),
                )?;
                self.answered |= matches!(**message, Message::Assistant(_));
                Ok(())
            }
            Event::TurnEnd { .. } => {
                require(self.open.is_none(), "a turn ends inside a message")?;
                self.answered = false;
                Ok(())
            }
            Event::TurnStart => {
                self.answered = false;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

//! Messages and entries of plugins: the six ways a custom message takes (`kernel.md` §6.8), messages in
//! the user's name, and entries that no model sees.

use std::sync::Arc;

use pliant_sdk::message::{Content, CustomMessage, MessageContent};
use pliant_sdk::session::{MessageDraft, MessageOptions, SendAs, UserMessageOptions};
use pliant_sdk::{Error, Event, Message};
use serde_json::Value;

use super::claim::Standing;
use super::entering::{Asked, Preflight, Trigger};
use super::outbox::Letter;
use super::{Delivery, Session, Shared, lock};
use crate::pipeline::{Origin, Prompt, WhenActive};
use crate::registry::Source;
use crate::tree::{CustomEntry, CustomMessageEntry, Entry, EntryBody};

/// Where a message of a plugin went.
enum Way {
    /// It waits in a queue, for the next run, or until the turn ends.
    Waits,
    /// It stands in the tree.
    Stored(Result<(), Error>),
    /// Others that were held back are about to be stored; it follows them.
    Behind,
    /// It starts a run.
    Starts(CustomMessage),
}

impl Session {
    /// Takes a message of a plugin; which way it goes is decided before this returns (R42). A run that
    /// it starts is not waited for.
    ///
    /// # Errors
    /// When it cannot be stored, or cannot start the run it is to start.
    pub async fn send_message(
        &self,
        message: MessageDraft,
        options: MessageOptions,
        sender: Option<Source>,
    ) -> Result<(), Error> {
        let message = CustomMessage {
            timestamp: self.0.now(),
            ..message.into()
        };
        let announced = Arc::new(Message::Custom(message.clone()));
        match self
            .0
            .claims
            .look(|standing| self.0.way(standing, message, options))
        {
            Way::Waits => Ok(()),
            Way::Stored(stored) => {
                stored?;
                self.0.announce(announced).await;
                Ok(())
            }
            Way::Behind => self.0.flush_held().await,
            Way::Starts(message) => {
                let asked = Asked {
                    trigger: Trigger::Message(Box::new(Message::Custom(message))),
                    preflight: Preflight::default(),
                    sender: sender.clone(),
                    depth: 0,
                };
                self.start_beside(asked, sender, "send_message").await
            }
        }
    }

    /// Sends a message in the user's name, as a prompt of an extension (R43). It is on its way when this
    /// returns; what becomes of it is reported. `depth` counts the handlers of `input` it came of.
    pub fn send_user_message(
        &self,
        content: MessageContent,
        options: UserMessageOptions,
        sender: Source,
        depth: u32,
    ) {
        let is_image = |block: &Content| matches!(block, Content::Image(_));
        let prompt = Prompt {
            text: content.joined_text("\n"),
            images: content.to_blocks().into_iter().filter(is_image).collect(),
            origin: Origin::Extension,
            when_active: options.deliver_as.and_then(|how| match how {
                SendAs::Steer => Some(WhenActive::Steer),
                SendAs::FollowUp => Some(WhenActive::FollowUp),
                SendAs::NextTurn => None,
            }),
            literal: !options.expand_prompt_templates,
        };
        self.0.send(Letter {
            prompt,
            sender,
            depth,
        });
    }

    /// Stores an entry that no model sees, and answers it as it is stored.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn append(&self, custom_type: String, data: Option<Value>) -> Result<Value, Error> {
        let body = EntryBody::Custom(CustomEntry { custom_type, data });
        let entry = self.0.store_entry(body)?;
        let entry = serde_json::to_value(&*entry)?;
        let event = Event::EntryAppended {
            entry: entry.clone(),
        };
        self.0.subscribers.publish(event).await;
        Ok(entry)
    }
}

impl Shared {
    /// The first way that fits (6.8). Nothing can begin or end a run meanwhile.
    fn way(&self, standing: Standing, message: CustomMessage, options: MessageOptions) -> Way {
        let MessageOptions {
            deliver_as,
            trigger_turn,
        } = options;
        let waits = |delivery: Delivery| {
            let message = Message::Custom(message.clone());
            lock(&self.queues).push_unseen(delivery, message);
            Way::Waits
        };
        match (deliver_as, standing, trigger_turn) {
            (Some(SendAs::NextTurn), _, _) => {
                lock(&self.queues).next_turn.push(Message::Custom(message));
                Way::Waits
            }
            // A compaction would put the message before its summary, maybe out of the context.
            (_, Standing::Running, Some(false))
            | (_, Standing::Compacting | Standing::Navigating, Some(false) | None) => {
                lock(&self.queues).held.push_back(message);
                Way::Waits
            }
            (Some(SendAs::FollowUp), Standing::Running, _) => waits(Delivery::FollowUp),
            (_, Standing::Running, _) => waits(Delivery::Steer),
            (_, _, Some(true)) => Way::Starts(message),
            (_, _, _) => {
                let mut queues = lock(&self.queues);
                if queues.held.is_empty() {
                    drop(queues);
                    return Way::Stored(self.store_custom(&message));
                }
                queues.held.push_back(message);
                Way::Behind
            }
        }
    }

    /// Stores a message of a plugin (L31).
    pub(super) fn store_custom(&self, message: &CustomMessage) -> Result<(), Error> {
        let body = EntryBody::CustomMessage(CustomMessageEntry {
            custom_type: message.custom_type.clone(),
            content: message.content.clone(),
            display: message.display,
            details: message.details.clone(),
        });
        self.store_entry(body).map(|_| ())
    }

    fn store_entry(&self, body: EntryBody) -> Result<Arc<Entry>, Error> {
        match self.tree().append(body) {
            Ok(entry) => Ok(Arc::clone(entry)),
            Err(error) => Err(Error::failed(error.to_string())),
        }
    }

    /// Stores what was held back until a turn or run ended, in the order it came. What cannot be stored
    /// is held on.
    pub(super) async fn flush_held(&self) -> Result<(), Error> {
        loop {
            let stored = {
                let mut queues = lock(&self.queues);
                let Some(message) = queues.held.front() else {
                    return Ok(());
                };
                self.store_custom(message)?;
                queues.held.pop_front()
            };
            if let Some(message) = stored {
                self.announce(Arc::new(Message::Custom(message))).await;
            }
        }
    }

    /// Tells listeners of a message that no run brought.
    async fn announce(&self, message: Arc<Message>) {
        let start = Event::MessageStart {
            message: Arc::clone(&message),
        };
        self.subscribers.publish(start).await;
        self.subscribers
            .publish(Event::MessageEnd { message })
            .await;
    }
}

//! Messages that wait: steering enters before the next request, follow-ups when a run would stop
//! (`kernel.md` §3.3). The text lists are for people; the message lists are what is delivered. Beside
//! the two queues waits what plugins have for the next run, and what must not stand between a call and
//! its results.

use std::collections::VecDeque;

use pliant_sdk::Message;
use pliant_sdk::message::CustomMessage;

use crate::settings::QueueMode;

/// Which queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Before the next request.
    Steer,
    /// When the run would stop.
    FollowUp,
}

impl Delivery {
    /// The setting that says how many messages the queue delivers at a time.
    pub(super) fn setting(self) -> &'static str {
        match self {
            Self::Steer => "steeringMode",
            Self::FollowUp => "followUpMode",
        }
    }
}

#[derive(Debug, Default)]
struct Queue {
    mode: QueueMode,
    messages: VecDeque<Message>,
    shown: Vec<String>,
}

/// Both queues of a session, and what waits beside them.
#[derive(Debug, Default)]
pub(super) struct Queues {
    steering: Queue,
    follow_up: Queue,
    /// Joins the starting messages of the next run (P41).
    pub(super) next_turn: Vec<Message>,
    /// Stored when the turn or the run ends (6.8, path 6).
    pub(super) held: VecDeque<CustomMessage>,
}

impl Queues {
    pub(super) fn new(steering: QueueMode, follow_up: QueueMode) -> Self {
        Self {
            steering: Queue {
                mode: steering,
                ..Queue::default()
            },
            follow_up: Queue {
                mode: follow_up,
                ..Queue::default()
            },
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, delivery: Delivery, text: String, message: Message) {
        let queue = self.of(delivery);
        queue.shown.push(text);
        queue.messages.push_back(message);
    }

    /// A message that no list shows (P32).
    pub(super) fn push_unseen(&mut self, delivery: Delivery, message: Message) {
        self.of(delivery).messages.push_back(message);
    }

    /// How many a queue gives at a poll, from the next one on (L8).
    pub(super) fn set_mode(&mut self, delivery: Delivery, mode: QueueMode) {
        self.of(delivery).mode = mode;
    }

    /// How many a queue gives at a poll.
    pub(super) fn mode(&self, delivery: Delivery) -> QueueMode {
        match delivery {
            Delivery::Steer => self.steering.mode,
            Delivery::FollowUp => self.follow_up.mode,
        }
    }

    /// What the next poll would give: of steering, else of the follow-ups (L12).
    pub(super) fn peek(&self) -> Vec<Message> {
        let queues = [&self.steering, &self.follow_up];
        let next = queues.into_iter().find(|queue| !queue.messages.is_empty());
        next.map(|queue| {
            let count = match queue.mode {
                QueueMode::OneAtATime => 1,
                QueueMode::All => queue.messages.len(),
            };
            queue.messages.iter().take(count).cloned().collect()
        })
        .unwrap_or_default()
    }

    /// The next batch: the oldest message, or all of them, by the queue's mode (L8).
    pub(super) fn take(&mut self, delivery: Delivery) -> Vec<Message> {
        let queue = self.of(delivery);
        match queue.mode {
            QueueMode::OneAtATime => queue.messages.pop_front().into_iter().collect(),
            QueueMode::All => queue.messages.drain(..).collect(),
        }
    }

    /// A user message begins: its text leaves the list it is shown in, steering first (P32).
    pub(super) fn delivered(&mut self, text: &str) -> bool {
        for queue in [&mut self.steering, &mut self.follow_up] {
            if let Some(at) = queue.shown.iter().position(|shown| shown == text) {
                queue.shown.remove(at);
                return true;
            }
        }
        false
    }

    /// Empties both, of what no list shows too, and answers the texts of what is not delivered now (L11).
    /// What a run has taken already is still shown until it begins, and is not given back too.
    pub(super) fn clear(&mut self) -> (Vec<String>, Vec<String>) {
        let empty = |queue: &mut Queue| {
            queue.shown.clear();
            let texts = queue
                .messages
                .drain(..)
                .filter_map(|message| match message {
                    Message::User(user) => Some(user.content.joined_text("")),
                    _ => None,
                });
            texts.collect()
        };
        (empty(&mut self.steering), empty(&mut self.follow_up))
    }

    /// The texts, steering first.
    pub(super) fn shown(&self) -> (Vec<String>, Vec<String>) {
        (self.steering.shown.clone(), self.follow_up.shown.clone())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.steering.messages.is_empty() && self.follow_up.messages.is_empty()
    }

    fn of(&mut self, delivery: Delivery) -> &mut Queue {
        match delivery {
            Delivery::Steer => &mut self.steering,
            Delivery::FollowUp => &mut self.follow_up,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(mode: QueueMode) -> Queues {
        let mut queues = Queues::new(mode, mode);
        for text in ["a", "b"] {
            queues.push(Delivery::Steer, text.to_owned(), Message::user(text, 1));
        }
        queues
    }

    #[test]
    fn one_at_a_time_takes_the_oldest_and_all_takes_all() {
        // L8, invariant 26
        assert_eq!(queue(QueueMode::OneAtATime).take(Delivery::Steer).len(), 1);
        assert_eq!(queue(QueueMode::All).take(Delivery::Steer).len(), 2);
    }

    #[test]
    fn a_peek_is_the_next_poll_and_takes_nothing() {
        // L12
        let mut queues = queue(QueueMode::OneAtATime);
        queues.push_unseen(Delivery::FollowUp, Message::user("f", 1));
        assert_eq!(queues.peek(), [Message::user("a", 1)]);
        queues.set_mode(Delivery::Steer, QueueMode::All);
        assert_eq!(queues.mode(Delivery::Steer), QueueMode::All);
        assert_eq!(queues.peek(), queues.take(Delivery::Steer));
        assert_eq!(queues.peek(), [Message::user("f", 1)]);
        queues.clear();
        assert_eq!(queues.peek(), []);
    }

    #[test]
    fn a_delivered_text_leaves_the_list_once() {
        // P32
        let mut queues = queue(QueueMode::OneAtATime);
        queues.push(Delivery::FollowUp, "a".to_owned(), Message::user("a", 1));
        queues.take(Delivery::Steer);
        assert!(queues.delivered("a"));
        assert_eq!(queues.shown(), (vec!["b".to_owned()], vec!["a".to_owned()]));
        assert!(!queues.delivered("never queued"));
        assert_eq!(queues.clear(), (vec!["b".to_owned()], vec!["a".to_owned()]));
        assert!(queues.is_empty());
    }

    #[test]
    fn what_a_run_has_taken_is_not_given_back_too() {
        // L11, invariant 23
        let mut queues = queue(QueueMode::OneAtATime);
        queues.take(Delivery::Steer);
        assert_eq!(queues.clear(), (vec!["b".to_owned()], Vec::new()));
        assert_eq!(queues.shown(), (Vec::new(), Vec::new()));
    }
}

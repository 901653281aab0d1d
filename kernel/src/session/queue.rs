//! Messages that wait: steering enters before the next request, follow-ups when a run would stop
//! (`kernel.md` §3.3). The text lists are for people; the message lists are what is delivered.

use std::collections::VecDeque;

use pliant_sdk::Message;

use crate::settings::QueueMode;

/// Which queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Before the next request.
    Steer,
    /// When the run would stop.
    FollowUp,
}

#[derive(Debug, Default)]
struct Queue {
    mode: QueueMode,
    messages: VecDeque<Message>,
    shown: Vec<String>,
}

/// Both queues of a session.
#[derive(Debug, Default)]
pub(super) struct Queues {
    steering: Queue,
    follow_up: Queue,
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
        }
    }

    pub(super) fn push(&mut self, delivery: Delivery, text: String, message: Message) {
        let queue = self.of(delivery);
        queue.shown.push(text);
        queue.messages.push_back(message);
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

    /// Empties both and answers the texts of what is not delivered now. What a run has taken already
    /// is still shown until it begins, and is not given back too.
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

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

    /// What the next poll would take: steering, else follow-ups, each by its mode (L12).
    pub(super) fn peek(&self) -> Vec<Message> {
        let next = |queue: &Queue| {
            let most = match queue.mode {
                QueueMode::OneAtATime => 1,
                QueueMode::All => usize::MAX,
            };
            queue.messages.iter().take(most).cloned().collect()
        };
        let steering: Vec<Message> = next(&self.steering);
        if steering.is_empty() {
            next(&self.follow_up)
        } else {
            steering
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

    /// Empties both and answers what was shown.
    pub(super) fn clear(&mut self) -> (Vec<String>, Vec<String>) {
        let empty = |queue: &mut Queue| {
            queue.messages.clear();
            std::mem::take(&mut queue.shown)
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
    fn a_look_ahead_shows_what_the_next_poll_takes_and_takes_nothing() {
        // L12
        let mut queues = queue(QueueMode::OneAtATime);
        queues.push(Delivery::FollowUp, "c".into(), Message::user("c", 1));
        assert_eq!(queues.peek(), queues.peek());
        assert_eq!(queues.peek(), queues.take(Delivery::Steer));
        queues.take(Delivery::Steer);
        assert_eq!(queues.peek(), [Message::user("c", 1)]);
        assert_eq!(queue(QueueMode::All).peek().len(), 2);
    }

    #[test]
    fn a_delivered_text_leaves_the_list_once() {
        // P32
        let mut queues = queue(QueueMode::All);
        queues.push(Delivery::FollowUp, "a".to_owned(), Message::user("a", 1));
        assert!(queues.delivered("a"));
        assert_eq!(queues.shown(), (vec!["b".to_owned()], vec!["a".to_owned()]));
        assert!(!queues.delivered("never queued"));
        assert_eq!(queues.clear(), (vec!["b".to_owned()], vec!["a".to_owned()]));
        assert!(queues.is_empty());
    }
}

//! The queues as a run sees them.

use std::sync::Arc;

use pliant_sdk::Message;

use crate::run::QueueHost;
use crate::session::{Delivery, Shared, lock};

impl QueueHost for Arc<Shared> {
    fn take_steering(&self) -> Vec<Message> {
        lock(&self.queues).take(Delivery::Steer)
    }

    fn take_follow_up(&self) -> Vec<Message> {
        lock(&self.queues).take(Delivery::FollowUp)
    }

    fn delivered(&self, text: &str) -> Option<(Vec<String>, Vec<String>)> {
        let mut queues = lock(&self.queues);
        queues.delivered(text).then(|| queues.shown())
    }

    fn begin_settling(&self, force: bool) -> bool {
        self.claims
            .begin_settling(|| force || lock(&self.queues).is_empty())
    }
}

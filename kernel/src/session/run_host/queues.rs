//! The queues as a run sees them.

use std::sync::Arc;

use pliant_sdk::host::BoxFuture;
use pliant_sdk::{Error, Message};

use crate::run::QueueHost;
use crate::session::{Delivery, Shared, lock};

impl QueueHost for Arc<Shared> {
    fn take_steering(&self) -> Vec<Message> {
        lock(&self.queues).take(Delivery::Steer)
    }

    fn take_follow_up(&self) -> Vec<Message> {
        lock(&self.queues).take(Delivery::FollowUp)
    }

    fn take_next_turn(&self) -> Vec<Message> {
        std::mem::take(&mut lock(&self.queues).next_turn)
    }

    fn arrived(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.outbox.arrived())
    }

    fn delivered(&self, text: String) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let leave = || lock(&self.queues).delivered(&text);
            self.change_queues(leave).await;
        })
    }

    fn flush_held(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(Shared::flush_held(self))
    }

    fn begin_settling(&self, force: bool) -> bool {
        self.claims
            .begin_settling(|| force || lock(&self.queues).is_empty())
    }
}

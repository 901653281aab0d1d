//! The way of stream events from a provider to the loop. Nothing is dropped and nothing blocks the
//! sender; a sender that is far ahead is told so and can wait until the loop has caught up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pliant_sdk::StreamEvent;
use tokio::sync::{Notify, mpsc};

/// Events waiting beyond this number make the sender wait.
const SLOW_AT: usize = 1024;

/// Makes the two ends.
#[must_use]
pub fn event_channel() -> (EventSender, EventReceiver) {
    let (tx, rx) = mpsc::unbounded_channel();
    let backlog = Arc::new(Backlog::default());
    (
        EventSender {
            tx,
            backlog: Arc::clone(&backlog),
        },
        EventReceiver { rx, backlog },
    )
}

#[derive(Debug, Default)]
struct Backlog {
    waiting: AtomicUsize,
    taken: Notify,
}

/// The provider's end.
#[derive(Debug, Clone)]
pub struct EventSender {
    tx: mpsc::UnboundedSender<StreamEvent>,
    backlog: Arc<Backlog>,
}

/// What a sender learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// Go on.
    Fine,
    /// Await [`EventSender::ready`] before sending more.
    Behind,
    /// Nobody listens any more.
    Closed,
}

impl EventSender {
    /// Sends one event.
    pub fn send(&self, event: StreamEvent) -> Sent {
        let waiting = self.backlog.waiting.fetch_add(1, Ordering::Relaxed);
        match self.tx.send(event) {
            Err(_) => Sent::Closed,
            Ok(()) if waiting >= SLOW_AT => Sent::Behind,
            Ok(()) => Sent::Fine,
        }
    }

    /// Returns when the loop has caught up, or is gone.
    pub async fn ready(&self) {
        loop {
            let taken = self.backlog.taken.notified();
            if self.tx.is_closed() || self.backlog.waiting.load(Ordering::Relaxed) < SLOW_AT / 2 {
                return;
            }
            tokio::select! {
                () = taken => {}
                () = self.tx.closed() => return,
            }
        }
    }
}

/// The loop's end.
#[derive(Debug)]
pub struct EventReceiver {
    rx: mpsc::UnboundedReceiver<StreamEvent>,
    backlog: Arc<Backlog>,
}

impl EventReceiver {
    /// Takes what is there, without waiting.
    pub fn take_ready(&mut self, batch: &mut Vec<StreamEvent>) {
        while let Ok(event) = self.rx.try_recv() {
            self.backlog.waiting.fetch_sub(1, Ordering::Relaxed);
            batch.push(event);
        }
        self.backlog.taken.notify_waiters();
    }

    /// Takes up to `limit` events; answers how many, 0 when the sender is gone.
    pub async fn take(&mut self, batch: &mut Vec<StreamEvent>, limit: usize) -> usize {
        let taken = self.rx.recv_many(batch, limit).await;
        self.backlog.waiting.fetch_sub(taken, Ordering::Relaxed);
        // Every waiting sender: several may share the channel.
        self.backlog.taken.notify_waiters();
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sender_that_is_ahead_waits_until_the_loop_has_caught_up() {
        let (tx, mut rx) = event_channel();
        let behind = (0..=SLOW_AT)
            .map(|_| tx.send(StreamEvent::Start))
            .find(|sent| *sent == Sent::Behind);
        assert_eq!(behind, Some(Sent::Behind));
        let mut batch = Vec::new();
        let (_, (), ()) = tokio::join!(
            async {
                while batch.len() <= SLOW_AT {
                    rx.take(&mut batch, 64).await;
                }
            },
            tx.ready(),
            tx.ready()
        );
        drop(rx);
        assert_eq!(tx.send(StreamEvent::Start), Sent::Closed);
        tx.ready().await;
    }
}

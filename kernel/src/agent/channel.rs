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
        EventReceiver {
            rx,
            begun: Vec::new().into_iter(),
            backlog,
        },
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
    tx: mpsc::UnboundedSender<Vec<StreamEvent>>,
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
    /// Sends events that came at once. The loop is woken once for all of them.
    pub fn send(&self, events: Vec<StreamEvent>) -> Sent {
        let count = events.len();
        let waiting = self.backlog.waiting.fetch_add(count, Ordering::Relaxed);
        match self.tx.send(events) {
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
    rx: mpsc::UnboundedReceiver<Vec<StreamEvent>>,
    /// What is left of the events that were taken last.
    begun: std::vec::IntoIter<StreamEvent>,
    backlog: Arc<Backlog>,
}

impl EventReceiver {
    /// Takes what is there, without waiting.
    pub fn take_ready(&mut self, batch: &mut Vec<StreamEvent>) {
        self.fill(batch, usize::MAX);
    }

    /// Takes up to `limit` events; answers how many, 0 when the sender is gone.
    pub async fn take(&mut self, batch: &mut Vec<StreamEvent>, limit: usize) -> usize {
        while self.begun.len() == 0 {
            match self.rx.recv().await {
                Some(events) => self.begun = events.into_iter(),
                None => return 0,
            }
        }
        self.fill(batch, limit)
    }

    /// Takes up to `limit` events of those that are there.
    fn fill(&mut self, batch: &mut Vec<StreamEvent>, limit: usize) -> usize {
        let mut taken = 0;
        loop {
            let before = batch.len();
            batch.extend(self.begun.by_ref().take(limit - taken));
            taken += batch.len() - before;
            if taken == limit {
                break;
            }
            match self.rx.try_recv() {
                Ok(events) => self.begun = events.into_iter(),
                Err(_) => break,
            }
        }
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
            .map(|_| tx.send(vec![StreamEvent::Start]))
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
        assert_eq!(tx.send(vec![StreamEvent::Start]), Sent::Closed);
        tx.ready().await;
    }
}

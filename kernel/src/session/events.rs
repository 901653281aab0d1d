//! One event's way out: to every subscriber in turn, waiting for each. A reader that is slow slows the
//! session and loses nothing; one that is gone is forgotten.

use std::sync::{Arc, Mutex, PoisonError};

use pliant_sdk::Event;
use tokio::sync::mpsc::{self, error::TrySendError};

/// Events a subscriber may be behind before the session waits for it.
const WAITING: usize = 256;

/// Receives the events of a session in order.
pub type Subscription = mpsc::Receiver<Arc<Event>>;

/// The subscribers of a session.
#[derive(Debug)]
pub(super) struct Subscribers {
    senders: Mutex<Senders>,
    /// What failed before anybody subscribed: handlers of `session_start` run first. For the first who
    /// does; `None` from then on.
    early: Mutex<Option<Vec<Arc<Event>>>>,
}

impl Default for Subscribers {
    fn default() -> Self {
        Self {
            senders: Mutex::default(),
            early: Mutex::new(Some(Vec::new())),
        }
    }
}

/// Shared, because every event looks at them and hardly one changes them.
type Senders = Arc<Vec<mpsc::Sender<Arc<Event>>>>;

impl Subscribers {
    pub(super) fn subscribe(&self) -> Subscription {
        let (tx, rx) = mpsc::channel(WAITING);
        let early = self.early().take();
        for event in early.into_iter().flatten() {
            // The channel is empty and holds as many as were kept.
            let _ = tx.try_send(event);
        }
        Arc::make_mut(&mut *self.lock()).push(tx);
        rx
    }

    pub(super) async fn publish(&self, event: impl Into<Arc<Event>>) {
        let senders = Arc::clone(&self.lock());
        if senders.is_empty() {
            self.keep(event.into());
            return;
        }
        let event = event.into();
        for sender in &*senders {
            // A closed channel is a subscriber that left.
            if let Err(TrySendError::Full(event)) = sender.try_send(Arc::clone(&event)) {
                let _ = sender.send(event).await;
            }
        }
        if senders.iter().any(mpsc::Sender::is_closed) {
            Arc::make_mut(&mut *self.lock()).retain(|sender| !sender.is_closed());
        }
    }

    /// Keeps a failure for the first subscriber; other events tell what is going on, which is over by
    /// then.
    fn keep(&self, event: Arc<Event>) {
        if let Event::ExtensionError { .. } = *event
            && let Some(early) = &mut *self.early()
            && early.len() < WAITING
        {
            early.push(event);
        }
    }

    pub(super) fn end(&self) {
        *self.lock() = Senders::default();
    }

    fn early(&self) -> std::sync::MutexGuard<'_, Option<Vec<Arc<Event>>>> {
        self.early.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Senders> {
        self.senders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

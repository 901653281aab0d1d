//! One event's way out: to every subscriber in turn, waiting for each. A reader that is slow slows the
//! session and loses nothing; one that is gone is forgotten.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::Stream;
use pliant_sdk::Event;
use tokio::sync::mpsc::{
    self,
    error::{TryRecvError, TrySendError},
};

/// Events a subscriber may be behind before the session waits for it.
const WAITING: usize = 256;

/// Receives the events of a session, each of them and in order; a [`Stream`] too. It holds a bounded
/// number of events: when it is full, the session waits, so read while a run is active, or drop it.
#[derive(Debug)]
pub struct Subscription(mpsc::Receiver<Arc<Event>>);

impl Subscription {
    /// The next event; `None` when the session tells no more.
    pub async fn recv(&mut self) -> Option<Arc<Event>> {
        self.0.recv().await
    }

    /// The next event, on a thread that may wait.
    pub fn blocking_recv(&mut self) -> Option<Arc<Event>> {
        self.0.blocking_recv()
    }

    /// The next event, if there is one already.
    ///
    /// # Errors
    /// When there is none now, or never will be.
    pub fn try_recv(&mut self) -> Result<Arc<Event>, TryRecvError> {
        self.0.try_recv()
    }

    /// How many more events there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Takes no more events; those that have come can still be read.
    pub fn close(&mut self) {
        self.0.close();
    }
}

impl Stream for Subscription {
    type Item = Arc<Event>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}

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
        Subscription(rx)
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

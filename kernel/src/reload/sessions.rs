//! The open sessions, as a reload sees them: it is let in where no handler or tool runs, and tells the
//! handlers of what it replaces.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use pliant_sdk::event::SourceChange;
use pliant_sdk::host::BoxFuture;
use pliant_sdk::{Error, Event};

use crate::watch::Place;

/// Keeps a session where it is; it goes on when this is dropped.
pub type Hold = Box<dyn Send>;

/// An open session.
pub trait OpenSession: Send + Sync {
    /// Whether the user may ask for a reload now (R53).
    ///
    /// # Errors
    /// What is going on instead.
    fn may_reload(&self) -> Result<(), Error>;

    /// Waits until no handler or tool runs: between two turns, or while it is idle.
    fn hold(self: Arc<Self>) -> BoxFuture<'static, Hold>;

    /// The same, if that is so now.
    fn hold_now(self: Arc<Self>) -> Option<Hold>;

    /// Tells the handlers of these sources, and no others, that they end here (`session_shutdown`).
    fn tell_end(self: Arc<Self>, sources: Vec<String>) -> BoxFuture<'static, ()>;

    /// Tells the handlers of these sources that they begin here (`session_start`), and takes note of
    /// the tools there are now.
    fn tell_start(self: Arc<Self>, sources: Vec<String>) -> BoxFuture<'static, ()>;

    /// Where changes of the texts are seen that the session's prompt is made of.
    fn places(&self) -> Vec<Place>;

    /// Reads these texts anew, for its next request, and answers what has changed by it. May wait for
    /// the disk.
    fn reread(&self) -> Vec<SourceChange>;

    /// Says something to the subscribers.
    fn say(&self, event: Event) -> BoxFuture<'_, ()>;
}

/// The sessions that are open.
#[derive(Default)]
pub(super) struct Sessions(Mutex<Vec<Weak<dyn OpenSession>>>);

impl Sessions {
    pub(super) fn add(&self, session: Weak<dyn OpenSession>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|session| session.strong_count() > 0);
        all.push(session);
    }

    pub(super) fn all(&self) -> Vec<Arc<dyn OpenSession>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(Weak::upgrade).collect()
    }
}

/// Holds the sessions. Of several only the first is waited for: while one waited for the end of
/// another's turn, a third could do nothing. What a turn was told of is pinned, so the others miss
/// no more than the order of two events.
pub(super) async fn hold(sessions: &[Arc<dyn OpenSession>]) -> Vec<Hold> {
    let Some((first, others)) = sessions.split_first() else {
        return Vec::new();
    };
    let mut holds = vec![Arc::clone(first).hold().await];
    let others = others.iter().map(Arc::clone);
    holds.extend(others.filter_map(OpenSession::hold_now));
    holds
}

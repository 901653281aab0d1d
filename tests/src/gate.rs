//! Gates in a reply: the model waits at one until the test lets it go on. So a test can be sure of what
//! happened before what, without any pause.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// A place where a reply waits. Its copies are the same gate.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    reached: bool,
    open: bool,
    abandoned: bool,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the reply go on, now or when it arrives.
    pub fn open(&self) {
        self.change(|state| state.open = true);
    }

    /// Waits until the reply stands at the gate: what comes before it has been sent.
    ///
    /// # Panics
    /// When it does not come.
    pub fn wait_reached(&self) {
        const LIMIT: Duration = Duration::from_secs(20);
        let waited = self
            .0
            .changed
            .wait_timeout_while(self.state(), LIMIT, |state| !state.reached);
        let timed_out = waited.expect("no holder of the lock panics").1.timed_out();
        assert!(!timed_out, "no reply came to the gate within {LIMIT:?}");
    }

    /// The reply stands here until it may go on; whether it may.
    pub(crate) fn pass(&self) -> bool {
        self.change(|state| state.reached = true);
        let waits = |state: &mut State| !state.open && !state.abandoned;
        let waited = self.0.changed.wait_while(self.state(), waits);
        waited.expect("no holder of the lock panics").open
    }

    /// The server ends; who stands here goes home.
    pub(crate) fn abandon(&self) {
        self.change(|state| state.abandoned = true);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.0.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("no holder of the lock panics")
    }
}

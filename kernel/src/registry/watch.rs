//! Who hears of the registry: that another snapshot is in force, and that a source stopped working.

use std::sync::{Mutex, PoisonError, Weak};

use super::HandlerFailure;

/// Keeps something made from a snapshot, and lets go of it when that has been replaced: a generation
/// ends when nothing holds it any more.
pub trait Watcher: Send + Sync {
    /// Another snapshot is in force.
    fn registry_changed(&self);

    /// A source takes no calls any more; told once for each of its generations, from whatever thread
    /// found out.
    fn source_failed(&self, _failure: &HandlerFailure) {}
}

/// All of them.
#[derive(Default)]
pub(super) struct Watchers(Mutex<Vec<Weak<dyn Watcher>>>);

impl Watchers {
    pub(super) fn add(&self, watcher: Weak<dyn Watcher>) {
        let mut watchers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.retain(|watcher| watcher.strong_count() > 0);
        watchers.push(watcher);
    }

    pub(super) fn changed(&self) {
        self.each(|watcher| watcher.registry_changed());
    }

    pub(super) fn failed(&self, failure: &HandlerFailure) {
        self.each(|watcher| watcher.source_failed(failure));
    }

    /// Without the lock: who hears of something may watch or leave.
    fn each(&self, tell: impl Fn(&dyn Watcher)) {
        let watchers = self.0.lock();
        let watchers = watchers.unwrap_or_else(PoisonError::into_inner).clone();
        for watcher in watchers.iter().filter_map(Weak::upgrade) {
            tell(&*watcher);
        }
    }
}

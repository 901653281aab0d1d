//! Plugins that are ending: their last code runs on threads of its own, which it may hold. Whoever ends
//! the process waits for them, but not for long: what a plugin says at its end should still be heard.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long the end of the process may wait for plugins.
const LIMIT: Duration = Duration::from_secs(1);

/// The ends that are under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Endings(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    under_way: Mutex<usize>,
    changed: Condvar,
    /// Somebody has waited: the process may end at any time.
    is_over: AtomicBool,
}

/// One of them, until it is dropped.
struct Ending(Arc<Inner>);

impl Endings {
    /// Runs the end of a plugin.
    pub(super) fn begin(&self, end: impl FnOnce() + Send + 'static) {
        *self.under_way() += 1;
        let ending = Ending(Arc::clone(&self.0));
        let thread = thread::Builder::new().name("pliant-plugin-end".to_owned());
        // Without threads it ends here: the closure and all that it holds are dropped.
        let _ = thread.spawn(move || {
            end();
            drop(ending);
        });
        if self.0.is_over.load(Ordering::Acquire) {
            self.wait();
        }
    }

    /// Waits for the ends that are under way, as long as they may take.
    pub(super) fn wait(&self) {
        self.0.is_over.store(true, Ordering::Release);
        let under_way = self.under_way();
        let waited = self
            .0
            .changed
            .wait_timeout_while(under_way, LIMIT, |count| *count > 0);
        if *waited.unwrap_or_else(PoisonError::into_inner).0 > 0 {
            tracing::warn!(target: "pliant::dylib", "a plugin does not end and is left behind");
        }
    }

    fn under_way(&self) -> MutexGuard<'_, usize> {
        lock(&self.0.under_way)
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        *lock(&self.0.under_way) -= 1;
        self.0.changed.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Instant;

    use super::*;

    #[test]
    fn an_end_is_waited_for_but_not_for_ever() {
        // plugin-abi §6
        let endings = Endings::default();
        let (said, heard) = mpsc::channel();
        endings.begin(move || said.send("the end").unwrap());
        endings.wait();
        assert_eq!(heard.try_recv(), Ok("the end"));
        let (hold, held) = mpsc::channel::<()>();
        let begun = Instant::now();
        // After that the process may be gone at any time, so it is waited for at once.
        endings.begin(move || {
            let _ = held.recv();
        });
        assert!(begun.elapsed() >= LIMIT);
        drop(hold);
    }
}

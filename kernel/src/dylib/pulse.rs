//! Whether a plugin hangs: a call of it was given up, and its poll has not returned since
//! (`plugin-abi.md` §6). Such a plugin takes no more calls, until the poll returns after all.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pliant_sdk::Error;
use pliant_sdk::error::code;

use super::workers::HELD;

/// When the poll of a call began that has not returned.
#[derive(Debug, Default)]
pub(super) struct Beat(Mutex<Option<Instant>>);

impl Beat {
    pub(super) fn begin(&self) {
        *lock(&self.0) = Some(Instant::now());
    }

    pub(super) fn end(&self) {
        *lock(&self.0) = None;
    }

    /// How long it has not returned.
    fn held(&self) -> Option<Duration> {
        lock(&self.0).map(|since| since.elapsed())
    }
}

/// The calls of one plugin that were given up and have not returned.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    count: AtomicUsize,
    given_up: Mutex<Vec<Arc<Beat>>>,
}

impl Pulse {
    /// A call is given up; it counts if it is being polled.
    pub(super) fn note(&self, beat: &Arc<Beat>) {
        let mut given_up = lock(&self.given_up);
        let is_known = given_up.iter().any(|known| Arc::ptr_eq(known, beat));
        if !is_known && beat.held().is_some() {
            given_up.push(Arc::clone(beat));
            self.count.store(given_up.len(), SeqCst);
        }
    }

    /// The poll of a call has returned.
    pub(super) fn clear(&self, beat: &Arc<Beat>) {
        let mut given_up = lock(&self.given_up);
        given_up.retain(|known| !Arc::ptr_eq(known, beat));
        self.count.store(given_up.len(), SeqCst);
    }

    /// Why the plugin takes no calls. A poll that has just been given up may be about to return.
    pub(super) fn fault(&self, plugin: &str) -> Option<Error> {
        if self.count.load(SeqCst) == 0 {
            return None;
        }
        let held = lock(&self.given_up)
            .iter()
            .filter_map(|beat| beat.held())
            .max();
        let held = held.filter(|held| *held >= HELD)?;
        Some(Error::new(
            code::FAULTY,
            format!(
                "The plugin \"{plugin}\" hangs: for {} s it has not returned from a call that was given up. It takes no others until it does. /reload it; with the setting plugins.isolation {{\"{plugin}\": \"process\"}} it can be stopped; or start pliant again.",
                held.as_secs_f32().ceil()
            ),
        ))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

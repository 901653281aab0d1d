//! Threads that poll plugins, and their queue. A poll that does not return holds its thread and nothing
//! else: when something waits and nothing was taken from the queue for a while, another thread is
//! started (`plugin-abi.md` §6). Timers and sockets are driven elsewhere, by a runtime on which no
//! plugin is polled, so whatever the threads are held by, what a plugin waits for goes on.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use pliant_sdk::Error;
use tokio::runtime::Handle;

/// Threads that stay. One may be held for a moment by a plugin that computes.
const STAY: usize = 2;

/// Threads at most; only plugins that hang or compute hold one.
const MOST: usize = 64;

/// How long what waits may wait until another thread is started.
pub(super) const HELD: Duration = Duration::from_millis(200);

/// Something that a worker can carry on with.
pub(super) trait Work: Send + Sync {
    /// Carries on; may take long, but does not panic.
    fn carry_on(self: Arc<Self>);

    /// No worker will ever carry on with it, for this reason.
    fn give_up(&self, reason: Error);
}

/// The workers of a runtime.
pub(super) struct Workers {
    state: Mutex<State>,
    filled: Condvar,
    /// Drives timers and sockets.
    driver: Handle,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Arc<dyn Work>>,
    workers: usize,
    idle: usize,
    /// Counts what was taken from the queue.
    taken: u64,
    is_watched: bool,
    is_closed: bool,
}

impl Workers {
    pub(super) fn new(driver: Handle) -> Self {
        Self {
            state: Mutex::default(),
            filled: Condvar::new(),
            driver,
        }
    }

    /// Queues some work.
    pub(super) fn add(self: &Arc<Self>, work: Arc<dyn Work>) {
        let mut state = self.state();
        if state.is_closed {
            drop(state);
            return work.give_up(Error::cancelled());
        }
        state.queue.push_back(work);
        if state.queue.len() <= state.idle {
            self.filled.notify_one();
        } else if state.workers < STAY && self.start_worker(&mut state) {
            // It takes it.
        } else if !state.is_watched {
            state.is_watched = true;
            drop(state);
            self.driver.spawn(watch(Arc::clone(self)));
        }
    }

    /// Workers end when they return; nothing is carried on with any more.
    pub(super) fn close(&self) {
        let left = {
            let mut state = self.state();
            state.is_closed = true;
            std::mem::take(&mut state.queue)
        };
        self.filled.notify_all();
        left.iter()
            .for_each(|work| work.give_up(Error::cancelled()));
    }

    /// Starts a worker; false where there can be no more threads.
    fn start_worker(self: &Arc<Self>, state: &mut State) -> bool {
        let workers = Arc::clone(self);
        let thread = thread::Builder::new().name("pliant-plugins".to_owned());
        let is_started = thread.spawn(move || workers.work()).is_ok();
        state.workers += usize::from(is_started);
        is_started
    }

    fn work(&self) {
        // What a plugin is polled for finds timers and sockets there.
        let _driver = self.driver.enter();
        while let Some(work) = self.next() {
            work.carry_on();
        }
    }

    /// The next work; `None` for a worker that is not needed any more.
    fn next(&self) -> Option<Arc<dyn Work>> {
        let mut state = self.state();
        loop {
            if !state.is_closed
                && let Some(work) = state.queue.pop_front()
            {
                state.taken += 1;
                return Some(work);
            }
            if state.is_closed || state.idle >= STAY {
                state.workers -= 1;
                return None;
            }
            state.idle += 1;
            let waited = self.filled.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn all_held() -> Error {
    Error::failed(
        "every thread for plugins is held by one that does not return. Start pliant again, and see which of them hangs.",
    )
}

/// Looks after a queue for which there is no idle worker, until it is empty.
async fn watch(workers: Arc<Workers>) {
    let mut seen = workers.state().taken;
    loop {
        tokio::time::sleep(HELD).await;
        let mut state = workers.state();
        if state.queue.is_empty() || state.is_closed {
            state.is_watched = false;
            return;
        }
        let is_stuck = state.taken == seen;
        seen = state.taken;
        if is_stuck && state.workers >= MOST {
            let left = std::mem::take(&mut state.queue);
            drop(state);
            left.iter().for_each(|work| work.give_up(all_held()));
        } else if is_stuck {
            // Where there can be no more threads, those there are have to do.
            workers.start_worker(&mut state);
        }
    }
}

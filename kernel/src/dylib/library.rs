//! One library and its one load. Whoever needs it waits for the same load, at most as long as a plugin
//! may take to start, while the load itself goes on beside them: it runs on the blocking threads of
//! the plugin runtime, never on the caller's.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pliant_sdk::catch;
use tokio::sync::SetOnce;
use tokio::time::{Instant, timeout_at};

use super::generation::PluginHost;
use super::load::Loaded;
use super::manifest::{FoundPlugin, LoadError};
use super::runtime::PluginRuntime;
use crate::registry::Source;

type Outcome = Result<Arc<Loaded>, LoadError>;

/// A library that was found, and what became of loading it.
pub(super) struct Library {
    pub(super) source: Source,
    pub(super) found: FoundPlugin,
    host: Arc<PluginHost>,
    attempt: Mutex<Option<Arc<Attempt>>>,
    /// Another one has its place: what its code was created with serves no more.
    retired: Arc<AtomicBool>,
}

/// A load that runs or ran. One that takes too long may still end well; who asks later has it then.
struct Attempt {
    outcome: OnceLock<Outcome>,
    /// Set when the outcome is, and the thread of the load holds nothing of the plugin any more: who
    /// drops the plugin then drops it for good, where the process may be about to end.
    ended: Arc<SetOnce<()>>,
    deadline: Instant,
}

impl Library {
    pub(super) fn new(found: FoundPlugin, host: Arc<PluginHost>) -> Self {
        Self {
            source: found.source(),
            found,
            host,
            attempt: Mutex::new(None),
            retired: Arc::default(),
        }
    }

    pub(super) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    pub(super) fn runtime(&self) -> &PluginRuntime {
        &self.host.runtime
    }

    /// What is loaded, if it is; starts nothing.
    pub(super) fn loaded(&self) -> Option<Arc<Loaded>> {
        let attempt = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        attempt.as_ref()?.outcome.get()?.clone().ok()
    }

    /// Loads the library unless that was done. To be polled on the plugin runtime.
    pub(super) async fn load(&self) -> Outcome {
        let attempt = self.current_attempt();
        match timeout_at(attempt.deadline, attempt.ended.wait()).await {
            Ok(()) => self.outcome(&attempt),
            Err(_) => Err(self.too_slow()),
        }
    }

    /// Loads the library and holds the caller's thread until that is done.
    pub(super) fn load_now(&self) -> Outcome {
        let (tell, told) = mpsc::sync_channel(1);
        let attempt = self.begin(move || {
            // Nobody waits any more when the limit has passed.
            let _ = tell.send(());
        });
        *self.attempt.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&attempt));
        match told.recv_timeout(self.host.runtime.start_limit()) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => self.outcome(&attempt),
            Err(RecvTimeoutError::Timeout) => Err(self.too_slow()),
        }
    }

    /// The attempt that everybody shares. One that failed for a reason that passes is made again.
    fn current_attempt(&self) -> Arc<Attempt> {
        let mut current = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        let usable = current.as_ref().filter(|attempt| {
            let failure = attempt
                .outcome
                .get()
                .and_then(|outcome| outcome.as_ref().err());
            !failure.is_some_and(LoadError::may_pass)
        });
        match usable {
            Some(attempt) => Arc::clone(attempt),
            None => Arc::clone(current.insert(self.begin(|| {}))),
        }
    }

    fn begin(&self, tell: impl FnOnce() + Send + 'static) -> Arc<Attempt> {
        let attempt = Arc::new(Attempt {
            outcome: OnceLock::new(),
            ended: Arc::default(),
            deadline: Instant::now() + self.host.runtime.start_limit(),
        });
        let (source, found) = (self.source.clone(), self.found.clone());
        let retired = Arc::clone(&self.retired);
        let (host, started) = (Arc::clone(&self.host), Arc::clone(&attempt));
        let queued = self.host.runtime.blocking(move || {
            let outcome = match catch(|| Loaded::start(&source, &found, host, retired)) {
                Ok(outcome) => outcome.map(Arc::new),
                Err(panic) => Err(LoadError::create_failed(&found, panic.to_string())),
            };
            let ended = Arc::clone(&started.ended);
            // Both are set here only, so they are not set yet.
            let _ = started.outcome.set(outcome);
            drop(started);
            let _ = ended.set(());
            tell();
        });
        if let Err(error) = queued {
            let _ = attempt.outcome.set(Err(self.failed(error.to_string())));
            let _ = attempt.ended.set(());
        }
        attempt
    }

    /// What an attempt that ended came to.
    fn outcome(&self, attempt: &Attempt) -> Outcome {
        let outcome = attempt.outcome.get().cloned();
        outcome.unwrap_or_else(|| Err(self.failed("its load was given up".to_owned())))
    }

    fn failed(&self, cause: String) -> LoadError {
        LoadError::create_failed(&self.found, cause)
    }

    fn too_slow(&self) -> LoadError {
        LoadError::TooSlow {
            name: self.found.manifest.name.clone(),
            path: self.found.path.display().to_string(),
            limit: format!("{} s", self.host.runtime.start_limit().as_secs_f32()),
        }
    }
}

//! Timers of a script. They belong to its generation and end with it; of each, one run at a time.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use pliant_sdk::Error;
use pliant_sdk::host::{Host, LogLevel};
use pliant_sdk::plugin::CallCtx;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::call::{Call, Phase};
use crate::error::Failure;
use crate::extension::{Limits, on_script_thread};
use crate::program::{Callback, Program};

/// More at once are a mistake, such as one that is started by each event.
const MOST: usize = 100;

/// A timer that fails so often in a row is over.
const MOST_FAILURES: u32 = 3;

/// Those that run; none and no more once they were ended.
pub(crate) struct Timers(Mutex<Option<Vec<AbortHandle>>>);

impl Default for Timers {
    fn default() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }
}

impl Timers {
    /// Ends all of them for good; what runs at the moment is stopped.
    pub(crate) fn end(&self) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = all.take().unwrap_or_default();
        ended.iter().for_each(AbortHandle::abort);
    }
}

impl Drop for Timers {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a timer does, and how often.
pub(crate) struct Timer {
    pub(crate) callback: Callback,
    pub(crate) period: Duration,
    /// Again and again; otherwise once.
    pub(crate) repeats: bool,
    /// Told when nobody wants it any more. A run under way goes on: it may be the one that tells.
    pub(crate) stopped: Arc<Notify>,
}

impl Timer {
    /// Starts it. What its closure asks for, the services of `host` answer.
    ///
    /// # Errors
    /// When too many run.
    pub(crate) fn start(
        self,
        program: &Arc<Program>,
        host: Host,
        runtime: &Handle,
    ) -> Result<(), Error> {
        let mut all = program.timers().0.lock();
        let all = all
            .as_mut()
            .map_err(|_| Error::failed("a timer ended badly"))?;
        // A handler may still be under way when its version is replaced.
        let Some(all) = all.as_mut() else {
            return Err(Error::invalid(
                "this version of the script has been replaced, so it starts no more timers",
            ));
        };
        all.retain(|timer| !timer.is_finished());
        if all.len() >= MOST {
            return Err(Error::invalid(format!(
                "{MOST} timers run already; stop some, or start one for all"
            )));
        }
        let running = runtime.spawn(self.run(Arc::downgrade(program), host));
        all.push(running.abort_handle());
        Ok(())
    }

    async fn run(self, program: Weak<Program>, host: Host) {
        let mut failures = 0;
        loop {
            tokio::select! {
                biased;
                () = self.stopped.notified() => return,
                () = tokio::time::sleep(self.period) => {}
            }
            // A generation that is gone has no timers.
            let Some(program) = program.upgrade() else {
                return;
            };
            let name = program.name().to_owned();
            match self.once(program, host.clone()).await {
                Ok(()) => failures = 0,
                Err(error) => {
                    failures += 1;
                    let message = format!("a timer of {name} failed: {}", error.message);
                    host.log(LogLevel::Error, &message);
                }
            }
            if !self.repeats || failures == MOST_FAILURES {
                return;
            }
        }
    }

    async fn once(&self, program: Arc<Program>, host: Host) -> Result<(), Error> {
        let phase = Phase::Serving(CallCtx::answer_only(host.clone()));
        let call = Call::new(program, phase, host, Some(Limits::default().handler));
        let callback = self.callback.clone();
        on_script_thread(call, move |call| {
            let program = call.program();
            let run = callback.call(program, []);
            run.map(drop)
                .map_err(|error| Failure::from(error).into_error(program))
        })
        .await
    }
}

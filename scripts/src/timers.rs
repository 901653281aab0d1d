//! Timers of a script. They belong to its generation and end with it; of each, one run at a time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use pliant_sdk::Error;
use pliant_sdk::host::{Host, LogLevel};
use pliant_sdk::plugin::CallCtx;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::call::{Call, Phase};
use crate::error::Failure;
use crate::extension::{Limits, on_script_thread};
use crate::program::{Callback, Program};

/// More at once are a mistake, such as one that is started by each event.
const MOST: usize = 100;

/// A timer that fails so often in a row is over.
const MOST_FAILURES: u32 = 3;

/// Those that run.
#[derive(Default)]
pub(crate) struct Timers(Mutex<Vec<AbortHandle>>);

impl Timers {
    /// Ends all of them; what runs at the moment is stopped.
    pub(crate) fn end(&self) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.drain(..).for_each(|timer| timer.abort());
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
    /// Set when nobody wants it any more.
    pub(crate) stopped: Arc<AtomicBool>,
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
            tokio::time::sleep(self.period).await;
            // A generation that is gone has no timers.
            let Some(program) = program.upgrade() else {
                return;
            };
            if self.stopped.load(Ordering::Relaxed) {
                return;
            }
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

//! The timers of one generation of a script: closures that run later, or again and again, because
//! their time has come and not because somebody called.
//!
//! They begin when the script is loaded and end when it is retired, a run under way included: what a
//! reload replaced must not act any more. A timer has at most one run at a time, as its next wait
//! begins when the run has ended. Runs have the services and the time limit that handlers have, but
//! nobody to answer, so failures go to the log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use pliant_sdk::Error;
use pliant_sdk::host::{Host, LogLevel};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::call::{Call, Phase, ScriptResult, fail};
use crate::error::Failure;
use crate::evaluation::evaluate;
use crate::program::{Callback, Program};

/// Most timers of a script at one time; more are a loop that forgot to stop them.
const MAX_TIMERS: usize = 100;

/// What is to run, and when.
pub(crate) struct Plan {
    /// The closure.
    pub(crate) run: Callback,
    /// How long to wait before each run.
    pub(crate) wait: Duration,
    /// Whether it goes on after the first run.
    pub(crate) again: bool,
}

/// The timers of a generation.
pub(crate) struct Timers {
    program: Arc<Program>,
    host: Host,
    limit: Duration,
    runtime: Option<Handle>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    stage: Stage,
    next_id: u64,
    all: HashMap<u64, Timer>,
}

#[derive(Default, PartialEq, Eq)]
enum Stage {
    /// The script is being loaded: timers are kept until it turns out well.
    #[default]
    Loading,
    Running,
    Ended,
}

enum Timer {
    Kept(Plan),
    Running {
        /// Dropped, it ends the timer before its next run, and lets a run under way end by itself:
        /// that may be the very run that stops the timer.
        _stop: oneshot::Sender<()>,
        task: AbortHandle,
    },
}

impl Timers {
    /// No timers yet. `limit` bounds the time of a run.
    pub(crate) fn new(program: &Arc<Program>, host: Host, limit: Duration) -> Arc<Self> {
        Arc::new(Self {
            program: Arc::clone(program),
            host,
            limit,
            runtime: Handle::try_current().ok(),
            state: Mutex::default(),
        })
    }

    /// Sets a timer; the answer is what stops it.
    ///
    /// # Errors
    /// When the generation has ended or has too many timers already.
    pub(crate) fn set(self: &Arc<Self>, plan: Plan) -> ScriptResult<Stopper> {
        let Some(runtime) = &self.runtime else {
            return Err(fail(
                "timers are not there while this script is only looked at",
            ));
        };
        let mut state = self.state();
        if state.all.len() >= MAX_TIMERS {
            return Err(fail(format!(
                "a script may have {MAX_TIMERS} timers at a time; stop one first, with the function that `after` or `every` answered"
            )));
        }
        let id = state.next_id;
        state.next_id += 1;
        let timer = match state.stage {
            Stage::Loading => Timer::Kept(plan),
            Stage::Running => self.start(runtime, id, plan),
            Stage::Ended => {
                return Err(fail(
                    "this version of the script has been replaced, so it gets no more timers",
                ));
            }
        };
        state.all.insert(id, timer);
        Ok(Stopper {
            timers: Arc::downgrade(self),
            id,
        })
    }

    /// The script was loaded: the timers that it set begin to wait.
    pub(crate) fn begin(self: &Arc<Self>) {
        let Some(runtime) = &self.runtime else { return };
        let mut state = self.state();
        if state.stage != Stage::Loading {
            return;
        }
        state.stage = Stage::Running;
        let kept = std::mem::take(&mut state.all);
        state.all = kept
            .into_iter()
            .map(|(id, timer)| match timer {
                Timer::Kept(plan) => (id, self.start(runtime, id, plan)),
                running @ Timer::Running { .. } => (id, running),
            })
            .collect();
    }

    /// Ends all of them, for good.
    pub(crate) fn end(&self) {
        let ended = {
            let mut state = self.state();
            state.stage = Stage::Ended;
            std::mem::take(&mut state.all)
        };
        for timer in ended.values() {
            if let Timer::Running { task, .. } = timer {
                task.abort();
            }
        }
    }

    fn start(self: &Arc<Self>, runtime: &Handle, id: u64, plan: Plan) -> Timer {
        let (stop, stopped) = oneshot::channel();
        let task = runtime.spawn(Arc::clone(self).keep_time(id, plan, stopped));
        Timer::Running {
            _stop: stop,
            task: task.abort_handle(),
        }
    }

    async fn keep_time(self: Arc<Self>, id: u64, plan: Plan, mut stopped: oneshot::Receiver<()>) {
        let mut said = None;
        loop {
            tokio::select! {
                biased;
                _ = &mut stopped => return,
                () = tokio::time::sleep(plan.wait) => {}
            }
            match self.fire(plan.run.clone()).await {
                Ok(()) => said = None,
                // A timer that fails each time would fill the log with one sentence.
                Err(error) if said.as_ref() == Some(&error.message) => {}
                Err(error) => {
                    self.host
                        .log(LogLevel::Error, &format!("a timer failed: {error}"));
                    said = Some(error.message);
                }
            }
            if !plan.again {
                break;
            }
        }
        self.forget(id);
    }

    async fn fire(self: &Arc<Self>, run: Callback) -> Result<(), Error> {
        let (program, host) = (Arc::clone(&self.program), self.host.clone());
        let limit = Some(self.limit);
        let call = Call::new(program, Arc::clone(self), Phase::Timed, host, limit);
        evaluate(call, move |call| {
            let program = call.program();
            run.call(program, [])
                .map(drop)
                .map_err(|error| Failure::from(error).into_error(program))
        })
        .await
    }

    fn forget(&self, id: u64) {
        // Freed without the lock: it may hold the last of a script's values.
        let forgotten = self.state().all.remove(&id);
        drop(forgotten);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stops one timer. A script may keep it in a variable that its timers see, so it holds nothing.
#[derive(Clone)]
pub(crate) struct Stopper {
    timers: Weak<Timers>,
    id: u64,
}

impl Stopper {
    /// There is no next run; a run under way goes on.
    pub(crate) fn stop(&self) {
        if let Some(timers) = self.timers.upgrade() {
            timers.forget(self.id);
        }
    }
}

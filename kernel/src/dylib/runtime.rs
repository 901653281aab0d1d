//! Where plugins run, apart from the agent's own runtime: a plugin that spins or blocks holds a worker
//! here, never the loop or the terminal, and never what other plugins need (`plugin-abi.md` §6).
//!
//! Two parts: workers that poll plugins, and a small runtime on which none is polled. That one drives
//! the timers and connections of the services that plugins are lent, and has threads for what blocks.

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pliant_sdk::Error;
use tokio::runtime::{Builder, Handle, Runtime};

use super::endings::Endings;
use super::pulse::Pulse;
use super::task::{PluginTask, Task};
use super::workers::Workers;

/// Runs plugin code; its threads are started when the first plugin is loaded.
pub struct PluginRuntime {
    parts: OnceLock<Option<Parts>>,
    start_limit: Duration,
    endings: Endings,
}

struct Parts {
    driver: Runtime,
    workers: Arc<Workers>,
}

impl std::fmt::Debug for PluginRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PluginRuntime")
            .field("start_limit", &self.start_limit)
            .finish_non_exhaustive()
    }
}

impl Default for PluginRuntime {
    fn default() -> Self {
        Self::with_start_limit(Duration::from_secs(10))
    }
}

impl PluginRuntime {
    /// A runtime on which a plugin may take that long to be loaded and created.
    #[must_use]
    pub fn with_start_limit(start_limit: Duration) -> Self {
        Self {
            parts: OnceLock::new(),
            start_limit,
            endings: Endings::default(),
        }
    }

    /// Where plugins end.
    pub(super) fn endings(&self) -> Endings {
        self.endings.clone()
    }

    pub(super) fn start_limit(&self) -> Duration {
        self.start_limit
    }

    /// Runs a future on the workers; dropping the answer cancels it.
    pub fn run<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> PluginTask<T> {
        self.start(None, future)
    }

    /// The same for a call of a plugin: one that hangs after it was cancelled is noted in its pulse.
    pub(super) fn run_call<T: Send + 'static>(
        &self,
        pulse: &Arc<Pulse>,
        future: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> PluginTask<T> {
        self.start(Some(Arc::clone(pulse)), future)
    }

    fn start<T: Send + 'static>(
        &self,
        pulse: Option<Arc<Pulse>>,
        future: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> PluginTask<T> {
        match self.parts() {
            Some(parts) => Task::start(&parts.workers, pulse, future),
            None => PluginTask::failed(no_threads()),
        }
    }

    /// Runs work that may block, or never end, on a thread of its own.
    pub(super) fn blocking(&self, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let parts = self.parts().ok_or_else(no_threads)?;
        // Nobody joins it: who waits is told by the work itself, and not for ever.
        drop(parts.driver.spawn_blocking(work));
        Ok(())
    }

    /// The threads, for work that is no plugin's code.
    pub(super) fn threads(&self) -> Result<Handle, Error> {
        let parts = self.parts().ok_or_else(no_threads)?;
        Ok(parts.driver.handle().clone())
    }

    fn parts(&self) -> Option<&Parts> {
        let start = || {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(1).thread_name("pliant-plugin-io");
            let driver = builder.enable_all().build().ok()?;
            let workers = Arc::new(Workers::new(driver.handle().clone()));
            Some(Parts { driver, workers })
        };
        self.parts.get_or_init(start).as_ref()
    }
}

fn no_threads() -> Error {
    Error::failed("no threads could be started for plugins")
}

impl Drop for PluginRuntime {
    /// Waits a moment for plugins that are ending, and not for calls that never return.
    fn drop(&mut self) {
        self.endings.wait();
        if let Some(Some(Parts { driver, workers })) = self.parts.take() {
            workers.close();
            driver.shutdown_background();
        }
    }
}
#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Condvar, Mutex};

    use pliant_sdk::error::code;
    use tokio::time::timeout;

    use super::*;

    /// Holds threads until it is opened.
    #[derive(Default)]
    struct Gate {
        is_open: Mutex<bool>,
        opened: Condvar,
        reached: tokio::sync::Notify,
    }

    impl Gate {
        fn hold(&self) {
            self.reached.notify_one();
            let mut is_open = self.is_open.lock().unwrap();
            while !*is_open {
                is_open = self.opened.wait(is_open).unwrap();
            }
        }

        fn open(&self) {
            *self.is_open.lock().unwrap() = true;
            self.opened.notify_all();
        }
    }

    /// A call that does not return from its poll until the gate is opened.
    fn hanging(gate: &Arc<Gate>) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        let gate = Arc::clone(gate);
        async move {
            gate.hold();
            Ok(())
        }
    }

    async fn soon<T>(work: impl Future<Output = T>) -> T {
        let done = timeout(Duration::from_secs(20), work).await;
        done.expect("it does not happen")
    }

    /// Until `pulse` says whether the plugin hangs as expected.
    async fn hangs(pulse: &Pulse, expected: bool) {
        soon(async {
            while pulse.fault("x").is_some() != expected {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    #[tokio::test]
    async fn calls_that_hold_every_worker_keep_no_other_call_waiting() {
        // plugin-abi §6
        let (runtime, gate) = (PluginRuntime::default(), Arc::new(Gate::default()));
        let mut held = Vec::new();
        for _ in 0..5 {
            held.push(runtime.run(hanging(&gate)));
            soon(gate.reached.notified()).await;
        }
        // What it waits for is driven although everything is held.
        let slow = runtime.run(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            tokio::spawn(async { "done" })
                .await
                .map_err(|error| Error::failed(error.to_string()))
        });
        assert_eq!(soon(slow).await, Ok("done"));
        gate.open();
        for held in held {
            assert_eq!(soon(held).await, Ok(()));
        }
    }

    #[tokio::test]
    async fn a_plugin_that_does_not_return_from_a_call_that_was_given_up_hangs_until_it_does() {
        // plugin-abi §6
        let (runtime, gate) = (PluginRuntime::default(), Arc::new(Gate::default()));
        let pulse = Arc::default();
        let call = runtime.run_call(&pulse, hanging(&gate));
        soon(gate.reached.notified()).await;
        assert_eq!(pulse.fault("x"), None, "somebody waits for it");
        drop(call);
        hangs(&pulse, true).await;
        let fault = pulse.fault("x").unwrap();
        assert!(fault.is(code::FAULTY), "{fault:?}");
        for words in ["\"x\" hangs", "/reload", "plugins.isolation"] {
            assert!(fault.message.contains(words), "{fault}");
        }
        gate.open();
        hangs(&pulse, false).await;
    }

    #[tokio::test]
    async fn a_plugin_that_does_not_end_cleaning_up_hangs() {
        // plugin-abi §6: each drop that runs user code
        struct Clean(Arc<Gate>);
        impl Drop for Clean {
            fn drop(&mut self) {
                self.0.hold();
            }
        }
        let (runtime, gate) = (PluginRuntime::default(), Arc::new(Gate::default()));
        let (begun, begins) = (
            Arc::new(tokio::sync::Notify::new()),
            Clean(Arc::clone(&gate)),
        );
        let (pulse, notes) = (Arc::default(), Arc::clone(&begun));
        let call = runtime.run_call(&pulse, async move {
            let _cleans = begins;
            notes.notify_one();
            pending::<Result<(), Error>>().await
        });
        soon(begun.notified()).await;
        drop(call);
        hangs(&pulse, true).await;
        gate.open();
        hangs(&pulse, false).await;
    }

    #[tokio::test]
    async fn what_a_call_holds_is_gone_when_its_answer_is_heard() {
        struct Held(Arc<AtomicBool>);
        impl Drop for Held {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let runtime = PluginRuntime::default();
        for panics in [false, true] {
            let gone = Arc::new(AtomicBool::new(false));
            let held = Held(Arc::clone(&gone));
            let answer = soon(runtime.run(async move {
                let _held = held;
                if panics {
                    std::panic::resume_unwind(Box::new("boom"));
                }
                Ok(())
            }));
            assert_eq!(answer.await.is_err(), panics);
            assert!(gone.load(Ordering::SeqCst));
        }
    }

    #[tokio::test]
    async fn a_runtime_ends_though_its_workers_are_held_and_calls_wait() {
        // plugin-abi §6: shut down with a time limit
        let (runtime, gate) = (PluginRuntime::default(), Arc::new(Gate::default()));
        let held = runtime.run(hanging(&gate));
        soon(gate.reached.notified()).await;
        let waits = runtime.run(pending::<Result<(), Error>>());
        drop(runtime);
        gate.open();
        assert_eq!(soon(held).await, Ok(()));
        drop(waits);
    }

    #[tokio::test]
    async fn calls_wake_each_other_in_any_order() {
        let runtime = PluginRuntime::default();
        let (sender, receiver) = tokio::sync::watch::channel(0);
        let mut calls = Vec::new();
        for place in 0..100 {
            let (sender, mut receiver) = (sender.clone(), receiver.clone());
            calls.push(runtime.run(async move {
                let turn = receiver.wait_for(|at| *at == place).await;
                drop(turn.map_err(|error| Error::failed(error.to_string()))?);
                sender.send_modify(|at| *at += 1);
                Ok(place)
            }));
        }
        for (place, call) in calls.into_iter().enumerate() {
            assert_eq!(soon(call).await, Ok(place));
        }
    }
}

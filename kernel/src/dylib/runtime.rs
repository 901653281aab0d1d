//! The runtime that polls plugins, apart from the agent's own: a plugin that spins or blocks holds a
//! worker here, never the loop or the terminal (`plugin-abi.md` §6).

use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Duration;

use pliant_sdk::Error;
use pliant_sdk::error::code;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

/// Workers started when the first plugin is loaded.
#[derive(Debug)]
pub struct PluginRuntime {
    runtime: OnceLock<Option<Runtime>>,
    start_limit: Duration,
}

impl Default for PluginRuntime {
    fn default() -> Self {
        Self::with_start_limit(Duration::from_secs(10))
    }
}

impl PluginRuntime {
    /// Workers for plugin code. Two: one may be held by a plugin that spins.
    const WORKERS: usize = 2;

    /// A runtime on which a plugin may take that long to be loaded and created.
    #[must_use]
    pub fn with_start_limit(start_limit: Duration) -> Self {
        Self {
            runtime: OnceLock::new(),
            start_limit,
        }
    }

    pub(super) fn start_limit(&self) -> Duration {
        self.start_limit
    }

    /// Runs a future of plugin code on the plugin workers; dropping the answer cancels it.
    pub fn run<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> PluginTask<T> {
        match self.handle() {
            Some(handle) => PluginTask(Ok(handle.spawn(future))),
            None => PluginTask(Err(Some(no_threads()))),
        }
    }

    /// Runs work that may block, or never end, on a thread of its own.
    pub(super) fn blocking(&self, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let handle = self.handle().ok_or_else(no_threads)?;
        // Nobody joins it: who waits is told by the work itself, and not for ever.
        drop(handle.spawn_blocking(work));
        Ok(())
    }

    /// The threads, for work that is no plugin's code.
    pub(super) fn threads(&self) -> Result<Handle, Error> {
        self.handle().cloned().ok_or_else(no_threads)
    }

    fn handle(&self) -> Option<&Handle> {
        let start = || {
            let mut builder = Builder::new_multi_thread();
            builder
                .worker_threads(Self::WORKERS)
                .thread_name("pliant-plugins")
                .enable_all()
                .build()
                .ok()
        };
        self.runtime
            .get_or_init(start)
            .as_ref()
            .map(Runtime::handle)
    }
}

fn no_threads() -> Error {
    Error::failed("no threads could be started for plugins")
}

impl Drop for PluginRuntime {
    /// Does not wait for a plugin that never returns.
    fn drop(&mut self) {
        if let Some(Some(runtime)) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A call running on the plugin workers.
#[derive(Debug)]
pub struct PluginTask<T>(Result<JoinHandle<Result<T, Error>>, Option<Error>>);

impl<T> Future for PluginTask<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Ok(handle) => Pin::new(handle).poll(cx).map(|joined| match joined {
                Ok(answer) => answer,
                Err(lost) if lost.is_panic() => Err(Error::new(
                    code::PANIC,
                    "the plugin panicked outside its own guard",
                )),
                Err(_) => Err(Error::cancelled()),
            }),
            Err(error) => Poll::Ready(Err(error.take().unwrap_or_else(Error::cancelled))),
        }
    }
}

impl<T> Drop for PluginTask<T> {
    fn drop(&mut self) {
        if let Ok(handle) = &self.0 {
            handle.abort();
        }
    }
}

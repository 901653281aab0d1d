//! The runtime that connections live on: the kernel's own, also for those that plugins open. A worker
//! of the plugins may be held by one of them, and a chunk that wakes one worker after the other costs
//! more than its content.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use pliant_sdk::Error;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

/// Known when the first session has begun.
#[derive(Debug, Default)]
pub(super) struct Home(Mutex<Option<Handle>>);

impl Home {
    /// The runtime of the caller is it from now on.
    pub(super) fn settle(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Handle::try_current().ok();
    }

    /// Runs work there, or where the caller is as long as there is none. Dropping it ends the work.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let handle = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        match handle {
            Some(handle) => AbortOnDropHandle::new(handle.spawn(work))
                .await
                .unwrap_or_else(|_| Err(Error::cancelled())),
            None => work.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tokio::runtime::Runtime;

    use super::*;

    fn runtime() -> Runtime {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).build().unwrap()
    }

    #[test]
    fn what_a_worker_of_plugins_opens_lives_on_the_runtime_of_the_kernel() {
        // plugin-abi §6: a plugin that holds its worker holds no connection.
        let (kernel, plugins) = (runtime(), runtime());
        let home = Home::default();
        let place = async || {
            home.run(async { Ok(thread::current().id()) })
                .await
                .unwrap()
        };
        let here = thread::current().id();
        assert_eq!(plugins.block_on(place()), here);
        kernel.block_on(async { home.settle() });
        let worker =
            kernel.block_on(async { kernel.spawn(async { thread::current().id() }).await });
        assert_eq!(plugins.block_on(place()), worker.unwrap());
    }

    #[test]
    fn work_ends_with_who_wants_it_and_is_cancelled_with_its_runtime() {
        let (kernel, plugins) = (runtime(), runtime());
        let home = Home::default();
        kernel.block_on(async { home.settle() });
        let (held, dropped) = tokio::sync::oneshot::channel::<()>();
        let work = home.run(async move {
            let _held = held;
            std::future::pending::<Result<(), Error>>().await
        });
        plugins.block_on(async {
            let mut work = std::pin::pin!(work);
            assert!(futures_util::FutureExt::now_or_never(work.as_mut()).is_none());
        });
        assert!(dropped.blocking_recv().is_err());
        drop(kernel);
        let lost = plugins.block_on(home.run(async { Ok(()) }));
        assert!(lost.unwrap_err().is(pliant_sdk::error::code::CANCELLED));
    }
}

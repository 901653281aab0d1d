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

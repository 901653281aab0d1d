//! The session's file beside its entries: it is forced to the disk at the boundaries of a run, and
//! what other programs did to it is told. Nobody waits for the disk but the end of the session.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use pliant_sdk::Event;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Shared, lock};
use crate::tree::Syncer;

/// How long the end of a session waits for a disk that does not answer.
const PATIENCE: Duration = Duration::from_secs(10);

impl Shared {
    /// A boundary of a run: what was stored so far is forced to the disk beside what comes next
    /// (setting `session.sync`).
    pub(super) fn run_boundary(self: &Arc<Self>) {
        let Some(syncer) = self.tree().run_boundary() else {
            return;
        };
        let before = lock(&self.syncing).take();
        let shared = Arc::clone(self);
        let task = tokio::spawn(async move {
            // In order, so that waiting for the last one is waiting for all.
            if let Some(before) = before {
                let _ = before.await;
            }
            shared.sync(syncer).await;
        });
        *lock(&self.syncing) = Some(task);
    }

    async fn sync(&self, syncer: Syncer) {
        let synced = tokio::task::spawn_blocking(move || syncer.sync()).await;
        if let Ok(Err(error)) = synced {
            self.tree().notice_unsynced(&error);
            self.publish_notices().await;
        }
    }

    /// Returns when the disk has everything, or does not answer.
    pub(super) async fn synced(self: &Arc<Self>) {
        self.run_boundary();
        let task: Option<JoinHandle<()>> = lock(&self.syncing).take();
        if let Some(task) = task
            && timeout(PATIENCE, task).await.is_err()
        {
            let error = io::Error::new(io::ErrorKind::TimedOut, "the disk does not answer");
            self.tree().notice_unsynced(&error);
            self.publish_notices().await;
        }
    }

    /// Tells what happened to the file.
    pub(super) async fn publish_notices(&self) {
        let notices = self.tree().take_notices();
        for message in notices {
            self.subscribers.publish(Event::Notice { message }).await;
        }
    }
}

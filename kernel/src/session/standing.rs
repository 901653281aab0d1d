//! What front ends switch while a session is open, beside model and level: automatic compaction and
//! retry, how queues deliver, and the wait for the next attempt.

use pliant_sdk::{Error, Event};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Delivery, Session, Shared, lock};
use crate::settings::QueueMode;

const AUTO_COMPACTION: &str = "compaction.enabled";
const AUTO_RETRY: &str = "retry.enabled";

impl Session {
    /// Whether the conversation is being compacted, in a run or beside it.
    #[must_use]
    pub fn is_compacting(&self) -> bool {
        self.0.claims.is_compacting()
    }

    /// Whether the conversation is compacted without being asked.
    #[must_use]
    pub fn auto_compaction(&self) -> bool {
        self.0
            .equipment
            .settings
            .now()
            .is_on(AUTO_COMPACTION)
            .unwrap_or(true)
    }

    /// Switches automatic compaction, from the next look on and in the user's settings.
    ///
    /// # Errors
    /// When the settings cannot be written; it holds for this program all the same.
    pub async fn set_auto_compaction(&self, on: bool) -> Result<(), Error> {
        self.change_setting(AUTO_COMPACTION, json!(on)).await
    }

    /// Switches the retry of failed requests, likewise.
    ///
    /// # Errors
    /// As [`Session::set_auto_compaction`].
    pub async fn set_auto_retry(&self, on: bool) -> Result<(), Error> {
        self.change_setting(AUTO_RETRY, json!(on)).await
    }

    /// Changes how many messages a queue delivers at a time (L8), and in the user's settings too.
    ///
    /// # Errors
    /// As [`Session::set_auto_compaction`].
    pub async fn keep_queue_mode(&self, queue: Delivery, mode: QueueMode) -> Result<(), Error> {
        self.set_queue_mode(queue, mode);
        self.change_setting(queue.setting(), json!(mode)).await
    }

    /// Ends the wait for another attempt, and with it the run (R7). Nothing happens when none is waited
    /// for.
    pub fn abort_retry(&self) {
        if let Some(waiting) = lock(&self.0.retry_wait).take() {
            waiting.cancel();
        }
    }

    pub(super) async fn change_setting(
        &self,
        key: &'static str,
        value: Value,
    ) -> Result<(), Error> {
        self.change_settings(vec![(key, value)]).await
    }

    pub(super) async fn change_settings(
        &self,
        changes: Vec<(&'static str, Value)>,
    ) -> Result<(), Error> {
        let settings = self.0.equipment.settings.now();
        let written = tokio::task::spawn_blocking(move || settings.change(&changes)).await;
        written.unwrap_or_else(|error| Err(Error::failed(error.to_string())))
    }
}

impl Shared {
    /// A token that ends the wait that begins now.
    pub(super) fn begin_retry_wait(&self) -> CancellationToken {
        let token = CancellationToken::new();
        *lock(&self.retry_wait) = Some(token.clone());
        token
    }

    /// Notes what subscribers are about to hear of.
    pub(super) fn note(&self, event: &Event) {
        match event {
            Event::CompactionStart { .. } => self.claims.set_compacting(true),
            Event::CompactionEnd { .. } => self.claims.set_compacting(false),
            _ => {}
        }
    }
}

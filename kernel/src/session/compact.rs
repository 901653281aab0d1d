//! A compaction that the user asked for, beside any run (R25).

use pliant_sdk::event::CompactionResult;

use super::Session;
use crate::compaction::CompactionError;
use crate::run;

impl Session {
    /// Stops the active run, summarises what was said so far, with a focus if one is given, and lets
    /// the summary stand for it. Goes on with nothing.
    ///
    /// # Errors
    /// Why there is no compaction; the conversation is then as before.
    pub async fn compact(
        &self,
        instructions: Option<&str>,
    ) -> Result<CompactionResult, CompactionError> {
        self.abort().await;
        let claimed = loop {
            if let Ok(claimed) = self.0.claims.claim_for_compaction() {
                break claimed;
            }
            self.wait_idle().await;
        };
        if self.model().is_none() {
            return Err(CompactionError::NoModel);
        }
        let (outcome, end) = run::compact(&self.0, instructions, &claimed.cancel).await;
        self.0.run_boundary();
        let _held = self.0.flush_held().await;
        // Whoever hears of the end finds the session idle (R26).
        drop(claimed);
        if let Some(end) = end {
            self.0.subscribers.publish(end).await;
        }
        outcome
    }
}

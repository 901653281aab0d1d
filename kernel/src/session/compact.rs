//! A compaction that the user asked for, beside any run (R25).

use pliant_sdk::event::CompactionResult;

use super::Session;
use super::claim::Standing;
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
        if self.model().is_none() {
            return Err(CompactionError::NoModel);
        }
        let claimed = loop {
            match self.0.claims.claim_for_compaction() {
                Ok(claimed) => break claimed,
                Err(Standing::Closed) => return Err(CompactionError::Aborted),
                Err(_) => self.wait_idle().await,
            }
        };
        let ending = run::compact(&self.0, instructions, &claimed.cancel).await;
        self.0.run_boundary();
        // What cannot be stored now is held on, for the next run to say.
        let _held = self.0.flush_held().await;
        // Whoever hears of the end finds the session idle (R26).
        let cancel = claimed.cancel.clone();
        drop(claimed);
        self.0.settle_bash();
        ending?.tell(&self.0, &cancel).await
    }
}

//! Going to another place of the session's tree, and the names of places (`kernel.md` §6.7, S25).

use super::Session;
use super::claim::Standing;
use crate::run::{self, Arrival, NavigateError, NavigateOptions};
use crate::tree::{EntryId, TreeError};

impl Session {
    /// Goes to an entry: what is said next follows it, or takes its place if it was said by the user
    /// (R38–R40). Stays where it is while anything else has the session.
    ///
    /// # Errors
    /// Why the session is where it was.
    pub async fn navigate_tree(
        &self,
        target: &EntryId,
        options: NavigateOptions,
    ) -> Result<Arrival, NavigateError> {
        let claimed = loop {
            self.0.claims.settled().await;
            self.0.claims.changed().await;
            match self.0.claims.claim_for_navigation() {
                Ok(claimed) => break claimed,
                Err(Standing::Changing) => {}
                Err(_) => return Err(NavigateError::Busy),
            }
        };
        let cancel = claimed.cancel.clone();
        let arrival = run::navigate(&self.0, target.clone(), options, &cancel).await;
        self.0.run_boundary();
        if arrival.is_ok() {
            // The tools of the branch are in force from here on (T24).
            self.0.restore_tools();
        }
        // What plugins said meanwhile belongs where the session is now. One that cannot be written says
        // so with the next message.
        let _held = self.0.flush_held().await;
        // Whoever hears of the new place finds the session idle.
        drop(claimed);
        self.0.settle_bash();
        let arrival = arrival?;
        arrival.tell(&self.0, &cancel).await;
        Ok(arrival)
    }

    /// Names an entry; `None` or an empty text takes the name away.
    ///
    /// # Errors
    /// [`TreeError::UnknownEntry`], or a failed write.
    pub fn set_label(&self, target: &EntryId, label: Option<&str>) -> Result<(), TreeError> {
        self.0.tree().set_label(target, label).map(drop)
    }
}

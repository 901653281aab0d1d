//! Leaving the session for another one: handlers may keep the user where he is, and a fork is made
//! (S28, S31).

use std::ops::ControlFlow;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Session;
use crate::registry::{Callers, Dispatcher, HookPoint};
use crate::tree::{EntryId, Fork, Position, TreeError};

impl Session {
    /// Asks handlers of `session_before_switch` or `session_before_fork`; the first cancel decides.
    pub async fn may_leave(&self, point: HookPoint, event: &Value) -> bool {
        let shared = &self.0;
        let snapshot = shared.equipment.registry.snapshot();
        let callers = Callers::new(shared, shared.patience(CancellationToken::new()));
        let mut may = true;
        if let Some(dispatcher) = Dispatcher::new(&snapshot, point, callers) {
            let take = |may: &mut bool, answer: Value| {
                *may = answer.get("cancel") != Some(&Value::Bool(true));
                Ok(match *may {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                })
            };
            // The points do not fail closed, so the dispatch has no failure of its own.
            let _ = dispatcher.each(&mut may, |_| event.clone(), take).await;
        }
        shared.publish_reports().await;
        may
    }

    /// A new session of the branch up to an entry (S28). This one stays as it is.
    ///
    /// # Errors
    /// Why it cannot be forked there.
    pub fn fork(&self, entry: &EntryId, position: Position) -> Result<Fork, TreeError> {
        self.0.tree().fork(entry, position)
    }
}

//! The end of a session run: one `agent_settled`, after everything else and before anything that
//! comes next (R3).

use pliant_sdk::Event;

use super::driver::RunDriver;
use super::{RunEnd, RunHost};
use crate::agent::Driver;

/// Stores what was held back and could not be until now: nothing can come between a call and its
/// results any more.
pub(super) async fn flush<H: RunHost>(driver: &RunDriver<'_, H>, end: &mut RunEnd) {
    if let Err(failure) = driver.host.flush_held().await {
        end.failure.get_or_insert(failure);
    }
}

/// Announces that nothing more comes of this prompt. Whoever hears it finds the session idle; a
/// prompt that arrives meanwhile starts when everybody has heard.
pub(super) async fn settle<H: RunHost>(driver: &RunDriver<'_, H>, aborted: bool) {
    driver.run_boundary();
    driver.emit(Event::AgentSettled { aborted }).await;
}

//! The end of a session run: one `agent_settled`, after everything else and before anything that
//! comes next (R3).

use pliant_sdk::Event;

use super::RunHost;
use super::driver::RunDriver;
use crate::agent::Driver;

/// Announces that nothing more comes of this prompt. Whoever hears it finds the session idle; a
/// prompt that arrives meanwhile starts when everybody has heard.
pub(super) async fn settle<H: RunHost>(driver: &RunDriver<'_, H>, aborted: bool) {
    driver.run_boundary();
    driver.emit(Event::AgentSettled { aborted }).await;
}

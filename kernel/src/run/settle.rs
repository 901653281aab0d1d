//! The end of a session run: one `agent_settled`, after everything else (R3).

use pliant_sdk::Event;

use super::RunHost;
use super::driver::RunDriver;
use crate::agent::Driver;

/// Announces that nothing more comes of this prompt. Whoever hears it finds the session idle.
pub(super) async fn settle<H: RunHost>(host: &H, driver: &RunDriver<'_, H>, aborted: bool) {
    host.release();
    driver.emit(Event::AgentSettled { aborted }).await;
}

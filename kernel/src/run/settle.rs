//! The end of a session run: the last chance to ask for more, then one `agent_settled`, after
//! everything else and before anything that comes next (R3, R50).

use pliant_sdk::Event;

use super::driver::RunDriver;
use super::{RunEnd, RunHost, boundary, tail};
use crate::agent::{Begin, Driver};
use crate::prompt::PromptEdits;

/// How the run goes on after all: because a handler wants it, or something was queued meanwhile.
/// When nothing is left the session is settling. A run that was aborted, or that cannot be stored, is
/// not asked for more.
pub(super) async fn once_more<H: RunHost>(
    driver: &RunDriver<'_, H>,
    end: &mut RunEnd,
) -> Option<Begin> {
    let host = driver.host;
    if !driver.is_cancelled() && end.failure.is_none() {
        match boundary::before_settle(driver, end.last.as_ref()).await {
            Ok(true) => {
                if let Some(begin) = tail::goes_on(host) {
                    return Some(begin);
                }
            }
            Ok(false) => {}
            Err(failure) => end.failure = Some(failure),
        }
    }
    driver.arrived().await;
    while !host.begin_settling(driver.is_cancelled() || end.failure.is_some()) {
        // What is queued is there until it is taken or cleared, so this ends.
        if let Some(begin) = tail::goes_on(host) {
            return Some(begin);
        }
    }
    None
}

/// Stores what was held back and could not be until now: nothing can come between a call and its
/// results any more.
pub(super) async fn flush<H: RunHost>(driver: &RunDriver<'_, H>, end: &mut RunEnd) {
    let commands = driver.host.flush_bash();
    let flushed = commands.and(driver.host.flush_held().await);
    if let Err(failure) = flushed {
        end.failure.get_or_insert(failure);
    }
}

/// Announces that nothing more comes of this prompt. Whoever hears it finds the session idle; a
/// prompt that arrives meanwhile starts when everybody has heard.
pub(super) async fn settle<H: RunHost>(driver: &RunDriver<'_, H>, aborted: bool) {
    driver.run_boundary();
    driver.host.note_prompt(PromptEdits::default());
    driver.emit(Event::AgentSettled { aborted }).await;
}

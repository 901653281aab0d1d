//! What follows when the loop has come to its end, and what has to come before it goes on: another
//! attempt, a shorter conversation, or nothing (`kernel.md` §6.2, R12, R18–R24).

use std::sync::Arc;

use pliant_sdk::event::CompactionReason;
use pliant_sdk::message::StopReason;
use pliant_sdk::{Error, Event, Message};

use super::compact::{self, Ending, Plan, Work};
use super::driver::RunDriver;
use super::retry::is_overflow;
use super::{RunEnd, RunHost};
use crate::agent::{Driver, RunOutcome};
use crate::compaction::{self, CompactionError, CompactionSettings, Need};

/// The decision after a low-level run: whether it goes on without anything new to say. What is queued
/// is not looked at here.
pub(super) async fn goes_on<H: RunHost>(
    driver: &RunDriver<'_, H>,
    outcome: RunOutcome,
    end: &mut RunEnd,
) -> bool {
    let RunOutcome { messages, failure } = outcome;
    let answer = messages.iter().rev().find(|m| m.as_assistant().is_some());
    let answer = answer.cloned();
    end.last = answer.clone().or(end.last.take());
    end.failure = failure;
    let answer = answer.filter(|_| end.failure.is_none());
    let again = answer.as_ref().filter(|answer| driver.may_retry(answer));
    driver.low_level_end(messages, again.is_some()).await;
    let goes_on = match (again, &answer) {
        (Some(failed), _) => driver.retry(failed).await,
        (None, answer) => {
            driver.give_up(end.last.as_ref()).await;
            match answer {
                Some(answer) if !driver.is_cancelled() => compacts(driver, answer).await,
                _ => Ok(false),
            }
        }
    };
    goes_on.unwrap_or_else(|failure| {
        end.failure = Some(failure);
        false
    })
}

/// Before a prompt: the last answer, also an aborted one, may have left too little room (P37). What
/// comes of it never keeps the prompt from being answered (P38); a session that cannot be stored says
/// so when the prompt is.
pub(super) async fn before_prompt<H: RunHost>(driver: &RunDriver<'_, H>) {
    let last = driver.host.look(|tree| {
        let answers = tree.path_to_leaf().iter().rev();
        let mut answers = answers.filter_map(|entry| entry.message());
        answers.find(|m| m.as_assistant().is_some()).cloned()
    });
    let Some(answer) = last else { return };
    let Some((need, settings)) = need(driver, &answer).await else {
        return;
    };
    let again = Need::Overflow { finished: false };
    // The second failure in a row was told when it happened, and the prompt may fit.
    if need != again || !driver.host.has_recovered() {
        let _ = shorten(driver, need, settings, &answer).await;
    }
}

/// Between two turns: a result may have filled the context (R12).
pub(super) async fn between_turns<H: RunHost>(driver: &RunDriver<'_, H>) {
    let host = driver.host;
    let Some(settings) = settings(driver).await else {
        return;
    };
    let model = host.selection().model;
    if host.look(|tree| compaction::exceeds(tree, &model, &settings)) {
        compact(driver, settings, CompactionReason::Threshold).await;
    }
}

/// Compacts after an answer if that is needed; whether the answer is to be asked for again.
async fn compacts<H: RunHost>(
    driver: &RunDriver<'_, H>,
    answer: &Arc<Message>,
) -> Result<bool, Error> {
    let stopped = answer
        .as_assistant()
        .is_some_and(|answer| answer.stop_reason == StopReason::Aborted);
    if stopped {
        return Ok(false);
    }
    match need(driver, answer).await {
        Some((need, settings)) => shorten(driver, need, settings, answer).await,
        None => Ok(false),
    }
}

async fn need<H: RunHost>(
    driver: &RunDriver<'_, H>,
    answer: &Arc<Message>,
) -> Option<(Need, CompactionSettings)> {
    let host = driver.host;
    let settings = settings(driver).await?;
    let model = host.selection().model;
    let error = answer
        .as_assistant()
        .and_then(|answer| answer.error_message.as_deref());
    let too_large = error.is_some_and(is_overflow);
    let need = host.look(|tree| compaction::need(tree, answer, &model, &settings, too_large))?;
    Some((need, settings))
}

async fn shorten<H: RunHost>(
    driver: &RunDriver<'_, H>,
    need: Need,
    settings: CompactionSettings,
    answer: &Arc<Message>,
) -> Result<bool, Error> {
    let reason = match need {
        Need::Overflow { finished: false } => return recover(driver, settings, answer).await,
        Need::Overflow { finished: true } => CompactionReason::Overflow,
        Need::Threshold => CompactionReason::Threshold,
    };
    compact(driver, settings, reason).await;
    Ok(false)
}

/// The request did not fit: once between two messages of the user it is made shorter and sent again
/// (R22).
async fn recover<H: RunHost>(
    driver: &RunDriver<'_, H>,
    settings: CompactionSettings,
    answer: &Arc<Message>,
) -> Result<bool, Error> {
    let (host, reason) = (driver.host, CompactionReason::Overflow);
    if host.note_recovery(true) {
        let ending = Ending {
            reason,
            will_retry: false,
            from_extension: false,
            outcome: Err(CompactionError::Failed(STILL_TOO_LARGE.to_owned())),
        };
        let _ = ending.tell(host, driver.cancel).await;
        return Ok(false);
    }
    driver.omit(answer).await?;
    let Ok(prepared) = compact::prepare(host, &settings) else {
        let message = NOTHING_TO_SHORTEN.to_owned();
        driver.emit(Event::Notice { message }).await;
        return Ok(false);
    };
    let plan = Plan {
        prepared,
        settings,
        reason,
        will_retry: true,
        instructions: None,
    };
    Ok(carry_out(driver, plan).await)
}

const STILL_TOO_LARGE: &str = "the request is too large for the model even though it was compacted. \
Start a new session, take a model with a larger context window, or send less at once.";

const NOTHING_TO_SHORTEN: &str = "The request is too large for the model, and there is nothing in \
the conversation that could be summarised. Send less at once, take a model with a larger context \
window, or lower the setting compaction.keepRecentTokens.";

/// Compacts if there is something to summarise.
async fn compact<H: RunHost>(
    driver: &RunDriver<'_, H>,
    settings: CompactionSettings,
    reason: CompactionReason,
) {
    // One that failed would fail, and cost, at every turn.
    if reason == CompactionReason::Threshold && driver.compaction_failed() {
        return;
    }
    let Ok(prepared) = compact::prepare(driver.host, &settings) else {
        return;
    };
    let plan = Plan {
        prepared,
        settings,
        reason,
        will_retry: false,
        instructions: None,
    };
    carry_out(driver, plan).await;
}

/// Whether it was done.
async fn carry_out<H: RunHost>(driver: &RunDriver<'_, H>, plan: Plan<'_>) -> bool {
    let (host, cancel) = (driver.host, driver.cancel);
    let ending = Work { host, cancel, plan }.run().await;
    let told = ending.tell(host, cancel).await;
    if let Err(CompactionError::Failed(_)) = &told {
        driver.note_failed_compaction();
    }
    told.is_ok()
}

/// The settings; ones that cannot be used are told once a run, and nothing is compacted.
async fn settings<H: RunHost>(driver: &RunDriver<'_, H>) -> Option<CompactionSettings> {
    let host = driver.host;
    match host.compaction_settings(&host.selection().model) {
        Ok(settings) => Some(settings).filter(|settings| settings.enabled),
        Err(error) => {
            if !driver.compaction_failed() {
                driver.note_failed_compaction();
                let message = format!("The conversation is not compacted: {error}");
                driver.emit(Event::Notice { message }).await;
            }
            None
        }
    }
}

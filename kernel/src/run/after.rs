//! What follows when the loop has come to its end, and what has to come before it goes on: another
//! attempt, a shorter conversation, or nothing (`kernel.md` §6.2, R12, R18–R24).

use std::sync::Arc;

use pliant_sdk::event::CompactionReason;
use pliant_sdk::message::StopReason;
use pliant_sdk::{Error, Event, Message, Model};

use super::compact::{self, Ending, Plan, Work};
use super::driver::RunDriver;
use super::retry::is_overflow;
use super::route::{answering, limits};
use super::{RunEnd, RunHost, tail};
use crate::agent::{Begin, Driver, RunOutcome};
use crate::compaction::{self, CompactionError, CompactionSettings, Need};

/// The decision after a low-level run, first match wins (§6.2): how it goes on, or that it is done.
pub(super) async fn low_level_run<H: RunHost>(
    driver: &RunDriver<'_, H>,
    outcome: RunOutcome,
    end: &mut RunEnd,
) -> Option<Begin> {
    let RunOutcome { messages, failure } = outcome;
    let answer = messages.iter().rev().find(|m| m.as_assistant().is_some());
    let answer = answer.cloned();
    end.last = answer.clone().or(end.last.take());
    end.failure = failure;
    let answer = answer.filter(|_| end.failure.is_none());
    let retried = answer.as_ref().filter(|answer| driver.may_retry(answer));
    driver.low_level_end(messages, retried.is_some()).await;
    if driver.is_cancelled() || end.failure.is_some() {
        driver.give_up(end.last.as_ref()).await;
        return None;
    }
    let again = match (&answer, retried) {
        (None, _) => Ok(false),
        (_, Some(failed)) => match driver.retry(failed).await {
            Ok(false) => return None,
            waited => waited,
        },
        (Some(answer), None) => {
            driver.give_up(Some(answer)).await;
            compacts(driver, answer).await
        }
    };
    let again = again.unwrap_or_else(|failure| {
        end.failure = Some(failure);
        false
    });
    driver.arrived().await;
    // Each of these took its time, in which the user may have given up (R1).
    if driver.is_cancelled() || end.failure.is_some() {
        driver.give_up(None).await;
        return None;
    }
    let begin = match again || driver.host.has_queued() {
        true => tail::goes_on(driver.host),
        false => None,
    };
    match begin {
        Some(_) => driver.host.between_turns(driver.cancel).await,
        None => driver.give_up(answer.as_ref()).await,
    }
    begin
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
    let model = limits(driver.host).await;
    within_threshold(driver, &model).await;
}

/// Compacts what leaves too little room in the window of a model.
pub(super) async fn within_threshold<H: RunHost>(driver: &RunDriver<'_, H>, model: &Model) {
    let host = driver.host;
    let Some(settings) = settings(driver, model).await else {
        return;
    };
    if host.look(|tree| compaction::exceeds(tree, model, &settings)) {
        compact(driver, settings, CompactionReason::Threshold).await;
    }
}

/// Compacts after an answer if that is needed; whether the answer is to be asked for again. One that
/// was stopped is not looked at (R18).
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
    let model = limits(host).await;
    let settings = settings(driver, &model).await?;
    let answering = answering(host, answer).await;
    let answering = answering.as_ref();
    let error = answer
        .as_assistant()
        .and_then(|answer| answer.error_message.as_deref());
    let too_large = error.is_some_and(is_overflow);
    let need =
        host.look(|tree| compaction::need(tree, answer, answering, &model, &settings, too_large));
    Some((need?, settings))
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
    // What the model said before it reached its limit is all there is, unless it can be asked again.
    if is_cut_short(answer) && compact::prepare(host, &settings).is_err() {
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
    let compacted = carry_out(driver, plan).await;
    if compacted {
        driver.routing().failed(answer);
    }
    Ok(compacted)
}

/// Whether there is a beginning of an answer.
fn is_cut_short(answer: &Message) -> bool {
    answer.as_assistant().is_some_and(|answer| {
        answer.stop_reason == StopReason::Length && !answer.content.is_empty()
    })
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
async fn settings<H: RunHost>(
    driver: &RunDriver<'_, H>,
    model: &Model,
) -> Option<CompactionSettings> {
    match driver.host.compaction_settings(model) {
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

//! What follows when the loop has come to its end, and what has to come before it goes on: another
//! attempt, a shorter conversation, or nothing (`kernel.md` §6.2, R12, R18–R24).

use std::sync::Arc;

use pliant_sdk::event::CompactionReason;
use pliant_sdk::message::StopReason;
use pliant_sdk::{Error, Event, Message, Model};

use super::compact::{self, Work};
use super::driver::RunDriver;
use super::retry::is_overflow;
use super::route::{answering, limits};
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
    if let Some(answer) = last {
        let _ = shorten(driver, &answer).await;
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
        compact(driver, settings, CompactionReason::Threshold, false).await;
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
    shorten(driver, answer).await
}

async fn shorten<H: RunHost>(
    driver: &RunDriver<'_, H>,
    answer: &Arc<Message>,
) -> Result<bool, Error> {
    let host = driver.host;
    let model = limits(host).await;
    let Some(settings) = settings(driver, &model).await else {
        return Ok(false);
    };
    let answering = answering(host, answer).await;
    let answering = answering.as_ref();
    let error = answer
        .as_assistant()
        .and_then(|answer| answer.error_message.as_deref());
    let too_large = error.is_some_and(is_overflow);
    let need =
        host.look(|tree| compaction::need(tree, answer, answering, &model, &settings, too_large));
    match need {
        None => Ok(false),
        Some(Need::Threshold) => {
            compact(driver, settings, CompactionReason::Threshold, false).await;
            Ok(false)
        }
        Some(Need::Overflow { finished: true }) => {
            compact(driver, settings, CompactionReason::Overflow, false).await;
            Ok(false)
        }
        Some(Need::Overflow { finished: false }) => recover(driver, settings, answer).await,
    }
}

/// The request did not fit: once between two messages of the user it is made shorter and sent again
/// (R22).
async fn recover<H: RunHost>(
    driver: &RunDriver<'_, H>,
    settings: CompactionSettings,
    answer: &Arc<Message>,
) -> Result<bool, Error> {
    let reason = CompactionReason::Overflow;
    if !driver.may_recover() {
        let error = CompactionError::Failed(
            "the request is too large for the model even though it was compacted. Start a new \
             session, take a model with a larger context window, or send less at once."
                .to_owned(),
        );
        driver.emit(compact::end(reason, &Err(error), false)).await;
        return Ok(false);
    }
    driver.omit(answer).await?;
    let compacted = compact(driver, settings, reason, true).await;
    if compacted {
        driver.routing().failed(answer);
    }
    Ok(compacted)
}

/// Compacts if there is something to summarise; whether it was done.
async fn compact<H: RunHost>(
    driver: &RunDriver<'_, H>,
    settings: CompactionSettings,
    reason: CompactionReason,
    will_retry: bool,
) -> bool {
    // One that failed would fail, and cost, at every turn.
    if reason == CompactionReason::Threshold && driver.compaction_failed() {
        return false;
    }
    let Ok(prepared) = compact::prepare(driver.host, &settings) else {
        return false;
    };
    let work = Work {
        host: driver.host,
        driver,
        cancel: driver.cancel,
        settings,
    };
    let outcome = work.run(prepared, reason, None).await;
    if outcome.is_err() {
        driver.note_failed_compaction();
    }
    driver
        .emit(compact::end(reason, &outcome, will_retry))
        .await;
    outcome.is_ok()
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

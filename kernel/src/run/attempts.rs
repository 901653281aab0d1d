//! The series of attempts at one answer: a failed one is left out, waited after, and asked for again,
//! until one succeeds or no other may follow (`kernel.md` §6.3). Which failures are worth it is said in
//! `retry`.

use std::sync::Arc;
use std::time::Duration;

use pliant_sdk::message::{AssistantMessage, Message, StopReason};
use pliant_sdk::{Error, Event};
use tokio_util::sync::CancellationToken;

use super::RunHost;
use super::driver::RunDriver;
use crate::agent::Driver;
use crate::models::AskedDelay;

/// Where a run is in such a series.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// Times the failed answer was asked for again (R7, R8).
    made: u32,
    /// What the service asked for when it refused the last request.
    asked: AskedDelay,
}

const CANCELLED: &str = "Retry cancelled";

impl<H: RunHost> RunDriver<'_, H> {
    /// A request is made: the answer is where its delay will be kept.
    pub(super) fn asks(&self) -> AskedDelay {
        let asked = AskedDelay::default();
        self.attempts().asked = asked.clone();
        asked
    }

    /// Whether the answer failed in a way that is worth another attempt (R6, R10).
    pub(super) fn may_retry(&self, answer: &Message) -> bool {
        let made = self.attempts().made;
        let policy = self.host.retry_policy();
        !self.is_cancelled()
            && answer
                .as_assistant()
                .is_some_and(|answer| policy.allows(made, answer))
    }

    /// Leaves the failed answer out and waits for the next attempt; false when the user does not want
    /// to wait (R7).
    pub(super) async fn retry(&self, failed: &Arc<Message>) -> Result<bool, Error> {
        if self.is_cancelled() {
            self.give_up(None).await;
            return Ok(false);
        }
        let policy = self.host.retry_policy();
        let (attempt, asked) = {
            let mut attempts = self.attempts();
            attempts.made += 1;
            (attempts.made, attempts.asked.get())
        };
        let delay = policy.delay(attempt, asked);
        // From the announcement on: whoever hears of it may answer at once.
        let given_up = self.host.begin_retry_wait();
        self.emit(Event::AutoRetryStart {
            attempt,
            max_attempts: policy.max_retries,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            error_message: error_of(failed).unwrap_or_default(),
        })
        .await;
        if let Err(error) = self.omit(failed).await {
            self.end_series(false, Some(error.to_string())).await;
            return Err(error);
        }
        self.routing().failed(failed);
        let waited = self.waits(delay, &given_up).await;
        if !waited {
            self.end_series(false, Some(CANCELLED.to_owned())).await;
        }
        Ok(waited)
    }

    /// Whether the user lets that time pass. He may give up the attempt alone.
    async fn waits(&self, delay: Duration, given_up: &CancellationToken) -> bool {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => false,
            () = given_up.cancelled() => false,
            () = tokio::time::sleep(delay) => true,
        }
    }

    /// Leaves a stored answer out of later requests (R9).
    pub(super) async fn omit(&self, answer: &Arc<Message>) -> Result<(), Error> {
        for entry in self.host.omit(answer)? {
            self.emit(Event::EntryAppended { entry }).await;
        }
        Ok(())
    }

    /// An answer has come: one that is good ends the series (R8). What the user stopped says nothing of
    /// whether the service works again.
    pub(super) async fn note_answer(&self, answer: &AssistantMessage) {
        let works_again = match answer.stop_reason {
            StopReason::Error => false,
            StopReason::Aborted => !self.is_cancelled(),
            _ => true,
        };
        if works_again {
            self.end_series(true, None).await;
        }
    }

    /// No other attempt follows: says how a series of them ended, if there was one.
    pub(super) async fn give_up(&self, last: Option<&Arc<Message>>) {
        let error = match self.is_cancelled() {
            true => Some(CANCELLED.to_owned()),
            false => last.and_then(error_of),
        };
        if error.is_some() {
            self.end_series(false, error).await;
        }
    }

    async fn end_series(&self, success: bool, final_error: Option<String>) {
        let attempt = std::mem::take(&mut self.attempts().made);
        if attempt > 0 {
            self.emit(Event::AutoRetryEnd {
                success,
                attempt,
                final_error,
            })
            .await;
        }
    }
}

/// Why an answer failed.
fn error_of(message: &Arc<Message>) -> Option<String> {
    let answer = message.as_assistant()?;
    let failed = answer.stop_reason == StopReason::Error;
    failed.then(|| answer.error_message.clone().unwrap_or_default())
}

//! Asking one registered thing for something that can do without it, such as how something is shown: its
//! failure is reported and means no answer. It may be asked very often, so after some failures in a row
//! it is left out, which is said once.

use std::sync::atomic::Ordering;

use pliant_sdk::Error;
use pliant_sdk::error::code;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::dispatch::{FAILED_AGAIN, STRIKES};
use super::{Callers, HandlerFailure, Registered};

/// What was answered, if anything was.
pub struct Asked<'a, S> {
    callers: Callers<'a>,
    callee: &'a Registered<S>,
    event: &'static str,
    /// `None` after a failure, and when it was not asked.
    answer: Option<Value>,
}

impl<'a> Callers<'a> {
    /// Asks; `event` is what failures are reported at.
    pub async fn ask<S>(
        &self,
        callee: &'a Registered<S>,
        event: &'static str,
        op: &str,
        payload: &impl Serialize,
    ) -> Asked<'a, S> {
        let payload = serde_json::to_vec(payload).unwrap_or_default();
        self.ask_bytes(callee, event, op, payload).await
    }

    /// The same of a payload that is written already.
    pub async fn ask_bytes<S>(
        &self,
        callee: &'a Registered<S>,
        event: &'static str,
        op: &str,
        payload: Vec<u8>,
    ) -> Asked<'a, S> {
        let mut asked = Asked {
            callers: self.clone(),
            callee,
            event,
            answer: None,
        };
        let is_left_out = callee.strikes.load(Ordering::Relaxed) >= STRIKES;
        if is_left_out || callee.fault().is_some() {
            return asked;
        }
        match self.call(callee, event, op, payload).await {
            Ok(answer) => asked.answer = Some(answer),
            // That the user gave up is nobody's fault.
            Err(failure) if failure.error.is(code::CANCELLED) => {}
            Err(_) => asked.strike(),
        }
        asked
    }
}

impl<S> Asked<'_, S> {
    /// The answer, read and checked. One that is of no use is a failure as well.
    pub fn answer<R: DeserializeOwned, T>(
        self,
        check: impl FnOnce(R) -> Result<T, Error>,
    ) -> Option<T> {
        let answer = self.answer.clone()?;
        let read = serde_json::from_value::<R>(answer);
        let read =
            read.map_err(|error| Error::invalid(format!("its answer is of no use: {error}")));
        match read.and_then(check) {
            Ok(answer) => {
                self.callee.strikes.store(0, Ordering::Relaxed);
                Some(answer)
            }
            Err(error) => {
                self.report(error);
                self.strike();
                None
            }
        }
    }

    fn strike(&self) {
        let strikes = &self.callee.strikes;
        if strikes.fetch_add(1, Ordering::Relaxed) + 1 == STRIKES && self.callee.fault().is_none() {
            self.report(Error::failed(format!(
                "{FAILED_AGAIN} and is left out until the extension is loaded again"
            )));
        }
    }

    fn report(&self, error: Error) {
        self.callers.report(HandlerFailure {
            source: self.callee.source().clone(),
            event: self.event.into(),
            error,
        });
    }
}

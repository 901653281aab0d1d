//! How long code of a plugin may take: its limit, and what an abort leaves of it.
//!
//! An abort ends most calls at once. Where their answer decides what is stored of something that has
//! happened, and where somebody only hears how it ended, they have a grace instead: it is one for all
//! that comes after the abort, so a run that was stopped ends soon however many of them hang.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pliant_sdk::Error;
use pliant_sdk::error::code;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// What handlers have together after an abort. With what hangs on a stop by a signal it has to fit into
/// the time that a front end gives a run to end in.
const GRACE: Duration = Duration::from_millis(1500);

/// What each has when that is used up.
const AT_LEAST: Duration = Duration::from_millis(100);

/// The code of a call that an abort ended although its answer was wanted.
pub(super) const LEFT_BEHIND: &str = "left_behind";

/// The time that an abort leaves to handlers; one for everything that it ends.
#[derive(Debug, Clone)]
pub struct Grace {
    until: Arc<Mutex<Option<Instant>>>,
    whole: Duration,
    at_least: Duration,
}

impl Default for Grace {
    fn default() -> Self {
        Self {
            until: Arc::default(),
            whole: GRACE,
            at_least: AT_LEAST,
        }
    }
}

impl Grace {
    /// The user has given up. Doing so again soon does not make it longer.
    pub fn begin(&self) {
        let now = Instant::now();
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        if until.is_none_or(|until| until <= now) {
            *until = Some(now + self.whole);
        }
    }

    fn left(&self) -> Duration {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        left.unwrap_or(self.whole).max(self.at_least)
    }
}

/// What an abort means for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnAbort {
    /// Nobody wants its answer any more.
    End,
    /// It has the grace to end in.
    Finish,
}

/// How long calls may take, and what ends them before.
#[derive(Debug, Clone)]
pub struct Patience {
    /// Ends them when the user gives up.
    pub cancel: CancellationToken,
    /// Longest time that one may take; `None` = no limit.
    pub limit: Option<Duration>,
    /// The limit is what the setting says, so the setting can change it.
    pub by_setting: bool,
    /// What an abort leaves of it.
    pub grace: Grace,
}

impl Patience {
    /// By the settings.
    #[must_use]
    pub fn new(cancel: CancellationToken, limit: Option<Duration>, grace: Grace) -> Self {
        Self {
            cancel,
            limit,
            by_setting: true,
            grace,
        }
    }

    /// No longer than this, whatever the settings say.
    #[must_use]
    pub fn at_most(self, most: Duration) -> Self {
        let by_setting = self.limit.is_some_and(|limit| limit <= most);
        Self {
            limit: Some(self.limit.map_or(most, |limit| limit.min(most))),
            by_setting,
            ..self
        }
    }

    /// Without a limit.
    #[must_use]
    pub fn unlimited(self) -> Self {
        Self {
            limit: None,
            ..self
        }
    }

    /// Waits for the end of some work, or for the end of the patience.
    pub(super) async fn wait<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
        on_abort: OnAbort,
    ) -> Result<T, Error> {
        let in_time = async {
            match self.limit {
                Some(limit) => timeout(limit, work)
                    .await
                    .unwrap_or_else(|_| Err(self.too_slow(limit))),
                None => work.await,
            }
        };
        let given_up = async {
            self.cancel.cancelled().await;
            match on_abort {
                OnAbort::End => Error::cancelled(),
                OnAbort::Finish => {
                    let left = self.grace.left();
                    sleep(left).await;
                    left_behind(left)
                }
            }
        };
        tokio::select! {
            biased;
            answer = in_time => answer,
            error = given_up => Err(error),
        }
    }

    fn too_slow(&self, limit: Duration) -> Error {
        let ms = limit.as_millis();
        let advice = match self.by_setting {
            true => "; the setting extensions.handlerTimeoutMs allows more",
            false => "; it can have no more time than that here",
        };
        Error::new(
            code::TIMEOUT,
            format!("the handler did not end within {ms} ms and was left behind{advice}"),
        )
    }
}

fn left_behind(grace: Duration) -> Error {
    let ms = grace.as_millis();
    Error::new(
        LEFT_BEHIND,
        format!("the handler did not end within {ms} ms after the abort and was left behind"),
    )
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    /// After an abort.
    fn aborted(limit: Option<Duration>) -> Patience {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let grace = Grace {
            whole: Duration::from_millis(40),
            at_least: Duration::from_millis(2),
            ..Grace::default()
        };
        grace.begin();
        Patience::new(cancel, limit, grace)
    }

    async fn end_of(patience: &Patience, on_abort: OnAbort) -> Error {
        patience.wait::<()>(pending(), on_abort).await.unwrap_err()
    }

    #[tokio::test]
    async fn the_grace_is_one_for_all_that_hangs_after_an_abort() {
        // R51, extensions §6
        let patience = aborted(None);
        let mut ends = Vec::new();
        for _ in 0..3 {
            let error = end_of(&patience, OnAbort::Finish).await;
            assert_eq!(error.code, LEFT_BEHIND);
            ends.push(error.message);
        }
        assert_ne!(ends[0], ends[1]);
        assert!(ends[1].contains("within 2 ms after the abort"), "{ends:?}");
        assert_eq!(ends[1], ends[2]);
        patience.grace.begin();
        let error = end_of(&patience, OnAbort::Finish).await;
        assert_ne!(error.message, ends[1]);
    }

    #[tokio::test]
    async fn a_limit_that_is_shorter_than_the_grace_is_the_handlers_own_fault() {
        // G5: it had its time.
        let patience = aborted(Some(Duration::from_millis(1)));
        let error = end_of(&patience, OnAbort::Finish).await;
        assert!(error.is(code::TIMEOUT), "{error}");
        assert!(error.message.contains("extensions.handlerTimeoutMs"));
        let error = end_of(&patience, OnAbort::End).await;
        assert!(error.is(code::CANCELLED));
    }

    #[tokio::test]
    async fn only_a_limit_that_can_be_set_is_called_a_setting() {
        let patience = Patience::new(CancellationToken::new(), None, Grace::default());
        let patience = patience.at_most(Duration::from_millis(2));
        let error = end_of(&patience, OnAbort::End).await.message;
        assert!(error.contains("within 2 ms") && !error.contains("extensions."));
    }
}

//! How far what a handler asks may lead: a handler that causes the event it handles would never come to
//! an end, and in one process use up the stack.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};

use pliant_sdk::Error;

/// What is asked from inside of what was asked, at most.
const DEEPEST: u32 = 16;

/// What may be asked at once. Code with threads of its own cannot be followed from one question to the
/// next, and holds a thread for each.
const MOST: usize = 384;

tokio::task_local! {
    static DEPTH: u32;
}

/// Counts what a session is being asked.
#[derive(Debug, Default)]
pub(in crate::session) struct UnderWay(AtomicUsize);

/// One question.
struct Counted<'a>(&'a UnderWay);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl UnderWay {
    /// Answers a question, unless it is one too many.
    pub(super) async fn answer<T>(
        &self,
        service: &str,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let depth = DEPTH.try_with(|depth| *depth).unwrap_or_default();
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        let _counted = Counted(self);
        if depth >= DEEPEST || before >= MOST {
            return Err(Error::failed(format!(
                "{service} was not done, because it leads to itself: a handler does something at the event that this causes. Let the handler look whether there is anything left to change."
            )));
        }
        DEPTH.scope(depth + 1, answer).await
    }
}

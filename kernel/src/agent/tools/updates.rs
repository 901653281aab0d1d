//! Partial results of a running tool. A partial result stands for all before it, so only the latest is
//! kept: a tool that updates faster than anybody looks costs nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pliant_sdk::message::Content;
use pliant_sdk::tool::ToolResult;
use tokio::sync::Notify;

/// Where a running tool shows its partial results.
#[derive(Debug, Clone)]
pub struct Updates {
    board: Board,
    /// The call that made this one looks too.
    caller: Option<Board>,
}

impl Updates {
    pub(super) fn new(board: &Board, caller: Option<&Board>) -> Self {
        Self {
            board: board.clone(),
            caller: caller.cloned(),
        }
    }

    /// Shows a partial result; after the end of the call it is dropped (T6).
    pub fn show(&self, partial: ToolResult) {
        match &self.caller {
            None => {
                self.board.put(partial);
            }
            Some(caller) => {
                if self.board.put(partial.clone()) {
                    caller.put(partial);
                }
            }
        }
    }
}

/// The partial results of one call, for one reader.
#[derive(Debug, Clone, Default)]
pub(super) struct Board(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    slot: Mutex<Slot>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Slot {
    waiting: Option<ToolResult>,
    latest: Vec<Content>,
    over: bool,
}

impl Board {
    /// Whether it was still taken.
    fn put(&self, partial: ToolResult) -> bool {
        {
            let mut slot = self.slot();
            if slot.over {
                return false;
            }
            slot.latest.clone_from(&partial.content);
            slot.waiting = Some(partial);
        }
        self.0.changed.notify_one();
        true
    }

    /// The latest that was not read yet; `None` when the call is over and nothing is left.
    pub(super) async fn next(&self) -> Option<ToolResult> {
        loop {
            {
                let mut slot = self.slot();
                if let Some(partial) = slot.waiting.take() {
                    return Some(partial);
                }
                if slot.over {
                    return None;
                }
            }
            self.0.changed.notified().await;
        }
    }

    /// The call is over; what it shows from now on is dropped.
    pub(super) fn close(&self) {
        self.slot().over = true;
        self.0.changed.notify_one();
    }

    /// The latest content that the call has shown.
    pub(super) fn latest(&self) -> Vec<Content> {
        self.slot().latest.clone()
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.0.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_latest_is_read_and_nothing_that_comes_after_the_end() {
        // T6
        let (board, caller) = (Board::default(), Board::default());
        let updates = Updates::new(&board, Some(&caller));
        updates.show(ToolResult::text("one"));
        updates.show(ToolResult::text("two"));
        board.close();
        updates.show(ToolResult::text("three"));
        assert_eq!(board.next().await, Some(ToolResult::text("two")));
        assert_eq!(board.next().await, None);
        assert_eq!(board.latest(), ToolResult::text("two").content);
        assert_eq!(caller.next().await, Some(ToolResult::text("two")));
    }
}

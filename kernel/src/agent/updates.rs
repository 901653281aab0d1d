//! Partial results of running tools. A partial result stands for all before it, so only the latest of
//! each call is kept: a tool that updates faster than anybody looks costs nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pliant_sdk::message::Content;
use pliant_sdk::tool::ToolResult;
use tokio::sync::Notify;

/// The partial results of one batch.
#[derive(Debug, Clone)]
pub(super) struct UpdateBoard(Arc<Board>);

#[derive(Debug)]
struct Board {
    calls: Mutex<Vec<Slot>>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Slot {
    waiting: Option<ToolResult>,
    latest: Vec<Content>,
    over: bool,
}

/// Where one running tool shows its partial results.
#[derive(Debug, Clone)]
pub struct Updates {
    board: UpdateBoard,
    call: usize,
}

impl Updates {
    /// Shows a partial result; after the end of the call it is dropped (T6).
    pub fn show(&self, partial: ToolResult) {
        if let Some(slot) = self
            .board
            .calls()
            .get_mut(self.call)
            .filter(|slot| !slot.over)
        {
            slot.latest.clone_from(&partial.content);
            slot.waiting = Some(partial);
        }
        self.board.0.changed.notify_one();
    }
}

impl UpdateBoard {
    pub(super) fn new(calls: usize) -> Self {
        let calls = Mutex::new((0..calls).map(|_| Slot::default()).collect());
        Self(Arc::new(Board {
            calls,
            changed: Notify::new(),
        }))
    }

    pub(super) fn of_call(&self, call: usize) -> Updates {
        Updates {
            board: self.clone(),
            call,
        }
    }

    /// Waits until something is shown.
    pub(super) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// What was shown since the last look, by call.
    pub(super) fn take(&self) -> Vec<(usize, ToolResult)> {
        let mut calls = self.calls();
        let waiting = calls
            .iter_mut()
            .enumerate()
            .filter_map(|(call, slot)| Some((call, slot.waiting.take()?)));
        waiting.collect()
    }

    /// The call is over; answers what is still to be shown of it.
    pub(super) fn end(&self, call: usize) -> Option<ToolResult> {
        let mut calls = self.calls();
        let slot = calls.get_mut(call)?;
        slot.over = true;
        slot.waiting.take()
    }

    /// The latest content a call has shown.
    pub(super) fn latest(&self, call: usize) -> Vec<Content> {
        self.calls()
            .get(call)
            .map(|slot| slot.latest.clone())
            .unwrap_or_default()
    }

    fn calls(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.0.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

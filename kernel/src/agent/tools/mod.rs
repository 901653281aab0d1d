//! The calls of one answer (`kernel.md` §4): prepared one after another in the order asked, executed
//! side by side (or in order, if any tool wants that), results stored in the order asked.

mod call;

mod nested;
mod record;
mod updates;

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use pliant_sdk::message::{Content, Message, ToolCall, ToolResultMessage};
use pliant_sdk::tool::ToolResult;
use pliant_sdk::{Error, Event};

use super::Driver;
use call::{Finished, Prepared, announce, end, execute, is_sequential, prepare};
use nested::Standing;

pub use call::{Call, Reach, Running};
pub(super) use nested::{Desk, Lane};
pub use nested::{NestedCall, NestedCalls, NestedEnd};
pub use updates::Updates;

/// The results of a batch.
pub(super) struct Batch {
    pub(super) results: Vec<Arc<Message>>,
    /// Every result asked to end the run (T7).
    pub(super) terminate: bool,
}

/// Runs the calls of an answer; every call gets exactly one result message (T8).
pub(super) async fn run_batch<D: Driver>(
    driver: &D,
    calls: Vec<ToolCall>,
    desk: &Desk,
) -> Result<Batch, Error> {
    let calls: Vec<Call> = calls.into_iter().map(of_model).collect();
    let sequential = calls
        .iter()
        .any(|call| is_sequential(driver, &call.asked.name, Reach::Declared));
    if sequential {
        one_by_one(driver, &calls, desk).await
    } else {
        side_by_side(driver, &calls, desk).await
    }
}

fn of_model(asked: ToolCall) -> Call {
    Call {
        asked,
        parent: None,
    }
}

/// Answers every call of a cut-off reply with an error, without running it (L15).
pub(super) async fn fail_truncated<D: Driver>(
    driver: &D,
    calls: Vec<ToolCall>,
) -> Result<Batch, Error> {
    let mut results = Vec::with_capacity(calls.len());
    for call in calls.into_iter().map(of_model) {
        announce(driver, &call).await;
        let text = format!(
            "The call of \"{}\" was not run: the answer hit the output limit, so its arguments may be cut off. \
             Make the call again, with shorter arguments if need be.",
            call.asked.name
        );
        let finished = Finished::not_run(ToolResult::error(text));
        end(driver, &call, &finished).await;
        results.push(store(driver, &call, finished).await?);
    }
    Ok(Batch {
        results,
        terminate: false,
    })
}

async fn one_by_one<D: Driver>(driver: &D, calls: &[Call], desk: &Desk) -> Result<Batch, Error> {
    let mut results = Vec::with_capacity(calls.len());
    let mut terminate = true;
    let mut seen = HashSet::new();
    for call in calls {
        let mut standing = desk.standing();
        let mut turn = None;
        if is_sequential(driver, &call.asked.name, Reach::Declared) {
            (standing, turn) = standing.in_turn().await;
        }
        announce(driver, call).await;
        let finished = match prepare_once(driver, call, &mut seen, &standing).await {
            Prepared::Immediate(result) => Finished::not_run(*result),
            Prepared::Ready { tool, arguments } => {
                execute(driver, call, tool, arguments, &standing, None).await
            }
        };
        drop(turn);
        end(driver, call, &finished).await;
        terminate &= finished.result.terminate;
        results.push(store(driver, call, finished).await?);
    }
    Ok(Batch { results, terminate })
}

async fn side_by_side<D: Driver>(driver: &D, calls: &[Call], desk: &Desk) -> Result<Batch, Error> {
    let mut finished: Vec<Option<Finished>> = calls.iter().map(|_| None).collect();
    let mut running = FuturesUnordered::new();
    let mut seen = HashSet::new();
    for (index, call) in calls.iter().enumerate() {
        let standing = desk.standing();
        announce(driver, call).await;
        match prepare_once(driver, call, &mut seen, &standing).await {
            Prepared::Immediate(result) => {
                let done = Finished::not_run(*result);
                end(driver, call, &done).await;
                finished[index] = Some(done);
            }
            Prepared::Ready { tool, arguments } => running.push(async move {
                let done = execute(driver, call, tool, arguments, &standing, None).await;
                end(driver, call, &done).await;
                (index, done)
            }),
        }
    }
    while let Some((index, done)) = running.next().await {
        finished[index] = Some(done);
    }
    let mut results = Vec::with_capacity(calls.len());
    let mut terminate = true;
    for (call, done) in calls.iter().zip(finished) {
        let done = done.unwrap_or_else(Finished::aborted);
        terminate &= done.result.terminate;
        results.push(store(driver, call, done).await?);
    }
    Ok(Batch { results, terminate })
}

/// One id is one call: a service that repeats it must not cause the effect twice (P09).
async fn prepare_once<D: Driver>(
    driver: &D,
    call: &Call,
    seen: &mut HashSet<String>,
    standing: &Standing,
) -> Prepared {
    let id = &call.asked.id;
    if !seen.insert(id.clone()) {
        return Prepared::refused(format!(
            "The call id \"{id}\" appeared twice in one answer; the call ran once."
        ));
    }
    prepare(driver, call, Reach::Declared, &standing.cancel).await
}

/// The result message; `structuredContent` and `terminate` are neither stored nor sent (T5).
async fn store<D: Driver>(
    driver: &D,
    call: &Call,
    finished: Finished,
) -> Result<Arc<Message>, Error> {
    let Finished {
        result,
        duration_ms,
        record,
    } = finished;
    let content = if result.content.is_empty() && result.is_error {
        vec![Content::text("The tool failed without saying why.")]
    } else {
        result.content
    };
    let mut message = ToolResultMessage {
        tool_call_id: call.asked.id.clone(),
        tool_name: call.asked.name.clone(),
        content,
        details: result.details,
        usage: result.usage,
        is_error: result.is_error,
        timestamp: driver.now_ms(),
        duration_ms,
        ..ToolResultMessage::default()
    };
    if let Some(record) = record {
        record.attach(&mut message);
    }
    let message = Message::ToolResult(message);
    driver
        .emit(Event::MessageStart {
            message: Arc::new(message.clone()),
        })
        .await;
    driver.message_end(message).await
}

//! The calls of one answer (`kernel.md` §4): prepared one after another in the order asked, executed
//! side by side (or in order, if any tool wants that), results stored in the order asked.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use pliant_sdk::message::{Content, Message, ToolCall, ToolResultMessage};
use pliant_sdk::tool::{ExecutionMode, ToolResult};
use pliant_sdk::{Error, Event};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::updates::UpdateBoard;
use super::{Driver, ToolRunner, Verdict};

const ABORTED: &str = "Operation aborted";

/// The results of a batch.
pub(super) struct Batch {
    pub(super) results: Vec<Arc<Message>>,
    /// Every result asked to end the run (T7).
    pub(super) terminate: bool,
}

/// A call after preparation.
enum Prepared {
    /// Not to be run: this is its result.
    Immediate(Box<ToolResult>),
    Ready {
        tool: Arc<dyn ToolRunner>,
        arguments: Map<String, Value>,
    },
}

/// A finished call.
struct Finished {
    result: ToolResult,
    duration_ms: Option<u64>,
}

impl Finished {
    fn not_run(result: ToolResult) -> Self {
        Self {
            result,
            duration_ms: None,
        }
    }

    fn aborted() -> Self {
        Self::not_run(ToolResult::error(ABORTED))
    }
}

/// Runs the calls of an answer; every call gets exactly one result message (T8).
pub(super) async fn run_batch<D: Driver>(
    driver: &D,
    calls: Vec<ToolCall>,
    cancel: &CancellationToken,
) -> Result<Batch, Error> {
    let sequential = calls.iter().any(|call| {
        driver
            .tool(&call.name)
            .is_some_and(|tool| tool.spec().execution_mode == ExecutionMode::Sequential)
    });
    if sequential {
        one_by_one(driver, calls, cancel).await
    } else {
        side_by_side(driver, calls, cancel).await
    }
}

/// Answers every call of a cut-off reply with an error, without running it (L15).
pub(super) async fn fail_truncated<D: Driver>(
    driver: &D,
    calls: Vec<ToolCall>,
) -> Result<Batch, Error> {
    let mut results = Vec::with_capacity(calls.len());
    for call in &calls {
        announce(driver, call).await;
        let text = format!(
            "The call of \"{}\" was not run: the answer hit the output limit, so its arguments may be cut off. \
             Make the call again, with shorter arguments if need be.",
            call.name
        );
        let finished = Finished::not_run(ToolResult::error(text));
        end(driver, call, &finished).await;
        results.push(store(driver, call, finished).await?);
    }
    Ok(Batch {
        results,
        terminate: false,
    })
}

async fn one_by_one<D: Driver>(
    driver: &D,
    calls: Vec<ToolCall>,
    cancel: &CancellationToken,
) -> Result<Batch, Error> {
    let board = UpdateBoard::new(calls.len());
    let mut results = Vec::with_capacity(calls.len());
    let mut terminate = true;
    let mut seen = HashSet::new();
    for (index, call) in calls.iter().enumerate() {
        announce(driver, call).await;
        let finished = match prepare(driver, call, &mut seen, cancel).await {
            Prepared::Immediate(result) => {
                let done = Finished::not_run(*result);
                end(driver, call, &done).await;
                done
            }
            Prepared::Ready { tool, arguments } => {
                let running = execute(driver, index, call, tool, arguments, &board, cancel);
                let running = FuturesUnordered::from_iter([running]);
                let mut ended = run_all(driver, &calls, &board, running).await;
                ended
                    .pop()
                    .map_or_else(Finished::aborted, |(_, finished)| finished)
            }
        };
        terminate &= finished.result.terminate;
        results.push(store(driver, call, finished).await?);
    }
    Ok(Batch { results, terminate })
}

async fn side_by_side<D: Driver>(
    driver: &D,
    calls: Vec<ToolCall>,
    cancel: &CancellationToken,
) -> Result<Batch, Error> {
    let board = UpdateBoard::new(calls.len());
    let mut finished: Vec<Option<Finished>> = calls.iter().map(|_| None).collect();
    let running = FuturesUnordered::new();
    let mut seen = HashSet::new();
    for (index, call) in calls.iter().enumerate() {
        announce(driver, call).await;
        match prepare(driver, call, &mut seen, cancel).await {
            Prepared::Immediate(result) => {
                let done = Finished::not_run(*result);
                end(driver, call, &done).await;
                finished[index] = Some(done);
            }
            Prepared::Ready { tool, arguments } => {
                running.push(execute(
                    driver, index, call, tool, arguments, &board, cancel,
                ));
            }
        }
    }
    for (index, done) in run_all(driver, &calls, &board, running).await {
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

/// Runs prepared calls to their ends and announces them as they come. What a call has shown is
/// announced before its end is (T6).
async fn run_all<D: Driver, F>(
    driver: &D,
    calls: &[ToolCall],
    board: &UpdateBoard,
    mut running: FuturesUnordered<F>,
) -> Vec<(usize, Finished)>
where
    F: Future<Output = (usize, Finished)>,
{
    let mut all = Vec::new();
    loop {
        tokio::select! {
            biased;
            () = board.changed() => {
                for (index, partial) in board.take() {
                    update(driver, &calls[index], partial).await;
                }
            }
            next = running.next() => {
                let Some((index, done)) = next else { return all };
                if let Some(partial) = board.end(index) {
                    update(driver, &calls[index], partial).await;
                }
                end(driver, &calls[index], &done).await;
                all.push((index, done));
            }
        }
    }
}

/// Everything before execution (T2). Any failure is the call's result.
async fn prepare<D: Driver>(
    driver: &D,
    call: &ToolCall,
    seen: &mut HashSet<String>,
    cancel: &CancellationToken,
) -> Prepared {
    match try_prepare(driver, call, seen, cancel).await {
        Ok(prepared) => prepared,
        Err(text) => Prepared::Immediate(Box::new(ToolResult::error(text))),
    }
}

async fn try_prepare<D: Driver>(
    driver: &D,
    call: &ToolCall,
    seen: &mut HashSet<String>,
    cancel: &CancellationToken,
) -> Result<Prepared, String> {
    if cancel.is_cancelled() {
        return Err(ABORTED.to_owned());
    }
    if !seen.insert(call.id.clone()) {
        // One id is one call: a service that repeats it must not cause the effect twice (P09).
        return Err(format!(
            "The call id \"{}\" appeared twice in one answer; the call ran once.",
            call.id
        ));
    }
    let Some(tool) = driver.tool(&call.name) else {
        let names = driver.tool_names().join(", ");
        return Err(format!(
            "There is no tool \"{}\". The tools are: {names}.",
            call.name
        ));
    };
    if let Some(problem) = &call.arguments_error {
        return Err(format!(
            "Invalid arguments for tool \"{}\": {problem}",
            call.name
        ));
    }
    let mut raw = Value::Object(call.arguments.clone());
    if tool.spec().prepares {
        raw = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ABORTED.to_owned()),
            prepared = tool.prepare(raw) => prepared.map_err(|error| error.to_string())?,
        };
    }
    let arguments = tool.schema().check(&call.name, raw)?;
    let verdict = driver
        .before_tool_call(call, arguments)
        .await
        .map_err(|error| error.to_string())?;
    if cancel.is_cancelled() {
        return Err(ABORTED.to_owned());
    }
    match verdict {
        Verdict::Run(arguments) => Ok(Prepared::Ready { tool, arguments }),
        Verdict::Block { reason, terminate } => {
            let text = reason.unwrap_or_else(|| {
                format!("The call of \"{}\" was blocked by an extension.", call.name)
            });
            Ok(Prepared::Immediate(Box::new(ToolResult {
                terminate,
                ..ToolResult::error(text)
            })))
        }
    }
}

async fn execute<D: Driver>(
    driver: &D,
    index: usize,
    call: &ToolCall,
    tool: Arc<dyn ToolRunner>,
    arguments: Map<String, Value>,
    board: &UpdateBoard,
    cancel: &CancellationToken,
) -> (usize, Finished) {
    if cancel.is_cancelled() {
        return (index, Finished::aborted());
    }
    let started = Instant::now();
    let updates = board.of_call(index);
    let ended = tokio::select! {
        biased;
        ended = tool.execute(&call.id, arguments.clone(), updates, cancel.child_token()) => Some(ended),
        // The tool's future is dropped, which is how it learns of the abort at once.
        () = cancel.cancelled() => None,
    };
    let duration_ms = u64::try_from(started.elapsed().as_millis()).ok();
    let result = match ended {
        None => aborted(board.latest(index)),
        Some(ended) => {
            let result = ended.unwrap_or_else(failed);
            driver.after_tool_call(call, &arguments, result).await
        }
    };
    (
        index,
        Finished {
            result,
            duration_ms,
        },
    )
}

/// What the tool had shown by then is kept: the model should know how far it came.
fn aborted(mut content: Vec<Content>) -> ToolResult {
    content.push(Content::text(ABORTED));
    ToolResult {
        content,
        is_error: true,
        ..ToolResult::default()
    }
}

fn failed(error: Error) -> ToolResult {
    let details = error.details.clone().map(|details| *details);
    ToolResult {
        details,
        ..ToolResult::error(error.to_string())
    }
}

async fn announce<D: Driver>(driver: &D, call: &ToolCall) {
    driver
        .emit(Event::ToolExecutionStart {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            args: Value::Object(call.arguments.clone()),
            parent_tool_call_id: None,
        })
        .await;
}

async fn update<D: Driver>(driver: &D, call: &ToolCall, partial_result: ToolResult) {
    driver
        .emit(Event::ToolExecutionUpdate {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            args: Value::Object(call.arguments.clone()),
            partial_result,
            parent_tool_call_id: None,
        })
        .await;
}

async fn end<D: Driver>(driver: &D, call: &ToolCall, finished: &Finished) {
    driver
        .emit(Event::ToolExecutionEnd {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            result: finished.result.clone(),
            is_error: finished.result.is_error,
            duration_ms: finished.duration_ms,
            parent_tool_call_id: None,
        })
        .await;
}

/// The result message; `structuredContent` and `terminate` are neither stored nor sent (T5).
async fn store<D: Driver>(
    driver: &D,
    call: &ToolCall,
    finished: Finished,
) -> Result<Arc<Message>, Error> {
    let Finished {
        result,
        duration_ms,
    } = finished;
    let content = if result.content.is_empty() && result.is_error {
        vec![Content::text("The tool failed without saying why.")]
    } else {
        result.content
    };
    let message = Message::ToolResult(ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content,
        details: result.details,
        usage: result.usage,
        is_error: result.is_error,
        timestamp: driver.now_ms(),
        duration_ms,
        ..ToolResultMessage::default()
    });
    driver
        .emit(Event::MessageStart {
            message: Arc::new(message.clone()),
        })
        .await;
    driver.message_end(message).await
}

//! One call of a tool, whoever asked for it (`kernel.md` §4.1): announced, prepared, executed,
//! finished. What asks and what becomes of the result is the business of the callers of this.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pliant_sdk::message::{Content, ToolCall};
use pliant_sdk::tool::{ExecutionMode, ToolResult};
use pliant_sdk::{Error, Event};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::nested::{NestedCalls, Standing};
use super::record::Record;
use super::updates::{Board, Updates};
use crate::agent::{Driver, ToolRunner, Verdict};

const ABORTED: &str = "Operation aborted";

/// A call, as it was asked for.
#[derive(Debug, Clone)]
pub struct Call {
    /// Id, name and arguments as they were given.
    pub asked: ToolCall,
    /// The call that made this one; `None` for one of the model.
    pub parent: Option<String>,
}

/// Who calls (T22).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The model, which was told of some tools.
    Declared,
    /// Another tool.
    Callable,
}

/// A running call, as its tool sees it.
#[derive(Debug, Clone)]
pub struct Running {
    /// Id of the call.
    pub call_id: String,
    /// Where it shows partial results.
    pub updates: Updates,
    /// Makes calls of other tools.
    pub calls: NestedCalls,
    /// Says that nobody wants the result any more.
    pub cancel: CancellationToken,
}

/// A call after preparation.
pub(super) enum Prepared {
    /// Not to be run: this is its result.
    Immediate(Box<ToolResult>),
    Ready {
        tool: Arc<dyn ToolRunner>,
        arguments: Map<String, Value>,
    },
}

impl Prepared {
    pub(super) fn refused(text: impl Into<String>) -> Self {
        Self::Immediate(Box::new(ToolResult::error(text)))
    }
}

/// A finished call.
pub(super) struct Finished {
    pub(super) result: ToolResult,
    pub(super) duration_ms: Option<u64>,
    /// The calls made inside it.
    pub(super) record: Option<Record>,
}

impl Finished {
    pub(super) fn not_run(result: ToolResult) -> Self {
        Self {
            result,
            duration_ms: None,
            record: None,
        }
    }

    pub(super) fn aborted() -> Self {
        Self::not_run(ToolResult::error(ABORTED))
    }
}

/// Whether a call of this tool must not run beside others (T1, T20).
pub(super) fn is_sequential<D: Driver>(driver: &D, name: &str, reach: Reach) -> bool {
    let tool = driver.tool(name, reach);
    tool.is_some_and(|tool| {
        [tool.spec().execution_mode, driver.execution_mode()].contains(&ExecutionMode::Sequential)
    })
}

/// Everything before execution (T2). Any failure is the call's result.
pub(super) async fn prepare<D: Driver>(
    driver: &D,
    call: &Call,
    reach: Reach,
    cancel: &CancellationToken,
) -> Prepared {
    match try_prepare(driver, call, reach, cancel).await {
        Ok(prepared) => prepared,
        Err(text) => Prepared::refused(text),
    }
}

async fn try_prepare<D: Driver>(
    driver: &D,
    call: &Call,
    reach: Reach,
    cancel: &CancellationToken,
) -> Result<Prepared, String> {
    if cancel.is_cancelled() {
        return Err(ABORTED.to_owned());
    }
    let asked = &call.asked;
    let Some(tool) = driver.tool(&asked.name, reach) else {
        let names = driver.tool_names(reach).join(", ");
        return Err(format!(
            "There is no tool \"{}\". The tools are: {names}.",
            asked.name
        ));
    };
    if let Some(problem) = &asked.arguments_error {
        return Err(format!(
            "Invalid arguments for tool \"{}\": {problem}",
            asked.name
        ));
    }
    let mut raw = Value::Object(asked.arguments.clone());
    if tool.spec().prepares {
        raw = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ABORTED.to_owned()),
            prepared = tool.prepare(raw) => prepared.map_err(|error| error.to_string())?,
        };
    }
    let arguments = tool.schema().check(&asked.name, raw)?;
    let verdict = driver.before_tool_call(call, arguments).await;
    // A gate that the abort ended has blocked nothing.
    if cancel.is_cancelled() {
        return Err(ABORTED.to_owned());
    }
    match verdict.map_err(|error| error.to_string())? {
        Verdict::Run(arguments) => Ok(Prepared::Ready { tool, arguments }),
        Verdict::Block { reason, terminate } => {
            let text = reason.unwrap_or_else(|| {
                format!(
                    "The call of \"{}\" was blocked by an extension.",
                    asked.name
                )
            });
            Ok(Prepared::Immediate(Box::new(ToolResult {
                terminate,
                ..ToolResult::error(text)
            })))
        }
    }
}

/// Runs a prepared call to its end. What it shows is announced while it runs, and before its end is
/// (T6); `caller` sees it too. Images of the result keep their size (T16): nothing here reads a picture,
/// and the tool that makes one was told the limits.
pub(super) async fn execute<D: Driver>(
    driver: &D,
    call: &Call,
    tool: Arc<dyn ToolRunner>,
    arguments: Map<String, Value>,
    standing: &Standing,
    caller: Option<&Board>,
) -> Finished {
    if standing.cancel.is_cancelled() {
        return Finished::aborted();
    }
    let started = Instant::now();
    let board = Board::default();
    let calls = NestedCalls::new(&call.asked.id, standing);
    let running = Running {
        call_id: call.asked.id.clone(),
        updates: Updates::new(&board, caller),
        calls: calls.clone(),
        cancel: standing.cancel.clone(),
    };
    let run = async {
        let ended = tokio::select! {
            biased;
            ended = tool.execute(arguments.clone(), running) => ended.unwrap_or_else(failed),
            // The tool's future is dropped, which is how it learns of the abort at once.
            () = standing.cancel.cancelled() => aborted(board.latest()),
        };
        let duration_ms = rounded_ms(started.elapsed());
        calls.close();
        board.close();
        (ended, duration_ms)
    };
    let show = async {
        while let Some(partial) = board.next().await {
            update(driver, call, partial).await;
        }
    };
    let ((ended, duration_ms), ()) = tokio::join!(run, show);
    Finished {
        result: driver.after_tool_call(call, &arguments, ended).await,
        duration_ms: Some(duration_ms),
        record: Some(standing.record.clone()),
    }
}

fn rounded_ms(elapsed: Duration) -> u64 {
    let ms = (elapsed + Duration::from_micros(500)).as_millis();
    u64::try_from(ms).unwrap_or(u64::MAX)
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

pub(super) async fn announce<D: Driver>(driver: &D, call: &Call) {
    driver
        .emit(Event::ToolExecutionStart {
            tool_call_id: call.asked.id.clone(),
            tool_name: call.asked.name.clone(),
            args: Value::Object(call.asked.arguments.clone()),
            parent_tool_call_id: call.parent.clone(),
        })
        .await;
}

async fn update<D: Driver>(driver: &D, call: &Call, partial_result: ToolResult) {
    driver
        .emit(Event::ToolExecutionUpdate {
            tool_call_id: call.asked.id.clone(),
            tool_name: call.asked.name.clone(),
            args: Value::Object(call.asked.arguments.clone()),
            partial_result,
            parent_tool_call_id: call.parent.clone(),
        })
        .await;
}

pub(super) async fn end<D: Driver>(driver: &D, call: &Call, finished: &Finished) {
    driver
        .emit(Event::ToolExecutionEnd {
            tool_call_id: call.asked.id.clone(),
            tool_name: call.asked.name.clone(),
            result: finished.result.clone(),
            is_error: finished.result.is_error,
            duration_ms: finished.duration_ms,
            parent_tool_call_id: call.parent.clone(),
        })
        .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_to_milliseconds() {
        // T3
        let rounded = |us| rounded_ms(Duration::from_micros(us));
        assert_eq!([499, 500, 1499, 1500].map(rounded), [0, 1, 1, 2]);
    }
}

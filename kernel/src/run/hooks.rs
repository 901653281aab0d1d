//! The hook points of a run: what each handler is shown, and what its answer changes
//! (`extensions.md` §3).

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use pliant_sdk::hook::ToolCallAnswer;
use pliant_sdk::message::{Message, ToolCall};
use pliant_sdk::tool::ToolResult;
use pliant_sdk::{Error, Event};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::RunHost;
use crate::agent::Verdict;
use crate::registry::{Callers, Dispatcher, HookPoint, Snapshot, Source};

/// Dispatches `point` on the current snapshot; `then` gets the dispatcher if anybody listens.
async fn with_handlers<H, T, F>(
    host: &H,
    cancel: &CancellationToken,
    point: HookPoint,
    nobody: T,
    then: F,
) -> T
where
    H: RunHost,
    F: for<'a> AsyncFnOnce(Dispatcher<'a>, T) -> T,
{
    let snapshot: Arc<Snapshot> = host.registry().snapshot();
    let services = |source: &Source| host.services(source);
    let report = |failure| host.report(failure);
    let (cancel, limit) = bounds(cancel, host.handler_limit());
    let callers = Callers {
        services: &services,
        report: &report,
        cancel,
        limit,
    };
    match Dispatcher::new(&snapshot, point, callers) {
        Some(dispatcher) => then(dispatcher, nobody).await,
        None => nobody,
    }
}

/// Time for a handler that hears of something after the user gave up.
const AFTER_ABORT: Duration = Duration::from_secs(5);

/// An abort ends a handler that is running; one that is called later, to hear how it ended, gets a
/// short time of its own.
fn bounds(
    cancel: &CancellationToken,
    limit: Option<Duration>,
) -> (CancellationToken, Option<Duration>) {
    if cancel.is_cancelled() {
        let limit = limit.map_or(AFTER_ABORT, |limit| limit.min(AFTER_ABORT));
        return (CancellationToken::new(), Some(limit));
    }
    (cancel.clone(), limit)
}

/// Tells handlers of an event that only notifies.
pub(super) async fn notify<H: RunHost>(host: &H, cancel: &CancellationToken, event: &Event) {
    let Some(point) = point_of(event) else { return };
    with_handlers(host, cancel, point, (), async |dispatcher, ()| {
        dispatcher.notify(event).await
    })
    .await;
}

fn point_of(event: &Event) -> Option<HookPoint> {
    Some(match event {
        Event::AgentStart => HookPoint::AgentStart,
        Event::AgentEnd { .. } => HookPoint::AgentEnd,
        Event::AgentSettled { .. } => HookPoint::AgentSettled,
        Event::TurnStart => HookPoint::TurnStart,
        Event::TurnEnd { .. } => HookPoint::TurnEnd,
        Event::MessageStart { .. } => HookPoint::MessageStart,
        Event::MessageUpdate { .. } => HookPoint::MessageUpdate,
        Event::ToolExecutionStart { .. } => HookPoint::ToolExecutionStart,
        Event::ToolExecutionUpdate { .. } => HookPoint::ToolExecutionUpdate,
        Event::ToolExecutionEnd { .. } => HookPoint::ToolExecutionEnd,
        _ => return None,
    })
}

/// `message_end`: a chain; a replacement must keep the role, else it is reported and ignored (G7).
pub(super) async fn message_end<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
    message: Message,
) -> Message {
    with_handlers(host, cancel, HookPoint::MessageEnd, message, async |dispatcher, mut message| {
        let payload = |message: &Message| json!({"type": "message_end", "message": message});
        let take = |message: &mut Message, mut answer: Value| {
            if let Some(replacement) = answer.get_mut("message").map(Value::take) {
                let replacement = Message::from(replacement);
                if replacement.role() != message.role() {
                    let (role, other) = (message.role(), replacement.role());
                    return Err(Error::invalid(format!(
                        "it answered a message of the role \"{other}\" for one of the role \"{role}\", which is ignored"
                    )));
                }
                *message = replacement;
            }
            Ok(ControlFlow::Continue(()))
        };
        // The point does not fail closed, so the dispatch has no failure of its own.
        let _ = dispatcher.each(&mut message, payload, take).await;
        message
    })
    .await
}

/// `tool_call`: handlers may change the arguments; the first block decides; a failing handler, and one
/// whose answer cannot be read, blocks (T14).
pub(super) async fn tool_call<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
    call: &ToolCall,
    arguments: Map<String, Value>,
) -> Result<Verdict, Error> {
    with_handlers(host, cancel, HookPoint::ToolCall, Ok(Verdict::Run(arguments)), async |dispatcher, verdict| {
        let mut verdict = verdict?;
        let payload = |verdict: &Verdict| {
            let input = match verdict {
                Verdict::Run(input) => input.clone(),
                Verdict::Block { .. } => Map::new(),
            };
            json!({"type": "tool_call", "toolCallId": call.id, "toolName": call.name, "input": input})
        };
        match dispatcher.each(&mut verdict, payload, judge).await {
            Ok(()) => Ok(verdict),
            Err(failure) => Err(Error::failed(format!(
                "The call was blocked, because a tool_call handler of \"{}\" failed: {}",
                failure.source.name, failure.error
            ))),
        }
    })
    .await
}

fn judge(verdict: &mut Verdict, answer: Value) -> Result<ControlFlow<()>, Error> {
    let ToolCallAnswer {
        block,
        reason,
        terminate,
        event,
    } = serde_json::from_value(answer).map_err(|error| {
        Error::invalid(format!(
            "its answer is neither a block nor nothing: {error}"
        ))
    })?;
    if let Some(Value::Object(input)) =
        event.and_then(|mut event| event.get_mut("input").map(Value::take))
    {
        *verdict = Verdict::Run(input);
    }
    if block {
        *verdict = Verdict::Block { reason, terminate };
        return Ok(ControlFlow::Break(()));
    }
    Ok(ControlFlow::Continue(()))
}

/// `tool_result`: a chain of patches (T15).
pub(super) async fn tool_result<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
    call: &ToolCall,
    arguments: &Map<String, Value>,
    result: ToolResult,
) -> ToolResult {
    with_handlers(host, cancel, HookPoint::ToolResult, result, async |dispatcher, mut result| {
        let payload = |result: &ToolResult| {
            json!({
                "type": "tool_result", "toolCallId": call.id, "toolName": call.name, "input": arguments,
                "content": result.content, "details": result.details,
                "structuredContent": result.structured_content, "isError": result.is_error,
            })
        };
        let take = |result: &mut ToolResult, answer: Value| {
            patch(result, answer);
            Ok(ControlFlow::Continue(()))
        };
        let _ = dispatcher.each(&mut result, payload, take).await;
        result
    })
    .await
}

/// Field by field, no deep merge; new content without structured content drops the latter (T4).
fn patch(result: &mut ToolResult, answer: Value) {
    let Value::Object(mut answer) = answer else {
        return;
    };
    let structured = answer
        .remove("structuredContent")
        .filter(|value| !value.is_null());
    if let Some(content) = answer
        .remove("content")
        .and_then(|value| serde_json::from_value(value).ok())
    {
        result.content = content;
        result.structured_content = None;
    }
    if structured.is_some() {
        result.structured_content = structured;
    }
    if let Some(details) = answer.remove("details").filter(|value| !value.is_null()) {
        result.details = Some(details);
    }
    if let Some(is_error) = answer.get("isError").and_then(Value::as_bool) {
        result.is_error = is_error;
    }
    if let Some(usage) = answer
        .remove("usage")
        .and_then(|value| serde_json::from_value(value).ok())
    {
        result.usage = usage;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_content_without_structured_content_drops_the_latter() {
        // extensions §9.6
        let mut result = ToolResult::text("a").with_structured(json!(1));
        patch(&mut result, json!({"isError": true}));
        assert_eq!(
            (result.is_error, result.structured_content.clone()),
            (true, Some(json!(1)))
        );
        patch(
            &mut result,
            json!({"content": [{"type": "text", "text": "b"}]}),
        );
        assert_eq!(
            (result.content[0].as_text(), result.structured_content),
            (Some("b"), None)
        );
    }
}

//! The hook points of a run: what each handler is shown, and what its answer changes
//! (`extensions.md` §3).

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use pliant_sdk::host::Host;
use pliant_sdk::message::{Message, ToolCall};
use pliant_sdk::plugin::CallCtx;
use pliant_sdk::tool::ToolResult;
use pliant_sdk::{Error, Event};
use serde_json::{Map, Value, json};

use super::RunHost;
use crate::agent::Verdict;
use crate::registry::{Dispatcher, HookPoint, Snapshot, Source};

/// Handlers are bounded in time; tools and commands are not (`extensions.md` §7.3).
pub(super) const HANDLER_LIMIT: Duration = Duration::from_secs(30);

/// Dispatches `point` on the current snapshot; `then` gets the dispatcher if anybody listens.
async fn with_handlers<H, T, F>(host: &H, point: HookPoint, nobody: T, then: F) -> T
where
    H: RunHost,
    F: for<'a> AsyncFnOnce(Dispatcher<'a>, T) -> T,
{
    let snapshot: Arc<Snapshot> = host.registry().snapshot();
    let ctx = |source: &Source| CallCtx::answer_only(Host::from_shared(host.services(source)));
    let report = |failure| host.report(failure);
    match Dispatcher::new(&snapshot, point, Some(HANDLER_LIMIT), &ctx, &report) {
        Some(dispatcher) => then(dispatcher, nobody).await,
        None => nobody,
    }
}

/// Tells handlers of an event that only notifies.
pub(super) async fn notify<H: RunHost>(host: &H, event: &Event) {
    let Some(point) = point_of(event) else { return };
    with_handlers(host, point, (), async |dispatcher, ()| {
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
pub(super) async fn message_end<H: RunHost>(host: &H, message: Message) -> Message {
    with_handlers(host, HookPoint::MessageEnd, message, async |dispatcher, mut message| {
        let payload = |message: &Message| json!({"type": "message_end", "message": message});
        let take = |message: &mut Message, mut answer: Value| {
            if let Some(replacement) = answer.get_mut("message").map(Value::take) {
                let replacement = Message::from(replacement);
                if replacement.role() == message.role() {
                    *message = replacement;
                } else {
                    tracing::warn!(target: "pliant::hooks", "a message_end handler changed the role; ignored");
                }
            }
            ControlFlow::Continue(())
        };
        // The point does not fail closed, so the dispatch has no failure of its own.
        let _ = dispatcher.each(&mut message, payload, take).await;
        message
    })
    .await
}

/// `tool_call`: handlers may change the arguments; the first block decides; a failing handler blocks
/// (T14).
pub(super) async fn tool_call<H: RunHost>(
    host: &H,
    call: &ToolCall,
    arguments: Map<String, Value>,
) -> Result<Verdict, Error> {
    with_handlers(host, HookPoint::ToolCall, Ok(Verdict::Run(arguments)), async |dispatcher, verdict| {
        let mut verdict = verdict?;
        let payload = |verdict: &Verdict| {
            let input = match verdict {
                Verdict::Run(input) => input.clone(),
                Verdict::Block { .. } => Map::new(),
            };
            json!({"type": "tool_call", "toolCallId": call.id, "toolName": call.name, "input": input})
        };
        let take = |verdict: &mut Verdict, mut answer: Value| {
            if let Some(Value::Object(input)) = answer.pointer_mut("/event/input").map(Value::take) {
                *verdict = Verdict::Run(input);
            }
            if answer.get("block") == Some(&Value::Bool(true)) {
                let reason = answer.get("reason").and_then(Value::as_str).map(str::to_owned);
                let terminate = answer.get("terminate") == Some(&Value::Bool(true));
                *verdict = Verdict::Block { reason, terminate };
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        match dispatcher.each(&mut verdict, payload, take).await {
            Ok(()) => Ok(verdict),
            Err(failure) => Err(Error::failed(format!(
                "The call was blocked, because a tool_call handler of \"{}\" failed: {}",
                failure.source.name, failure.error
            ))),
        }
    })
    .await
}

/// `tool_result`: a chain of patches (T15).
pub(super) async fn tool_result<H: RunHost>(
    host: &H,
    call: &ToolCall,
    arguments: &Map<String, Value>,
    result: ToolResult,
) -> ToolResult {
    with_handlers(host, HookPoint::ToolResult, result, async |dispatcher, mut result| {
        let payload = |result: &ToolResult| {
            json!({
                "type": "tool_result", "toolCallId": call.id, "toolName": call.name, "input": arguments,
                "content": result.content, "details": result.details,
                "structuredContent": result.structured_content, "isError": result.is_error,
            })
        };
        let take = |result: &mut ToolResult, answer: Value| {
            patch(result, answer);
            ControlFlow::Continue(())
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

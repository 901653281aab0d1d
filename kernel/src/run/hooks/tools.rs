//! Before and after a tool runs.

use std::ops::ControlFlow;

use pliant_sdk::Error;
use pliant_sdk::hook::ToolCallAnswer;
use pliant_sdk::message::ToolCall;
use pliant_sdk::tool::ToolResult;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::with_handlers;
use crate::agent::Verdict;
use crate::registry::HookPoint;
use crate::run::RunHost;

/// `tool_call`: handlers may change the arguments; the first block decides; a failing handler, and one
/// whose answer cannot be read, blocks (T14).
pub(in crate::run) async fn tool_call<H: RunHost>(
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
pub(in crate::run) async fn tool_result<H: RunHost>(
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

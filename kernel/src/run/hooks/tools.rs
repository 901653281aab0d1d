//! Before and after a tool runs.

use std::ops::ControlFlow;

use pliant_sdk::Error;
use pliant_sdk::hook::{ToolCallAnswer, ToolResultPatch};
use pliant_sdk::tool::ToolResult;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{with_handlers, withheld};
use crate::agent::{Call, Verdict};
use crate::registry::HookPoint;
use crate::run::RunHost;

/// `tool_call`: handlers may change the arguments; the first block decides; a failing handler, and one
/// whose answer cannot be read, blocks (T14).
pub(in crate::run) async fn tool_call<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
    call: &Call,
    arguments: Map<String, Value>,
) -> Result<Verdict, Error> {
    with_handlers(
        host,
        cancel,
        HookPoint::ToolCall,
        Ok(Verdict::Run(arguments)),
        async |dispatcher, verdict| {
            let mut verdict = verdict?;
            let payload = |verdict: &Verdict| {
                let input = match verdict {
                    Verdict::Run(input) => input.clone(),
                    Verdict::Block { .. } => Map::new(),
                };
                of_call(call, json!({"type": "tool_call", "input": input}))
            };
            match dispatcher.each(&mut verdict, payload, judge).await {
                Ok(()) => Ok(verdict),
                Err(failure) => Err(Error::failed(format!(
                    "The call was blocked, because a tool_call handler of \"{}\" failed: {}",
                    failure.source.name, failure.error
                ))),
            }
        },
    )
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
    match event.and_then(|mut event| event.get_mut("input").map(Value::take)) {
        None => {}
        Some(Value::Object(input)) => *verdict = Verdict::Run(input),
        // What the handler wanted in place of these arguments is not known, so they are not safe to run.
        Some(_) => return Err(Error::invalid("the input in its answer is not an object")),
    }
    if block {
        *verdict = Verdict::Block { reason, terminate };
        return Ok(ControlFlow::Break(()));
    }
    Ok(ControlFlow::Continue(()))
}

/// `tool_result`: a chain of patches (T15). What a handler had not finished with when the user gave up is
/// not stored as it was.
pub(in crate::run) async fn tool_result<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
    call: &Call,
    arguments: &Map<String, Value>,
    result: ToolResult,
) -> ToolResult {
    with_handlers(
        host,
        cancel,
        HookPoint::ToolResult,
        result,
        async |dispatcher, mut result| {
            let payload = |result: &ToolResult| {
                let mut payload = of_call(
                    call,
                    json!({
                        "type": "tool_result", "input": arguments, "content": result.content,
                        "details": result.details, "isError": result.is_error,
                    }),
                );
                if let Some(structured) = &result.structured_content {
                    payload["structuredContent"] = structured.clone();
                }
                if let Some(usage) = &result.usage {
                    payload["usage"] = json!(usage);
                }
                payload
            };
            let take = |result: &mut ToolResult, answer: Value| {
                patch(result, answer)?;
                Ok(ControlFlow::Continue(()))
            };
            match dispatcher.each(&mut result, payload, take).await {
                Ok(()) => result,
                Err(kept_from) => withheld::result(result, &kept_from),
            }
        },
    )
    .await
}

/// Adds what an event says of the call that it is about.
fn of_call(call: &Call, mut payload: Value) -> Value {
    payload["toolCallId"] = json!(call.asked.id);
    payload["toolName"] = json!(call.asked.name);
    if let Some(parent) = &call.parent {
        payload["parentToolCallId"] = json!(parent);
    }
    payload
}

/// Field by field, no deep merge; new content without structured content drops the latter (T4).
fn patch(result: &mut ToolResult, answer: Value) -> Result<(), Error> {
    let ToolResultPatch {
        content,
        details,
        structured_content,
        is_error,
        usage,
    } = serde_json::from_value(answer).map_err(|error| {
        Error::invalid(format!("its answer does not change the result: {error}"))
    })?;
    if let Some(content) = content {
        result.content = content;
        result.structured_content = None;
    }
    result.structured_content = structured_content.or(result.structured_content.take());
    result.details = details.or(result.details.take());
    result.is_error = is_error.unwrap_or(result.is_error);
    result.usage = usage.or(result.usage.take());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_content_without_structured_content_drops_the_latter() {
        // extensions §9.6
        let mut result = ToolResult::text("a").with_structured(json!(1));
        patch(&mut result, json!({"isError": true})).unwrap();
        assert_eq!(
            (result.is_error, result.structured_content.clone()),
            (true, Some(json!(1)))
        );
        patch(
            &mut result,
            json!({"content": [{"type": "text", "text": "b"}]}),
        )
        .unwrap();
        assert_eq!(
            (result.content[0].as_text(), result.structured_content),
            (Some("b"), None)
        );
    }

    #[test]
    fn arguments_that_cannot_be_used_are_a_failure_and_not_the_old_arguments() {
        // T14
        let mut verdict = Verdict::Run(Map::new());
        for wrong in [json!(3), json!(null), json!("rm"), json!([])] {
            judge(&mut verdict, json!({"event": {"input": wrong}})).unwrap_err();
        }
        assert_eq!(verdict, Verdict::Run(Map::new()));
        for nothing in [json!({}), json!({"event": null}), json!({"event": {}})] {
            assert!(judge(&mut verdict, nothing).unwrap().is_continue());
        }
        let edited = json!({"event": {"input": {"a": 1}}});
        assert!(judge(&mut verdict, edited).unwrap().is_continue());
        let Verdict::Run(input) = verdict else {
            panic!("it runs");
        };
        assert_eq!(Value::Object(input), json!({"a": 1}));
    }

    #[test]
    fn a_patch_of_another_shape_changes_nothing_and_is_a_failure_of_its_handler() {
        // T15
        let mut result = ToolResult::text("a");
        for wrong in [json!(3), json!({"content": 3}), json!({"isError": "yes"})] {
            patch(&mut result, wrong).unwrap_err();
        }
        assert_eq!(result, ToolResult::text("a"));
        patch(&mut result, json!({"content": "b"})).unwrap();
        assert_eq!(result, ToolResult::text("b"));
    }
}

//! What is stored of something that a handler had not finished with when its time after an abort was
//! over. It may have been about to take a secret out, so nothing is kept of what it was shown; what is
//! stored says so.

use pliant_sdk::Message;
use pliant_sdk::message::{AssistantMessage, Content, MessageContent, StopReason};
use pliant_sdk::tool::ToolResult;

use crate::registry::HandlerFailure;

/// The result of a call.
pub(super) fn result(result: ToolResult, by: &HandlerFailure) -> ToolResult {
    ToolResult {
        usage: result.usage,
        ..ToolResult::error(note("The result of this call", by))
    }
}

/// A message. What makes it part of the conversation stays, and so does a system message: it is the
/// kernel's own, and without it the model knows neither its prompt nor its tools.
pub(super) fn message(message: Message, by: &HandlerFailure) -> Message {
    let text = |what| MessageContent::Text(note(what, by));
    match message {
        Message::User(mut user) => {
            user.content = text("This message");
            user.extra.clear();
            Message::User(user)
        }
        Message::Custom(mut custom) => {
            custom.content = text("This message");
            custom.details = None;
            custom.extra.clear();
            Message::Custom(custom)
        }
        Message::ToolResult(mut result) => {
            result.content = vec![Content::text(note("The result of this call", by))];
            result.is_error = true;
            result.details = None;
            result.nested_calls = None;
            result.extra.clear();
            Message::ToolResult(result)
        }
        Message::Assistant(answer) => Message::Assistant(answer_of(answer, by)),
        other => other,
    }
}

/// Calls go with the rest: their arguments may hold what was to be taken out, and after an abort they
/// would not be run.
fn answer_of(answer: AssistantMessage, by: &HandlerFailure) -> AssistantMessage {
    let note = note("This answer", by);
    AssistantMessage {
        content: vec![Content::text(note.clone())],
        stop_reason: StopReason::Aborted,
        error_message: Some(note),
        api: answer.api,
        provider: answer.provider,
        model: answer.model,
        usage: answer.usage,
        timestamp: answer.timestamp,
        response_model: answer.response_model,
        thinking_level: answer.thinking_level,
        duration_ms: answer.duration_ms,
        ..AssistantMessage::default()
    }
}

fn note(what: &str, by: &HandlerFailure) -> String {
    let (event, extension) = (&by.event, &by.source.name);
    format!(
        "{what} is not kept: the run was aborted, and the {event} handler of \"{extension}\" did not \
         finish with it in time."
    )
}

#[cfg(test)]
mod tests {
    use pliant_sdk::Error;
    use serde_json::{Value, json};

    use super::*;
    use crate::registry::{Rank, Source};

    fn kept_of(shown: Value) -> Value {
        let by = HandlerFailure {
            source: Source::inline("redactor", Rank::User),
            event: "message_end".into(),
            error: Error::cancelled(),
        };
        serde_json::to_value(message(Message::from(shown), &by)).unwrap()
    }

    #[test]
    fn nothing_is_kept_of_what_a_handler_had_not_finished_with() {
        // R51, G7
        let text = json!([{"type": "text", "text": "SECRET"}]);
        let call =
            json!({"type": "toolCall", "id": "c", "name": "t", "arguments": {"a": "SECRET"}});
        for shown in [
            json!({"role": "user", "content": "SECRET", "note": "SECRET", "timestamp": 1}),
            json!({"role": "user", "content": text, "timestamp": 1}),
            json!({"role": "custom", "customType": "x", "content": text, "details": "SECRET",
                "display": true, "timestamp": 1}),
            json!({"role": "toolResult", "toolCallId": "c", "toolName": "t", "content": text,
                "details": {"a": "SECRET"}, "nestedCalls": {"calls": ["SECRET"]},
                "isError": false, "timestamp": 1}),
            json!({"role": "assistant", "content": [text[0], call], "api": "a", "provider": "p",
                "model": "m", "stopReason": "toolUse", "diagnostics": ["SECRET"], "timestamp": 1}),
        ] {
            let kept = kept_of(shown.clone());
            let written = kept.to_string();
            assert!(!written.contains("SECRET"), "{written}");
            assert!(written.contains("\\\"redactor\\\""), "{written}");
            assert_eq!(kept["role"], shown["role"]);
            assert_eq!(kept["toolCallId"], shown["toolCallId"]);
        }
    }

    #[test]
    fn prompt_and_tools_stay_whatever_becomes_of_the_rest() {
        // M9, invariant 14
        let system = json!({"role": "system", "content": "You are.", "timestamp": 1,
            "toolsAdded": [{"name": "t", "description": "d", "parameters": {}}]});
        assert_eq!(kept_of(system.clone()), system);
    }
}

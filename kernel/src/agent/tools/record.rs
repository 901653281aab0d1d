//! What the result of a call says of the calls made inside it, at any depth (T21): a list with limits,
//! and what they cost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pliant_sdk::message::{ToolCall, ToolResultMessage, Usage, joined_text};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::call::Finished;

const MOST_CALLS: usize = 256;
const BYTES_OF_A_CALL: usize = 8 << 10;
const BYTES_OF_ALL: usize = 32 << 10;
const ERROR_CHARS: usize = 500;

/// The calls made inside one call of the model.
#[derive(Debug, Clone, Default)]
pub(super) struct Record(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    calls: Vec<Line>,
    /// Of the arguments that are kept.
    bytes: usize,
    /// Something did not fit.
    cut: bool,
    /// Of all calls, also of those that did not fit.
    usage: Option<Usage>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    id: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments_bytes: Option<usize>,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Error,
    Unfinished,
}

/// The place of a call in the record; nowhere, when there were too many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place(Option<usize>);

impl Record {
    /// Takes a call down that begins.
    pub(super) fn begin(&self, call: &ToolCall) -> Place {
        let mut kept = self.kept();
        if kept.calls.len() == MOST_CALLS {
            kept.cut = true;
            return Place(None);
        }
        let bytes = serde_json::to_vec(&call.arguments).map_or(usize::MAX, |json| json.len());
        let fits = bytes <= BYTES_OF_A_CALL && kept.bytes + bytes <= BYTES_OF_ALL;
        if fits {
            kept.bytes += bytes;
        } else {
            kept.cut = true;
        }
        kept.calls.push(Line {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: fits.then(|| call.arguments.clone()),
            arguments_bytes: (!fits).then_some(bytes),
            status: Status::Unfinished,
            duration_ms: None,
            error: None,
        });
        Place(Some(kept.calls.len() - 1))
    }

    /// Takes down how it ended.
    pub(super) fn end(&self, place: Place, finished: &Finished) {
        let mut kept = self.kept();
        let result = &finished.result;
        if let Some(usage) = &result.usage {
            add_usage(&mut kept.usage, usage);
        }
        let error = result.is_error.then(|| joined_text(&result.content, "\n"));
        let short = error
            .as_ref()
            .map(|text| text.chars().take(ERROR_CHARS).collect::<String>());
        let Some(line) = place.0.and_then(|place| kept.calls.get_mut(place)) else {
            return;
        };
        line.status = if result.is_error {
            Status::Error
        } else {
            Status::Ok
        };
        line.duration_ms = finished.duration_ms;
        line.error.clone_from(&short);
        kept.cut |= short != error;
    }

    /// Adds the record, as it is now, to the result of the call that it belongs to.
    pub(super) fn attach(&self, message: &mut ToolResultMessage) {
        let kept = self.kept();
        if let Some(usage) = &kept.usage {
            add_usage(&mut message.usage, usage);
        }
        if kept.calls.is_empty() {
            return;
        }
        let unfinished = kept.calls.iter().any(|c| c.status == Status::Unfinished);
        let record = json!({"calls": kept.calls, "complete": !kept.cut && !unfinished});
        message.nested_calls = Some(record);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn add_usage(sum: &mut Option<Usage>, more: &Usage) {
    match sum {
        Some(sum) => sum.add(more),
        None => *sum = Some(more.clone()),
    }
}

#[cfg(test)]
mod tests {
    use pliant_sdk::tool::ToolResult;

    use super::*;

    fn call(id: usize, arguments: &str) -> ToolCall {
        ToolCall {
            id: id.to_string(),
            name: "t".into(),
            arguments: Map::from_iter([("a".to_owned(), json!(arguments))]),
            ..ToolCall::default()
        }
    }

    fn ended(result: ToolResult) -> Finished {
        Finished {
            duration_ms: Some(1),
            ..Finished::not_run(result)
        }
    }

    fn attached(record: &Record) -> Value {
        let mut message = ToolResultMessage::default();
        record.attach(&mut message);
        message.nested_calls.unwrap_or_default()
    }

    #[test]
    fn a_record_says_what_was_called_and_how_it_ended() {
        // T21
        let record = Record::default();
        assert_eq!(attached(&record), Value::Null);
        let place = record.begin(&call(1, "x"));
        assert_eq!(
            attached(&record),
            json!({"calls": [{"id": "1", "name": "t", "arguments": {"a": "x"}, "status": "unfinished"}], "complete": false})
        );
        record.end(place, &ended(ToolResult::text("fine")));
        let place = record.begin(&call(2, "y"));
        record.end(place, &Finished::not_run(ToolResult::error("no")));
        assert_eq!(
            attached(&record),
            json!({"calls": [
                {"id": "1", "name": "t", "arguments": {"a": "x"}, "status": "ok", "durationMs": 1},
                {"id": "2", "name": "t", "arguments": {"a": "y"}, "status": "error", "error": "no"},
            ], "complete": true})
        );
    }

    #[test]
    fn what_is_longer_than_the_limits_is_left_out_and_told() {
        // T21
        let record = Record::default();
        let place = record.begin(&call(1, &"x".repeat(9 << 10)));
        record.end(place, &ended(ToolResult::text("")));
        let json = attached(&record);
        assert_eq!(json["complete"], false);
        assert_eq!(json["calls"][0]["argumentsBytes"], (9 << 10) + 8);
        assert_eq!(json["calls"][0].get("arguments"), None);

        let record = Record::default();
        for id in 0..5 {
            let place = record.begin(&call(id, &"x".repeat(8000)));
            record.end(place, &ended(ToolResult::text("")));
        }
        let json = attached(&record);
        assert_eq!(json["complete"], false);
        assert!(json["calls"][3].get("arguments").is_some());
        assert_eq!(json["calls"][4]["argumentsBytes"], 8008);

        let record = Record::default();
        let place = record.begin(&call(1, "x"));
        record.end(place, &ended(ToolResult::error("é".repeat(501))));
        let json = attached(&record);
        assert_eq!(json["calls"][0]["error"], "é".repeat(500));
        assert_eq!(json["complete"], false);
    }

    #[test]
    fn what_calls_cost_is_added_also_of_those_that_are_not_listed() {
        // T21
        let record = Record::default();
        let usage = Usage {
            output: 2,
            ..Usage::default()
        };
        for id in 0..300 {
            let place = record.begin(&call(id, "x"));
            let result = ToolResult {
                usage: Some(usage.clone()),
                ..ToolResult::default()
            };
            record.end(place, &ended(result));
        }
        let mut message = ToolResultMessage {
            usage: Some(usage),
            ..ToolResultMessage::default()
        };
        record.attach(&mut message);
        assert_eq!(message.usage.unwrap().output, 602);
        let json = message.nested_calls.unwrap();
        assert_eq!(json["calls"].as_array().unwrap().len(), 256);
        assert_eq!(json["complete"], false);
    }
}

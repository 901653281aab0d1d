//! One event of the stream as a value. Well-typed events, nearly all of them, are read in one pass that
//! borrows their texts; others go through a JSON value and keep what can be understood.

use std::borrow::Cow;

use pliant_sdk::partial_json::parse_or_repair;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A text that is borrowed from the event unless it has escapes.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Event<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Option<Text<'a>>,
    pub(crate) index: Option<u64>,
    #[serde(borrow)]
    pub(crate) delta: Option<Delta<'a>>,
    pub(crate) content_block: Option<Map<String, Value>>,
    pub(crate) message: Option<Map<String, Value>>,
    pub(crate) usage: Option<Value>,
    pub(crate) input_transformations: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) thinking: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) partial_json: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) signature: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) stop_reason: Option<Text<'a>>,
    pub(crate) stop_details: Option<Value>,
}

/// Reads the data of an event and hands it to `use_it`; data that is no object is skipped.
///
/// # Errors
/// It is not JSON, even after repair; the words are the parser's.
pub(crate) fn read<R>(
    data: &str,
    use_it: impl FnOnce(Event<'_>) -> R,
) -> Result<Option<R>, serde_json::Error> {
    // A struct could also be read from an array.
    if data.trim_start().starts_with('{')
        && let Ok(event) = serde_json::from_str(data)
    {
        return Ok(Some(use_it(event)));
    }
    let value = parse_or_repair(data)?;
    Ok(value.as_object().map(|event| use_it(lenient(event))))
}

fn lenient(event: &Map<String, Value>) -> Event<'_> {
    let object = |name| event.get(name).and_then(Value::as_object);
    let index = event.get("index");
    Event {
        kind: text(event.get("type")),
        index: index.and_then(|index| index.as_u64().or_else(|| index.as_str()?.parse().ok())),
        delta: object("delta").map(lenient_delta),
        content_block: object("content_block").cloned(),
        message: object("message").cloned(),
        usage: event.get("usage").cloned(),
        input_transformations: event.get("input_transformations").cloned(),
    }
}

fn lenient_delta(delta: &Map<String, Value>) -> Delta<'_> {
    let word = |name| text(delta.get(name));
    Delta {
        kind: word("type"),
        text: word("text"),
        thinking: word("thinking"),
        partial_json: word("partial_json"),
        signature: word("signature"),
        stop_reason: word("stop_reason"),
        stop_details: delta.get("stop_details").cloned(),
    }
}

fn text(value: Option<&Value>) -> Option<Text<'_>> {
    Some(Text(Cow::Borrowed(value?.as_str()?)))
}

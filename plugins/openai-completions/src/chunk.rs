//! One event of the stream as a value. Well-typed chunks, nearly all of them, are read in one pass
//! that borrows their texts; others go through a JSON value and keep what can be understood.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use pliant_sdk::partial_json::parse_or_repair;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A text that is borrowed from the event unless it has escapes.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Chunk<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) model: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) choices: Option<First<Choice<'a>>>,
    // Boxed, as elsewhere what is rare and large: a chunk is moved several times while it is read.
    pub(crate) usage: Option<Box<Value>>,
    pub(crate) error: Option<Box<Value>>,
}

/// The first of a list, if it has one; no more than one answer was asked for.
#[derive(Debug)]
pub(crate) struct First<T>(pub(crate) Option<T>);

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Choice<'a> {
    #[serde(borrow)]
    pub(crate) finish_reason: Option<Text<'a>>,
    pub(crate) usage: Option<Box<Value>>,
    #[serde(borrow)]
    pub(crate) delta: Option<Delta<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Delta<'a> {
    #[serde(borrow)]
    pub(crate) content: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) reasoning_content: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) reasoning: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) reasoning_text: Option<Text<'a>>,
    pub(crate) reasoning_details: Option<Vec<Map<String, Value>>>,
    #[serde(borrow)]
    pub(crate) tool_calls: Option<Vec<Fragment<'a>>>,
}

/// A piece of a tool call.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Fragment<'a> {
    pub(crate) index: Option<u64>,
    #[serde(borrow)]
    pub(crate) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) function: Option<Function<'a>>,
    #[serde(borrow)]
    pub(crate) custom: Option<Custom<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Function<'a> {
    #[serde(borrow)]
    pub(crate) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) arguments: Option<Text<'a>>,
}

/// A call of a grammar tool: free text instead of JSON.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Custom<'a> {
    #[serde(borrow)]
    pub(crate) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) input: Option<Text<'a>>,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(FirstVisitor(PhantomData))
    }
}

struct FirstVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FirstVisitor<T> {
    type Value = First<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<First<T>, A::Error> {
        let first = list.next_element()?;
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(First(first))
    }
}

/// Not JSON, even after repair.
#[derive(Debug)]
pub(crate) struct Malformed;

/// Reads the data of an event and hands the chunk to `use_it`; data that is no object is skipped.
pub(crate) fn read<R>(
    data: &str,
    use_it: impl FnOnce(Chunk<'_>) -> R,
) -> Result<Option<R>, Malformed> {
    if data.trim().is_empty() {
        return Ok(None);
    }
    // A struct could also be read from an array.
    if data.trim_start().starts_with('{')
        && let Ok(chunk) = serde_json::from_str(data)
    {
        return Ok(Some(use_it(chunk)));
    }
    let value = parse_or_repair(data).map_err(|_| Malformed)?;
    Ok(value.as_object().map(|chunk| use_it(lenient(chunk))))
}

fn lenient(chunk: &Map<String, Value>) -> Chunk<'_> {
    let choices = chunk.get("choices").and_then(Value::as_array);
    Chunk {
        id: text(chunk.get("id")),
        model: text(chunk.get("model")),
        choices: choices.map(|choices| First(choices.first().map(lenient_choice))),
        usage: present(chunk.get("usage")),
        error: present(chunk.get("error")),
    }
}

fn lenient_choice(choice: &Value) -> Choice<'_> {
    Choice {
        finish_reason: text(choice.get("finish_reason")),
        usage: present(choice.get("usage")),
        delta: choice.get("delta").map(lenient_delta),
    }
}

fn lenient_delta(delta: &Value) -> Delta<'_> {
    let details = delta.get("reasoning_details").and_then(Value::as_array);
    let calls = delta.get("tool_calls").and_then(Value::as_array);
    Delta {
        content: content(delta.get("content")),
        reasoning_content: text(delta.get("reasoning_content")),
        reasoning: text(delta.get("reasoning")),
        reasoning_text: text(delta.get("reasoning_text")),
        reasoning_details: details.map(|details| {
            let objects = details.iter().filter_map(Value::as_object);
            objects.cloned().collect()
        }),
        tool_calls: calls.map(|calls| calls.iter().map(lenient_fragment).collect()),
    }
}

fn lenient_fragment(fragment: &Value) -> Fragment<'_> {
    let index = fragment.get("index");
    let function = fragment.get("function").filter(|value| value.is_object());
    let custom = fragment.get("custom").filter(|value| value.is_object());
    Fragment {
        index: index.and_then(|index| index.as_u64().or_else(|| index.as_str()?.parse().ok())),
        id: text(fragment.get("id")),
        function: function.map(|function| Function {
            name: text(function.get("name")),
            arguments: arguments(function.get("arguments")),
        }),
        custom: custom.map(|custom| Custom {
            name: text(custom.get("name")),
            input: text(custom.get("input")),
        }),
    }
}

fn present(value: Option<&Value>) -> Option<Box<Value>> {
    value
        .filter(|value| !value.is_null())
        .cloned()
        .map(Box::new)
}

fn text(value: Option<&Value>) -> Option<Text<'_>> {
    Some(Text(Cow::Borrowed(value?.as_str()?)))
}

/// Some services send content as parts.
fn content(value: Option<&Value>) -> Option<Text<'_>> {
    let Some(Value::Array(parts)) = value else {
        return text(value);
    };
    let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
    Some(Text(Cow::Owned(texts.collect())))
}

/// Some services send arguments as an object, and whole.
fn arguments(value: Option<&Value>) -> Option<Text<'_>> {
    match value {
        Some(object @ Value::Object(_)) => Some(Text(Cow::Owned(object.to_string()))),
        value => text(value),
    }
}

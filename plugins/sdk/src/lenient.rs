//! Tolerant reading of stored and foreign JSON: a field of the wrong type reads as its default
//! instead of making the whole message unreadable (`kernel.md` M8, M18). Writing is exact.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serializer};
use serde_json::Value;

use crate::message::Content;

/// Reads `T`, or its default when the value has another shape.
pub(crate) fn field<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    Ok(T::deserialize(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// Reads a list and drops only the elements that do not fit.
pub(crate) fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Ok(match Value::deserialize(deserializer)? {
        Value::Array(items) => items
            .into_iter()
            .filter_map(|v| T::deserialize(v).ok())
            .collect(),
        _ => Vec::new(),
    })
}

/// Reads the content of a result: blocks, one text, or nothing. Anything else is its author's mistake.
pub(crate) fn content<'de, D>(deserializer: D) -> Result<Vec<Content>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(new_content(deserializer)?.unwrap_or_default())
}

/// As [`content`], where null means that it stays.
pub(crate) fn new_content<'de, D>(deserializer: D) -> Result<Option<Vec<Content>>, D::Error>
where
    D: Deserializer<'de>,
{
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(vec![Content::text(text)])),
        Value::Array(items) => Ok(Some(items.into_iter().map(Content::from).collect())),
        _ => Err(D::Error::custom(
            "`content` is neither a text nor a list of blocks",
        )),
    }
}

/// Reads a whole number from any JSON number, else 0. JavaScript writes `1e3` and `3.0` too.
pub(crate) fn integer<'de, D>(deserializer: D) -> Result<i64, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(number(&Value::deserialize(deserializer)?))
}

/// As [`integer`], never negative.
pub(crate) fn count<'de, D>(deserializer: D) -> Result<u64, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(number(&Value::deserialize(deserializer)?)
        .max(0)
        .unsigned_abs())
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "saturating is what an absurd count deserves"
)]
fn number(value: &Value) -> i64 {
    value
        .as_i64()
        .or_else(|| value.as_f64().map(|f| f as i64))
        .unwrap_or(0)
}

/// Writes a float the way JavaScript does: a whole number has no fraction (`15`, not `15.0`), so
/// that files and cached prompt prefixes stay equal byte for byte (`providers.md` §11).
#[expect(
    clippy::cast_possible_truncation,
    reason = "guarded by the range check"
)]
pub(crate) fn js_number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 {
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

//! JSON as other programs write it. Strict reading first; what only JavaScript accepts is mended and
//! read again (`kernel.md` S17). Objects can be changed field by field while every other byte of
//! them stays (M7).

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// The strict parser stops at 128.
const DEPTH_LIMIT: usize = 120;

/// Reads the fields of an object; `None` when the text is not one even after mending.
pub(super) fn fields(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text)
        .ok()
        .or_else(|| serde_json::from_str(&mend(text)?).ok())
}

/// The text of an object that strict readers take as well; `None` when it is none even then.
pub(super) fn strict(text: &str) -> Option<String> {
    // Nothing less than a value is read with all its escapes and numbers.
    let is_object = |text: &str| serde_json::from_str::<Map<String, Value>>(text).is_ok();
    if is_object(text) {
        return Some(text.to_owned());
    }
    mend(text).filter(|mended| is_object(mended))
}

/// An object whose values are kept as they are written.
pub(super) struct RawObject(Vec<(String, Box<RawValue>)>);

impl RawObject {
    pub(super) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text)
            .ok()
            .or_else(|| serde_json::from_str(&mend(text)?).ok())
    }

    pub(super) fn get(&self, key: &str) -> Option<&RawValue> {
        self.0
            .iter()
            .rev()
            .find(|(name, _)| name == key)
            .map(|(_, value)| &**value)
    }

    /// Replaces the value in its place, or inserts it after `after`.
    pub(super) fn set(&mut self, key: &str, value: impl Serialize, after: &str) {
        let Ok(value) = to_raw_value(&value) else {
            return;
        };
        if let Some((_, old)) = self.0.iter_mut().rev().find(|(name, _)| name == key) {
            *old = value;
            return;
        }
        let at = self
            .0
            .iter()
            .position(|(name, _)| name == after)
            .map_or(0, |at| at + 1);
        self.0.insert(at, (key.to_owned(), value));
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.0.retain(|(name, _)| name != key);
    }

    /// The object on one line, without a line feed at its end.
    pub(super) fn to_line(&self) -> String {
        // Writing text that was just read into memory has nothing left that can fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Serialize for RawObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = RawObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(RawObject(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// The text with what the strict parser refuses but JavaScript writes or reads replaced: escaped
/// halves of surrogate pairs become U+FFFD, values nested too deep and numbers too large become
/// null. Control characters in strings, which neither takes, become escapes. `None` when there was nothing to replace.
pub(super) fn mend(text: &str) -> Option<String> {
    let mut mender = Mender {
        text,
        at: 0,
        out: String::new(),
        copied: 0,
        depth: 0,
    };
    while let Some(&byte) = text.as_bytes().get(mender.at) {
        match byte {
            b'"' => mender.string(),
            b'{' | b'[' if mender.depth == DEPTH_LIMIT => mender.too_deep(),
            b'{' | b'[' => mender.step(1),
            b'}' | b']' => mender.step(-1),
            b'-' | b'0'..=b'9' => mender.number(),
            _ => mender.at += 1,
        }
    }
    (mender.copied > 0).then(|| mender.out + &text[mender.copied..])
}

/// Invariant: `copied` and every replaced range lie on ASCII bytes, so slicing never splits a
/// character.
struct Mender<'a> {
    text: &'a str,
    at: usize,
    out: String,
    copied: usize,
    depth: usize,
}

impl Mender<'_> {
    fn step(&mut self, by: isize) {
        self.depth = self.depth.saturating_add_signed(by);
        self.at += 1;
    }

    fn replace(&mut self, from: usize, to: usize, with: &str) {
        self.out.push_str(&self.text[self.copied..from]);
        self.out.push_str(with);
        self.copied = to;
        self.at = to;
    }

    fn string(&mut self) {
        self.at += 1;
        while let Some(&byte) = self.text.as_bytes().get(self.at) {
            match byte {
                b'"' => {
                    self.at += 1;
                    return;
                }
                b'\\' => self.escape(),
                0..b' ' => {
                    let escape = format!("\\u{byte:04x}");
                    self.replace(self.at, self.at + 1, &escape);
                }
                _ => self.at += 1,
            }
        }
    }

    fn escape(&mut self) {
        let at = self.at;
        match self.code_unit(at) {
            Some(0xd800..=0xdbff) if matches!(self.code_unit(at + 6), Some(0xdc00..=0xdfff)) => {
                self.at += 12;
            }
            Some(0xd800..=0xdfff) => self.replace(at, at + 6, "\\ufffd"),
            Some(_) => self.at += 6,
            // An escaped character of several bytes is not JSON; its later bytes pass as text.
            None => self.at += 2,
        }
    }

    /// The code unit of an escape `\uXXXX` at this place.
    fn code_unit(&self, at: usize) -> Option<u16> {
        let digits = self.text.as_bytes().get(at..at + 6)?.strip_prefix(b"\\u")?;
        let digits = std::str::from_utf8(digits).ok()?;
        let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
        plain.then(|| u16::from_str_radix(digits, 16).ok())?
    }

    fn number(&mut self) {
        let from = self.at;
        let is_part = |b: &u8| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        self.at += self.text.as_bytes()[from..]
            .iter()
            .take_while(|b| is_part(b))
            .count();
        if self.text[from..self.at]
            .parse::<f64>()
            .is_ok_and(f64::is_infinite)
        {
            self.replace(from, self.at, "null");
        }
    }

    /// Skips a whole object or list and writes null for it.
    fn too_deep(&mut self) {
        let from = self.at;
        let outside = self.depth;
        while let Some(&byte) = self.text.as_bytes().get(self.at) {
            match byte {
                b'"' => self.skip_string(),
                b'{' | b'[' => self.step(1),
                b'}' | b']' => self.step(-1),
                _ => self.at += 1,
            }
            if self.depth <= outside {
                self.replace(from, self.at, "null");
                return;
            }
        }
    }

    fn skip_string(&mut self) {
        self.at += 1;
        while let Some(&byte) = self.text.as_bytes().get(self.at) {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                return;
            }
        }
    }
}

/// Takes a text field out; a missing or ill-typed one is empty.
pub(super) fn take_text(fields: &mut Map<String, Value>, key: &str) -> String {
    match fields.get_mut(key) {
        Some(Value::String(text)) => std::mem::take(text),
        _ => String::new(),
    }
}

/// Takes a field out if it is there and not null.
pub(super) fn take(fields: &mut Map<String, Value>, key: &str) -> Option<Value> {
    fields
        .get_mut(key)
        .map(Value::take)
        .filter(|value| !value.is_null())
}

/// The JSON text of a string value, or `None` for other values.
pub(super) fn raw_text(value: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str(value.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_become_replacement_characters_and_pairs_stay() {
        // S17
        let text = r#"{"a":"\ud800","b":"\ud83d\ude00","c":"x\udc00\\ud800","\udfff":1}"#;
        let fields = fields(text).unwrap();
        assert_eq!(fields["a"], "\u{fffd}");
        assert_eq!(fields["b"], "😀");
        assert_eq!(fields["c"], "x\u{fffd}\\ud800");
        assert_eq!(fields["\u{fffd}"], 1);
    }

    #[test]
    fn deep_values_and_endless_numbers_become_null() {
        let deep = format!(
            r#"{{"a":{}"]"{},"b":1e999,"c":-2}}"#,
            "[".repeat(9000),
            "]".repeat(9000)
        );
        let fields = fields(&deep).unwrap();
        assert_eq!(
            (&fields["b"], &fields["c"]),
            (&Value::Null, &Value::from(-2))
        );
        assert!(fields["a"].is_array());
    }

    #[test]
    fn mending_leaves_valid_text_alone_and_survives_any_text() {
        assert_eq!(mend(r#"{"a":["\ud83d\ude00",1.5e3,"é"]}"#), None);
        for text in [
            "",
            "\"",
            "\"\\",
            "\"\\é\"",
            "\\u",
            "\"\\ud8",
            "}}]]",
            "1e999",
            "\"\\ud800é\"",
        ] {
            let _ = mend(text);
        }
        assert!(fields(r#"{"torn":"#).is_none());
    }

    #[test]
    fn changing_a_field_keeps_the_other_bytes() {
        // M7
        let mut object =
            RawObject::parse(r#"{"type": "x", "n": 1.50, "s":"\ud800","id":"a"}"#).unwrap();
        object.set("id", "b", "type");
        object.set("parentId", Value::Null, "type");
        assert_eq!(
            object.to_line(),
            r#"{"type":"x","parentId":null,"n":1.50,"s":"\ud800","id":"b"}"#
        );
    }
}

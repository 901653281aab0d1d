//! JSON ⇄ script values. `null` is `()`, integers stay integers (beyond 64 bits they become
//! floats), map keys are sorted.

use pliant_sdk::Error;
use rhai::Dynamic;
use serde::de::DeserializeOwned;
use serde::ser::{Error as _, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use crate::call::{ScriptResult, fail};

/// What serde_json also allows; deeper values cannot be read back.
const MAX_DEPTH: u8 = 127;

/// Reads JSON.
pub(crate) fn from_json(bytes: &[u8]) -> Result<Dynamic, Error> {
    Ok(serde_json::from_slice(bytes)?)
}

/// Any serialisable value as a script sees it.
pub(crate) fn to_dynamic(value: impl Serialize) -> ScriptResult<Dynamic> {
    rhai::serde::to_dynamic(value)
}

/// Writes JSON.
///
/// # Errors
/// For values without a JSON form: functions, blobs, host objects.
pub(crate) fn to_json(value: &Dynamic) -> ScriptResult<Vec<u8>> {
    serde_json::to_vec(&Json::new(value)).map_err(|error| fail(plain(&error)))
}

/// A script value as a typed one.
pub(crate) fn to_typed<T: DeserializeOwned>(value: &Dynamic) -> ScriptResult<T> {
    let json = to_json(value)?;
    serde_json::from_slice(&json).map_err(|error| fail(plain(&error)))
}

/// Without "at line 1 column 7", which is a place in a text that nobody sees.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Serialises a script value. Rhai's own implementation writes functions and host objects as their
/// names, which hides mistakes.
pub(crate) struct Json<'a> {
    value: &'a Dynamic,
    depth: u8,
}

impl<'a> Json<'a> {
    pub(crate) fn new(value: &'a Dynamic) -> Self {
        Self { value, depth: 0 }
    }

    fn nested<'b>(&self, value: &'b Dynamic) -> Json<'b> {
        Json {
            value,
            depth: self.depth + 1,
        }
    }
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let value = self.value;
        if self.depth > MAX_DEPTH {
            return Err(S::Error::custom("the value is nested too deeply for JSON"));
        }
        if value.is_shared() {
            let Some(inner) = value.read_lock::<Dynamic>() else {
                return Err(S::Error::custom("the value is in use by another call"));
            };
            return self.nested(&inner).serialize(out);
        }
        if value.is_unit() {
            out.serialize_unit()
        } else if let Ok(text) = value.as_immutable_string_ref() {
            out.serialize_str(&text)
        } else if let Ok(number) = value.as_int() {
            out.serialize_i64(number)
        } else if let Ok(flag) = value.as_bool() {
            out.serialize_bool(flag)
        } else if let Ok(map) = value.as_map_ref() {
            let mut entries = out.serialize_map(Some(map.len()))?;
            for (key, value) in map.iter() {
                entries.serialize_entry(key.as_str(), &self.nested(value))?;
            }
            entries.end()
        } else if let Ok(array) = value.as_array_ref() {
            let mut items = out.serialize_seq(Some(array.len()))?;
            for value in array.iter() {
                items.serialize_element(&self.nested(value))?;
            }
            items.end()
        } else if let Ok(number) = value.as_float() {
            out.serialize_f64(number)
        } else if let Ok(letter) = value.as_char() {
            out.serialize_char(letter)
        } else {
            Err(S::Error::custom(format!(
                "a {} has no JSON form",
                kind_of(value)
            )))
        }
    }
}

/// The type of a value in an author's words.
pub(crate) fn kind_of(value: &Dynamic) -> &str {
    match value.type_name() {
        "()" => "nothing",
        "i64" => "number",
        "f64" => "number",
        "Fn" => "function",
        name if name.contains("::") => name.rsplit("::").next().unwrap_or(name),
        name => name,
    }
}

/// The kind of a value, as it stands in a sentence.
pub(crate) fn a_kind_of(value: &Dynamic) -> String {
    match kind_of(value) {
        "nothing" => "nothing".to_owned(),
        kind if kind.starts_with(['a', 'e', 'i', 'o', 'u']) => format!("an {kind}"),
        kind => format!("a {kind}"),
    }
}

/// One text as a script shows it: strings and letters as they are, the rest as JSON where it has one.
pub(crate) fn display(value: &Dynamic) -> String {
    if let Ok(text) = value.as_immutable_string_ref() {
        return text.to_string();
    }
    if let Ok(letter) = value.as_char() {
        return letter.to_string();
    }
    serde_json::to_string(&Json::new(value)).unwrap_or_else(|_| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(json: &str) -> String {
        let value = from_json(json.as_bytes()).unwrap();
        String::from_utf8(to_json(&value).unwrap()).unwrap()
    }

    #[test]
    fn json_survives_with_its_number_types() {
        for json in [
            "null",
            "true",
            "1",
            "-9223372036854775808",
            "1.0",
            "0.5",
            r#""ä\n""#,
            "[]",
            r#"{"a":null,"b":[1,2.5,"x"],"c":{}}"#,
        ] {
            assert_eq!(there_and_back(json), json);
        }
        assert_eq!(
            there_and_back("18446744073709551615"),
            "1.8446744073709552e+19"
        );
        assert_eq!(there_and_back(r#"{"b":1,"a":2}"#), r#"{"a":2,"b":1}"#);
    }

    #[test]
    fn values_without_a_json_form_are_refused_by_name() {
        let error = to_json(&Dynamic::from(rhai::FnPtr::new("f").unwrap())).unwrap_err();
        assert!(error.to_string().contains("a function has no JSON form"));
    }

    #[test]
    fn typed_values_become_maps() {
        let call = pliant_sdk::message::ToolCall {
            id: "1".into(),
            ..Default::default()
        };
        let value = to_dynamic(&call).unwrap();
        assert_eq!(display(&value), r#"{"arguments":{},"id":"1","name":""}"#);
        let counted = to_dynamic(pliant_sdk::message::Usage::default()).unwrap();
        assert!(display(&counted).contains(r#""input":0,"#));
    }
}

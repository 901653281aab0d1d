//! A line as a command, and its answer. Exactly one answer follows each command, whatever becomes of it
//! (`interfaces.md` §8.1).

use std::collections::HashMap;

use pliant_sdk::partial_json::repair_json;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::input::Line;
use super::output::Records;

/// What a program sends.
pub enum Request {
    /// Something to do.
    Command(Command),
    /// The answer to a dialog of a plugin.
    DialogAnswer(Fields),
}

/// A command as it was sent.
pub struct Command {
    /// Its name.
    pub name: String,
    /// Whatever the program calls it, as it was written.
    id: Option<Box<RawValue>>,
    /// All of it.
    pub fields: Fields,
}

/// The fields of a record; of two with one name the later counts.
pub struct Fields(HashMap<String, Box<RawValue>>);

/// Why a line is no request.
pub struct Refusal {
    id: Option<Box<RawValue>>,
    error: String,
}

impl Request {
    /// Reads a line.
    ///
    /// # Errors
    /// What the program is told of a line that says nothing.
    pub fn read(line: Line) -> Result<Self, Refusal> {
        let refusal = |id, cause: &str| Refusal {
            id,
            error: format!("Failed to parse command: {cause}"),
        };
        let Line::Bytes(bytes) = line else {
            return Err(refusal(None, "the line is longer than 512 MiB."));
        };
        if bytes.trim_ascii().is_empty() {
            return Err(refusal(None, "the line is empty."));
        }
        let whole: &RawValue = serde_json::from_slice(&bytes)
            .map_err(|error| refusal(None, &format!("it is not JSON: {error}.")))?;
        if !whole.get().starts_with('{') {
            return Err(refusal(None, "it is not a JSON object."));
        }
        let fields: HashMap<String, Box<RawValue>> = serde_json::from_str(whole.get())
            .map_err(|error| refusal(None, &format!("it cannot be read: {error}.")))?;
        let fields = Fields(fields);
        let id = fields.0.get("id").cloned();
        let Ok(Some(name)) = fields.optional::<String>("type") else {
            return Err(refusal(id, "it has no \"type\" that is a text."));
        };
        if name == "extension_ui_response" {
            return Ok(Self::DialogAnswer(fields));
        }
        Ok(Self::Command(Command { name, id, fields }))
    }
}

impl Refusal {
    /// Tells the program.
    pub fn tell(self, records: &Records) {
        let reply = Reply {
            name: "parse".to_owned(),
            id: self.id,
            way: Some(records.clone()),
        };
        reply.failure(&self.error);
    }
}

impl Command {
    /// What the program calls it.
    pub fn id(&self) -> Option<Value> {
        self.id
            .as_ref()
            .and_then(|id| serde_json::from_str(id.get()).ok())
    }
}

impl Fields {
    /// A field that must be there.
    ///
    /// # Errors
    /// What is missing or wrong, for the program.
    pub fn required<T: DeserializeOwned>(&self, name: &str) -> Result<T, String> {
        self.optional(name)?
            .ok_or_else(|| format!("The field \"{name}\" is missing."))
    }

    /// A field that may be missing or null.
    ///
    /// # Errors
    /// What is wrong with it, for the program.
    pub fn optional<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, String> {
        let Some(value) = self.0.get(name) else {
            return Ok(None);
        };
        // Halves of surrogate pairs, which JavaScript writes, are no text; the rest of it was checked.
        serde_json::from_str(&repair_json(value.get()))
            .map_err(|error| format!("The field \"{name}\" cannot be read: {error}."))
    }
}

/// What a command answers: data as JSON, or nothing but that it was done.
#[derive(Debug, Default)]
pub struct Data(Option<Vec<u8>>);

impl Data {
    /// It was done.
    pub fn none() -> Self {
        Self::default()
    }

    /// This.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn of(data: &impl Serialize) -> Result<Self, String> {
        let json = serde_json::to_vec(data).map_err(|error| error.to_string())?;
        Ok(Self(Some(json)))
    }

    /// This, which is JSON.
    pub fn json(json: Vec<u8>) -> Self {
        Self(Some(json))
    }
}

/// The answer that a command owes. One that is forgotten is a failure.
pub struct Reply {
    name: String,
    id: Option<Box<RawValue>>,
    /// Until it has been given.
    way: Option<Records>,
}

impl Reply {
    /// For a command.
    pub fn to(command: &Command, records: Records) -> Self {
        Self {
            name: command.name.clone(),
            id: command.id.clone(),
            way: Some(records),
        }
    }

    /// It was done.
    pub fn success(self, data: Data) {
        let data = data.0.map(|json| [b",\"data\":", &json[..]].concat());
        self.send(true, &data.unwrap_or_default());
    }

    /// It was not done.
    pub fn failure(self, error: &str) {
        let error = format!(",\"error\":{}", json!(error));
        self.send(false, error.as_bytes());
    }

    fn send(mut self, success: bool, rest: &[u8]) {
        self.put(success, rest);
    }

    fn put(&mut self, success: bool, rest: &[u8]) {
        let Some(records) = self.way.take() else {
            return;
        };
        let id = self
            .id
            .as_ref()
            .map_or_else(String::new, |id| format!("\"id\":{},", id.get()));
        let head = format!(
            "{{{id}\"type\":\"response\",\"command\":{},\"success\":{success}",
            json!(self.name)
        );
        let mut line = Vec::with_capacity(head.len() + rest.len() + 2);
        line.extend_from_slice(head.as_bytes());
        line.extend_from_slice(rest);
        line.extend_from_slice(b"}\n");
        records.put(line);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if self.way.is_some() {
            let error = json!("The command was given up before it had an answer.");
            self.put(false, format!(",\"error\":{error}").as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Request, Refusal> {
        Request::read(Line::Bytes(line.as_bytes().to_vec()))
    }

    #[test]
    fn whatever_is_no_command_is_refused_with_its_id() {
        // interfaces §8.1, §17
        for line in [
            "null",
            "7",
            "[1,2]",
            "\"x\"",
            "",
            "  ",
            "{",
            "{\"type\":\"x\"",
            "\u{feff}{}",
        ] {
            let Err(refusal) = read(line) else {
                panic!("{line} was taken");
            };
            assert!(refusal.id.is_none(), "{line}");
        }
        for line in [
            r#"{"id":"a"}"#,
            r#"{"id":"a","type":7}"#,
            r#"{"id":"a","type":null}"#,
        ] {
            let Err(refusal) = read(line) else {
                panic!("{line} was taken");
            };
            assert_eq!(refusal.id.unwrap().get(), "\"a\"");
        }
        let deep = format!("{{\"type\":\"x\",\"a\":{}}}", "[".repeat(100_000));
        assert!(read(&deep).is_err());
        let invalid = Line::Bytes(vec![b'"', 0xff, b'"']);
        assert!(Request::read(invalid).is_err());
        assert!(Request::read(Line::TooLong).is_err());
    }

    #[test]
    fn an_id_is_kept_as_it_was_written() {
        let line = r#"{"type":"get_state","id":123456789012345678901234567890,"type":"abort"}"#;
        let Ok(Request::Command(command)) = read(line) else {
            panic!("it is a command");
        };
        assert_eq!(command.name, "abort");
        assert_eq!(command.id.unwrap().get(), "123456789012345678901234567890");
    }

    #[test]
    fn half_a_surrogate_pair_is_a_replacement_character_and_a_pair_stays() {
        let line = r#"{"type":"prompt","message":"a\ud800b \ud83d\ude00 \udc00"}"#;
        let Ok(Request::Command(command)) = read(line) else {
            panic!("it is a command");
        };
        let message: String = command.fields.required("message").unwrap();
        assert_eq!(message, "a\u{fffd}b \u{1f600} \u{fffd}");
    }

    #[test]
    fn a_field_of_the_wrong_type_is_named() {
        let Ok(Request::Command(command)) = read(r#"{"type":"prompt","message":5,"x":null}"#)
        else {
            panic!("it is a command");
        };
        let error = command.fields.required::<String>("message").unwrap_err();
        assert!(error.contains("\"message\""), "{error}");
        assert_eq!(command.fields.optional::<String>("x"), Ok(None));
        assert!(command.fields.required::<String>("x").is_err());
    }
}

//! A theme's file: strict JSON, in which every name has to be known (`resources.md` §8).

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use thiserror::Error;

use super::colour::Written;
use super::{Appearance, Colour, ExportColours, SYSTEM, Theme, Token};
use crate::near::meant;

const FIELDS: [&str; 6] = ["$schema", "name", "appearance", "vars", "colors", "export"];
const EXPORT: [&str; 3] = ["pageBg", "cardBg", "infoBg"];

/// Why a text is no theme: a clause that goes on after "because".
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ThemeError(String);

impl ThemeError {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

fn error<T>(why: impl Into<String>) -> Result<T, ThemeError> {
    Err(ThemeError::new(why))
}

pub(super) fn parse(text: &str) -> Result<Theme, ThemeError> {
    let written: Value = serde_json::from_str(text)
        .map_err(|error| ThemeError::new(format!("it is no JSON: {error}")))?;
    let Value::Object(written) = written else {
        return error("it is no JSON object");
    };
    if let Some(field) = written.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        let near = meant(field, FIELDS);
        return error(format!(
            "it has a field \"{field}\", which no theme has{near}"
        ));
    }
    let vars = Variables::new(object(&written, "vars")?)?;
    Ok(Theme {
        name: name(&written)?,
        appearance: appearance(&written)?,
        colours: colours(object(&written, "colors")?, &vars)?,
        export: export(object(&written, "export")?, &vars)?,
        file: None,
    })
}

fn object<'a>(
    written: &'a Map<String, Value>,
    field: &str,
) -> Result<Option<&'a Map<String, Value>>, ThemeError> {
    match written.get(field) {
        None => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => error(format!("its \"{field}\" is no object")),
    }
}

fn name(written: &Map<String, Value>) -> Result<String, ThemeError> {
    match written.get("name").and_then(Value::as_str) {
        None => error("it has no \"name\" that is a text"),
        Some(name) if name.trim().is_empty() || name.trim() != name => {
            error("its \"name\" is empty, or begins or ends with a space")
        }
        Some(name) if name.contains('/') || name.contains(char::is_control) => error(
            "its \"name\" has a slash or a control character in it; a slash stands between two names in the setting \"theme\"",
        ),
        Some(SYSTEM) => error(format!(
            "the name \"{SYSTEM}\" stands for the terminal's own colours; give it another"
        )),
        Some(name) => Ok(name.to_owned()),
    }
}

fn appearance(written: &Map<String, Value>) -> Result<Option<Appearance>, ThemeError> {
    match written.get("appearance") {
        None => Ok(None),
        Some(word) if word == "dark" => Ok(Some(Appearance::Dark)),
        Some(word) if word == "light" => Ok(Some(Appearance::Light)),
        Some(_) => error("its \"appearance\" is neither \"dark\" nor \"light\""),
    }
}

fn colours(
    written: Option<&Map<String, Value>>,
    vars: &Variables<'_>,
) -> Result<Vec<Colour>, ThemeError> {
    let Some(written) = written else {
        return error("it has no \"colors\"");
    };
    let names = || Token::ALL.iter().map(|token| token.name());
    if let Some(token) = written.keys().find(|name| Token::parse(name).is_none()) {
        let near = meant(token, names());
        return error(format!("it colours \"{token}\", which is no token{near}"));
    }
    let is_missing = |token: &&Token| {
        let has = |token: Token| written.contains_key(token.name());
        !has(**token) && token.fallback().is_none()
    };
    let missing: Vec<&str> = Token::ALL
        .iter()
        .filter(is_missing)
        .map(|one| one.name())
        .collect();
    if !missing.is_empty() {
        return error(format!("it has no colour for {}", missing.join(", ")));
    }
    let colour = |token: &Token| {
        let own = written.get(token.name());
        let fallback = || written.get(token.fallback()?.name());
        match own.or_else(fallback) {
            Some(value) => vars.colour(token.name(), value),
            None => Ok(Colour::Default),
        }
    };
    Token::ALL.iter().map(colour).collect()
}

fn export(
    written: Option<&Map<String, Value>>,
    vars: &Variables<'_>,
) -> Result<ExportColours, ThemeError> {
    let Some(written) = written else {
        return Ok(ExportColours::default());
    };
    if let Some(field) = written.keys().find(|key| !EXPORT.contains(&key.as_str())) {
        let near = meant(field, EXPORT);
        return error(format!(
            "its \"export\" has \"{field}\", which no theme has{near}"
        ));
    }
    let colour = |field: &str| {
        let value = written.get(field);
        value.map(|value| vars.colour(field, value)).transpose()
    };
    Ok(ExportColours {
        page: colour("pageBg")?,
        card: colour("cardBg")?,
        info: colour("infoBg")?,
    })
}

/// The variables, all of them resolved.
struct Variables<'a>(HashMap<&'a str, Colour>);

impl<'a> Variables<'a> {
    fn new(written: Option<&'a Map<String, Value>>) -> Result<Self, ThemeError> {
        let mut known = Self(HashMap::new());
        for name in written.into_iter().flat_map(Map::keys) {
            known.resolve(written, name)?;
        }
        Ok(known)
    }

    /// Follows a chain of variables to its end, and keeps what each of them comes to: a chain is walked
    /// once, however many variables lead into it.
    fn resolve(
        &mut self,
        written: Option<&'a Map<String, Value>>,
        name: &'a str,
    ) -> Result<(), ThemeError> {
        let mut chain: HashSet<&'a str> = HashSet::new();
        let mut at = name;
        let colour = loop {
            if let Some(colour) = self.0.get(at) {
                break *colour;
            }
            if !chain.insert(at) {
                return error(format!("its variable \"{at}\" leads back to itself"));
            }
            let Some(value) = written.and_then(|written| written.get(at)) else {
                return error(format!(
                    "there is no variable \"{at}\", which another names"
                ));
            };
            match read(at, value)? {
                Written::Colour(colour) => break colour,
                Written::Variable(next) => at = next,
            }
        };
        self.0.extend(chain.into_iter().map(|name| (name, colour)));
        Ok(())
    }

    /// The colour that a value stands for; `at` says where it is written.
    fn colour(&self, at: &str, value: &Value) -> Result<Colour, ThemeError> {
        match read(at, value)? {
            Written::Colour(colour) => Ok(colour),
            Written::Variable(name) => match self.0.get(name) {
                Some(colour) => Ok(*colour),
                None => {
                    let near = meant(name, self.0.keys().copied());
                    error(format!(
                        "\"{at}\" names a variable \"{name}\" that it does not have{near}"
                    ))
                }
            },
        }
    }
}

fn read<'a>(at: &str, value: &'a Value) -> Result<Written<'a>, ThemeError> {
    let read = match value {
        Value::Number(number) => number
            .as_u64()
            .and_then(|index| u8::try_from(index).ok())
            .map(|index| Written::Colour(Colour::Index(index))),
        Value::String(text) => Written::parse(text),
        _ => None,
    };
    read.ok_or_else(|| {
        let shown: String = value.to_string().chars().take(40).collect();
        ThemeError::new(format!(
            "the colour {shown} of \"{at}\" is none; write \"#rrggbb\", \"oklch(…)\", \"okhsl(…)\", 0 to 255, the name of a variable, or \"\""
        ))
    })
}

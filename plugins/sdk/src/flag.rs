//! Flags: options of the command line that an extension declares (`extensions.md` §4.6).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::Error;
use crate::host::Host;

/// A flag as the registry keeps it: `pliant --name`, or `pliant --name VALUE`.
///
/// ```
/// use pliant_sdk::{Plugin, flag::FlagSpec};
///
/// let plugin = Plugin::new()
///     .flag(FlagSpec::boolean("plan", "Plan before anything is changed."))
///     .flag(FlagSpec::string("tone", "How to speak.").or("plain"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlagSpec {
    /// Name without the dashes.
    pub name: String,
    /// One line for the help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What is given with it.
    #[serde(rename = "type")]
    pub kind: FlagKind,
    /// Its value when it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// What is given with a flag.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlagKind {
    /// Nothing: it is there or not.
    #[default]
    Boolean,
    /// A text.
    String,
}

impl FlagSpec {
    /// A flag that is there or not.
    pub fn boolean(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: Some(description.into()),
            ..Self::default()
        }
    }

    /// A flag with a text.
    pub fn string(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            kind: FlagKind::String,
            ..Self::boolean(name, description)
        }
    }

    /// With a value for when it is not given. One of another type than the flag's keeps the flag out
    /// of the registry.
    #[must_use]
    pub fn or(mut self, default: impl Into<Value>) -> Self {
        self.default = Some(default.into());
        self
    }

    /// What is wrong with it, if anything is.
    ///
    /// # Errors
    /// `invalid`, for a name that cannot be typed, or a default of another type.
    pub fn check(&self) -> Result<(), Error> {
        let mut letters = self.name.chars();
        let first = letters
            .next()
            .is_some_and(|letter| letter.is_ascii_alphanumeric());
        if !first || !letters.all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter))
        {
            return Err(Error::invalid(
                "a flag's name is of letters, digits, \"-\" and \"_\", and begins with one of the former",
            ));
        }
        match (&self.default, self.kind) {
            (None | Some(Value::Bool(_)), FlagKind::Boolean)
            | (None | Some(Value::String(_)), FlagKind::String) => Ok(()),
            (Some(_), FlagKind::Boolean) => Err(Error::invalid("its default is not true or false")),
            (Some(_), FlagKind::String) => Err(Error::invalid("its default is not a text")),
        }
    }
}

impl Host {
    /// The value of one of the plugin's own flags: what the user gave, else its default. `None`
    /// without either, and for a flag that the plugin has not declared.
    ///
    /// # Errors
    /// What the host reports.
    pub async fn flag(&self, name: &str) -> Result<Option<Value>, Error> {
        self.call("flag.get", &json!({"name": name})).await
    }
}

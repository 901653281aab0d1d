//! The flags of extensions: what was declared, and what the user gave for them. What was given
//! belongs to the process, so it survives a reload (`extensions.md` §4.6).

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use pliant_sdk::flag::FlagSpec;
use serde::Deserialize;
use serde_json::Value;

use super::generation::Kind;
use super::snapshot::Snapshot;

/// What the user gave, by the names of the flags.
#[derive(Debug, Default)]
pub struct FlagValues(RwLock<HashMap<String, Value>>);

impl FlagValues {
    /// Sets what was given for a flag.
    pub fn set(&self, name: &str, value: Value) {
        let mut values = self.0.write().unwrap_or_else(PoisonError::into_inner);
        values.insert(name.to_owned(), value);
    }

    /// What a source learns of one of its own flags; null for any other.
    #[must_use]
    pub fn of_source(&self, snapshot: &Snapshot, source: &str, name: &str) -> Value {
        let Some(spec) = declared(snapshot, source, name) else {
            return Value::Null;
        };
        let values = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let given = values.get(name).cloned();
        given.or(spec.default).unwrap_or_default()
    }
}

/// A source may ask for its flag also where another one declared the name first.
fn declared(snapshot: &Snapshot, source: &str, name: &str) -> Option<FlagSpec> {
    let mut sources = snapshot.sources().iter();
    let generation = sources.find(|generation| generation.source().name == source)?;
    let mut items = generation.contributions().iter();
    let item = items.find(|item| item.kind == Kind::Flag && item.name == name)?;
    FlagSpec::deserialize(&item.spec).ok()
}

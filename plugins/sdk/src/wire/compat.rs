//! The explicit switches of a model (`compat`). One of another type than expected counts as absent.

use serde_json::{Map, Value};

use crate::model::Model;

/// The switches by name.
#[derive(Debug, Clone, Copy)]
pub struct Compat<'a>(Option<&'a Map<String, Value>>);

impl<'a> Compat<'a> {
    /// Those of a model.
    #[must_use]
    pub fn of(model: &'a Model) -> Self {
        Self(model.compat.as_ref())
    }

    /// A switch that is on or off.
    #[must_use]
    pub fn flag(&self, name: &str, default: bool) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or(default)
    }

    /// A word.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).and_then(Value::as_str).map(str::to_owned)
    }

    /// An object; empty when there is none.
    #[must_use]
    pub fn map(&self, name: &str) -> Map<String, Value> {
        let map = self.get(name).and_then(Value::as_object);
        map.cloned().unwrap_or_default()
    }

    /// Anything but null.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<Value> {
        self.get(name).filter(|value| !value.is_null()).cloned()
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0?.get(name)
    }
}

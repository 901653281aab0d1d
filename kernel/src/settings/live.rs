//! The settings that count now: their files may change while the program runs.

use std::sync::Arc;

use arc_swap::ArcSwap;
use serde_json::{Map, Value};

use super::Settings;

/// What everybody asks who needs a setting. Ask at each use: what was asked earlier stays as it was.
#[derive(Debug, Default)]
pub struct LiveSettings(ArcSwap<Settings>);

impl LiveSettings {
    /// Those that count at the start.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self(ArcSwap::from_pointee(settings))
    }

    /// Those that count now.
    #[must_use]
    pub fn now(&self) -> Arc<Settings> {
        self.0.load_full()
    }

    /// Takes others, and answers the keys whose values are others by it, sorted. What this program
    /// changed itself counts as it was written.
    pub fn replace(&self, settings: Settings) -> Vec<String> {
        let before = self.0.swap(Arc::new(settings));
        let mut keys = Vec::new();
        compare(&before.effective(), self.now().written(), "", &mut keys);
        keys
    }
}

impl Settings {
    /// Everything that is set, with what this program has changed since.
    fn effective(&self) -> Value {
        let mut all = self.written().clone();
        let changed = super::change::lock(&self.changed);
        for (key, value) in changed.iter() {
            place(&mut all, key, value.clone());
        }
        all
    }
}

/// Sets a value by its dotted key.
fn place(all: &mut Value, key: &str, value: Value) {
    let mut at = all;
    for part in key.split('.') {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(fields) = at else { return };
        at = fields.entry(part).or_insert(Value::Null);
    }
    *at = value;
}

/// The dotted keys whose values differ.
fn compare(before: &Value, after: &Value, key: &str, keys: &mut Vec<String>) {
    if before == after {
        return;
    }
    let (Value::Object(old), Value::Object(new)) = (before, after) else {
        // An object that came or went is told by its name.
        if !key.is_empty() {
            keys.push(key.to_owned());
        }
        return;
    };
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let path = match key {
            "" => name.clone(),
            key => format!("{key}.{name}"),
        };
        let value = |fields: &Map<String, Value>| fields.get(name).cloned().unwrap_or_default();
        compare(&value(old), &value(new), &path, keys);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn others_take_the_place_and_the_keys_that_changed_are_told() {
        let live = LiveSettings::new(Settings::from_value(
            json!({"a": 1, "retry": {"enabled": true, "maxRetries": 3}, "gone": [1]}),
        ));
        let earlier = live.now();
        let after = json!({"a": 1, "retry": {"enabled": false, "maxRetries": 3}, "new": "x"});
        let changed = live.replace(Settings::from_value(after.clone()));
        assert_eq!(changed, ["gone", "new", "retry.enabled"]);
        assert_eq!(live.now().is_on("retry.enabled"), Some(false));
        assert_eq!(earlier.is_on("retry.enabled"), Some(true));
        assert!(live.replace(Settings::from_value(after)).is_empty());
    }

    #[test]
    fn what_the_program_wrote_itself_is_no_news() {
        let live = LiveSettings::new(Settings::from_value(json!({"retry": {"maxRetries": 3}})));
        live.now()
            .change(&[("retry.enabled", json!(false))])
            .unwrap();
        let written = json!({"retry": {"maxRetries": 3, "enabled": false}});
        assert!(live.replace(Settings::from_value(written)).is_empty());
        // What the user writes afterwards counts.
        let after = live.replace(Settings::from_value(json!({"retry": {"maxRetries": 3}})));
        assert_eq!(after, ["retry.enabled"]);
        assert_eq!(live.now().is_on("retry.enabled"), None);
    }
}

//! Changing a setting in the user's file: one key, with everything else that stands there left as it is
//! (`resources.md` §10).

use std::path::Path;

use pliant_sdk::Error;
use serde_json::{Map, Value};

use crate::jsonfile::{self, Readers};

/// Sets keys, given with dots (`compaction.enabled`), in a settings file; one that is not there is
/// made. Waits for other programs that write it.
///
/// # Errors
/// When the file cannot be read as settings, which is then left alone, or cannot be written.
pub fn write_settings(path: &Path, changes: &[(&str, Value)]) -> Result<(), Error> {
    jsonfile::change(path, "The settings file", Readers::AsBefore, |written| {
        for (key, value) in changes {
            set(written, key, value.clone());
        }
        Ok(())
    })
}

/// A part of the key that is no object yet becomes one, unless it is a list: that stays, and the key is
/// written with its dots.
fn set(written: &mut Map<String, Value>, key: &str, value: Value) {
    let Some((part, rest)) = key.split_once('.') else {
        written.insert(key.to_owned(), value);
        return;
    };
    if written.get(part).is_some_and(Value::is_array) || written.contains_key(key) {
        written.insert(key.to_owned(), value);
        return;
    }
    let inner = written.entry(part).or_insert(Value::Null);
    if !inner.is_object() {
        *inner = Value::Object(Map::new());
    }
    if let Some(inner) = inner.as_object_mut() {
        set(inner, rest, value);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn written(before: Option<&str>, changes: &[(&str, Value)]) -> (Result<(), Error>, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent/settings.json");
        if let Some(before) = before {
            fs::create_dir(dir.path().join("agent")).unwrap();
            fs::write(&path, before).unwrap();
        }
        let outcome = write_settings(&path, changes);
        let mut left: Vec<_> = fs::read_dir(dir.path().join("agent"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["settings.json", "settings.json.lock"]);
        (outcome, fs::read_to_string(&path).unwrap())
    }

    #[test]
    fn a_key_is_changed_and_what_nobody_knows_stays_in_its_order() {
        // resources §10
        let before = r#"{"zeta": [1], "compaction": {"mine": 1}, "defaultModel": "a"}"#;
        let changes = [
            ("defaultModel", json!("b")),
            ("compaction.enabled", json!(false)),
        ];
        let (outcome, after) = written(Some(before), &changes);
        outcome.unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&after).unwrap().to_string(),
            json!({"zeta": [1], "compaction": {"mine": 1, "enabled": false}, "defaultModel": "b"})
                .to_string()
        );
        let (outcome, after) = written(None, &[("defaultModel", json!("b"))]);
        outcome.unwrap();
        assert_eq!(after, "{\n  \"defaultModel\": \"b\"\n}\n");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_left_alone() {
        // interfaces §5
        for broken in ["{\"a\": 1,,}", "[1]"] {
            let (outcome, after) = written(Some(broken), &[("a", json!(2))]);
            let error = outcome.unwrap_err().to_string();
            assert!(error.contains("was not changed"), "{error}");
            assert_eq!(after, broken);
        }
    }

    #[test]
    fn of_two_writers_at_once_neither_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("settings.json");
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    write_settings(path, &[(&format!("key{writer}"), json!(writer))]).unwrap();
                });
            }
        });
        let all: Map<String, Value> =
            serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(all.len(), 8);
    }
}

//! Changing a setting in the user's file: one key, with everything else that stands there left as it is
//! (`resources.md` §10). Other programs may do the same at the same time, so the file is locked, read
//! again, and exchanged in one step.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use pliant_sdk::Error;
use serde_json::{Map, Value};

use crate::textfile;

/// Sets keys, given with dots (`compaction.enabled`), in a settings file; one that is not there is
/// made. Waits for other programs that write it.
///
/// # Errors
/// When the file cannot be read as settings, which is then left alone, or cannot be written.
pub fn write_settings(path: &Path, changes: &[(&str, Value)]) -> Result<(), Error> {
    let failed = |cause: String| {
        Error::failed(format!(
            "The settings file {} was not changed: {cause}",
            path.display()
        ))
    };
    let path = resolved(path);
    let _held = lock(&path).map_err(|error| failed(format!("{error}.")))?;
    let mut written = read(&path).map_err(failed)?;
    for (key, value) in changes {
        set(&mut written, key, value.clone());
    }
    replace(&path, &written).map_err(|error| failed(format!("{error}.")))
}

/// Where a link leads: the file is exchanged, and a link to it stays.
fn resolved(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Held until it is dropped. The lock file stays: who removes one may remove another's.
fn lock(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = File::create(path.with_added_extension("lock"))?;
    file.lock()?;
    Ok(file)
}

fn read(path: &Path) -> Result<Map<String, Value>, String> {
    let text = match textfile::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => return Err(format!("{error}.")),
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(written)) => Ok(written),
        Ok(_) => Err("it is not a JSON object. Correct or remove it.".to_owned()),
        Err(error) => Err(format!("it cannot be read: {error}. Correct or remove it.")),
    }
}

/// A part of the key that is no object yet becomes one.
fn set(written: &mut Map<String, Value>, key: &str, value: Value) {
    let Some((part, rest)) = key.split_once('.') else {
        written.insert(key.to_owned(), value);
        return;
    };
    let inner = written.entry(part).or_insert(Value::Null);
    if !inner.is_object() {
        *inner = Value::Object(Map::new());
    }
    if let Some(inner) = inner.as_object_mut() {
        set(inner, rest, value);
    }
}

/// Whoever reads finds the old file or the new one, whole.
fn replace(path: &Path, written: &Map<String, Value>) -> io::Result<()> {
    let temporary = path.with_added_extension(format!("{}.tmp", std::process::id()));
    let put = || {
        let mut text = serde_json::to_vec_pretty(written)?;
        text.push(b'\n');
        let mut file = File::create(&temporary)?;
        if let Ok(old) = fs::metadata(path) {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    put().inspect_err(|_| drop(fs::remove_file(&temporary)))
}

#[cfg(test)]
mod tests {
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

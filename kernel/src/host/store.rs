//! What sources keep beyond the process (`state.get`, `state.put`): an object for each source, in a file
//! of its own in the user's directory.

use std::path::{Path, PathBuf};

use pliant_sdk::Error;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::digest::Digest;
use crate::jsonfile::{self, Readers};

/// Bytes of JSON that one source may keep.
const LARGEST: usize = 1 << 20;

/// The longest key, bytes.
const LONGEST_KEY: usize = 256;

/// What sources keep.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
}

#[derive(Deserialize)]
struct Get {
    key: String,
}

#[derive(Deserialize)]
struct Put {
    key: String,
    /// Null takes the key away.
    #[serde(default)]
    value: Value,
}

impl Store {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The value of a key, null if there is none.
    pub(super) async fn get(&self, source: &str, payload: &[u8]) -> Result<Value, Error> {
        let Get { key } = serde_json::from_slice(payload)?;
        let file = self.file(source);
        let kept = beside(move || read(&file)).await?;
        Ok(kept.get(&key).cloned().unwrap_or_default())
    }

    /// Keeps a value. When this returns it is in the file.
    pub(super) async fn put(&self, source: &str, payload: &[u8]) -> Result<Value, Error> {
        let Put { key, value } = serde_json::from_slice(payload)?;
        if key.is_empty() || key.len() > LONGEST_KEY {
            return Err(Error::invalid(format!(
                "a key has 1 to {LONGEST_KEY} bytes, and this one has {}",
                key.len()
            )));
        }
        let file = self.file(source);
        beside(move || write(&file, key, value)).await?;
        Ok(Value::Null)
    }

    /// A name that any file system takes, and that people can tell apart.
    fn file(&self, source: &str) -> PathBuf {
        let stem = Path::new(source).file_stem().unwrap_or_default();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let stem = stem.to_string_lossy();
        let stem: String = stem.chars().filter(|c| plain(*c)).take(64).collect();
        let number = Digest::of(source.as_bytes()).short();
        self.folder.join(format!("{stem}-{number}.json"))
    }
}

fn read(file: &Path) -> Result<Map<String, Value>, Error> {
    jsonfile::read(file)
        .map_err(|cause| Error::failed(format!("the state file {}: {cause}", file.display())))
}

fn write(file: &Path, key: String, value: Value) -> Result<(), Error> {
    jsonfile::change(file, "The state file", Readers::User, |kept| {
        match value {
            Value::Null => drop(kept.shift_remove(&key)),
            value => drop(kept.insert(key, value)),
        }
        let size = serde_json::to_vec(kept).map_or(usize::MAX, |json| json.len());
        match size > LARGEST {
            true => Err(format!(
                "it would have {} KB, and a source may keep {} KB. Remove what is not needed, or keep it in files.",
                size >> 10,
                LARGEST >> 10
            )),
            false => Ok(()),
        }
    })
}

async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|lost| Err(Error::failed(lost.to_string())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bytes(value: &Value) -> Vec<u8> {
        serde_json::to_vec(value).unwrap()
    }

    async fn get(store: &Store, source: &str, key: &str) -> Value {
        let payload = bytes(&json!({"key": key}));
        store.get(source, &payload).await.unwrap()
    }

    async fn put(store: &Store, source: &str, key: &str, value: Value) -> Result<Value, Error> {
        store
            .put(source, &bytes(&json!({"key": key, "value": value})))
            .await
    }

    #[tokio::test]
    async fn each_source_keeps_its_own_beyond_the_process() {
        // plugin-abi §3: `state.get`, `state.put`, scoped to the plugin
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path().join("state"));
        assert_eq!(get(&store, "a", "k").await, Value::Null);
        put(&store, "a", "k", json!({"n": 1})).await.unwrap();
        put(&store, "/x/../../a", "k", json!(2)).await.unwrap();
        let again = Store::new(dir.path().join("state"));
        assert_eq!(get(&again, "a", "k").await, json!({"n": 1}));
        assert_eq!(get(&again, "/x/../../a", "k").await, json!(2));
        put(&store, "a", "k", Value::Null).await.unwrap();
        assert_eq!(get(&again, "a", "k").await, Value::Null);
        let outside = std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(outside, 1);
    }

    #[tokio::test]
    async fn what_is_too_much_or_no_question_is_refused_and_what_was_kept_stays() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path().to_owned());
        put(&store, "a", "k", json!("kept")).await.unwrap();
        let large = json!("x".repeat(LARGEST));
        let error = put(&store, "a", "large", large).await.unwrap_err();
        assert!(error.message.contains("1024 KB"), "{error}");
        assert!(put(&store, "a", "", json!(1)).await.is_err());
        assert!(store.get("a", b"[1,2").await.is_err());
        assert!(store.put("a", b"{}").await.is_err());
        assert_eq!(get(&store, "a", "k").await, json!("kept"));
        std::fs::write(store.file("b"), "[]").unwrap();
        let error = put(&store, "b", "k", json!(1)).await.unwrap_err();
        assert!(error.message.contains("not a JSON object"), "{error}");
    }
}

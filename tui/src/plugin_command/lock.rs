//! The list of what was installed, and from where: `plugins.lock.json` in the user's directory.

use std::path::{Path, PathBuf};

use pliant_kernel::jsonfile::{self, Readers};
use pliant_sdk::Error;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// One installed plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Its own version.
    pub version: String,
    /// Where it came from: a path or a URL.
    pub source: String,
    /// The commit, of a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// SHA-256 of the library.
    pub sha256: String,
    /// The ABI it was built for.
    pub abi: u32,
    /// Name of its file in the folder of plugins.
    pub file: String,
    /// Unix milliseconds.
    pub installed_at: i64,
}

fn path(agent_dir: &Path) -> PathBuf {
    agent_dir.join("plugins.lock.json")
}

/// Notes a plugin.
///
/// # Errors
/// When the list cannot be read or written.
pub fn note(agent_dir: &Path, name: &str, entry: &Entry) -> Result<(), Error> {
    let change = |written: &mut serde_json::Map<String, serde_json::Value>| {
        written.insert(name.to_owned(), json!(entry));
        Ok(())
    };
    jsonfile::change(
        &path(agent_dir),
        "The list of plugins",
        Readers::AsBefore,
        change,
    )
}

/// Takes a plugin off the list, and answers what stood there.
///
/// # Errors
/// When the list cannot be read or written.
pub fn forget(agent_dir: &Path, name: &str) -> Result<Option<Entry>, Error> {
    let mut entry = None;
    let change = |written: &mut serde_json::Map<String, serde_json::Value>| {
        entry = written
            .shift_remove(name)
            .and_then(|entry| Entry::deserialize(entry).ok());
        Ok(())
    };
    jsonfile::change(
        &path(agent_dir),
        "The list of plugins",
        Readers::AsBefore,
        change,
    )?;
    Ok(entry)
}

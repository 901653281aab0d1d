//! The list of what was installed, and from where: `plugins.lock.json` in the user's directory.

use std::path::{Path, PathBuf};

use pliant_kernel::jsonfile::{self, Readers};
use pliant_sdk::Error;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

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
    let change = |written: &mut Map<String, Value>| {
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

/// Takes a plugin off the list.
///
/// # Errors
/// When the list cannot be read or written.
pub fn forget(agent_dir: &Path, name: &str) -> Result<(), Error> {
    let change = |written: &mut Map<String, Value>| {
        written.shift_remove(name);
        Ok(())
    };
    jsonfile::change(
        &path(agent_dir),
        "The list of plugins",
        Readers::AsBefore,
        change,
    )
}

fn listed(agent_dir: &Path) -> Result<Map<String, Value>, Error> {
    let path = path(agent_dir);
    jsonfile::read(&path)
        .map_err(|cause| Error::failed(format!("The list of plugins {}: {cause}", path.display())))
}

/// What the list says of a plugin.
///
/// # Errors
/// When the list cannot be read.
pub fn of(agent_dir: &Path, name: &str) -> Result<Option<Entry>, Error> {
    let listed = listed(agent_dir)?;
    Ok(listed
        .get(name)
        .and_then(|entry| Entry::deserialize(entry).ok()))
}

/// The plugin that a file in the folder of plugins was installed for.
///
/// # Errors
/// When the list cannot be read.
pub fn owner(agent_dir: &Path, file: &str) -> Result<Option<String>, Error> {
    let listed = listed(agent_dir)?;
    let mut listed = listed.into_iter();
    let found = listed
        .find(|(_, entry)| entry["file"] == file && agent_dir.join("plugins").join(file).exists());
    Ok(found.map(|(name, _)| name))
}

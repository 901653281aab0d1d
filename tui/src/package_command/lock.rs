//! Which commits packages are at: `packages.lock` in the user's directory.

use std::path::{Path, PathBuf};

use pliant_kernel::jsonfile::{self, Readers};
use pliant_sdk::Error;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// One installed package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Locked {
    /// What it was cloned from.
    pub url: String,
    /// The tag, branch or commit that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The commit it is at.
    pub commit: String,
    /// Unix milliseconds.
    pub installed_at: i64,
}

fn path(agent_dir: &Path) -> PathBuf {
    agent_dir.join("packages.lock")
}

/// Notes what a package is at; `None` forgets it.
///
/// # Errors
/// When the file cannot be read or written.
pub fn note(agent_dir: &Path, identity: &str, locked: Option<&Locked>) -> Result<(), Error> {
    let change = |written: &mut Map<String, Value>| {
        match locked {
            Some(locked) => drop(written.insert(identity.to_owned(), json!(locked))),
            None => drop(written.shift_remove(identity)),
        }
        Ok(())
    };
    let what = "The list of packages";
    jsonfile::change(&path(agent_dir), what, Readers::AsBefore, change)
}

/// What is noted of a package.
pub fn of(agent_dir: &Path, identity: &str) -> Option<Locked> {
    let all = jsonfile::read(&path(agent_dir)).ok()?;
    Locked::deserialize(all.get(identity)?).ok()
}

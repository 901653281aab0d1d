//! What of a trusted project runs, as it was when the user last agreed: `trust-seen.json`. Others can write
//! into a project, by a pull for example, so what is another one now is asked about once more.
//!
//! `trust.json` has the decisions alone, because other agents read it too.

use std::fs;
use std::path::{Path, PathBuf};

use pliant_sdk::Error;
use serde_json::Value;

use crate::digest::Digest;
use crate::jsonfile::{self, Readers};
use crate::settings::PROJECT_DIR;

/// More files of extensions are not looked at; what comes after them counts as the same.
const MOST: usize = 2_000;

/// How deep folders are looked into.
const DEEPEST: usize = 8;

/// What was agreed to.
pub(super) struct Seen {
    path: PathBuf,
    project: String,
    now: String,
}

impl Seen {
    /// Looks at a project.
    pub(super) fn of(agent_dir: &Path, project: &Path) -> Self {
        let canonical = project.canonicalize();
        let project = canonical.unwrap_or_else(|_| project.to_owned());
        Self {
            path: agent_dir.join("trust-seen.json"),
            now: digest(&project),
            project: project.to_string_lossy().into_owned(),
        }
    }

    /// Whether it is another one than what was agreed to. What was never looked at is taken for that.
    pub(super) fn is_other(&self) -> bool {
        let known = jsonfile::read(&self.path).unwrap_or_default();
        match known.get(&self.project) {
            Some(Value::String(known)) => *known != self.now,
            _ => {
                self.agree();
                false
            }
        }
    }

    /// The user agrees to what there is. That this cannot be kept is a question more, and no reason to
    /// stop.
    pub(super) fn agree(&self) {
        let kept: Result<(), Error> = jsonfile::change(
            &self.path,
            "The list of what was seen",
            Readers::User,
            |all| {
                all.insert(self.project.clone(), Value::String(self.now.clone()));
                Ok(())
            },
        );
        if let Err(error) = kept {
            tracing::debug!(target: "pliant::trust", "{error}");
        }
    }
}

/// Of the extensions and of the servers that are started.
fn digest(project: &Path) -> String {
    let folder = project.join(PROJECT_DIR);
    let mut files = vec![folder.join("mcp.json")];
    collect(&folder.join("extensions"), DEEPEST, &mut files);
    let mut whole = String::new();
    for file in files {
        let name = file.strip_prefix(&folder).unwrap_or(&file);
        if let Ok(content) = Digest::of_file(&file) {
            whole += &format!("{}\0{content}\n", name.display());
        }
    }
    Digest::of(whole.as_bytes()).to_string()
}

/// The files of a folder, in the order of their names.
fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if files.len() >= MOST {
            return;
        }
        // A link to a folder may lead round in circles.
        let is_link = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink());
        match path.is_dir() {
            true if depth > 0 && !is_link => collect(&path, depth - 1, files),
            true => {}
            false => files.push(path),
        }
    }
}

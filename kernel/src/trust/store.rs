//! `trust.json`: what the user has decided on folders. An object of canonical paths; a decision holds
//! for all below that has none of its own.

use std::path::{Path, PathBuf};

use pliant_sdk::Error;
use serde_json::{Map, Value};

use crate::jsonfile::{self, Readers};

/// The stored decisions.
#[derive(Debug)]
pub struct TrustStore {
    path: PathBuf,
}

impl TrustStore {
    /// Those in the user's configuration directory. Nothing is read yet.
    #[must_use]
    pub fn new(agent_dir: &Path) -> Self {
        Self {
            path: agent_dir.join("trust.json"),
        }
    }

    /// The decision on a folder: its own, else that of the nearest one above.
    ///
    /// # Errors
    /// A sentence, when the file cannot be read: it may say no.
    pub fn nearest(&self, folder: &Path) -> Result<Option<bool>, String> {
        let unusable = |cause: String| {
            format!(
                "The stored decisions on trust in {} cannot be used: {cause}",
                self.path.display()
            )
        };
        let stored = jsonfile::read(&self.path).map_err(&unusable)?;
        for folder in canonical(folder).ancestors() {
            match stored.get(&*folder.to_string_lossy()) {
                None | Some(Value::Null) => {}
                Some(Value::Bool(decision)) => return Ok(Some(*decision)),
                Some(_) => {
                    let cause = format!("that on {} is neither true nor false.", folder.display());
                    return Err(unusable(cause));
                }
            }
        }
        Ok(None)
    }

    /// Stores decisions, or takes them back.
    ///
    /// # Errors
    /// When the file cannot be read, which is then left alone, or cannot be written.
    pub fn save(&self, decisions: &[(&Path, Option<bool>)]) -> Result<(), Error> {
        let what = "The file of decisions on trust";
        jsonfile::change(&self.path, what, Readers::AsBefore, |stored| {
            for (folder, decision) in decisions {
                let folder = canonical(folder).to_string_lossy().into_owned();
                match decision {
                    Some(decision) => drop(stored.insert(folder, Value::Bool(*decision))),
                    None => drop(stored.shift_remove(&folder)),
                }
            }
            let mut sorted: Vec<(String, Value)> = std::mem::take(stored).into_iter().collect();
            sorted.sort_by(|a, b| a.0.cmp(&b.0));
            *stored = Map::from_iter(sorted);
            Ok(())
        })
    }
}

fn canonical(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_nearest_decision_counts_under_whatever_name_the_folder_is_reached() {
        // interfaces §14
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        std::os::unix::fs::symlink(root.join("a/b"), root.join("link")).unwrap();
        let store = TrustStore::new(&root.join("agent"));
        assert_eq!(store.nearest(&root.join("a/b")), Ok(None));
        store
            .save(&[
                (&root.join("a"), Some(true)),
                (&root.join("link"), Some(false)),
            ])
            .unwrap();
        assert_eq!(store.nearest(&root.join("a")), Ok(Some(true)));
        assert_eq!(store.nearest(&root.join("a/b/c")), Ok(Some(false)));
        assert_eq!(store.nearest(&root.join("link/c")), Ok(Some(false)));
        store.save(&[(&root.join("a/b"), None)]).unwrap();
        assert_eq!(store.nearest(&root.join("link/c")), Ok(Some(true)));
        let text = fs::read_to_string(root.join("agent/trust.json")).unwrap();
        assert_eq!(
            text,
            format!("{{\n  \"{}\": true\n}}\n", root.join("a").display())
        );
    }

    #[test]
    fn paths_stand_in_their_order_and_null_decides_nothing() {
        // resources §11
        let dir = tempfile::tempdir().unwrap();
        let store = TrustStore::new(dir.path());
        fs::write(
            dir.path().join("trust.json"),
            "{\"/z\": null, \"/\": false}",
        )
        .unwrap();
        assert_eq!(store.nearest(Path::new("/z")), Ok(Some(false)));
        store.save(&[(Path::new("/a"), Some(true))]).unwrap();
        let text = fs::read_to_string(dir.path().join("trust.json")).unwrap();
        let keys: Map<String, Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(keys.keys().collect::<Vec<_>>(), ["/", "/a", "/z"]);
    }
}

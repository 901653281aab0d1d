//! Snapshots of a folder's files, to go back to: without git, changes by shell commands and files that no
//! version control knows included. What is stored is what differs; a file's content is kept once, by its
//! SHA-256.
//!
//! In the store each folder has a directory of its own:
//! `blobs/ab/abcdef…` are contents, `ID.json` is a snapshot, `seen.json` is what files were when they were
//! last read, and `lock` is held by whoever adds and, alone, by whoever clears away.
//!
//! Left out are what `.gitignore` files name, `.git`, `node_modules`, sockets and pipes, names that are no
//! UTF-8, and files of more than [`LARGEST_FILE`] bytes; a snapshot says which files those were, so that
//! going back to it does not remove them.

mod blobs;
mod restore;
mod scan;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pliant_sdk::Error;
use pliant_sdk::error::code;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::digest::Digest;

use blobs::Blobs;
use scan::Seen;

/// Larger files are left out, bytes.
pub const LARGEST_FILE: u64 = 10 << 20;

/// A folder with more files is refused.
pub const MOST_FILES: usize = 50_000;

/// A folder with more bytes in its files is refused.
pub const MOST_BYTES: u64 = 1 << 30;

/// So many snapshots of a folder are kept.
const KEPT: usize = 200;

/// The snapshots of all folders.
#[derive(Debug)]
pub struct Snapshots {
    store: PathBuf,
    /// The user's home, which is too much to keep.
    home: Option<PathBuf>,
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Item {
    File { hash: String, mode: u32, size: u64 },
    Link { target: String },
    Folder,
}

/// A snapshot as it is stored; paths are relative and have `/` between their parts.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Manifest {
    taken_ms: i64,
    items: BTreeMap<String, Item>,
    /// What was there and is not in the snapshot, with the reason.
    left_out: BTreeMap<String, String>,
}

impl Manifest {
    /// Whether something is here or below it.
    fn leaves_out(&self, path: &str) -> bool {
        let mut all = self.left_out.keys();
        all.any(|out| {
            out == path
                || out
                    .strip_prefix(path)
                    .is_some_and(|rest| rest.starts_with('/'))
        })
    }
}

/// How a path differs from what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Difference {
    /// It is there now and was not.
    Added,
    /// It is something else now.
    Changed,
    /// It is gone.
    Removed,
}

/// Ends work on another thread when nobody waits for it any more.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Asked now and then whether to go on.
#[derive(Clone)]
struct Going(Arc<AtomicBool>);

impl Going {
    fn check(&self) -> Result<(), Error> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(Error::cancelled()),
            false => Ok(()),
        }
    }
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

/// Names of the services.
pub(super) const SERVICES: [&str; 3] = ["files.snapshot", "files.changes", "files.restore"];

impl Snapshots {
    /// Keeps them in a folder, which is made when there is one.
    #[must_use]
    pub fn new(store: PathBuf, home: Option<PathBuf>) -> Self {
        Self { store, home }
    }

    /// Answers a service for a folder. Dropping the future stops it; a restore goes on to the end of the
    /// file it is at.
    ///
    /// # Errors
    /// `invalid` for a folder that is too large, `not_found` for a snapshot that there is not, `io`.
    pub async fn answer(
        self: Arc<Self>,
        service: &str,
        root: &Path,
        payload: &[u8],
    ) -> Result<Value, Error> {
        let flag: Arc<AtomicBool> = Arc::default();
        let (going, _stop) = (Going(Arc::clone(&flag)), Stop(flag));
        let root = root.to_owned();
        let work: Box<dyn FnOnce() -> Result<Value, Error> + Send> = match service {
            "files.snapshot" => Box::new(move || self.folder(&root)?.take(&going)),
            "files.changes" => {
                let Named { id } = serde_json::from_slice(payload)?;
                Box::new(move || self.folder(&root)?.changes(&id, &going))
            }
            "files.restore" => {
                let Named { id } = serde_json::from_slice(payload)?;
                Box::new(move || self.folder(&root)?.restore(&id, &going))
            }
            other => return Err(Error::unsupported(&format!("the service \"{other}\""))),
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|lost| Err(Error::failed(lost.to_string())))
    }

    /// The snapshots of one folder.
    fn folder(&self, root: &Path) -> Result<FolderSnapshots, Error> {
        let root = root
            .canonicalize()
            .map_err(|cause| io_error("find", root, &cause))?;
        let is_home = self.home.as_ref().is_some_and(|home| {
            home.canonicalize()
                .is_ok_and(|home| home.starts_with(&root))
        });
        if is_home || root.parent().is_none() {
            return Err(Error::invalid(format!(
                "No snapshots are taken of {}: it holds more than a project. Work in a folder of its own.",
                root.display()
            )));
        }
        let key = Digest::of(root.as_os_str().as_encoded_bytes()).to_string();
        let store = self.store.join(key.get(..16).unwrap_or(&key));
        // As the walk will come by it.
        let all = self.store.canonicalize();
        Ok(FolderSnapshots {
            all: all.unwrap_or_else(|_| self.store.clone()),
            blobs: Blobs::new(store.join("blobs")),
            root,
            store,
        })
    }
}

/// The snapshots of one folder.
struct FolderSnapshots {
    root: PathBuf,
    /// The store of all folders.
    all: PathBuf,
    store: PathBuf,
    blobs: Blobs,
}

impl FolderSnapshots {
    fn take(&self, going: &Going) -> Result<Value, Error> {
        let _shared = self.lock()?;
        let (id, manifest) = self.keep_present(going)?;
        let bytes = manifest.items.values().map(|item| match item {
            Item::File { size, .. } => *size,
            _ => 0,
        });
        Ok(json!({
            "id": id,
            "files": manifest.items.len(),
            "bytes": bytes.sum::<u64>(),
            "leftOut": told(&manifest.left_out),
        }))
    }

    fn changes(&self, id: &str, going: &Going) -> Result<Value, Error> {
        let then = self.manifest(id)?;
        let now = scan::scan(
            &self.root,
            &self.all,
            None,
            &mut Seen::read(&self.store),
            going,
        )?;
        let all = differences(&then, &now);
        let all = all
            .into_iter()
            .map(|(path, how)| json!({"path": path, "what": how}));
        Ok(all.collect())
    }

    /// Stores the present; the same as the newest snapshot is the same snapshot.
    fn keep_present(&self, going: &Going) -> Result<(String, Manifest), Error> {
        let mut seen = Seen::read(&self.store);
        let manifest = scan::scan(&self.root, &self.all, Some(&self.blobs), &mut seen, going)?;
        seen.write(&self.store);
        let newest = self.ids().pop();
        if let Some(id) = newest
            && let Ok(known) = self.manifest(&id)
            && known.items == manifest.items
            && known.left_out == manifest.left_out
        {
            return Ok((id, manifest));
        }
        let id = self.write(&manifest)?;
        Ok((id, manifest))
    }

    fn write(&self, manifest: &Manifest) -> Result<String, Error> {
        let text = serde_json::to_vec(manifest)?;
        // Ids sort as they were taken.
        let mut at = manifest.taken_ms;
        loop {
            let id = format!("{at:013}");
            let file = self.store.join(format!("{id}.json"));
            match blobs::write_new(&file, &text) {
                Ok(true) => return Ok(id),
                Ok(false) => at += 1,
                Err(cause) => return Err(io_error("write", &file, &cause)),
            }
        }
    }

    /// All snapshots, the oldest first.
    fn ids(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.store).into_iter().flatten().flatten();
        let id = |name: String| {
            let id = name.strip_suffix(".json")?;
            is_id(id).then(|| id.to_owned())
        };
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut ids: Vec<String> = names.filter_map(id).collect();
        ids.sort_unstable();
        ids
    }

    fn manifest(&self, id: &str) -> Result<Manifest, Error> {
        let missing = || {
            let message = format!(
                "There is no snapshot {id} of {}. It may have been cleared away: the last {KEPT} are kept.",
                self.root.display()
            );
            Error::new(code::NOT_FOUND, message)
        };
        if !is_id(id) {
            return Err(missing());
        }
        let text = fs::read(self.store.join(format!("{id}.json"))).map_err(|_| missing())?;
        serde_json::from_slice(&text).map_err(|error| {
            Error::failed(format!(
                "The snapshot {id} is damaged and cannot be used: {error}."
            ))
        })
    }

    /// Held while something is added. Whoever gets it alone clears away first.
    fn lock(&self) -> Result<File, Error> {
        fs::create_dir_all(&self.store).map_err(|cause| io_error("make", &self.store, &cause))?;
        let path = self.store.join("lock");
        let failed = |cause: std::io::Error| io_error("lock", &path, &cause);
        let file = File::create(&path).map_err(failed)?;
        if self.ids().len() > KEPT && file.try_lock().is_ok() {
            self.clear_away();
            file.unlock().map_err(failed)?;
        }
        file.lock_shared().map_err(failed)?;
        Ok(file)
    }

    /// Removes what is old, and contents that nothing refers to. What cannot be removed stays.
    fn clear_away(&self) {
        let ids = self.ids();
        let old = ids.len().saturating_sub(KEPT * 3 / 4);
        for id in ids.iter().take(old) {
            let _ = fs::remove_file(self.store.join(format!("{id}.json")));
        }
        let mut used = std::collections::HashSet::new();
        for id in self.ids() {
            let Ok(manifest) = self.manifest(&id) else {
                // What it needs is not known, so everything stays.
                return;
            };
            for item in manifest.items.into_values() {
                if let Item::File { hash, .. } = item {
                    used.insert(hash);
                }
            }
        }
        self.blobs.retain(|hash| used.contains(hash));
    }
}

fn is_id(id: &str) -> bool {
    id.len() >= 13 && id.bytes().all(|byte| byte.is_ascii_digit())
}

/// How the present differs from a snapshot.
fn differences(then: &Manifest, now: &Manifest) -> Vec<(String, Difference)> {
    let mut all = Vec::new();
    for (path, item) in &now.items {
        match then.items.get(path) {
            Some(old) if old == item => {}
            Some(_) => all.push((path.clone(), Difference::Changed)),
            None if then.leaves_out(path) => {}
            None => all.push((path.clone(), Difference::Added)),
        }
    }
    for path in then.items.keys() {
        if !now.items.contains_key(path) && !now.leaves_out(path) {
            all.push((path.clone(), Difference::Removed));
        }
    }
    // Folders come and go with what is in them.
    let is_folder = |path: &String| {
        let of = |manifest: &Manifest| {
            manifest
                .items
                .get(path)
                .is_none_or(|item| *item == Item::Folder)
        };
        of(then) && of(now)
    };
    all.retain(|(path, _)| !is_folder(path));
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

fn told(left_out: &BTreeMap<String, String>) -> Vec<Value> {
    let told = |(path, why): (&String, &String)| json!({"path": path, "reason": why});
    left_out.iter().map(told).collect()
}

fn io_error(what: &str, path: &Path, cause: &std::io::Error) -> Error {
    Error::new(
        code::IO,
        format!("Cannot {what} {}: {cause}.", path.display()),
    )
}

#[cfg(test)]
mod tests;

//! What is in a folder at the moment. Files that look as they did when they were last read are not read
//! again.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use ignore::WalkBuilder;
use pliant_sdk::Error;
use serde::{Deserialize, Serialize};

use super::blobs::Blobs;
use super::{Going, Item, LARGEST_FILE, MOST_BYTES, MOST_FILES, Manifest, io_error};
use crate::digest::Digest;
use crate::host::clock;

/// A file that was written this recently may be written again without its times telling, nanoseconds.
const JUST_NOW_NS: i128 = 50_000_000;

/// Folders that tools fill and nobody writes.
const SKIPPED: [&str; 2] = [".git", "node_modules"];

/// What files were when they were read, by path.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Seen(HashMap<String, Look>);

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Look {
    size: u64,
    modified_ns: i128,
    changed_ns: i128,
    inode: u64,
    hash: String,
}

impl Seen {
    /// As it was kept; nothing when that is not to be read.
    pub(super) fn read(store: &Path) -> Self {
        let text = fs::read(store.join("seen.json")).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// It is only there to be quick, so nothing is said when it cannot be kept.
    pub(super) fn write(&self, store: &Path) {
        let file = store.join("seen.json");
        let begun = super::blobs::beside(&file);
        let text = serde_json::to_vec(self).unwrap_or_default();
        if fs::write(&begun, text)
            .and_then(|()| fs::rename(&begun, &file))
            .is_err()
        {
            let _ = fs::remove_file(&begun);
        }
    }
}

/// Looks at everything below `root`, but for the store itself; contents are kept in `blobs`, if they are given.
///
/// # Errors
/// `invalid` for a folder that is too large, `cancelled`, `io` when contents cannot be kept.
pub(super) fn scan(
    root: &Path,
    store: &Path,
    blobs: Option<&Blobs>,
    seen: &mut Seen,
    going: &Going,
) -> Result<Manifest, Error> {
    let mut manifest = Manifest {
        taken_ms: clock::now_ms(),
        ..Manifest::default()
    };
    let known = std::mem::take(&mut seen.0);
    let mut bytes = 0;
    let walk = WalkBuilder::new(root)
        .hidden(false)
        .follow_links(false)
        .require_git(false)
        .parents(true)
        .filter_entry({
            let store = store.to_owned();
            move |entry| {
                let name = entry.file_name().to_str();
                entry.path() != store && !name.is_some_and(|name| SKIPPED.contains(&name))
            }
        })
        .build();
    for entry in walk {
        going.check()?;
        // What cannot be looked at is left out, and is not touched by a restore either.
        let Ok(entry) = entry else { continue };
        let Ok(path) = entry.path().strip_prefix(root) else {
            continue;
        };
        if path.as_os_str().is_empty() {
            continue;
        }
        let Some(name) = path.to_str().map(str::to_owned) else {
            let name = path.to_string_lossy().into_owned();
            manifest
                .left_out
                .insert(name, "its name is no UTF-8".to_owned());
            continue;
        };
        if manifest.items.len() >= MOST_FILES {
            return Err(too_large(root, &format!("more than {MOST_FILES} files")));
        }
        let item = match fs::symlink_metadata(entry.path()) {
            Ok(metadata) if metadata.is_dir() => Ok(Item::Folder),
            Ok(metadata) if metadata.is_symlink() => link(entry.path()),
            Ok(metadata) if metadata.is_file() => {
                let file = Found {
                    path: entry.path(),
                    metadata: &metadata,
                    known: known.get(&name),
                };
                bytes += metadata.len().min(LARGEST_FILE);
                match file.look(blobs)? {
                    Ok(look) => {
                        let item = Item::File {
                            hash: look.hash.clone(),
                            mode: metadata.permissions().mode() & 0o7777,
                            size: look.size,
                        };
                        // What was just written may change unseen.
                        let written = look.modified_ns.max(look.changed_ns);
                        if i128::from(manifest.taken_ms) * 1_000_000 - written > JUST_NOW_NS {
                            seen.0.insert(name.clone(), look);
                        }
                        Ok(item)
                    }
                    Err(why) => Err(why),
                }
            }
            Ok(_) => Err("it is no file".to_owned()),
            Err(cause) => Err(cause.to_string()),
        };
        if bytes > MOST_BYTES {
            return Err(too_large(root, &format!("more than {MOST_BYTES} bytes")));
        }
        match item {
            Ok(item) => drop(manifest.items.insert(name, item)),
            Err(why) => drop(manifest.left_out.insert(name, why)),
        }
    }
    Ok(manifest)
}

fn too_large(root: &Path, what: &str) -> Error {
    Error::invalid(format!(
        "No snapshot is taken of {}: it has {what}. Name what is not needed in a .gitignore file.",
        root.display()
    ))
}

fn link(path: &Path) -> Result<Item, String> {
    let target = fs::read_link(path).map_err(|cause| cause.to_string())?;
    let target = target.into_os_string().into_string();
    target
        .map(|target| Item::Link { target })
        .map_err(|_| "it points to a name that is no UTF-8".to_owned())
}

struct Found<'a> {
    path: &'a Path,
    metadata: &'a Metadata,
    known: Option<&'a Look>,
}

impl Found<'_> {
    /// What it is; why it is left out in the second place.
    fn look(&self, blobs: Option<&Blobs>) -> Result<Result<Look, String>, Error> {
        let metadata = self.metadata;
        let ns = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        let mut look = Look {
            size: metadata.len(),
            modified_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
            hash: String::new(),
        };
        if let Some(known) = self.known {
            look.hash.clone_from(&known.hash);
            let is_kept = blobs.is_none_or(|blobs| blobs.has(&known.hash));
            if look == *known && is_kept {
                return Ok(Ok(look));
            }
        }
        if look.size > LARGEST_FILE {
            return Ok(Err(format!("it has more than {} MiB", LARGEST_FILE >> 20)));
        }
        let content = match read(self.path) {
            Ok(content) => content,
            Err(cause) => return Ok(Err(cause.to_string())),
        };
        look.hash = Digest::of(&content).to_string();
        look.size = u64::try_from(content.len()).unwrap_or(u64::MAX);
        if let Some(blobs) = blobs {
            let kept = blobs.keep(&look.hash, &content);
            kept.map_err(|cause| io_error("keep", self.path, &cause))?;
        }
        Ok(Ok(look))
    }
}

/// A file that grows meanwhile is not read for ever.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let file = fs::File::open(path)?;
    file.take(LARGEST_FILE + 1).read_to_end(&mut content)?;
    Ok(content)
}

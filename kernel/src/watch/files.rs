//! What is known of the files of a place, so that events which changed nothing are silent.

use std::collections::HashMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::place::{Only, Place};

/// Files that one place may hold before the rest is passed by: somebody pointed it at a disk.
const MOST: usize = 20_000;

/// How deep a place is looked into; deeper there is a loop of links.
const DEEPEST: usize = 16;

/// What of a file changes when it is written or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    number: u64,
}

impl Stamp {
    /// Of a file; links are followed. `None` when there is none.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        metadata.is_file().then(|| Self::new(&metadata))
    }

    fn new(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let number = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let number = 0;
        Self {
            len: metadata.len(),
            modified: metadata.modified().ok(),
            number,
        }
    }
}

/// The files of a place and their stamps, as they are now.
pub(super) fn scan(place: &Place) -> HashMap<PathBuf, Stamp> {
    if let Only::Files(names) = &place.only {
        // The directory may be a large one, such as the user's home.
        let files = names.iter().map(|name| place.directory.join(name));
        let files = files.filter(|file| place.takes(file));
        let stamped = files.map(|file| (Stamp::of(&file), file));
        return stamped
            .filter_map(|(stamp, file)| Some((file, stamp?)))
            .collect();
    }
    let mut found = HashMap::new();
    let mut folders = vec![(place.directory.clone(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            if found.len() >= MOST {
                return found;
            }
            if place.takes(&path)
                && let Some(stamp) = Stamp::of(&path)
            {
                found.insert(path, stamp);
            } else if place.recursive && depth < DEEPEST && path.is_dir() && place.enters(&path) {
                folders.push((path, depth + 1));
            }
        }
    }
    found
}

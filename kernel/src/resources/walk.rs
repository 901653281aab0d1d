//! Walking through folders of resources: what is hidden or ignored is passed by, links are followed,
//! nothing is seen twice, and there is an end to it whatever the folders hold (`resources.md` §2).

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::textfile;

const DEPTH_LIMIT: usize = 16;
const ENTRY_LIMIT: usize = 10_000;
const FILE_LIMIT: usize = 1_000;

const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".fdignore"];
const IGNORE_FILE_BYTES: u64 = 64 << 10;

/// One walk through all places of one kind of resource.
#[derive(Debug)]
pub(super) struct Walk {
    /// Real paths of folders and files.
    seen: HashSet<PathBuf>,
    /// The rules of the folders from the root of a place down to where the walk is.
    ignores: Vec<Gitignore>,
    entries_left: usize,
    files_left: usize,
    cut: bool,
}

/// What a folder holds, by name.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) files: Vec<PathBuf>,
    pub(super) folders: Vec<PathBuf>,
}

impl Default for Walk {
    fn default() -> Self {
        Self {
            seen: HashSet::new(),
            ignores: Vec::new(),
            entries_left: ENTRY_LIMIT,
            files_left: FILE_LIMIT,
            cut: false,
        }
    }
}

impl Walk {
    /// Goes into a folder, which must be left again; `None` if it cannot be read, was seen before, or
    /// lies too deep.
    pub(super) fn enter(&mut self, folder: &Path) -> Option<Listing> {
        if self.ignores.len() >= DEPTH_LIMIT || !self.is_new(folder) {
            return None;
        }
        let mut entries = std::fs::read_dir(folder).ok()?;
        let looked_at = entries.by_ref().take(self.entries_left).flatten();
        let mut paths: Vec<PathBuf> = looked_at.map(|entry| entry.path()).collect();
        self.cut |= paths.len() == self.entries_left && entries.next().is_some();
        paths.sort();
        self.entries_left -= paths.len();
        self.ignores.push(rules(folder));
        let mut listing = Listing::default();
        for path in paths.into_iter().filter(|path| !is_hidden(path)) {
            // Follows links; a broken one is neither.
            let Ok(metadata) = path.metadata() else {
                continue;
            };
            if self.is_ignored(&path, metadata.is_dir()) {
                continue;
            }
            if metadata.is_dir() {
                listing.folders.push(path);
            } else if metadata.is_file() {
                listing.files.push(path);
            }
        }
        Some(listing)
    }

    /// Leaves the folder that was entered last.
    pub(super) fn leave(&mut self) {
        self.ignores.pop();
    }

    /// Whether a file should be read: not if it was met before, under whatever name.
    pub(super) fn meet(&mut self, file: &Path) -> bool {
        if !self.is_new(file) {
            return false;
        }
        let Some(left) = self.files_left.checked_sub(1) else {
            self.cut = true;
            return false;
        };
        self.files_left = left;
        true
    }

    /// Whether the walk was ended by its limits.
    pub(super) fn was_cut(&self) -> bool {
        self.cut
    }

    fn is_new(&mut self, path: &Path) -> bool {
        path.canonicalize().is_ok_and(|real| self.seen.insert(real))
    }

    /// The rules nearest to the file decide.
    fn is_ignored(&self, path: &Path, is_dir: bool) -> bool {
        let nearest = self.ignores.iter().rev();
        let decided = nearest
            .map(|rules| rules.matched(path, is_dir))
            .find(|decision| !decision.is_none());
        decided.is_some_and(|decision| decision.is_ignore())
    }
}

fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b".") || name == "node_modules"
}

/// The rules that a folder's files state; lines that are none are passed by.
fn rules(folder: &Path) -> Gitignore {
    let mut builder = GitignoreBuilder::new(folder);
    for name in IGNORE_FILES {
        let text = textfile::read_at_most(&folder.join(name), IGNORE_FILE_BYTES);
        for line in text.unwrap_or_default().lines() {
            let _ = builder.add_line(None, line);
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

//! Where plugins are looked for. One list, later directories win by plugin name; directories are not
//! searched in depth (`style.md` §10).

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::{Path, PathBuf};

use super::manifest::{FoundPlugin, LoadError, read_manifest};
use crate::registry::Rank;

/// What the file names of plugins begin with, behind what those of all libraries do.
pub const PLUGIN_PREFIX: &str = "pliant_";

/// Directories to search, in order.
#[derive(Debug, Clone, Default)]
pub struct SearchPath {
    directories: Vec<(PathBuf, Rank)>,
}

impl SearchPath {
    /// The places of an installation: beside the program, `../lib/pliant` from it, then the user's
    /// own directory.
    #[must_use]
    pub fn standard(program: Option<&Path>, agent_dir: &Path) -> Self {
        let mut path = Self::shipped(program);
        path.push(agent_dir.join("plugins"), Rank::User);
        path
    }

    /// The same without the user's own.
    #[must_use]
    pub fn shipped(program: Option<&Path>) -> Self {
        let mut path = Self::default();
        if let Some(beside) = program.and_then(Path::parent) {
            path.push(beside.to_path_buf(), Rank::BuiltIn);
            if let Some(prefix) = beside.parent() {
                path.push(prefix.join("lib").join("pliant"), Rank::BuiltIn);
            }
        }
        path
    }

    /// Adds a directory whose plugins replace equally named ones of the directories before it.
    pub fn push(&mut self, directory: PathBuf, rank: Rank) {
        self.directories.push((directory, rank));
    }

    /// The place in the load order of a library that lies in one of the directories.
    #[must_use]
    pub fn rank_of(&self, library: &Path) -> Option<Rank> {
        let folder = library.parent()?;
        let mut directories = self.directories.iter();
        let (_, rank) = directories.find(|(directory, _)| directory == folder)?;
        Some(*rank)
    }

    /// The directories, for messages.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.directories
            .iter()
            .map(|(directory, _)| directory.as_path())
    }
}

/// Looks through the search path. Files named `pliant_…` are plugins; what cannot be used is
/// answered beside them, once per file, and stops nothing.
#[must_use]
pub fn find_plugins(search: &SearchPath) -> (Vec<FoundPlugin>, Vec<LoadError>) {
    let mut found: Vec<FoundPlugin> = Vec::new();
    let mut problems = Vec::new();
    for (directory, rank) in &search.directories {
        for path in libraries(directory) {
            match found_at(&path, *rank) {
                Ok(plugin) => match found
                    .iter_mut()
                    .find(|old| old.manifest.name == plugin.manifest.name)
                {
                    Some(old) => *old = plugin,
                    None => found.push(plugin),
                },
                Err(problem) => problems.push(problem),
            }
        }
    }
    (found, problems)
}

/// Looks at one file, whatever its name.
///
/// # Errors
/// Why it cannot be loaded.
pub fn found_at(path: &Path, rank: Rank) -> Result<FoundPlugin, LoadError> {
    let manifest = read_manifest(path)?;
    Ok(FoundPlugin {
        path: path.to_path_buf(),
        manifest,
        rank,
    })
}

/// The plugin libraries of a directory, sorted, so that the load order does not depend on the disk.
fn libraries(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let is_plugin = |path: &PathBuf| {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        name.strip_prefix(DLL_PREFIX)
            .is_some_and(|rest| rest.starts_with(PLUGIN_PREFIX) && rest.ends_with(DLL_SUFFIX))
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(is_plugin)
        .collect();
    paths.sort();
    paths
}

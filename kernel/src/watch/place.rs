//! What is watched: directories, never single files, because a file that is replaced by renaming takes
//! the watch of its name with it (`plugin-abi.md` §10).

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// What kind of files a place holds, which says how long they have to be quiet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Native libraries.
    Library,
    /// Scripts.
    Script,
    /// Skills, templates, settings and the like.
    Text,
}

/// Which files of a place count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Only {
    /// All but those that editors and tools leave about.
    All,
    /// Those whose names begin and end so.
    Names {
        /// Beginning.
        prefix: String,
        /// Ending.
        suffix: String,
    },
    /// Those of these names.
    Files(Vec<OsString>),
}

/// A directory to watch. It need not be there yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The directory, absolute.
    pub directory: PathBuf,
    /// Whether what lies deeper counts too.
    pub recursive: bool,
    /// What it holds.
    pub class: Class,
    /// Which files.
    pub only: Only,
}

impl Place {
    /// A place for one file.
    #[must_use]
    pub fn file(path: &Path, class: Class) -> Option<Self> {
        let name = path.file_name()?.to_owned();
        Some(Self::files(path.parent()?, [name], class))
    }

    /// A place for the files of some names in a directory. What else lies there costs nothing.
    #[must_use]
    pub fn files(
        directory: &Path,
        names: impl IntoIterator<Item = impl Into<OsString>>,
        class: Class,
    ) -> Self {
        Self {
            directory: directory.to_owned(),
            recursive: false,
            class,
            only: Only::Files(names.into_iter().map(Into::into).collect()),
        }
    }

    /// Whether something of it lies at this path: a file that counts, or a directory that holds such.
    #[must_use]
    pub fn concerns(&self, path: &Path) -> bool {
        self.takes(path) || self.directory.starts_with(path)
    }

    /// Whether a directory inside may hold files that count.
    pub(super) fn enters(&self, folder: &Path) -> bool {
        let inside = folder.strip_prefix(&self.directory);
        inside.is_ok_and(|inside| !inside.components().any(is_ignored))
    }

    /// Whether a file counts, by its name and where it lies.
    pub(super) fn takes(&self, path: &Path) -> bool {
        let Ok(inside) = path.strip_prefix(&self.directory) else {
            return false;
        };
        let deep = inside.components().count();
        if deep == 0 || (deep > 1 && !self.recursive) || inside.components().any(is_ignored) {
            return false;
        }
        let name = path.file_name().unwrap_or_default();
        match &self.only {
            Only::All => true,
            Only::Files(names) => names.iter().any(|only| only == name),
            Only::Names { prefix, suffix } => name
                .to_str()
                .is_some_and(|name| name.starts_with(prefix.as_str()) && name.ends_with(suffix)),
        }
    }
}

/// What editors, builds and package managers leave about. A place below such a name is no matter: only
/// what lies deeper than the place is looked at.
fn is_ignored(part: Component<'_>) -> bool {
    let name = part.as_os_str().to_string_lossy();
    let endings = ["~", ".swp", ".tmp"];
    name.starts_with('.')
        || endings.iter().any(|ending| name.ends_with(ending))
        || ["4913", "node_modules", "target"].contains(&&*name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_takes_its_files_and_not_what_editors_leave_about() {
        // plugin-abi §10, resources §12.3
        let place = |recursive| Place {
            directory: PathBuf::from("/w/target/x"),
            recursive,
            class: Class::Script,
            only: Only::All,
        };
        let takes = |recursive, path: &str| place(recursive).takes(Path::new(path));
        assert!(takes(false, "/w/target/x/a.rhai"));
        assert!(!takes(false, "/w/target/x/b/a.rhai"));
        assert!(takes(true, "/w/target/x/b/a.rhai"));
        for left in [
            ".a.rhai.swp",
            "a.rhai~",
            "4913",
            "a.tmp",
            "node_modules/a",
            "target/a",
            ".git/a",
        ] {
            assert!(!takes(true, &format!("/w/target/x/{left}")), "{left}");
        }
        assert!(!takes(true, "/w/target/x"));
        assert!(!takes(true, "/w/target/y/a"));
        let only = Place::file(Path::new("/w/a.so"), Class::Library).unwrap();
        assert!(only.takes(Path::new("/w/a.so")) && !only.takes(Path::new("/w/b.so")));
    }
}

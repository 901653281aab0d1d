//! Which directories the system is asked to watch for a set of places, and what its events mean in the
//! words of the places. A directory that is not there is waited for in the nearest one above it; links
//! are followed, because the system speaks of what they lead to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::place::Place;

/// Directories to watch, and whether with all that lies deeper.
pub(super) type Roots = BTreeMap<PathBuf, bool>;

/// From a directory or file as the system calls it to what the places call it.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<(PathBuf, PathBuf)>);

impl Names {
    /// What a path of an event is called, in every way.
    pub(super) fn of(&self, path: &Path) -> Vec<PathBuf> {
        let named = |(real, given): &(PathBuf, PathBuf)| {
            let inside = path.strip_prefix(real).ok()?;
            // Joining nothing would add a slash.
            Some(match inside.as_os_str().is_empty() {
                true => given.clone(),
                false => given.join(inside),
            })
        };
        self.0.iter().filter_map(named).collect()
    }
}

/// The directories for some places, and the names of what they hold.
pub(super) fn roots<'a>(
    places: &[Place],
    files: impl Iterator<Item = &'a PathBuf>,
) -> (Roots, Names) {
    let (mut roots, mut names) = (Roots::new(), Names::default());
    let add = |roots: &mut Roots, directory: PathBuf, recursive: bool| {
        *roots.entry(directory).or_default() |= recursive;
    };
    for place in places {
        let (existing, is_place) = nearest(&place.directory);
        let real = existing.canonicalize().unwrap_or_else(|_| existing.clone());
        names.0.push((real.clone(), existing));
        add(&mut roots, real, place.recursive && is_place);
    }
    // A link to a file changes where it leads to.
    for file in files.filter(|file| file.is_symlink()) {
        if let Ok(real) = file.canonicalize()
            && let Some(parent) = real.parent()
        {
            add(&mut roots, parent.to_owned(), false);
            names.0.push((real, file.clone()));
        }
    }
    names.0.sort();
    names.0.dedup();
    (roots, names)
}

/// The directory itself, or the nearest one above it that is there.
fn nearest(directory: &Path) -> (PathBuf, bool) {
    let mut above = directory.ancestors();
    let found = above.find(|directory| directory.is_dir());
    let found = found.unwrap_or(Path::new("/")).to_owned();
    let is_place = found == directory;
    (found, is_place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{Class, Only};

    #[test]
    fn what_is_not_there_is_waited_for_above_and_links_are_followed() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("real")).unwrap();
        std::os::unix::fs::symlink(base.join("real"), base.join("link")).unwrap();
        let place = |name: &str| Place {
            directory: base.join(name),
            recursive: true,
            class: Class::Text,
            only: Only::All,
        };
        let places = [place("link"), place("later/on")];
        let (roots, names) = roots(&places, std::iter::empty());
        let expected = [(base.clone(), false), (base.join("real"), true)];
        assert_eq!(roots.into_iter().collect::<Vec<_>>(), expected);
        let named = names.of(&base.join("real/a/b"));
        assert!(named.contains(&base.join("link/a/b")), "{named:?}");
        assert_eq!(names.of(&base.join("later")), [base.join("later")]);
    }
}

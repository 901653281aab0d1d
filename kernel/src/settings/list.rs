//! Lists of resources: paths to more of them, and patterns for which of those that are found count
//! (`resources.md` §2).

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Who brought something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
    /// Whoever started the program, for this run.
    Run,
    /// The user.
    #[default]
    User,
    /// The project.
    Project,
    /// A package.
    Package,
    /// It ships with pliant.
    Shipped,
}

/// What one file's list of one kind says.
#[derive(Debug, Clone)]
pub struct ResourceList {
    /// Whose file it is.
    pub scope: Scope,
    /// More files or folders, absolute.
    pub places: Vec<PathBuf>,
    /// Which of what is found count.
    pub patterns: Patterns,
}

/// `!glob` leaves out, `+path` keeps one nevertheless, `-path` leaves one out whatever else is said; a
/// glob without a sign selects among the listed places.
#[derive(Debug, Clone)]
pub struct Patterns {
    selected: Gitignore,
    excluded: Gitignore,
    kept: Vec<PathBuf>,
    dropped: Vec<PathBuf>,
}

impl ResourceList {
    /// Reads entries; relative ones start in `base`.
    #[must_use]
    pub fn new(scope: Scope, base: &Path, entries: &[String], home: Option<&Path>) -> Self {
        let absolute = |entry: &str| match (entry.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => base.join(entry.strip_prefix("./").unwrap_or(entry)),
        };
        let (mut selected, mut excluded) =
            (GitignoreBuilder::new(base), GitignoreBuilder::new(base));
        let (mut places, mut kept, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
        for entry in entries {
            match entry.as_bytes().first() {
                None => {}
                // These are about what ships.
                Some(b'+' | b'-') if entry[1..].starts_with(super::BUILTIN) => {}
                // A pattern that is none matches nothing.
                Some(b'!') => drop(excluded.add_line(None, &entry[1..])),
                Some(b'+') => kept.push(absolute(&entry[1..])),
                Some(b'-') => dropped.push(absolute(&entry[1..])),
                _ if entry.contains(['*', '?']) => drop(selected.add_line(None, entry)),
                _ => places.push(absolute(entry)),
            }
        }
        let built =
            |builder: GitignoreBuilder| builder.build().unwrap_or_else(|_| Gitignore::empty());
        Self {
            scope,
            places,
            patterns: Patterns {
                selected: built(selected),
                excluded: built(excluded),
                kept,
                dropped,
            },
        }
    }
}

impl Patterns {
    /// Those of a filter on a folder: a path without a sign selects too.
    #[must_use]
    pub fn selecting(folder: &Path, entries: &[String]) -> Self {
        let mut selected = GitignoreBuilder::new(folder);
        for entry in entries
            .iter()
            .filter(|entry| !entry.starts_with(['!', '+', '-']))
        {
            // A pattern that is none matches nothing.
            let _ = selected.add_line(None, entry.trim_start_matches("./"));
        }
        let signed = ResourceList::new(Scope::Package, folder, entries, None);
        Self {
            selected: selected.build().unwrap_or_else(|_| Gitignore::empty()),
            ..signed.patterns
        }
    }

    /// Whether a file counts; `listed` says that it comes from one of the list's places.
    #[must_use]
    pub fn take(&self, file: &Path, listed: bool) -> bool {
        let is = |path: &PathBuf| {
            let in_it = file.file_name().is_some_and(|name| name == "SKILL.md");
            path == file || (in_it && Some(path.as_path()) == file.parent())
        };
        if self.dropped.iter().any(is) {
            return false;
        }
        let left_out = matches(&self.excluded, file)
            || (listed && !self.selected.is_empty() && !matches(&self.selected, file));
        !left_out || self.kept.iter().any(is)
    }
}

/// Patterns speak of what lies below the folder of their file.
fn matches(patterns: &Gitignore, file: &Path) -> bool {
    file.starts_with(patterns.path())
        && patterns
            .matched_path_or_any_parents(file, false)
            .is_ignore()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> ResourceList {
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        ResourceList::new(
            Scope::User,
            Path::new("/b"),
            &entries,
            Some(Path::new("/home/u")),
        )
    }

    #[test]
    fn places_start_at_the_folder_of_their_file() {
        // resources §2
        let places = list(&["skills/a", "./c.md", "/x", "~/y", "", "!z"]).places;
        let expected = ["/b/skills/a", "/b/c.md", "/x", "/home/u/y"];
        assert_eq!(places, expected.map(PathBuf::from));
    }

    #[test]
    fn a_pattern_leaves_out_and_a_path_keeps_or_drops_one() {
        // resources §2
        for (entries, file, listed, taken) in [
            (&[][..], "skills/a/SKILL.md", false, true),
            (&["!a"], "skills/a/SKILL.md", false, false),
            (&["!skills/*"], "skills/a/SKILL.md", false, false),
            (&["!skills/b*"], "skills/a/SKILL.md", false, true),
            (
                &["!skills/*", "+skills/a"],
                "skills/a/SKILL.md",
                false,
                true,
            ),
            (
                &["!skills/*", "+skills/a"],
                "skills/b/SKILL.md",
                false,
                false,
            ),
            (
                &["+prompts/a.md", "-prompts/a.md"],
                "prompts/a.md",
                false,
                false,
            ),
            (&["-prompts/a.md"], "prompts/b.md", false, true),
            (&["x*.md"], "prompts/a.md", false, true),
            (&["x*.md"], "more/a.md", true, false),
            (&["x*.md"], "more/xa.md", true, true),
        ] {
            let file = Path::new("/b").join(file);
            assert_eq!(
                list(entries).patterns.take(&file, listed),
                taken,
                "{entries:?} {file:?}"
            );
        }
        assert!(
            list(&["!*"])
                .patterns
                .take(Path::new("/elsewhere/a.md"), false)
        );
    }
}

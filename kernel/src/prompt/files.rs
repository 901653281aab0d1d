//! Files that the prompt is made of by convention: instructions of directories (`resources.md` §6), and
//! what replaces or extends the prompt itself (§7). Paths come in; texts come out, with sentences about
//! what cannot be read.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::settings::PROJECT_DIR;
use crate::textfile;

/// The names of instructions; in each directory the first one that can be read counts.
pub(super) const NAMES: [&str; 5] = [
    "AGENTS.override.md",
    "AGENTS.md",
    "AGENTS.MD",
    "CLAUDE.md",
    "CLAUDE.MD",
];

/// The instruction files in force, path and text: the user's, then from the outermost ancestor down to
/// `cwd`, one per directory (`interfaces.md` §3). They need no trust.
#[must_use]
pub fn context_files(
    agent_dir: &Path,
    cwd: &Path,
    problems: &mut Vec<String>,
) -> Vec<(String, String)> {
    let ancestors: Vec<&Path> = cwd.ancestors().collect();
    let directories = std::iter::once(agent_dir).chain(ancestors.into_iter().rev());
    let worktree = Worktree::around(cwd);
    let mut files: Vec<(String, String)> = Vec::new();
    for directory in directories {
        let Some((path, text)) = context_file(directory, problems) else {
            continue;
        };
        let path_shown = path.display().to_string();
        let is_met = files.iter().any(|(met, _)| *met == path_shown);
        let is_copy = worktree.as_ref().is_some_and(|tree| tree.has_own(&path));
        if !is_met && !is_copy {
            files.push((path_shown, text));
        }
    }
    files
}

fn context_file(directory: &Path, problems: &mut Vec<String>) -> Option<(PathBuf, String)> {
    for name in NAMES {
        let path = directory.join(name);
        // Folders and pipes of that name are no instructions.
        if !fs::metadata(&path).is_ok_and(|found| found.is_file()) {
            continue;
        }
        match textfile::read(&path) {
            Ok(text) => return Some((path, text)),
            Err(error) => problems.push(format!(
                "The instructions in {} are left out, because they cannot be read: {error}.",
                path.display()
            )),
        }
    }
    None
}

/// A linked worktree that lies inside its own repository: both have the same instructions, which must
/// not be there twice.
struct Worktree {
    root: PathBuf,
    repository: PathBuf,
}

impl Worktree {
    fn around(cwd: &Path) -> Option<Self> {
        let root = cwd
            .ancestors()
            .find(|folder| folder.join(".git").exists())?;
        // A file instead of a folder, that names `REPOSITORY/.git/worktrees/NAME`.
        let link = textfile::read_at_most(&root.join(".git"), 4096).ok()?;
        let git_dir = root.join(link.trim().strip_prefix("gitdir:")?.trim());
        let worktrees = git_dir.parent()?;
        let git = worktrees.parent()?;
        if worktrees.file_name()? != "worktrees" || git.file_name()? != ".git" {
            return None;
        }
        let repository = git.parent()?.canonicalize().ok()?;
        let inside = root.canonicalize().ok()?;
        (inside != repository && inside.starts_with(&repository)).then(|| Self {
            root: root.to_owned(),
            repository,
        })
    }

    /// Whether a file is the repository's, and the worktree has one of that name.
    fn has_own(&self, path: &Path) -> bool {
        let of_repository = path
            .parent()
            .and_then(|folder| folder.canonicalize().ok())
            .is_some_and(|folder| folder == self.repository);
        let name = path.file_name().unwrap_or_default();
        of_repository && self.root.join(name).is_file()
    }
}

/// The files that replace or extend the prompt.
pub(super) const PROMPTS: [&str; 2] = ["SYSTEM.md", "APPEND_SYSTEM.md"];

/// Where a project has its own.
pub(super) fn project_dir(cwd: &Path) -> PathBuf {
    cwd.join(PROJECT_DIR)
}

/// What replaces the introduction of the prompt, and what is added to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptFiles {
    /// `SYSTEM.md`.
    pub custom: Option<String>,
    /// `APPEND_SYSTEM.md`.
    pub addendum: Option<String>,
}

impl PromptFiles {
    /// Reads those of the user, or in their place those of a trusted project.
    #[must_use]
    pub fn read(agent_dir: &Path, trusted: Option<&Path>, problems: &mut Vec<String>) -> Self {
        let project = trusted.map(project_dir);
        let folders: Vec<&Path> = project.as_deref().into_iter().chain([agent_dir]).collect();
        Self {
            custom: first(PROMPTS[0], &folders, problems),
            addendum: first(PROMPTS[1], &folders, problems),
        }
    }
}

/// The text of the first file there is; a blank one stands for nothing. One that cannot be read leaves
/// the next in force.
fn first(name: &str, folders: &[&Path], problems: &mut Vec<String>) -> Option<String> {
    for folder in folders {
        let path = folder.join(name);
        match textfile::read(&path) {
            Ok(text) => return (!text.trim().is_empty()).then_some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => problems.push(format!(
                "The prompt file {} is not used, because it cannot be read: {error}.",
                path.display()
            )),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        /// Files that hold their own path.
        fn with(files: &[&str]) -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            for file in files {
                tree.write(file, file);
            }
            tree
        }

        fn write(&self, file: &str, text: impl AsRef<[u8]>) {
            let path = self.0.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn context(&self, cwd: &str) -> (Vec<String>, Vec<String>) {
            let mut problems = Vec::new();
            let root = self.0.path();
            fs::create_dir_all(root.join(cwd)).unwrap();
            let files = context_files(&root.join("agent"), &root.join(cwd), &mut problems);
            // What lies above the temporary folder is not the test's.
            let root = root.display().to_string();
            let own = files
                .into_iter()
                .filter(|(path, _)| path.starts_with(&root));
            (own.map(|(_, text)| text).collect(), problems)
        }
    }

    #[test]
    fn the_users_come_first_then_from_the_outermost_folder_down() {
        // interfaces §3, resources §13.7
        let tree = Tree::with(&[
            "agent/AGENTS.md",
            "AGENTS.md",
            "a/CLAUDE.md",
            "a/b/AGENTS.md",
        ]);
        let (files, problems) = tree.context("a/b");
        assert_eq!(
            files,
            [
                "agent/AGENTS.md",
                "AGENTS.md",
                "a/CLAUDE.md",
                "a/b/AGENTS.md"
            ]
        );
        assert!(problems.is_empty());
        assert_eq!(tree.context("agent").0, ["agent/AGENTS.md", "AGENTS.md"]);
    }

    #[test]
    fn one_file_counts_in_a_folder_and_an_override_shadows_its_own_folder_only() {
        // resources §6, §13.7
        let tree = Tree::with(&[
            "AGENTS.override.md",
            "AGENTS.md",
            "a/AGENTS.md",
            "a/CLAUDE.md",
        ]);
        assert_eq!(tree.context("a").0, ["AGENTS.override.md", "a/AGENTS.md"]);
    }

    #[test]
    fn what_cannot_be_read_is_told_and_the_next_name_counts() {
        // resources §13.7
        let tree = Tree::with(&["a/CLAUDE.md"]);
        tree.write("a/AGENTS.md", [0xff, 0xfe, 0xff]);
        fs::create_dir(tree.0.path().join("a/AGENTS.override.md")).unwrap();
        let (files, problems) = tree.context("a");
        assert_eq!(files, ["a/CLAUDE.md"]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].contains("a/AGENTS.md are left out"),
            "{problems:?}"
        );
    }

    #[test]
    fn a_worktree_inside_its_repository_has_the_instructions_once() {
        // resources §6
        let tree = Tree::with(&[
            "r/AGENTS.md",
            "r/w/AGENTS.md",
            "s/AGENTS.md",
            "r/.git/worktrees/w/HEAD",
        ]);
        let git_dir = tree.0.path().join("r/.git/worktrees/w");
        let link = format!("gitdir: {}\n", git_dir.display());
        tree.write("r/w/.git", &link);
        assert_eq!(tree.context("r/w/deep").0, ["r/w/AGENTS.md"]);
        // One beside the repository is another folder.
        tree.write("s/.git", &link);
        assert_eq!(tree.context("s").0, ["s/AGENTS.md"]);
        // Another name is another text.
        fs::rename(
            tree.0.path().join("r/w/AGENTS.md"),
            tree.0.path().join("r/w/CLAUDE.md"),
        )
        .unwrap();
        assert_eq!(tree.context("r/w").0, ["r/AGENTS.md", "r/w/AGENTS.md"]);
    }

    #[test]
    fn a_trusted_projects_prompt_files_stand_in_the_place_of_the_users() {
        // interfaces §3, resources §7
        let tree = Tree::with(&[
            "agent/SYSTEM.md",
            "agent/APPEND_SYSTEM.md",
            "p/.pliant/SYSTEM.md",
        ]);
        let read = |trusted: bool| {
            let project = tree.0.path().join("p");
            let trusted = trusted.then_some(&*project);
            let mut problems = Vec::new();
            let files = PromptFiles::read(&tree.0.path().join("agent"), trusted, &mut problems);
            (files.custom, files.addendum, problems)
        };
        let of_user = Some("agent/APPEND_SYSTEM.md".to_owned());
        let (custom, addendum, _) = read(false);
        assert_eq!(custom.as_deref(), Some("agent/SYSTEM.md"));
        assert_eq!(addendum, of_user);
        let (custom, addendum, _) = read(true);
        assert_eq!(custom.as_deref(), Some("p/.pliant/SYSTEM.md"));
        assert_eq!(addendum, of_user);
        tree.write("p/.pliant/SYSTEM.md", " \n");
        tree.write("p/.pliant/APPEND_SYSTEM.md", [0xff]);
        let (custom, addendum, problems) = read(true);
        assert_eq!((custom, addendum), (None, of_user));
        assert!(
            problems[0].contains("APPEND_SYSTEM.md is not used"),
            "{problems:?}"
        );
    }
}

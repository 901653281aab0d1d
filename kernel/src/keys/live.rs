//! The key bindings that count now. A file that cannot be read leaves them as they were.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::{Action, FILE, KeyBindings, Platform};
use crate::watch::{Class, Place};

/// What everybody asks who needs a key: at each use, because they may change.
#[derive(Debug)]
pub struct LiveKeys {
    /// The user's file, then those that count where there is none before them.
    files: Vec<PathBuf>,
    platform: Platform,
    current: ArcSwap<KeyBindings>,
    /// What was odd when they were last read.
    problems: ArcSwap<Vec<String>>,
}

/// What reading anew has changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reread {
    /// The actions that have other keys now.
    pub changed: Vec<Action>,
    /// What is odd now and was not before, in sentences.
    pub problems: Vec<String>,
}

impl LiveKeys {
    /// Reads the user's file, or pi's where the user has none (`interfaces.md` §3.1). What is odd is told.
    #[must_use]
    pub fn load(
        agent_dir: &Path,
        pi_dir: Option<&Path>,
        platform: Platform,
    ) -> (Self, Vec<String>) {
        let dirs = [Some(agent_dir), pi_dir].into_iter().flatten();
        let live = Self {
            files: dirs.map(|dir| dir.join(FILE)).collect(),
            platform,
            current: ArcSwap::from_pointee(KeyBindings::defaults(platform)),
            problems: ArcSwap::default(),
        };
        let problems = live.reread().problems;
        (live, problems)
    }

    /// Those that count now.
    #[must_use]
    pub fn now(&self) -> Arc<KeyBindings> {
        self.current.load_full()
    }

    /// The file that counts.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        let there = self.files.iter().find(|file| file.exists());
        there.or(self.files.first()).map(PathBuf::as_path)
    }

    /// Where changes are seen.
    #[must_use]
    pub fn places(&self) -> Vec<Place> {
        let files = self.files.iter();
        files
            .filter_map(|file| Place::file(file, Class::Text))
            .collect()
    }

    /// Reads them anew.
    pub fn reread(&self) -> Reread {
        let Some(file) = self.file() else {
            return Reread::default();
        };
        let before = self.now();
        let problems = match KeyBindings::read(file, self.platform) {
            Ok((bindings, problems)) => {
                self.current.store(Arc::new(bindings));
                problems
            }
            Err(problem) => vec![problem],
        };
        let known = self.problems.swap(Arc::new(problems.clone()));
        let after = self.now();
        let has_others = |action: &Action| before.keys(*action) != after.keys(*action);
        let news = problems
            .into_iter()
            .filter(|problem| !known.contains(problem));
        Reread {
            changed: Action::all().filter(has_others).collect(),
            problems: news.collect(),
        }
    }
}

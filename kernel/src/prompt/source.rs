//! Where the texts of a prompt are read, at the start of a session and whenever their files change.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::PromptOptions;
use super::files::{self, PromptFiles, context_files};
use crate::resources::LiveResources;
use crate::watch::{Class, Place};

/// What the prompt of a session is read from.
#[derive(Debug, Clone)]
pub struct PromptSource {
    /// Given on the command line, in the place of `SYSTEM.md`.
    pub custom: Option<String>,
    /// Given there, in the place of `APPEND_SYSTEM.md`.
    pub addendum: Option<String>,
    /// The user's directory.
    pub agent_dir: PathBuf,
    /// The project whose files count, if it is trusted.
    pub trusted: Option<PathBuf>,
    /// Where the session works.
    pub cwd: PathBuf,
    /// Whether instructions of directories count.
    pub context_files: bool,
    /// Skills and templates.
    pub resources: Arc<LiveResources>,
}

impl PromptSource {
    /// Reads everything, as it is now.
    #[must_use]
    pub fn read(&self, problems: &mut Vec<String>) -> PromptOptions {
        let files = PromptFiles::read(&self.agent_dir, self.trusted.as_deref(), problems);
        PromptOptions {
            custom: self.custom.clone().or(files.custom),
            addendum: self.addendum.clone().or(files.addendum),
            context_files: match self.context_files {
                true => context_files(&self.agent_dir, &self.cwd, problems),
                false => Vec::new(),
            },
            resources: self.resources.current(),
            cwd: self.cwd.display().to_string(),
        }
    }

    /// Where changes of the files are seen; skills and templates have their own places.
    #[must_use]
    pub fn places(&self) -> Vec<Place> {
        let instructions = self.context_files.then(|| {
            let folders = std::iter::once(&*self.agent_dir).chain(self.cwd.ancestors());
            folders.flat_map(|folder| files::NAMES.map(|name| folder.join(name)))
        });
        let trusted = self.trusted.as_deref().map(files::project_dir);
        let folders = trusted
            .iter()
            .map(PathBuf::as_path)
            .chain([&*self.agent_dir]);
        let prompts =
            folders.flat_map(|folder: &Path| files::PROMPTS.map(|name| folder.join(name)));
        let all = prompts.chain(instructions.into_iter().flatten());
        all.filter_map(|file| Place::file(&file, Class::Text))
            .collect()
    }
}

//! Where the texts of a prompt are read, at the start of a session and whenever their files change.

use std::path::PathBuf;
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
        let folders = std::iter::once(&*self.agent_dir).chain(self.cwd.ancestors());
        let folders = folders.filter(|_| self.context_files);
        let instructions = folders.map(|folder| Place::files(folder, files::NAMES, Class::Text));
        let project = self.trusted.as_deref().map(files::project_dir);
        let folders = project.iter().chain([&self.agent_dir]);
        let prompts = folders.map(|folder| Place::files(folder, files::PROMPTS, Class::Text));
        prompts.chain(instructions).collect()
    }
}

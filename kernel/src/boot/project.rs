//! What the project in the working directory may say, once it is decided whether it is trusted.

use std::path::{Path, PathBuf};

use super::{Kernel, KernelOptions};
use crate::registry::Rank;
use crate::resources::{ResourceOptions, extension_files};
use crate::settings::Settings;
use crate::trust;

/// The settings of user and project, or those that were given, and whether the project is trusted. What
/// is odd is told.
pub(super) fn settings(options: &KernelOptions, warnings: &mut Vec<String>) -> (Settings, bool) {
    let cwd = &options.cwd;
    let (settings, problems) = match &options.settings {
        Some(given) => (given.clone(), Vec::new()),
        None => Settings::load(&options.agent_dir),
    };
    warnings.extend(problems);
    let with_pi = !options.resources.no_pi && settings.reads_pi_resources();
    let files = trust::needing_trust(cwd, options.resources.home.as_deref(), with_pi);
    let default = settings.used().default_project_trust.unwrap_or_default();
    let verdict = trust::decide(&options.trust, &options.agent_dir, cwd, files, default);
    warnings.extend(verdict.notices);
    if options.settings.is_some() {
        return (settings, verdict.trusted);
    }
    if !verdict.trusted {
        return (settings.with_untrusted_project(cwd), false);
    }
    let (settings, problems) = settings.with_project(cwd);
    warnings.extend(problems);
    (settings, true)
}

/// Which resources count: what was asked for, what the settings list, and the project's if it is
/// trusted.
pub(super) fn resource_options(
    options: &KernelOptions,
    settings: &Settings,
    trusted: bool,
) -> ResourceOptions {
    let mut wanted = options.resources.clone();
    wanted.no_pi |= !settings.reads_pi_resources();
    wanted.project = trusted;
    let home = options.resources.home.as_deref();
    wanted.skill_lists = settings.lists("skills", home);
    wanted.template_lists = settings.lists("prompts", home);
    wanted
}

impl Kernel {
    /// Whether the files of the project in the working directory count.
    #[must_use]
    pub fn trusts_project(&self) -> bool {
        self.trusted
    }

    /// The files of extensions with that ending, for whoever runs them: of the project if it is trusted,
    /// and of the user. What is odd is told in sentences.
    #[must_use]
    pub fn extension_files(&self, ending: &str) -> (Vec<(PathBuf, Rank)>, Vec<String>) {
        let options = resource_options(&self.options, &self.settings, self.trusted);
        let lists = self.settings.lists("extensions", options.home.as_deref());
        let KernelOptions { agent_dir, cwd, .. } = &self.options;
        extension_files(ending, &lists, &options, agent_dir, cwd)
    }

    /// The project whose files count, if it is trusted.
    pub(super) fn trusted_project(&self) -> Option<&Path> {
        self.trusted.then_some(&*self.options.cwd)
    }
}

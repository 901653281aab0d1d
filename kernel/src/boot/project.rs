//! What the project in the working directory may say, once it is decided whether it is trusted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::{Kernel, KernelOptions};
use crate::packages;
use crate::registry::Rank;
use crate::resources::{ResourceOptions, extension_files};
use crate::settings::{PROJECT_DIR, Settings};
use crate::theme::ThemeChoice;
use crate::trust::{self, TrustRules, Verdict};

/// The settings of the user, or those that were given.
pub(super) fn of_user(options: &KernelOptions) -> (Settings, Vec<String>) {
    match &options.settings {
        Some(given) => (given.clone(), Vec::new()),
        None => Settings::load(&options.agent_dir),
    }
}

/// What of the project needs trust.
pub(super) fn needing_trust(options: &KernelOptions) -> Vec<PathBuf> {
    let (settings, _) = of_user(options);
    files_to_trust(options, &settings)
}

fn files_to_trust(options: &KernelOptions, settings: &Settings) -> Vec<PathBuf> {
    let with_pi = !options.resources.no_pi && settings.reads_pi_resources();
    trust::needing_trust(&options.cwd, options.resources.home.as_deref(), with_pi)
}

/// The files of the user's own extensions.
pub(super) fn user_extension_files(options: &KernelOptions, ending: &str) -> Vec<PathBuf> {
    let (settings, _) = of_user(options);
    let wanted = resource_options(options, &settings, false, &mut Vec::new());
    let lists = settings.lists("extensions", wanted.home.as_deref());
    let (files, _) = extension_files(ending, &lists, &wanted, &options.agent_dir, &options.cwd);
    files.into_iter().map(|(file, _)| file).collect()
}

/// The settings of user and project, or those that were given, and what came out about the project's
/// trust. What is odd is told.
pub(super) fn settings(options: &KernelOptions, warnings: &mut Vec<String>) -> (Settings, Verdict) {
    let cwd = &options.cwd;
    let (settings, problems) = of_user(options);
    warnings.extend(problems);
    let files = files_to_trust(options, &settings);
    let rules = TrustRules {
        default: settings.used().default_project_trust.unwrap_or_default(),
        recheck: settings.is_on("trust.recheck").unwrap_or(true),
    };
    let mut verdict = trust::decide(&options.trust, &options.agent_dir, cwd, files, rules);
    warnings.append(&mut verdict.notices);
    if options.settings.is_some() {
        return (settings, verdict);
    }
    if !verdict.trusted {
        return (settings.with_untrusted_project(cwd), verdict);
    }
    let (settings, problems) = settings.with_project(cwd);
    warnings.extend(problems);
    (settings, verdict)
}

/// Which resources count: what was asked for, what the settings list, and the project's if it is
/// trusted.
pub(super) fn resource_options(
    options: &KernelOptions,
    settings: &Settings,
    trusted: bool,
    warnings: &mut Vec<String>,
) -> ResourceOptions {
    let mut wanted = options.resources.clone();
    wanted.no_pi |= !settings.reads_pi_resources();
    wanted.project = trusted;
    let home = options.resources.home.as_deref();
    wanted.skill_lists = settings.lists("skills", home);
    wanted.template_lists = settings.lists("prompts", home);
    wanted.theme_lists = settings.lists("themes", home);
    if wanted.theme.is_none() {
        wanted.theme = theme_choice(settings, warnings);
    }
    let (named, odd) = packages::entries(settings, home);
    warnings.extend(odd);
    wanted.packages = named.into();
    let settings = settings.clone();
    let is_off = move |kind: &str, name: &str| settings.ships(kind, name) == Some(false);
    wanted.shipped_off = Some(Arc::new(is_off));
    wanted
}

/// Which theme the settings want, if they say so.
fn theme_choice(settings: &Settings, warnings: &mut Vec<String>) -> Option<ThemeChoice> {
    const KEY: &str = "theme";
    let written = match settings.get(KEY) {
        Value::Null => return None,
        written => written,
    };
    let choice = written.as_str().and_then(ThemeChoice::parse);
    if choice.is_none() {
        warnings.push(format!(
            "The setting \"{KEY}\" is neither the name of a theme nor two names, \"light/dark\"; it is passed by."
        ));
    }
    choice
}

impl Kernel {
    /// Whether the files of the project in the working directory count.
    #[must_use]
    pub fn trusts_project(&self) -> bool {
        self.trusted
    }

    /// Finds the files of extensions with that ending, for whoever runs them: of the project if it is
    /// trusted, and of the user. Looks anew at each call; what is odd is told in sentences.
    pub fn extension_finder(
        &self,
        ending: &'static str,
    ) -> impl Fn() -> (Vec<(PathBuf, Rank)>, Vec<String>) + Send + Sync + use<> {
        let (options, trusted) = (self.options.clone(), self.trusted);
        let settings = Arc::clone(&self.settings);
        move || {
            let settings = settings.now();
            // What is odd about packages is told with their skills and templates.
            let wanted = resource_options(&options, &settings, trusted, &mut Vec::new());
            let lists = settings.lists("extensions", wanted.home.as_deref());
            extension_files(ending, &lists, &wanted, &options.agent_dir, &options.cwd)
        }
    }

    /// Whether the settings switch an extension on or off that ships, asked anew at each call.
    pub fn shipped_chooser(&self) -> impl Fn(&str) -> Option<bool> + Send + Sync + use<> {
        let settings = Arc::clone(&self.settings);
        move |name| settings.now().ships("extensions", name)
    }

    /// The folders in which those files are found.
    #[must_use]
    pub fn extension_folders(&self) -> Vec<PathBuf> {
        let of_project = self
            .trusted_project()
            .map(|cwd| cwd.join(PROJECT_DIR).join("extensions"));
        let of_user = self.options.agent_dir.join("extensions");
        let resources = self.resources.options();
        let (packages, _) = packages::places_of(&resources.packages, &self.options.agent_dir);
        let of_packages = packages.extensions.into_iter().map(|place| place.path);
        let of_packages = of_packages.filter(|path| path.is_dir());
        let all = of_project.into_iter().chain([of_user]);
        all.chain(of_packages).collect()
    }

    /// The user at the terminal has worked with the project's extensions as they are now, and changed them
    /// as he wanted.
    pub(super) fn agree_to_project(&self) {
        if self.trusts_by_decision && self.options.trust.ask.is_some() {
            trust::agree_to_what_runs(&self.options.agent_dir, &self.options.cwd);
        }
    }

    /// The project whose files count, if it is trusted.
    pub(super) fn trusted_project(&self) -> Option<&Path> {
        self.trusted.then_some(&*self.options.cwd)
    }
}

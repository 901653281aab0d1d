//! The settings, as something that a reload reads anew.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pliant_sdk::event::{SourceChange, SourceOutcome};

use super::{KernelOptions, project};
use crate::reload::{Reread, Texts};
use crate::resources::LiveResources;
use crate::settings::{self, FILE, LiveSettings, PROJECT_DIR, Settings};
use crate::watch::{Class, Place};

/// Keys that say where things are looked for, and which of them count.
const PLACES: [&str; 7] = [
    "extensions",
    "packages",
    "piCompat",
    "prompts",
    "skills",
    "theme",
    "themes",
];

/// Keys that are looked at when the program starts, and no more.
const AT_START: [&str; 9] = [
    "hotReload",
    "httpIdleTimeoutMs",
    "httpProxy",
    "pluginSettings",
    "plugins",
    "sessionDir",
    "shellPath",
    "transport",
    "tuiMode",
];

/// The settings of a kernel.
pub(super) struct SettingsTexts {
    options: KernelOptions,
    trusted: bool,
    live: Arc<LiveSettings>,
    resources: Arc<LiveResources>,
    /// What was odd when they were last read.
    problems: Mutex<Vec<String>>,
}

impl SettingsTexts {
    pub(super) fn new(
        options: KernelOptions,
        trusted: bool,
        live: Arc<LiveSettings>,
        resources: Arc<LiveResources>,
    ) -> Self {
        Self {
            options,
            trusted,
            live,
            resources,
            problems: Mutex::default(),
        }
    }

    /// What is odd now and was not before.
    fn news(&self, problems: Vec<String>) -> Vec<String> {
        let mut known = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        let news = problems.iter().filter(|problem| !known.contains(problem));
        let news = news.cloned().collect();
        *known = problems;
        news
    }

    /// The files, the user's first. What a project says before anybody trusts it is where its sessions
    /// are, which holds from the start on.
    fn files(&self) -> Vec<PathBuf> {
        if self.options.settings.is_some() {
            return Vec::new();
        }
        let of_user = self.options.agent_dir.join(FILE);
        let of_project = self.options.cwd.join(PROJECT_DIR).join(FILE);
        let of_project = self.trusted.then_some(of_project);
        [of_user].into_iter().chain(of_project).collect()
    }

    fn read(&self) -> (Settings, Vec<String>) {
        let (user, mut problems) = Settings::load(&self.options.agent_dir);
        if !self.trusted {
            return (user.with_untrusted_project(&self.options.cwd), problems);
        }
        let (settings, more) = user.with_project(&self.options.cwd);
        problems.extend(more);
        (settings, problems)
    }
}

impl Texts for SettingsTexts {
    fn places(&self) -> Vec<Place> {
        let files = self.files();
        let places = files.iter().map(|file| Place::file(file, Class::Text));
        places.flatten().collect()
    }

    /// A file that cannot be read leaves everything as it was.
    fn reread(&self) -> Reread {
        let files = self.files();
        let broken = files.iter().filter_map(|file| {
            let error = settings::readable(file).err()?;
            Some(
                SourceChange::new(FILE, Some(file), SourceOutcome::Failed)
                    .saying(format!("The settings count as before: {error}")),
            )
        });
        let broken: Vec<SourceChange> = broken.collect();
        if files.is_empty() || !broken.is_empty() {
            return broken.into();
        }
        let (settings, mut problems) = self.read();
        let wanted =
            project::resource_options(&self.options, &settings, self.trusted, &mut problems);
        let keys = self.live.replace(settings);
        let problems = self.news(problems);
        if keys.is_empty() {
            let odd = problems.into_iter().map(|problem| {
                SourceChange::new(FILE, Some(&files[0]), SourceOutcome::Failed).saying(problem)
            });
            return odd.collect::<Vec<_>>().into();
        }
        let moved = keys.iter().any(|key| is_of(&PLACES, key));
        if moved {
            self.resources.look_in(wanted);
        }
        let change = SourceChange::new(FILE, Some(&files[0]), SourceOutcome::Reloaded)
            .saying(told(&keys, problems));
        Reread {
            changes: vec![change],
            moved,
        }
    }
}

/// Whether a dotted key is one of these, or below it.
fn is_of(names: &[&str], key: &str) -> bool {
    let first = key.split('.').next().unwrap_or_default();
    names.contains(&first)
}

/// What changed, and when it counts.
fn told(keys: &[String], problems: Vec<String>) -> String {
    let mut said = vec![format!("What changed: {}.", keys.join(", "))];
    let later = keys.iter().map(String::as_str);
    let later: Vec<&str> = later.filter(|key| is_of(&AT_START, key)).collect();
    if !later.is_empty() {
        said.push(format!("At the next start only: {}.", later.join(", ")));
    }
    said.extend(problems);
    said.join(" ")
}

//! What plugins and scripts there are, as files: for whoever looks after them without a session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::plugins::Wanted;
use super::project::user_extension_files;
use super::{KernelOptions, services};
use crate::digest::Digest;
use crate::dylib::{Checked, FoundPlugin, LoadError, check};
use crate::registry::{Kind, Rank};
use crate::settings::{LiveSettings, Settings};

/// A plugin or script that there is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// Its name; of a script its path.
    pub name: String,
    /// `plugin` or `script`.
    pub kind: &'static str,
    /// Its own version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The file.
    pub path: PathBuf,
    /// Where it stands in the load order.
    pub rank: Rank,
    /// What identifies its content, in short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// What it contributes, as its manifest says: kind and name. Of scripts that is known only when they
    /// run.
    pub contributes: Vec<(Kind, String)>,
    /// Where its code runs: `process` for one of its own.
    pub isolation: &'static str,
    /// Whether the user lets it be loaded.
    pub enabled: bool,
}

/// All there are, and what is there and cannot be loaded, in sentences.
#[must_use]
pub fn inventory(options: &KernelOptions) -> (Vec<Item>, Vec<String>) {
    let (settings, mut problems) = Settings::load(&options.agent_dir);
    let wanted = Wanted::of(options, &settings);
    let isolates = services::isolates(options, &Arc::new(LiveSettings::new(settings)));
    let found = wanted.find_all();
    problems.extend(found.problems.iter().map(ToString::to_string));
    let plugin = |plugin: &FoundPlugin| Item {
        name: plugin.manifest.name.clone(),
        kind: "plugin",
        version: Some(plugin.manifest.version.clone()),
        path: plugin.path.clone(),
        rank: plugin.rank,
        content: content(&plugin.path),
        contributes: plugin
            .manifest
            .provides
            .iter()
            .map(|item| (item.kind, item.name.clone()))
            .collect(),
        isolation: if isolates(plugin) { "process" } else { "none" },
        enabled: wanted.is_enabled(&plugin.manifest.name),
    };
    let mut items: Vec<Item> = found.plugins.iter().map(plugin).collect();
    let scripts = user_extension_files(options, "rhai");
    items.extend(scripts.into_iter().map(|path| Item {
        name: path.display().to_string(),
        kind: "script",
        version: None,
        content: content(&path),
        path,
        rank: Rank::User,
        contributes: Vec::new(),
        isolation: "none",
        enabled: true,
    }));
    (items, problems)
}

fn content(path: &Path) -> Option<String> {
    Digest::of_file(path).ok().map(|digest| digest.short())
}

/// Everything that would be said of a library if it were loaded.
///
/// # Errors
/// Why it would not be.
pub fn check_plugin(options: &KernelOptions, path: &Path) -> Result<Checked, LoadError> {
    let (settings, _) = Settings::load(&options.agent_dir);
    check(
        path,
        &services::checking_host(options, Arc::new(LiveSettings::new(settings))),
    )
}

//! `pliant config import-pi`: the settings of pi that mean the same here, copied once into pliant's own
//! file (`interfaces.md` §3.1). Pi's file is only read; later changes there change nothing here.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use pliant_kernel::jsonfile::{self, Readers};
use serde_json::{Map, Value};

use crate::launch;
use crate::pi::{self, Report};

/// Copy the settings of pi that pliant has too.
#[derive(Args)]
pub struct ImportPi {
    /// Also those that pliant's file has already.
    #[arg(long)]
    force: bool,

    /// Pi's directory (default: ~/.pi/agent).
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
}

/// Settings that mean the same in both programs (`interfaces.md` §5).
const SAME: [&str; 44] = [
    "autocompleteMaxVisible",
    "branchSummary",
    "cacheWarming",
    "codemode",
    "collapseChangelog",
    "compaction",
    "defaultModel",
    "defaultProjectTrust",
    "defaultProvider",
    "defaultThinkingLevel",
    "defaultTools",
    "doubleEscapeAction",
    "editorPaddingX",
    "enableSkillCommands",
    "enabledModels",
    "externalEditor",
    "followUpMode",
    "fullscreenCopyOnSelect",
    "fullscreenExitOutput",
    "fullscreenScrollbar",
    "fullscreenWheelScrollLines",
    "hideThinkingBlock",
    "httpIdleTimeoutMs",
    "httpProxy",
    "images",
    "markdown",
    "modelThinkingLevels",
    "outputPad",
    "quietStartup",
    "retry",
    "shellCommandPrefix",
    "shellPath",
    "showCacheMissNotices",
    "showHardwareCursor",
    "steeringMode",
    "terminal",
    "theme",
    "thinkingBudgets",
    "transport",
    "treeFilterMode",
    "tuiMode",
    "warnings",
    "websocketConnectTimeoutMs",
    "sessionShareDestination",
];

/// Lists of paths, which start elsewhere there.
const PATHS: [&str; 3] = ["skills", "prompts", "themes"];

/// Why the others stay.
const OTHERS: [(&str, &str); 6] = [
    (
        "extensions",
        "extensions of pi are TypeScript, which pliant does not run",
    ),
    ("packages", "packages of pi are for pi's package manager"),
    (
        "sessionDir",
        "pi's sessions are found anyway, and the two should not write into one folder",
    ),
    ("npmCommand", "pliant has no use for it"),
    ("selfUpdateCommand", "it updates pi"),
    ("lastChangelogVersion", "it is about pi"),
];

impl ImportPi {
    pub fn run(&self) -> anyhow::Result<u8> {
        let dir = pi::directory(self.from.as_deref())?;
        let file = dir.join("settings.json");
        if !file.exists() {
            bail!(
                "There are no settings of pi: {} does not exist.",
                file.display()
            );
        }
        let theirs = match jsonfile::read(&file) {
            Ok(theirs) => theirs,
            Err(cause) => bail!("The settings of pi in {}: {cause}", file.display()),
        };
        let mut report = Report::default();
        let own = launch::agent_dir()?.join("settings.json");
        jsonfile::change(&own, "The settings file", Readers::AsBefore, |ours| {
            for (key, value) in theirs {
                self.take(ours, key, value, &dir, &mut report);
            }
            Ok(())
        })?;
        report.print()
    }

    fn take(
        &self,
        ours: &mut Map<String, Value>,
        key: String,
        value: Value,
        dir: &Path,
        report: &mut Report,
    ) {
        if SAME.contains(&key.as_str()) {
            return lay(ours, &key.clone(), key, value, self.force, report);
        }
        if PATHS.contains(&key.as_str()) {
            return match absolute(&value, dir) {
                Some(value) => lay(ours, &key.clone(), key, value, self.force, report),
                None => report.left_out(key, "it has patterns, which are about pi's own folders"),
            };
        }
        let other = OTHERS.iter().find(|(other, _)| *other == key);
        report.left_out(key, other.map_or("pliant does not know it", |(_, why)| why));
    }
}

/// Lays a value into an object, objects key by key. `name` is the way there.
fn lay(
    ours: &mut Map<String, Value>,
    name: &str,
    key: String,
    value: Value,
    force: bool,
    report: &mut Report,
) {
    match (ours.get_mut(&key), value) {
        (Some(Value::Object(inner)), Value::Object(value)) => {
            for (key, value) in value {
                let name = format!("{name}.{key}");
                lay(inner, &name, key, value, force, report);
            }
        }
        (Some(old), value) if *old == value => {}
        (Some(_), _) if !force => report.kept(name.to_owned()),
        (_, value) => {
            ours.insert(key, value);
            report.copied(name.to_owned());
        }
    }
}

/// The same paths from everywhere; `None` for what is no plain list of them.
fn absolute(value: &Value, dir: &Path) -> Option<Value> {
    let entries = value.as_array()?.iter().map(|entry| {
        let entry = entry.as_str()?;
        let is_pattern = entry.starts_with(['!', '+', '-']) || entry.contains(['*', '?']);
        let path = match entry.starts_with('~') {
            true => PathBuf::from(entry),
            false => dir.join(entry.trim_start_matches("./")),
        };
        (!is_pattern).then(|| Value::from(path.to_string_lossy()))
    });
    entries.collect()
}

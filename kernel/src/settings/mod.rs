//! Settings: as written in the files, and as used. Changing a file is `write`'s.
//!
//! `settings.json` of the user's directory and of a trusted project are read once at start; the
//! project's values stand over the user's. A file that does not parse counts as empty, is reported, and
//! is never overwritten; a value of a wrong type costs its key only (`interfaces.md` §5).

mod used;

mod known;
mod list;
mod live;
mod merge;

mod change;
mod write;

use std::path::{Path, PathBuf};
use std::time::Duration;

use pliant_sdk::message::ThinkingLevel;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::jsonfile;

pub use list::{Patterns, ResourceList, Scope};
pub use live::LiveSettings;
pub use used::{ProjectTrust, QueueMode, Used};
pub use write::write_settings;

use change::Changed;

/// The folder of a project's own files, in its working directory.
pub const PROJECT_DIR: &str = ".pliant";

/// What entries about extensions that ship begin with, after their sign.
pub(crate) const BUILTIN: &str = "builtin:";

/// Name of the file, in the user's directory and in that of a project.
pub const FILE: &str = "settings.json";

/// The settings in force. Unknown keys stay reachable through [`Settings::get`].
#[derive(Debug, Clone, Default)]
pub struct Settings {
    written: Value,
    used: Used,
    user: Value,
    project: Map<String, Value>,
    /// The user's file; `None` for settings as given.
    path: Option<PathBuf>,
    /// The folder of the project's file, if that is read.
    project_dir: Option<PathBuf>,
    changed: Changed,
}

impl Settings {
    /// Reads the user's file. A missing one is empty; what is wrong with it is told in sentences.
    #[must_use]
    pub fn load(agent_dir: &Path) -> (Self, Vec<String>) {
        let path = agent_dir.join(FILE);
        let (user, problems) = read(&path);
        let settings = Self::from_value(Value::Object(user));
        let path = Some(path);
        (Self { path, ..settings }, problems)
    }

    /// Settings as given.
    #[must_use]
    pub fn from_value(written: Value) -> Self {
        let used = Used::deserialize(&written).unwrap_or_default();
        Self {
            user: written.clone(),
            written,
            used,
            ..Self::default()
        }
    }

    /// The same with those of a trusted project over them.
    #[must_use]
    pub fn with_project(mut self, cwd: &Path) -> (Self, Vec<String>) {
        let folder = cwd.join(PROJECT_DIR);
        let (written, problems) = read(&folder.join(FILE));
        self.project = merge::of_project(written);
        self.project_dir = Some(folder);
        (self.merge(), problems)
    }

    /// The same with what a project says before anybody trusts it: where its sessions are.
    #[must_use]
    pub fn with_untrusted_project(mut self, cwd: &Path) -> Self {
        // What is wrong with the file is not told: it is not used.
        let written = jsonfile::read(&cwd.join(PROJECT_DIR).join(FILE)).unwrap_or_default();
        let dir = written.get("sessionDir").filter(|dir| dir.is_string());
        let Some(dir) = dir else {
            return self;
        };
        self.project = Map::from_iter([("sessionDir".to_owned(), dir.clone())]);
        self.merge()
    }

    fn merge(mut self) -> Self {
        self.written = merge::merged(&self.user, &self.project);
        self.used = Used::deserialize(&self.written).unwrap_or_default();
        self
    }

    /// What the files have under a key, each with the folder it starts in, the project's first.
    pub fn written_lists(&self, key: &str) -> impl Iterator<Item = (Scope, PathBuf, &Value)> {
        let of_project = self.project_dir.clone().zip(self.project.get(key));
        let of_project = of_project.map(|(base, list)| (Scope::Project, base, list));
        let user_dir = self.path.as_deref().and_then(Path::parent);
        let of_user = user_dir.map(Path::to_owned).zip(self.user.get(key));
        let of_user = of_user.map(|(base, list)| (Scope::User, base, list));
        of_project.into_iter().chain(of_user)
    }

    /// What the files list of one kind of resources, the project's first.
    #[must_use]
    pub fn lists(&self, key: &str, home: Option<&Path>) -> Vec<ResourceList> {
        let of_project = (
            Scope::Project,
            self.project_dir.as_deref(),
            self.project.get(key),
        );
        let user_dir = self.path.as_deref().and_then(Path::parent);
        let of_user = (Scope::User, user_dir, self.user.get(key));
        let list = |(scope, base, entries): (Scope, Option<&Path>, Option<&Value>)| {
            let entries = Vec::<String>::deserialize(entries?).ok()?;
            Some(ResourceList::new(scope, base?, &entries, home))
        };
        [of_project, of_user].into_iter().filter_map(list).collect()
    }

    /// Whether the lists of a kind (`extensions`, `skills`, `prompts`) switch one on or off that ships,
    /// by entries like `+builtin:guide` and `-builtin:guide`; the project's word counts before the
    /// user's (`resources.md` §2).
    #[must_use]
    pub fn ships(&self, kind: &str, name: &str) -> Option<bool> {
        let said = |entries: Option<&Value>| {
            let entries = Vec::<String>::deserialize(entries?).ok()?;
            let mut entries = entries.iter().rev();
            entries.find_map(|entry| {
                let of_it = |sign: char| {
                    let entry = entry.strip_prefix(sign)?;
                    entry.strip_prefix(BUILTIN).filter(|of| *of == name)
                };
                match (of_it('+'), of_it('-')) {
                    (Some(_), _) => Some(true),
                    (_, Some(_)) => Some(false),
                    _ => None,
                }
            })
        };
        said(self.project.get(kind)).or_else(|| said(self.user.get(kind)))
    }

    /// The user's file, which [`write_settings`] changes; `None` for settings as given.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The level wanted for one model, `provider/id` (`modelThinkingLevels`).
    #[must_use]
    pub fn model_level(&self, model: &str) -> Option<ThinkingLevel> {
        let level = self.get("modelThinkingLevels").get(model)?;
        ThinkingLevel::parse(level.as_str()?)
    }

    /// The typed keys.
    #[must_use]
    pub fn used(&self) -> &Used {
        &self.used
    }

    /// Any value by its dotted key; null when unset. A key may also be written with its dots, which is
    /// the only way for those below a key that is a list.
    #[must_use]
    pub fn get(&self, key: &str) -> &Value {
        let mut parts = key.split('.');
        parts
            .try_fold(&self.written, |value, part| value.get(part))
            .or_else(|| self.written.get(key))
            .unwrap_or(&Value::Null)
    }

    /// Everything that is set, as it is merged from all files.
    #[must_use]
    pub fn written(&self) -> &Value {
        &self.written
    }

    /// How many tokens a level may think with (`thinkingBudgets`), if the user says so.
    #[must_use]
    pub fn thinking_budgets(&self) -> Option<&Map<String, Value>> {
        self.get("thinkingBudgets").as_object()
    }

    /// Whether pi's resources count too (`piCompat.resources`).
    #[must_use]
    pub fn reads_pi_resources(&self) -> bool {
        self.get("piCompat.resources").as_bool().unwrap_or(true)
    }

    /// Whether pi's sessions are listed and found too (`piCompat.sessions`).
    #[must_use]
    pub fn reads_pi_sessions(&self) -> bool {
        self.get("piCompat.sessions").as_str() != Some("off")
    }

    /// Longest time a handler may take (`extensions.handlerTimeoutMs`); `None` = no limit.
    #[must_use]
    pub fn handler_limit(&self) -> Option<Duration> {
        let ms = self
            .get("extensions.handlerTimeoutMs")
            .as_u64()
            .unwrap_or(30_000);
        (ms > 0).then(|| Duration::from_millis(ms))
    }

    /// A whole number by its dotted key; `None` when unset or something else.
    #[must_use]
    pub fn count(&self, key: &str) -> Option<u64> {
        self.get(key).as_u64()
    }

    /// Limit for silence of an HTTP connection, milliseconds; `None` = no limit.
    #[must_use]
    pub fn http_idle_timeout_ms(&self) -> Option<u64> {
        match &self.used.http_idle_timeout_ms {
            None => Some(300_000),
            Some(Value::String(word)) if word == "disabled" => None,
            Some(value) => value.as_u64().filter(|ms| *ms > 0),
        }
    }
}

/// Whether a file of settings can be read at all; one that is not there can.
///
/// # Errors
/// Why not, as a clause.
pub(crate) fn readable(path: &Path) -> Result<(), String> {
    jsonfile::read(path).map(drop)
}

/// What a file says, without what cannot be used.
fn read(path: &Path) -> (Map<String, Value>, Vec<String>) {
    let written = match jsonfile::read(path) {
        Ok(written) => written,
        Err(cause) => {
            let sentence = format!("The settings file {} is ignored: {cause}", path.display());
            return (Map::new(), vec![sentence]);
        }
    };
    let mut written = Value::Object(written);
    let problems = known::take_misfits(&mut written, path);
    match written {
        Value::Object(written) => (written, problems),
        _ => (Map::new(), problems),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_the_wrong_type_read_as_unset_and_others_stay() {
        let settings = Settings::from_value(
            json!({"defaultTools": 3, "retry": {"provider": {"maxRetries": 2}}}),
        );
        assert_eq!(settings.used().default_tools, None);
        assert_eq!(settings.get("retry.provider.maxRetries"), &json!(2));
        assert_eq!(settings.get("retry.nothing.here"), &Value::Null);
    }

    #[test]
    fn the_idle_limit_can_be_switched_off_in_two_ways() {
        assert_eq!(Settings::default().http_idle_timeout_ms(), Some(300_000));
        for off in [json!(0), json!("disabled")] {
            assert_eq!(
                Settings::from_value(json!({ "httpIdleTimeoutMs": off })).http_idle_timeout_ms(),
                None
            );
        }
    }

    fn load(user: &str, project: &str) -> (Settings, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        let (agent, cwd) = (dir.path().join("agent"), dir.path().join("p"));
        std::fs::create_dir_all(cwd.join(PROJECT_DIR)).unwrap();
        std::fs::create_dir(&agent).unwrap();
        std::fs::write(agent.join(FILE), user).unwrap();
        std::fs::write(cwd.join(PROJECT_DIR).join(FILE), project).unwrap();
        let (settings, mut problems) = Settings::load(&agent);
        let (settings, more) = settings.with_project(&cwd);
        problems.extend(more);
        (settings, problems)
    }

    #[test]
    fn a_wrong_type_costs_its_key_only_and_is_told_once_with_its_file() {
        // interfaces §5
        let user = r#"{"defaultModel": 3, "retry": {"maxRetries": "many", "baseDelayMs": 7},
            "steeringMode": "often", "images": 5, "nobody": {"knows": []}, "shellPath": null}"#;
        let project = r#"{"defaultTools": ["read", 1], "followUpMode": "all"}"#;
        let (settings, problems) = load(user, project);
        let told: Vec<&str> = problems
            .iter()
            .map(|problem| problem.split(" is not used").next().unwrap())
            .collect();
        assert_eq!(told.len(), 5, "{problems:#?}");
        for (told, key) in told.iter().zip([
            "defaultModel",
            "images",
            "retry.maxRetries",
            "steeringMode",
            "defaultTools",
        ]) {
            assert!(
                told.starts_with(&format!("The setting {key} in /")),
                "{told}"
            );
        }
        assert!(told[4].ends_with("p/.pliant/settings.json"), "{}", told[4]);
        assert!(problems[2].contains("it is another text; it can be a whole number"));
        assert_eq!(settings.used().default_model, None);
        assert_eq!(settings.count("retry.baseDelayMs"), Some(7));
        assert_eq!(settings.count("retry.maxRetries"), None);
        assert_eq!(settings.get("followUpMode"), "all");
        assert_eq!(settings.get("nobody.knows"), &json!([]));
    }

    #[test]
    fn a_file_that_does_not_parse_is_empty_and_told() {
        // interfaces §5
        let (settings, problems) = load("{\"a\": ", "[1]");
        assert_eq!(settings.get("a"), &Value::Null);
        assert!(problems[0].contains("agent/settings.json is ignored: it cannot be read"));
        assert!(
            problems[1].contains("it is not a JSON object"),
            "{problems:?}"
        );
    }

    #[test]
    fn before_it_is_trusted_a_project_says_only_where_its_sessions_are() {
        // interfaces §5
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(PROJECT_DIR).join(FILE);
        std::fs::create_dir(dir.path().join(PROJECT_DIR)).unwrap();
        std::fs::write(&file, r#"{"sessionDir": "here", "defaultModel": "x"}"#).unwrap();
        let settings = Settings::default().with_untrusted_project(dir.path());
        assert_eq!(settings.used().session_dir.as_deref(), Some("here"));
        assert_eq!(settings.used().default_model, None);
        std::fs::write(&file, r#"{"sessionDir": 3}"#).unwrap();
        let user = Settings::from_value(json!({"sessionDir": "there"}));
        let settings = user.with_untrusted_project(dir.path());
        assert_eq!(settings.used().session_dir.as_deref(), Some("there"));
    }

    #[test]
    fn entries_of_lists_know_whose_they_are() {
        // resources §2
        let (settings, _) = load(
            r#"{"skills": ["a"]}"#,
            r#"{"skills": ["b"], "prompts": []}"#,
        );
        let lists = settings.lists("skills", None);
        assert_eq!(
            [lists[0].scope, lists[1].scope],
            [Scope::Project, Scope::User]
        );
        assert!(lists[0].places[0].ends_with("p/.pliant/b"));
        assert!(lists[1].places[0].ends_with("agent/a"));
        assert_eq!(settings.lists("themes", None).len(), 0);
    }
}

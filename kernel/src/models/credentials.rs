//! Who pays: keys from the command line, `auth.json`, `models.json` and the environment, in that
//! order (`providers.md` §8). Secrets stay here; a plugin names a provider and the host adds the key.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use pliant_sdk::Error;
use serde_json::Value;

use super::custom::CustomModels;
use crate::environment::Environment;
use crate::textfile;

/// Shorter "keys" (`none`, `x`) are words that texts may hold for other reasons.
const SHORTEST_SECRET: usize = 8;

/// Variables in which providers look for their keys (`providers.md` §8.2), whether or not a plugin for
/// them is installed. Credentials of whole clouds are left to the tools that use them.
const KEY_VARIABLES: [&str; 42] = [
    "AI_GATEWAY_API_KEY",
    "ANT_LING_API_KEY",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_OAUTH_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AZURE_OPENAI_API_KEY",
    "BASETEN_API_KEY",
    "CEREBRAS_API_KEY",
    "CLOUDFLARE_API_KEY",
    "COPILOT_GITHUB_TOKEN",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_CLOUD_API_KEY",
    "GROQ_API_KEY",
    "HF_TOKEN",
    "KIMI_API_KEY",
    "META_API_KEY",
    "MINIMAX_API_KEY",
    "MINIMAX_CN_API_KEY",
    "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY",
    "NVIDIA_API_KEY",
    "OPENAI_API_KEY",
    "OPENCODE_API_KEY",
    "OPENROUTER_API_KEY",
    "QWEN_TOKEN_PLAN_API_KEY",
    "QWEN_TOKEN_PLAN_CN_API_KEY",
    "QWEN_TOKEN_PLAN_INDIVIDUAL_API_KEY",
    "QWEN_TOKEN_PLAN_INDIVIDUAL_CN_API_KEY",
    "QWEN_TOKEN_PLAN_TEAM_API_KEY",
    "QWEN_TOKEN_PLAN_TEAM_CN_API_KEY",
    "RADIUS_API_KEY",
    "TOGETHER_API_KEY",
    "TYPESAFE_API_KEY",
    "XAI_API_KEY",
    "XIAOMI_API_KEY",
    "XIAOMI_TOKEN_PLAN_AMS_API_KEY",
    "XIAOMI_TOKEN_PLAN_CN_API_KEY",
    "ZAI_API_KEY",
    "ZAI_CODING_CN_API_KEY",
];

/// Time for a key command.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);

/// Looks up keys.
#[derive(Default)]
pub struct Credentials {
    given: Option<String>,
    /// The provider that the given key is for, once it is known.
    given_to: OnceLock<String>,
    /// Given as they are, before anything that is stored.
    fixed: HashMap<String, Value>,
    files: ArcSwap<KeyFiles>,
    environment: Environment,
    /// Keys that were given out, so that none of them is shown.
    used: Mutex<HashSet<String>>,
}

/// The keys that files have.
#[derive(Default, PartialEq)]
struct KeyFiles {
    /// By provider, of `auth.json`.
    stored: HashMap<String, Value>,
    /// By provider, of `models.json`.
    written: HashMap<String, String>,
}

impl KeyFiles {
    /// A file that cannot be read counts as empty and answers a sentence, which never quotes it.
    fn read(agent_dir: &Path, custom: &CustomModels) -> (Self, Option<String>) {
        let path = agent_dir.join("auth.json");
        let (stored, problem) = match textfile::read(&path) {
            Ok(text) => match serde_json::from_str(&text) {
                Ok(stored) => (stored, None),
                Err(error) => {
                    let place = format!(
                        "line {}, column {} is not right",
                        error.line(),
                        error.column()
                    );
                    (HashMap::new(), Some(place))
                }
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => (HashMap::new(), None),
            Err(error) => (HashMap::new(), Some(error.to_string())),
        };
        let problem = problem.map(|cause| {
            format!(
                "The stored keys in {} are not used: {cause}. Correct or remove the file.",
                path.display()
            )
        });
        let key_of = |(id, provider): (&String, &super::CustomProvider)| {
            Some((id.clone(), provider.api_key.clone()?))
        };
        let written = custom.providers.iter().filter_map(key_of).collect();
        (Self { stored, written }, problem)
    }
}

impl std::fmt::Debug for Credentials {
    /// Names whose keys are known, never the keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("given", &self.given.is_some())
            .field("stored", &self.files.load().stored.keys())
            .field("written", &self.files.load().written.keys())
            .finish()
    }
}

impl Credentials {
    /// Reads `auth.json`; `given` is the key of the command line. A file that cannot be read counts as empty and answers a sentence, which never quotes it.
    #[must_use]
    pub fn load(
        agent_dir: &Path,
        custom: &CustomModels,
        given: Option<String>,
        environment: &Environment,
    ) -> (Self, Option<String>) {
        let (files, problem) = KeyFiles::read(agent_dir, custom);
        (
            Self {
                given,
                given_to: OnceLock::new(),
                fixed: HashMap::new(),
                files: ArcSwap::from_pointee(files),
                environment: environment.clone(),
                used: Mutex::default(),
            },
            problem,
        )
    }

    /// Looks into the files again, from the next request on; whether the file of keys has others now.
    ///
    /// # Errors
    /// A sentence about the file of keys, when it cannot be read: what it said counts on.
    pub fn reread(&self, agent_dir: &Path, custom: &CustomModels) -> Result<bool, String> {
        let (mut files, problem) = KeyFiles::read(agent_dir, custom);
        let before = self.files.load_full();
        if problem.is_some() {
            files.stored.clone_from(&before.stored);
        }
        let is_other = before.stored != files.stored;
        self.files.store(Arc::new(files));
        problem.map_or(Ok(is_other), Err)
    }

    /// The same with keys that are given as they are; each counts before a stored one.
    #[must_use]
    pub fn with_keys(mut self, keys: &HashMap<String, String>) -> Self {
        for (provider, key) in keys {
            let key = match key.strip_prefix('!') {
                Some(rest) => format!("$!{}", rest.replace('$', "$$")),
                None => key.replace('$', "$$"),
            };
            let stored = serde_json::json!({"type": "api_key", "key": key});
            self.fixed.insert(provider.clone(), stored);
        }
        self
    }

    /// From here on the key of the command line is this provider's: no other service is shown it.
    pub fn give_to(&self, provider: &str) {
        // Of several sessions of a process the first was meant.
        let _ = self.given_to.set(provider.to_owned());
    }

    fn given(&self, provider: &str) -> Option<&String> {
        let whose = self.given_to.get();
        let is_meant = whose.is_none_or(|whose| whose == provider);
        self.given.as_ref().filter(|_| is_meant)
    }

    /// Whether a key is likely there, without running commands or asking anybody (P34).
    #[must_use]
    pub fn configured(&self, provider: &str, env: &[String]) -> bool {
        if self.given(provider).is_some() {
            return true;
        }
        match self.source(provider, env) {
            Source::None => false,
            Source::Text(text) => text.starts_with('!') || self.expand(&text).is_some(),
        }
    }

    /// The key of a provider, if there is one.
    ///
    /// # Errors
    /// When a variable or command that should give it does not; the sentence names it.
    pub async fn key(&self, provider: &str, env: &[String]) -> Result<Option<String>, Error> {
        let key = self.resolve(provider, env).await?;
        if let Some(key) = key.as_ref().filter(|key| key.len() >= SHORTEST_SECRET) {
            self.used
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(key.clone());
        }
        Ok(key)
    }

    /// A text without the keys that were given out; services like to quote them in their errors.
    #[must_use]
    pub fn mask(&self, text: String) -> String {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.iter().fold(text, |text, key| {
            if text.contains(key.as_str()) {
                text.replace(key.as_str(), "***")
            } else {
                text
            }
        })
    }

    /// Environment variables that hold keys: those of known providers, and those the files name. They
    /// are kept from child processes.
    #[must_use]
    pub fn variables(&self) -> Vec<String> {
        let files = self.files.load();
        let stored = self.fixed.values().chain(files.stored.values());
        let stored = stored.filter_map(|stored| stored.get("key")?.as_str());
        let named = stored
            .chain(files.written.values().map(String::as_str))
            .flat_map(variables);
        named.chain(KEY_VARIABLES).map(str::to_owned).collect()
    }

    async fn resolve(&self, provider: &str, env: &[String]) -> Result<Option<String>, Error> {
        if let Some(given) = self.given(provider) {
            return Ok(Some(given.clone()));
        }
        let Source::Text(text) = self.source(provider, env) else {
            return Ok(None);
        };
        if let Some(command) = text.strip_prefix('!') {
            return run(provider, command).await.map(Some);
        }
        match self.expand(&text) {
            Some(key) => Ok(Some(key)),
            None => Err(Error::failed(format!(
                "The key of \"{provider}\" names an environment variable that is not set ({}). Set it, or write the key itself.",
                variables(&text).join(", ")
            ))),
        }
    }

    /// A stored credential owns its provider: nothing else is looked at, even if it does not resolve.
    fn source(&self, provider: &str, env: &[String]) -> Source {
        let files = self.files.load();
        let stored = self.fixed.get(provider);
        if let Some(stored) = stored.or_else(|| files.stored.get(provider)) {
            let key = stored
                .get("key")
                .and_then(Value::as_str)
                .filter(|key| !key.is_empty());
            return key.map_or(Source::None, |key| Source::Text(key.to_owned()));
        }
        if let Some(written) = files.written.get(provider) {
            return Source::Text(written.clone());
        }
        let set = env.iter().find(|name| self.environment.get(name).is_some());
        set.map_or(Source::None, |name| Source::Text(format!("${{{name}}}")))
    }

    fn expand(&self, text: &str) -> Option<String> {
        expand(text, &self.environment)
    }
}

enum Source {
    None,
    Text(String),
}

/// Replaces `$NAME` and `${NAME}`; `None` when one is missing. `$$` and `$!` are literal (§8.3).
fn expand(text: &str, environment: &Environment) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some(after) = rest.strip_prefix('!') {
            out.push('!');
            rest = after;
        } else if let Some((name, after)) = variable(rest) {
            out.push_str(environment.get(name)?);
            rest = after;
        } else {
            out.push('$');
        }
    }
    out.push_str(rest);
    Some(out)
}

/// The variable at the start of what follows a `$`, and what is behind it.
fn variable(rest: &str) -> Option<(&str, &str)> {
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if let Some(braced) = rest.strip_prefix('{') {
        let (name, after) = braced.split_once('}')?;
        return is_name(name).then_some((name, after));
    }
    let end = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(rest.len());
    is_name(&rest[..end]).then_some(rest.split_at(end))
}

/// The variables that a key names. Those of a command are the shell's: taking `HOME` from all children
/// because one is named there would be a surprise.
fn variables(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = if text.starts_with('!') { "" } else { text };
    while let Some(at) = rest.find('$') {
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(['$', '!']) {
            rest = after;
        } else if let Some((name, after)) = variable(rest) {
            names.push(name);
            rest = after;
        }
    }
    names
}

async fn run(provider: &str, command: &str) -> Result<String, Error> {
    let failed = |cause: &str| {
        Error::failed(format!(
            "The command that gives the key of \"{provider}\" {cause}. Run it by hand to see why."
        ))
    };
    let mut child = tokio::process::Command::new("sh");
    child
        .arg("-c")
        .arg(command)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    // A group of its own, so that what the command started ends with it.
    let child = child
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|_| failed("cannot be started"))?;
    // Also when nobody waits for the key any more.
    let group = Group(child.id());
    let output = match tokio::time::timeout(COMMAND_LIMIT, child.wait_with_output()).await {
        Ok(ended) => {
            // It is over, and its number may be another's.
            std::mem::forget(group);
            ended.ok().filter(|output| output.status.success())
        }
        Err(_) => return Err(failed("did not end within 10 s")),
    };
    let output = output.ok_or_else(|| failed("failed"))?;
    let key = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if key.is_empty() {
        Err(failed("printed nothing"))
    } else {
        Ok(key)
    }
}

/// Kills a process group when it is dropped.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        let leader = self.0.and_then(|id| i32::try_from(id).ok());
        if let Some(leader) = leader.and_then(rustix::process::Pid::from_raw) {
            // Gone already is as good as killed.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(key: &str) -> Credentials {
        with_files(HashMap::new(), key)
    }

    fn with_files(stored: HashMap<String, Value>, key: &str) -> Credentials {
        let written = HashMap::from([("p".to_owned(), key.to_owned())]);
        Credentials {
            files: ArcSwap::from_pointee(KeyFiles { stored, written }),
            ..Credentials::default()
        }
    }

    #[tokio::test]
    async fn the_forms_of_a_key() {
        // §8.3
        for (form, key) in [
            ("plain", "plain"),
            ("a$$b$!c", "a$b!c"),
            ("cost $5", "cost $5"),
            ("${bad-name}", "${bad-name}"),
            ("!echo '  k '", "k"),
        ] {
            assert_eq!(
                written(form).key("p", &[]).await.unwrap().as_deref(),
                Some(key),
                "{form}"
            );
        }
        let error = written("x${PLIANT_TEST_UNSET_VARIABLE}")
            .key("p", &[])
            .await
            .unwrap_err();
        assert!(error.message.contains("PLIANT_TEST_UNSET_VARIABLE"));
        assert!(written("!false").key("p", &[]).await.is_err());
        assert!(!written("$PLIANT_TEST_UNSET_VARIABLE").configured("p", &[]));
    }

    #[tokio::test]
    async fn a_stored_credential_owns_its_provider() {
        // §8.1
        for (stored, key) in [
            (
                serde_json::json!({"type": "api_key", "key": "stored"}),
                Some("stored"),
            ),
            (serde_json::json!({"type": "api_key"}), None),
        ] {
            let stored = HashMap::from([("p".to_owned(), stored)]);
            let credentials = with_files(stored, "from models.json");
            assert_eq!(credentials.key("p", &[]).await.unwrap().as_deref(), key);
        }
    }

    #[tokio::test]
    async fn a_key_of_the_program_is_taken_as_it_is() {
        // interfaces §15
        for key in ["plain", "!not a command", "a$HOME", "$$!"] {
            let given = HashMap::from([("p".to_owned(), key.to_owned())]);
            let credentials = written("from models.json").with_keys(&given);
            assert_eq!(
                credentials.key("p", &[]).await.unwrap().as_deref(),
                Some(key)
            );
        }
    }

    #[tokio::test]
    async fn the_key_of_the_command_line_is_shown_to_the_provider_it_was_meant_for_alone() {
        // §8.1
        let credentials = Credentials {
            given: Some("given".to_owned()),
            ..written("own")
        };
        let key = async |provider| credentials.key(provider, &[]).await.unwrap();
        assert_eq!(key("p").await.as_deref(), Some("given"));
        credentials.give_to("q");
        credentials.give_to("p");
        assert_eq!(key("q").await.as_deref(), Some("given"));
        assert_eq!(key("p").await.as_deref(), Some("own"));
        assert_eq!(key("other").await, None);
        assert!(!credentials.configured("other", &[]));
    }

    #[test]
    fn what_a_command_names_is_the_shells() {
        for (form, names) in [
            ("${A}b$C", vec!["A", "C"]),
            ("!cat $HOME/.key", vec![]),
            ("a$$B$!C", vec![]),
            ("$5$", vec![]),
        ] {
            assert_eq!(variables(form), names, "{form}");
        }
    }

    #[tokio::test]
    async fn a_command_that_nobody_waits_for_ends_with_all_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let command = format!(
            "!sleep 600 & echo $! > {0}.new; mv {0}.new {0}; wait",
            file.display()
        );
        let credentials = written(&command);
        let pid = async {
            loop {
                match std::fs::read_to_string(&file) {
                    Ok(pid) => break pid.trim().parse().unwrap(),
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        };
        let pid: i32 = tokio::select! {
            _ = credentials.key("p", &[]) => panic!("it never ends"),
            pid = pid => pid,
        };
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        let gone = || {
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            state.is_err() || state.is_ok_and(|state| state.contains(") Z "))
        };
        while rustix::process::test_kill_process(pid).is_ok() && !gone() {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn variables_of_known_providers_and_those_the_files_name_are_kept_from_children() {
        let variables = written("pre-${MYKEY_API_KEY}").variables();
        assert!(
            variables.contains(&"MYKEY_API_KEY".to_owned())
                && variables.contains(&"OPENAI_API_KEY".to_owned())
        );
    }

    #[tokio::test]
    async fn a_key_that_was_given_out_is_masked_in_texts() {
        let credentials = written("sk-SECRETKEY123");
        credentials.key("p", &[]).await.unwrap();
        assert_eq!(
            credentials.mask("Bad key sk-SECRETKEY123!".to_owned()),
            "Bad key ***!"
        );
    }

    #[test]
    fn keys_are_not_shown() {
        assert!(!format!("{:?}", written("secret-key")).contains("secret-key"));
    }
}

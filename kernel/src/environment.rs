//! The variables that pliant goes by, as they were when it started (`interfaces.md` §4). They come in
//! once, from the process or as an embedding program gives them; nothing else here looks at the
//! environment or at the home directory.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The variables, and the user's home.
#[derive(Clone, Default)]
pub struct Environment {
    variables: Arc<HashMap<OsString, OsString>>,
    home: Option<PathBuf>,
}

impl std::fmt::Debug for Environment {
    /// Not the values: keys are among them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment")
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}

impl Environment {
    /// That of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self {
            variables: Arc::new(std::env::vars_os().collect()),
            home: std::env::home_dir().filter(|home| !home.as_os_str().is_empty()),
        }
    }

    /// One of these variables only.
    pub fn new<N: Into<OsString>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (N, V)>,
        home: Option<PathBuf>,
    ) -> Self {
        let variables = variables
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()));
        Self {
            variables: Arc::new(variables.collect()),
            home,
        }
    }

    /// The user's home.
    #[must_use]
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// The text of a variable; one that is blank or no text counts as unset.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self.raw(name)?.to_str()?;
        (!value.trim().is_empty()).then_some(value)
    }

    /// The value of a variable as it is; an empty one counts as unset.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&OsStr> {
        let value = self.variables.get(OsStr::new(name))?;
        (!value.is_empty()).then_some(value)
    }

    /// `PLIANT_` and the name, or where that is not there at all, `PI_` and the name.
    #[must_use]
    pub fn shared(&self, name: &str) -> Option<&str> {
        let own = format!("PLIANT_{name}");
        match self.variables.contains_key(OsStr::new(&own)) {
            true => self.get(&own),
            false => self.get(&format!("PI_{name}")),
        }
    }

    /// The user's configuration directory: what the environment names, else `~/.pliant/agent`; `None`
    /// where there is no home.
    #[must_use]
    pub fn agent_dir(&self) -> Option<PathBuf> {
        let named = ["PLIANT_AGENT_DIR", "PLIANT_CODING_AGENT_DIR"];
        let named = named.iter().find_map(|name| self.raw(name));
        match named {
            Some(named) => Some(self.at_home(Path::new(named))),
            None => Some(self.home()?.join(".pliant").join("agent")),
        }
    }

    /// Where sessions are stored, if the environment says so.
    #[must_use]
    pub fn session_dir(&self) -> Option<PathBuf> {
        let named = ["PLIANT_SESSION_DIR", "PLIANT_CODING_AGENT_SESSION_DIR"];
        let named = named.iter().find_map(|name| self.raw(name))?;
        Some(self.at_home(Path::new(named)))
    }

    /// Whether nothing may be asked of the network that nobody asked for.
    #[must_use]
    pub fn is_offline(&self) -> bool {
        let word = self.shared("OFFLINE").map(str::to_ascii_lowercase);
        matches!(word.as_deref(), Some("1" | "true" | "yes"))
    }

    /// How long services are asked to keep what they have cached, if not as long as usual.
    #[must_use]
    pub fn cache_retention(&self) -> Option<&'static str> {
        (self.shared("CACHE_RETENTION") == Some("long")).then_some("long")
    }

    /// A path that a person wrote: `~` at its beginning is the home.
    #[must_use]
    pub fn at_home(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), &self.home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment::new(variables.iter().copied(), Some("/home/u".into()))
    }

    #[test]
    fn the_configuration_directory_has_two_names_and_a_default() {
        // interfaces §3, §4
        let dir = |variables: &[(&str, &str)]| environment(variables).agent_dir().unwrap();
        assert_eq!(dir(&[]), Path::new("/home/u/.pliant/agent"));
        let both = [
            ("PLIANT_AGENT_DIR", "/a"),
            ("PLIANT_CODING_AGENT_DIR", "/b"),
        ];
        assert_eq!(dir(&both), Path::new("/a"));
        assert_eq!(dir(&both[1..]), Path::new("/b"));
        let empty = [("PLIANT_AGENT_DIR", ""), ("PLIANT_CODING_AGENT_DIR", "~/x")];
        assert_eq!(dir(&empty), Path::new("/home/u/x"));
        // It is not one of the names that pi's stand for.
        let of_pi = [("PI_CODING_AGENT_DIR", "/p"), ("PI_AGENT_DIR", "/p")];
        assert_eq!(dir(&of_pi), Path::new("/home/u/.pliant/agent"));
        assert_eq!(Environment::default().agent_dir(), None);
    }

    #[test]
    fn sessions_have_two_names_as_well() {
        // interfaces §4
        let both = [
            ("PLIANT_SESSION_DIR", "s"),
            ("PLIANT_CODING_AGENT_SESSION_DIR", "/t"),
        ];
        let dir = |variables: &[(&str, &str)]| environment(variables).session_dir();
        assert_eq!(dir(&both).unwrap(), Path::new("s"));
        assert_eq!(dir(&both[1..]).unwrap(), Path::new("/t"));
        assert_eq!(dir(&[("PI_CODING_AGENT_SESSION_DIR", "/t")]), None);
    }

    #[test]
    fn the_names_of_pi_count_where_pliants_are_not_set() {
        // interfaces §4
        for (variables, offline) in [
            (&[][..], false),
            (&[("PI_OFFLINE", "1")], true),
            (&[("PLIANT_OFFLINE", "YES")], true),
            (&[("PLIANT_OFFLINE", "true"), ("PI_OFFLINE", "0")], true),
            (&[("PLIANT_OFFLINE", "0"), ("PI_OFFLINE", "1")], false),
            (&[("PLIANT_OFFLINE", ""), ("PI_OFFLINE", "1")], false),
            (&[("PLIANT_OFFLINE", "on")], false),
        ] {
            assert_eq!(
                environment(variables).is_offline(),
                offline,
                "{variables:?}"
            );
        }
        let kept = |name, word| environment(&[(name, word)]).cache_retention();
        assert_eq!(kept("PI_CACHE_RETENTION", "long"), Some("long"));
        assert_eq!(kept("PLIANT_CACHE_RETENTION", "long"), Some("long"));
        assert_eq!(kept("PLIANT_CACHE_RETENTION", "short"), None);
    }

    #[test]
    fn values_are_not_shown() {
        let shown = format!("{:?}", environment(&[("OPENAI_API_KEY", "secret-key")]));
        assert!(!shown.contains("secret-key"), "{shown}");
    }
}

//! Key bindings: which key does what in a terminal interface (`tui.md` §10). The actions and their keys
//! are a table; `keybindings.json` says otherwise where the user wants it. Reading keys from a terminal
//! and doing what they mean is the interface's.

mod action;
mod table;

mod file;
mod older;

mod live;

use std::collections::HashMap;

use pliant_sdk::shortcut::normal;

pub use action::{Action, Context};
pub use file::FILE;
pub use live::{LiveKeys, Reread};

/// Where the program runs, as far as its keys differ by it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Platform {
    /// Neither of the others.
    #[default]
    Unix,
    /// Linux whose terminal is one of Windows.
    Wsl,
    /// Windows.
    Windows,
}

/// What keys do, at one moment. Keys are compared as [`normal`] writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyBindings {
    /// The keys of each action, in the order of [`Action::all`].
    keys: Vec<Vec<String>>,
    /// What a key does in a context.
    actions: HashMap<(Context, String), Action>,
}

impl KeyBindings {
    /// What holds where the user says nothing.
    #[must_use]
    pub fn defaults(platform: Platform) -> Self {
        Self::with(platform, &HashMap::new()).0
    }

    /// What holds with the user's own: keys, as [`normal`] writes them, in the place of an action's. A key
    /// that the user gave to one action does no longer what it does by default in the same context. What
    /// the user gave to two is told.
    fn with(platform: Platform, own: &HashMap<Action, Vec<String>>) -> (Self, Vec<String>) {
        let (mut actions, mut problems) = (HashMap::new(), Vec::new());
        for action in Action::all().filter(|action| own.contains_key(action)) {
            for key in &own[&action] {
                let first = *actions
                    .entry((action.context(), key.clone()))
                    .or_insert(action);
                if first != action {
                    problems.push(format!(
                        "The key {key} is bound to \"{first}\" and to \"{action}\", which are for the same place; it does \"{first}\". Give one of them another key."
                    ));
                }
            }
        }
        let mut keys = Vec::new();
        for action in Action::all() {
            let chosen = match own.get(&action) {
                Some(chosen) => chosen.clone(),
                None => action
                    .defaults(platform)
                    .iter()
                    .map(|key| (*key).to_owned())
                    .collect(),
            };
            let has = |key: &String| {
                let place = (action.context(), key.clone());
                *actions.entry(place).or_insert(action) == action
            };
            keys.push(chosen.into_iter().filter(has).collect());
        }
        (Self { keys, actions }, problems)
    }

    /// What a key does where these contexts have it, the first of them first (`tui.md` R10.1).
    #[must_use]
    pub fn resolve(&self, key: &str, contexts: &[Context]) -> Option<Action> {
        let key = normal(key).ok()?;
        let mut found = contexts.iter();
        found.find_map(|context| self.actions.get(&(*context, key.clone())).copied())
    }

    /// The keys of an action, for a hint the first of them; none when it has none.
    #[must_use]
    pub fn keys(&self, action: Action) -> &[String] {
        self.keys.get(action.place()).map_or(&[], Vec::as_slice)
    }

    /// The action that keeps a key from extensions (`extensions.md` §4.5).
    #[must_use]
    pub fn reserved(&self, key: &str) -> Option<Action> {
        self.of_key(key)
            .into_iter()
            .find(|action| action.is_reserved())
    }

    /// An action that has a key, in any context: one that keeps it from extensions, if there is one.
    #[must_use]
    pub fn taken(&self, key: &str) -> Option<Action> {
        let all = self.of_key(key);
        let reserved = all.iter().find(|action| action.is_reserved());
        reserved.or(all.first()).copied()
    }

    fn of_key(&self, key: &str) -> Vec<Action> {
        let Ok(key) = normal(key) else {
            return Vec::new();
        };
        let has = |action: &Action| self.keys(*action).contains(&key);
        Action::all().filter(has).collect()
    }
}

#[cfg(test)]
mod tests;

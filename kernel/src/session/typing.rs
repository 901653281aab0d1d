//! What extensions add to the keyboard: shortcuts, and completions of what is typed (`extensions.md` §4.5,
//! §4.10).

use pliant_sdk::Error;
use pliant_sdk::autocomplete::Typed;
use pliant_sdk::command::Completion;
use pliant_sdk::error::code;
use pliant_sdk::shortcut::{ShortcutSpec, normal};

use super::entering::Scoped;
use super::{Session, lock};
use crate::host::actions::CallScope;
use crate::registry::Callers;

/// More suggestions help nobody.
const MOST: usize = 100;

impl Session {
    /// What keys do by extensions. [`Kernel::shortcuts`](crate::Kernel::shortcuts) holds them against the
    /// key bindings of the user.
    #[must_use]
    pub fn shortcuts(&self) -> Vec<ShortcutSpec> {
        let snapshot = self.0.equipment.registry.snapshot();
        snapshot.shortcuts().map(|one| one.spec.clone()).collect()
    }

    /// Does what a key does by an extension, and returns when that is done; its failure is reported.
    ///
    /// # Errors
    /// `invalid` when there is no such key, `not_found` when no extension has it.
    pub async fn press(&self, key: &str) -> Result<(), Error> {
        let key = normal(key)?;
        let snapshot = self.0.equipment.registry.snapshot();
        let Some(shortcut) = snapshot.shortcut(&key) else {
            let message = format!("No extension has a shortcut on the key {key}.");
            return Err(Error::new(code::NOT_FOUND, message));
        };
        let scope = CallScope::Command {
            successor: Some(Default::default()),
        };
        let lender = Scoped {
            shared: &self.0,
            scope,
        };
        // As a command, it may take as long as it wants.
        let patience = self.0.patience(lock(&self.0.abort).clone()).unlimited();
        let callers = Callers::new(&lender, patience);
        let _ = callers
            .call(shortcut, "shortcut", "press", b"null".to_vec())
            .await;
        self.0.publish_reports().await;
        Ok(())
    }

    /// How the argument of an extension's command could go on; `typed` is what stands behind its name.
    pub async fn complete_command(&self, name: &str, typed: &str) -> Vec<Completion> {
        let snapshot = self.0.equipment.registry.snapshot();
        let Some(command) = snapshot.command(name) else {
            return Vec::new();
        };
        let callers = self.0.impatient();
        let asked = callers.ask(command, "command", "complete", &typed).await;
        let found = asked.answer(Ok::<Vec<Completion>, Error>);
        self.0.publish_reports().await;
        labelled(found.unwrap_or_default())
    }

    /// What extensions suggest for the word at the cursor, which stands behind `column` characters of the
    /// line: the newest one that has a suggestion.
    pub async fn suggest(&self, line: &str, column: usize) -> Vec<Completion> {
        let typed = Typed::at(line, column);
        let snapshot = self.0.equipment.registry.snapshot();
        let mut found = Vec::new();
        for one in snapshot.autocompletes() {
            if !typed.word.starts_with(&one.spec.trigger) {
                continue;
            }
            let callers = self.0.impatient();
            let asked = callers.ask(one, "autocomplete", "suggest", &typed).await;
            found = asked
                .answer(Ok::<Vec<Completion>, Error>)
                .unwrap_or_default();
            if !found.is_empty() {
                break;
            }
        }
        self.0.publish_reports().await;
        labelled(found)
    }
}

/// Each has something to show.
fn labelled(mut found: Vec<Completion>) -> Vec<Completion> {
    found.truncate(MOST);
    for completion in &mut found {
        if completion.label.is_empty() {
            completion.label.clone_from(&completion.value);
        }
    }
    found
}

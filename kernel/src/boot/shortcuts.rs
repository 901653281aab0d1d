//! The shortcuts of extensions, held against the user's key bindings (`extensions.md` §4.5).

use pliant_sdk::shortcut::ShortcutSpec;

use super::Kernel;

impl Kernel {
    /// What keys do by extensions, for an interface that asks these before its own actions; and what is
    /// odd about them, in sentences. A key that an action cannot do without stays the action's.
    #[must_use]
    pub fn shortcuts(&self) -> (Vec<ShortcutSpec>, Vec<String>) {
        let (snapshot, keys) = (self.registry.snapshot(), self.keys.now());
        let (mut all, mut odd) = (Vec::new(), Vec::new());
        for shortcut in snapshot.shortcuts() {
            let (key, source) = (&shortcut.spec.name, &shortcut.source().name);
            if let Some(action) = keys.reserved(key) {
                odd.push(format!(
                    "The shortcut {key} of \"{source}\" is left out: the key is for \"{action}\". Register another one, or give that another key in keybindings.json."
                ));
                continue;
            }
            if let Some(action) = keys.taken(key) {
                odd.push(format!(
                    "The key {key} does what \"{source}\" registered for it, and no longer \"{action}\"."
                ));
            }
            all.push(shortcut.spec.clone());
        }
        (all, odd)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use pliant_sdk::command::CommandCtx;
    use pliant_sdk::shortcut::{Shortcut, ShortcutSpec};
    use pliant_sdk::{Error, Plugin};

    use super::*;
    use crate::boot::KernelOptions;
    use crate::registry::{InProcess, Rank, Source};

    struct Key(&'static str);

    impl Shortcut for Key {
        fn spec(&self) -> ShortcutSpec {
            ShortcutSpec::new(self.0, "")
        }

        async fn press(&self, _: CommandCtx) -> Result<(), Error> {
            Ok(())
        }
    }

    #[test]
    fn keys_that_an_action_cannot_do_without_stay_with_it_and_others_are_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        let agent_dir = dir.path().join("agent");
        fs::create_dir(&agent_dir).unwrap();
        let own = r#"{"app.interrupt": "f9"}"#;
        fs::write(agent_dir.join("keybindings.json"), own).unwrap();
        let options = KernelOptions::new(dir.path().to_owned(), agent_dir);
        let kernel = Kernel::boot(options).unwrap();
        let plugin = ["ctrl+alt+x", "F9", "escape", "up"]
            .into_iter()
            .fold(Plugin::new(), |plugin, key| plugin.shortcut(Key(key)));
        let generation = InProcess::new(Source::inline("x", Rank::User), plugin).unwrap();
        kernel.registry().publish(Arc::new(generation));
        let (all, odd) = kernel.shortcuts();
        let names: Vec<&str> = all.iter().map(|shortcut| &*shortcut.name).collect();
        assert!(
            names.contains(&"ctrl+alt+x") && names.contains(&"up"),
            "{names:?}"
        );
        assert!(!names.contains(&"f9"), "{names:?}");
        let said = odd.join("\n");
        assert!(
            said.contains("shortcut f9 of \"x\" is left out: the key is for \"app.interrupt\""),
            "{said}"
        );
        assert!(said.contains("The key up does"), "{said}");
    }
}

//! Slash commands of plugins and scripts (P9–P13). A found command consumes the input, also when it
//! fails, and runs at once, also while a run is active.

use std::sync::Arc;

use pliant_sdk::command::CommandSpec;

use super::{Prompt, Scene};
use crate::registry::{Callers, Registered, Snapshot};

/// Runs the command that the prompt names; `false` when there is none.
pub(super) async fn dispatch(scene: &Scene<'_>, prompt: &Prompt) -> bool {
    let Some(Named { command, args, .. }) = named(scene.snapshot, prompt) else {
        return false;
    };
    let args = serde_json::to_vec(args).unwrap_or_default();
    // A failure is reported and the input consumed all the same (P11). Commands have no time limit.
    let unlimited = scene.callers.patience().clone().unlimited();
    let callers = Callers::new(scene.command_lender, unlimited);
    let _ = callers.call(command, "command", "run", args).await;
    true
}

/// A command as a prompt calls it.
pub(super) struct Named<'a> {
    pub(super) name: &'a str,
    command: &'a Arc<Registered<CommandSpec>>,
    args: &'a str,
}

/// The command that a prompt names. A literal prompt names none (P19).
pub(super) fn named<'a>(snapshot: &'a Snapshot, prompt: &'a Prompt) -> Option<Named<'a>> {
    if prompt.literal {
        return None;
    }
    let (name, args) = split(&prompt.text)?;
    let command = snapshot.command(name)?;
    Some(Named {
        name,
        command,
        args,
    })
}

/// Name and arguments: the first space ends the name, everything after it is kept as it is (P9).
fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix('/')?;
    Some(rest.split_once(' ').unwrap_or((rest, "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_space_ends_the_name() {
        // P9
        assert_eq!(split("/a  b "), Some(("a", " b ")));
        assert_eq!(split("/a\tb"), Some(("a\tb", "")));
        assert_eq!(split("/a"), Some(("a", "")));
        assert_eq!(split("a /b"), None);
    }
}

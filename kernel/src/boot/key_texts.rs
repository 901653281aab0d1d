//! Key bindings, as something that a reload reads anew.

use std::path::Path;
use std::sync::Arc;

use pliant_sdk::event::{SourceChange, SourceOutcome};

use super::KernelOptions;
use crate::keys::{FILE, LiveKeys, Platform};
use crate::reload::{Reread, Texts};
use crate::watch::Place;

/// Those of a kernel, and what is odd about them.
pub(super) fn load(options: &KernelOptions, pi_dir: Option<&Path>) -> (LiveKeys, Vec<String>) {
    let platform = match options.environment.get("WSL_DISTRO_NAME") {
        _ if cfg!(windows) => Platform::Windows,
        Some(_) => Platform::Wsl,
        None => Platform::Unix,
    };
    LiveKeys::load(&options.agent_dir, pi_dir, platform)
}

/// The key bindings of a kernel.
pub(super) struct KeyTexts(pub(super) Arc<LiveKeys>);

impl Texts for KeyTexts {
    fn places(&self) -> Vec<Place> {
        self.0.places()
    }

    fn reread(&self) -> Reread {
        let reread = self.0.reread();
        let change = |outcome| SourceChange::new(FILE, self.0.file(), outcome);
        let mut changes = Vec::new();
        if !reread.changed.is_empty() {
            let actions: Vec<&str> = reread.changed.iter().map(|action| action.id()).collect();
            let said = format!("Other keys: {}.", actions.join(", "));
            changes.push(change(SourceOutcome::Reloaded).saying(said));
        }
        let odd = reread.problems.into_iter();
        changes.extend(odd.map(|problem| change(SourceOutcome::Failed).saying(problem)));
        changes.into()
    }
}

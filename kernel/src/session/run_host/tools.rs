//! The tools as a run sees them.

use std::sync::Arc;

use pliant_sdk::loadout::LoadoutChanges;
use pliant_sdk::tool::ExecutionMode;

use crate::prompt::{PromptEdits, PromptOptions};
use crate::registry::Snapshot;
use crate::run::{Loadout, LoadoutParts, ToolHost, ToolServices};
use crate::session::{Shared, lock};

impl ToolHost for Arc<Shared> {
    /// The setting `toolExecution`; any word but `sequential` is the default.
    fn execution_mode(&self) -> ExecutionMode {
        match self.equipment.settings.now().get("toolExecution").as_str() {
            Some("sequential") => ExecutionMode::Sequential,
            _ => ExecutionMode::Parallel,
        }
    }

    fn loadout(&self, snapshot: &Arc<Snapshot>) -> Arc<Loadout> {
        // Ends after the lock: what it holds may be the last of a generation, whose code runs then.
        let kept;
        let mut state = lock(&self.state);
        let scene = state.scene(&self.cwd.display().to_string());
        state.tools.refresh(snapshot);
        let revision = state.tools.revision();
        kept = state.loadout.take();
        let current = kept
            .clone()
            .filter(|loadout| loadout.is_current(snapshot, revision));
        let loadout = match current {
            Some(loadout) if *loadout.scene() == scene => loadout,
            same_tools => {
                // Weak: the session keeps the loadout, whose tools hold this.
                let (session, host) = (Arc::downgrade(self), Arc::clone(&self.equipment.host));
                let services: ToolServices =
                    Arc::new(move |source, scope| match session.upgrade() {
                        Some(session) => session.source_services(source, scope),
                        None => host.for_source(source, None),
                    });
                let loadout = Loadout::new(LoadoutParts {
                    snapshot: Arc::clone(snapshot),
                    tools: state.tools.of(snapshot),
                    services,
                    scene,
                    prompt: PromptOptions::clone(&self.prompt.now()),
                    prepare_limit: self.equipment.settings.now().handler_limit(),
                });
                let changes = same_tools.and_then(|old| old.changes().cloned());
                Arc::new(match changes {
                    Some(changes) => loadout.changed(changes),
                    None => loadout,
                })
            }
        };
        state.loadout = Some(Arc::clone(&loadout));
        loadout
    }

    fn note_prompt(&self, edits: PromptEdits) {
        lock(&self.state).prompt_edits = edits;
    }

    fn select_tools(&self, names: &[String]) {
        self.set_active_tools(names);
    }

    fn change_loadout(&self, loadout: &Arc<Loadout>, changes: LoadoutChanges) {
        let mut state = lock(&self.state);
        if let Some(current) = &mut state.loadout
            && Arc::ptr_eq(current, loadout)
        {
            *current = Arc::new(loadout.changed(changes));
        }
    }
}

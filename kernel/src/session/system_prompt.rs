//! The system prompt as it stands: that of the active tools, as the handlers of the active run edited
//! it (`extensions.md` §5.2).

use std::sync::Arc;

use super::{Session, lock};
use crate::prompt::{PromptInputs, rendered, sections};
use crate::run::ToolHost;

impl Session {
    /// The prompt as one text, without what `context` and request handlers make of it.
    #[must_use]
    pub fn system_prompt(&self) -> String {
        let inputs = self.prompt_inputs();
        let forced = inputs.force_system_prompt.clone();
        forced.unwrap_or_else(|| rendered(&sections(&inputs)))
    }

    /// What it is built from.
    #[must_use]
    pub fn prompt_inputs(&self) -> PromptInputs {
        let snapshot = self.0.equipment.registry.snapshot();
        let shared = Arc::clone(&self.0);
        let loadout = shared.loadout(&snapshot);
        let edits = lock(&shared.state).prompt_edits.clone();
        edits.applied_to(loadout.inputs().clone())
    }
}

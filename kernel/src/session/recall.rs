//! What a branch says of model and level, and how it is kept in step with what is in force (V3, V8, V9).

use std::sync::Arc;

use pliant_sdk::message::ThinkingLevel;
use pliant_sdk::virtual_model::VIRTUAL_API;
use pliant_sdk::{Error, Event, Model};

use super::model::{append_level, append_model};
use super::{Session, Shared, lock};
use crate::tree::{Entry, EntryKind, ModelRef, SessionTree, Settings};

/// The model that a branch implies (V9): the one of the last change or answer; but answers of physical
/// models leave a virtual model selected.
pub fn implied_model(said: &Settings, is_virtual: impl Fn(&str) -> bool) -> Option<&ModelRef> {
    match &said.changed_to {
        Some(selected) if is_virtual(&reference(selected)) => Some(selected),
        _ => said.model.as_ref(),
    }
}

/// What a session notes when it is opened (V3): a new one its whole selection, an older one only the
/// level, where its branch has none.
pub(super) fn record_start(
    tree: &mut SessionTree,
    model: Option<&Model>,
    level: ThinkingLevel,
) -> Result<(), Error> {
    let Some(model) = model else { return Ok(()) };
    // A name may have been given before anything else.
    let is_name = |entry: &Arc<Entry>| entry.kind() == EntryKind::SessionInfo;
    let is_new = tree.entries().iter().all(is_name);
    if is_new {
        append_model(tree, model)?;
    }
    if is_new || tree.settings().thinking_level.is_none() {
        append_level(tree, level)?;
    }
    Ok(())
}

impl Shared {
    /// The model as it is registered now: a reload may have changed what it can (G15). One that is gone
    /// stays as it was.
    pub(super) async fn refresh_model(self: &Arc<Self>) -> Result<(), Error> {
        let number = self.equipment.registry.snapshot().number();
        let known = {
            let mut state = lock(&self.state);
            let changed = std::mem::replace(&mut state.model_of, number) != number;
            state.model.clone().filter(|_| changed)
        };
        let Some(known) = known else { return Ok(()) };
        let found = self.equipment.catalog.find(&known.provider, &known.id);
        let found = match found.await {
            Ok(Some(found)) => found,
            Ok(None) => {
                let message = format!(
                    "The model {} is not known any more. It stays selected as it was; /model chooses another one.",
                    known.reference()
                );
                self.subscribers.publish(Event::Notice { message }).await;
                return Ok(());
            }
            Err(_) => return Ok(()),
        };
        let level = {
            let mut state = lock(&self.state);
            match &mut state.model {
                Some(model) if *model == known => *model = found,
                // Somebody has selected another one meanwhile.
                _ => return Ok(()),
            }
            state.level
        };
        let change = self.change_selection(None, level)?;
        Session(Arc::clone(self))
            .announce_selection(change, "set")
            .await;
        Ok(())
    }

    /// What a run notes at its start where the branch implies something else, as after navigation (V8).
    /// Between physical models the answer itself says who gave it.
    pub(super) fn record_selection(&self) -> Result<(), Error> {
        let (model, level) = {
            let state = lock(&self.state);
            (state.model.clone(), state.level)
        };
        let Some(model) = model else { return Ok(()) };
        let is_virtual = |name: &str| self.equipment.catalog.is_virtual(name);
        let mut tree = self.tree();
        let said = tree.settings().clone();
        let implied = implied_model(&said, is_virtual).map(reference);
        let routed = model.api == VIRTUAL_API || implied.as_deref().is_some_and(is_virtual);
        if routed && implied != Some(model.reference()) {
            append_model(&mut tree, &model)?;
        }
        let implied = said.thinking_level.map(|said| model.clamp_level(said));
        if implied != Some(level) {
            append_level(&mut tree, level)?;
        }
        Ok(())
    }
}

fn reference(model: &ModelRef) -> String {
    format!("{}/{}", model.provider, model.model_id)
}

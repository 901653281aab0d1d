//! What is true while a session is open: model, thinking level, and which tools are in force.

use std::sync::Arc;

use pliant_sdk::Model;
use pliant_sdk::message::ThinkingLevel;
use pliant_sdk::tool::ToolScene;

use super::active::ActiveTools;
use crate::prompt::PromptEdits;
use crate::run::Loadout;

/// The mutable part of a session.
#[derive(Debug)]
pub(super) struct State {
    pub(super) model: Option<Model>,
    pub(super) level: ThinkingLevel,
    pub(super) tools: ActiveTools,
    /// The registry's number when the model was looked up.
    pub(super) model_of: u64,
    /// Of new sessions, as the settings say and the user has set it since.
    pub(super) default_level: Option<ThinkingLevel>,
    pub(super) loadout: Option<Arc<Loadout>>,
    /// What handlers made of the prompt of the active run.
    pub(super) prompt_edits: PromptEdits,
    /// The conversation was compacted because a request did not fit, and nothing good came since
    /// (R22, R23).
    pub(super) recovered: bool,
}

impl State {
    /// What tools may know of the session and its model.
    pub(super) fn scene(&self, cwd: &str) -> ToolScene {
        let images = self.model.as_ref().is_some_and(Model::takes_images);
        let limits = self
            .model
            .as_ref()
            .and_then(|model| model.extra.get("inputLimits")?.get("images").cloned());
        ToolScene {
            cwd: cwd.to_owned(),
            images,
            image_limits: limits.unwrap_or_default(),
        }
    }
}

//! What is true while a session is open: model, thinking level, and which tools are in force.

use std::sync::Arc;

use pliant_sdk::Model;
use pliant_sdk::message::ThinkingLevel;
use pliant_sdk::tool::{Exposure, ToolScene, ToolSpec};

use crate::registry::{Rank, Registered, Snapshot};
use crate::run::Loadout;

/// Active at the start unless the settings say otherwise (`extensions.md` §8).
pub const DEFAULT_TOOLS: [&str; 4] = ["read", "bash", "edit", "write"];

/// The mutable part of a session.
#[derive(Debug)]
pub(super) struct State {
    pub(super) model: Option<Model>,
    pub(super) level: ThinkingLevel,
    pub(super) loadout: Option<Arc<Loadout>>,
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

/// Which tools a user wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolSelection {
    /// Only these, in this order.
    pub allow: Option<Vec<String>>,
    /// Never these.
    pub exclude: Vec<String>,
    /// Instead of the default set, from the settings.
    pub defaults: Option<Vec<String>>,
}

impl ToolSelection {
    /// No tool at all.
    #[must_use]
    pub fn none() -> Self {
        Self {
            allow: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// Whether a tool that ships with pliant could become active; those that cannot are not loaded.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        let listed = self
            .allow
            .as_ref()
            .is_none_or(|allow| allow.iter().any(|allowed| allowed == name));
        listed && !self.exclude.iter().any(|excluded| excluded == name)
    }

    /// The active tools of a snapshot: the default set, then what extensions brought (T22).
    #[must_use]
    pub fn active(&self, snapshot: &Snapshot) -> Vec<String> {
        let mut names: Vec<String> = match (&self.allow, &self.defaults) {
            (Some(allow), _) => allow.clone(),
            (None, Some(defaults)) => defaults.clone(),
            (None, None) => DEFAULT_TOOLS.map(str::to_owned).to_vec(),
        };
        if self.allow.is_none() {
            names.extend(
                snapshot
                    .tools()
                    .filter(|tool| activates(tool))
                    .map(|tool| tool.spec.name.clone()),
            );
        }
        let mut active: Vec<String> = Vec::with_capacity(names.len());
        for name in names {
            let hidden = snapshot
                .tool(&name)
                .is_none_or(|tool| tool.spec.exposure == Exposure::Hidden);
            if !hidden && self.wants(&name) && !active.contains(&name) {
                active.push(name);
            }
        }
        active
    }
}

/// A tool of an extension becomes active when it is registered, unless it says otherwise.
fn activates(tool: &Registered<ToolSpec>) -> bool {
    tool.source().rank != Rank::BuiltIn
        && matches!(tool.spec.exposure, Exposure::Direct | Exposure::ModelOnly)
        && tool.spec.default_active != Some(false)
}

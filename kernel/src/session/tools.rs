//! The tools as front ends and plugins see them: which there are, which are active.

use std::sync::Arc;

use pliant_sdk::Message;
use pliant_sdk::history::patch_tools;
use pliant_sdk::message::{SystemMessage, Tool};
use pliant_sdk::session::ToolInfo;

use super::active::BranchTools;
use super::{Session, Shared, lock};
use crate::registry::{HandlerFailure, Watcher};
use crate::run::Loadout;
use crate::tree::SessionTree;

impl Session {
    pub(super) fn watch_registry(&self) {
        let shared = Arc::downgrade(&self.0);
        self.0.equipment.registry.watch(shared);
    }

    /// Names of the active tools, in their order.
    #[must_use]
    pub fn active_tools(&self) -> Vec<String> {
        self.0.active_tools()
    }

    /// Makes these tools the active ones, from the next request on (T23). Tools that stay active keep
    /// their place; unknown and hidden names are passed by.
    pub fn set_active_tools(&self, names: &[String]) {
        self.0.set_active_tools(names);
    }

    /// All tools that are registered and that the user lets be, hidden ones included.
    #[must_use]
    pub fn all_tools(&self) -> Vec<ToolInfo> {
        self.0.all_tools()
    }
}

/// An idle session keeps the tools of its last run, and lets go of those that were replaced.
impl Watcher for Shared {
    fn registry_changed(&self) {
        let number = self.equipment.registry.snapshot().number();
        let is_outdated = |loadout: &mut Arc<Loadout>| loadout.number() != number;
        let outdated = lock(&self.state).loadout.take_if(is_outdated);
        // Outside the lock: this may end a generation, whose code runs then.
        drop(outdated);
    }

    fn source_failed(&self, failure: &HandlerFailure) {
        lock(&self.reports).push(failure.clone());
    }
}

impl Shared {
    pub(super) fn active_tools(&self) -> Vec<String> {
        let snapshot = self.equipment.registry.snapshot();
        let tools = &mut lock(&self.state).tools;
        tools.refresh(&snapshot);
        tools.names(&snapshot)
    }

    pub(super) fn set_active_tools(&self, names: &[String]) {
        let snapshot = self.equipment.registry.snapshot();
        lock(&self.state).tools.set(names, &snapshot);
    }

    pub(super) fn all_tools(&self) -> Vec<ToolInfo> {
        let snapshot = self.equipment.registry.snapshot();
        let tools = &mut lock(&self.state).tools;
        tools.refresh(&snapshot);
        let active = tools.names(&snapshot);
        let there = snapshot.tools().filter(|tool| tools.lets(&tool.spec.name));
        there
            .map(|tool| ToolInfo {
                spec: tool.spec.clone(),
                active: active.contains(&tool.spec.name),
                source: tool.source().name.clone(),
            })
            .collect()
    }

    /// Makes the tools active that the branch of the leaf had: when a session is opened, and when it
    /// has moved to another place of its tree (T24).
    pub(super) fn restore_tools(&self) {
        let branch = branch_tools(&self.tree());
        let snapshot = self.equipment.registry.snapshot();
        lock(&self.state).tools.restore(branch, &snapshot);
    }
}

/// Replays all system messages of the branch, also those before a compaction.
fn branch_tools(tree: &SessionTree) -> BranchTools {
    let mut declared: Vec<Tool> = Vec::new();
    let mut branch = BranchTools::default();
    let mut take = |message: &SystemMessage| {
        patch_tools(&mut declared, message);
        let added = message.tools_added.iter().flatten();
        branch.mentioned.extend(added.map(|tool| tool.name.clone()));
    };
    for message in tree.system_messages() {
        if let Message::System(message) = &**message {
            take(message);
        }
    }
    branch.declared = declared.into_iter().map(|tool| tool.name).collect();
    branch
}

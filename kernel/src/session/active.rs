//! Which tools are active: an ordered set that the registry, the user and plugins change (T22–T24).
//! It is looked at when a turn begins, so that a change takes effect with the next request.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use pliant_sdk::tool::Exposure;

use super::selection::ToolSelection;
use crate::registry::Snapshot;
use crate::run::ToolSet;

/// The active tools of a session.
#[derive(Debug)]
pub(super) struct ActiveTools {
    selection: ToolSelection,
    /// In their order. A tool that is hidden, or gone with its source, keeps its place.
    names: IndexMap<String, Known>,
    /// What was registered when the registry was last looked at, or before.
    seen: HashMap<String, Exposure>,
    seen_snapshot: u64,
    revision: u64,
}

/// Whether an active name was ever registered here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Yes,
    /// It is part of the conversation that was opened, and waits for its source (T24).
    NotYet,
}

/// What a conversation says of tools.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct BranchTools {
    /// Declared at its end, in order.
    pub(super) declared: Vec<String>,
    /// Ever declared.
    pub(super) mentioned: HashSet<String>,
}

impl ActiveTools {
    /// Those of a new conversation.
    pub(super) fn new(selection: ToolSelection, snapshot: &Snapshot) -> Self {
        let names = selection.at_start(snapshot);
        let mut tools = Self {
            selection,
            names: names.into_iter().map(|name| (name, Known::Yes)).collect(),
            seen: HashMap::new(),
            seen_snapshot: 0,
            revision: 0,
        };
        tools.see(snapshot);
        tools
    }

    /// Those that a conversation had, unless the user names others: what it declares, extensions'
    /// tools that it never knew, and what the user changes (T24). One that never spoke of tools says
    /// nothing about them.
    pub(super) fn restore(&mut self, branch: BranchTools, snapshot: &Snapshot) {
        if self.selection.only().is_some() {
            return;
        }
        let BranchTools {
            declared,
            mentioned,
        } = branch;
        let mut names = if mentioned.is_empty() {
            self.selection.at_start(snapshot)
        } else {
            declared
        };
        for tool in snapshot
            .tools()
            .filter(|tool| self.selection.activates(tool))
        {
            let name = &tool.spec.name;
            if !mentioned.contains(name) && !names.contains(name) {
                names.push(name.clone());
            }
        }
        self.selection.change(&mut names, snapshot);
        let known = |name: &String| {
            if mentioned.contains(name) && snapshot.tool(name).is_none() {
                Known::NotYet
            } else {
                Known::Yes
            }
        };
        self.names = names
            .into_iter()
            .map(|name| {
                let known = known(&name);
                (name, known)
            })
            .collect();
        // What is not there now is new when it comes: this conversation may never have had it.
        self.seen.clear();
        self.see(snapshot);
        self.revision += 1;
    }

    /// Takes note of what was registered since: a new tool becomes active unless it says otherwise,
    /// also one that was hidden; one that is for scripts from now on does not stay active (T22).
    pub(super) fn refresh(&mut self, snapshot: &Snapshot) {
        if self.seen_snapshot == snapshot.number() {
            return;
        }
        for tool in snapshot.tools() {
            let name = &tool.spec.name;
            let before = self.seen.get(name).copied();
            let is_new = matches!(before, None | Some(Exposure::Hidden));
            let was_declared = matches!(before, Some(Exposure::Direct | Exposure::ModelOnly));
            let is_for_scripts =
                matches!(tool.spec.exposure, Exposure::Codemode | Exposure::Deferred);
            if let Some(known) = self.names.get_mut(name) {
                *known = Known::Yes;
            }
            if is_new && self.selection.activates(tool) {
                self.names.entry(name.clone()).or_insert(Known::Yes);
            } else if was_declared && is_for_scripts {
                self.names.shift_remove(name);
            }
        }
        self.see(snapshot);
        self.revision += 1;
    }

    /// The settings have other defaults now: what they name anew becomes active, and what they no longer
    /// name stays (`extensions.md` §2.6). What the user has turned off was a default before, and stays off.
    pub(super) fn redefault(&mut self, defaults: Option<Vec<String>>, snapshot: &Snapshot) {
        if self.selection.defaults == defaults || self.selection.only().is_some() {
            return;
        }
        self.refresh(snapshot);
        let before = self.selection.at_start(snapshot);
        self.selection.defaults = defaults;
        for name in self.selection.at_start(snapshot) {
            if !before.contains(&name) {
                self.names.entry(name).or_insert(Known::Yes);
            }
        }
        self.revision += 1;
    }

    /// A run begins: what the conversation had and nobody registered is given up (T24).
    pub(super) fn run_starts(&mut self) {
        self.names.retain(|_, known| *known == Known::Yes);
    }

    /// Makes these the active ones. Those that stay keep their places, new ones come after them;
    /// unknown and hidden names are passed by (T23).
    pub(super) fn set(&mut self, wanted: &[String], snapshot: &Snapshot) {
        self.refresh(snapshot);
        let before = self.names(snapshot);
        let may = |name: &&String| is_there(&self.selection, name, snapshot);
        let wanted: Vec<&String> = wanted.iter().filter(may).collect();
        let deactivates = before.iter().any(|name| !wanted.contains(&name));
        self.names.retain(|name, _| {
            // What is not there cannot have been meant, unless the user is tidying up.
            wanted.contains(&name) || !(deactivates || before.contains(name))
        });
        for name in wanted {
            self.names.entry(name.clone()).or_insert(Known::Yes);
        }
        if self.names(snapshot) != before {
            self.revision += 1;
        }
    }

    /// The active tools that are registered, in order.
    pub(super) fn names(&self, snapshot: &Snapshot) -> Vec<String> {
        let names = self.names.keys();
        let there = names.filter(|name| is_there(&self.selection, name, snapshot));
        there.cloned().collect()
    }

    /// Whether the user lets a tool of that name be.
    pub(super) fn lets(&self, name: &str) -> bool {
        self.selection.wants(name)
    }

    /// Something that goes with the tools is another now, so what was made with them is made anew.
    pub(super) fn count_change(&mut self) {
        self.revision += 1;
    }

    /// Counts the changes.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// The tools of a snapshot.
    pub(super) fn of(&self, snapshot: &Snapshot) -> ToolSet {
        let registered = snapshot.tools().map(|tool| &tool.spec.name);
        ToolSet {
            active: self.names(snapshot),
            registered: registered.filter(|name| self.lets(name)).cloned().collect(),
            revision: self.revision,
        }
    }

    fn see(&mut self, snapshot: &Snapshot) {
        let tools = snapshot.tools();
        self.seen
            .extend(tools.map(|tool| (tool.spec.name.clone(), tool.spec.exposure)));
        self.seen_snapshot = snapshot.number();
    }
}

fn is_there(selection: &ToolSelection, name: &str, snapshot: &Snapshot) -> bool {
    let tool = snapshot.tool(name);
    tool.is_some_and(|tool| tool.spec.exposure != Exposure::Hidden) && selection.wants(name)
}

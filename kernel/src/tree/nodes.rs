//! The whole tree for display (S24): flat, with children by number, so that neither building nor
//! dropping it recurses however deep a session is.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Entry, EntryId, Label, SessionTree};

/// All entries of a session as a forest.
#[derive(Debug, Default)]
pub struct Nodes {
    /// In file order.
    pub all: Vec<Node>,
    /// Numbers of the nodes without a parent, by timestamp.
    pub roots: Vec<usize>,
}

/// An entry and what follows it.
#[derive(Debug)]
pub struct Node {
    /// The entry.
    pub entry: Arc<Entry>,
    /// Its label, if it has one.
    pub label: Option<Label>,
    /// Numbers of its children, by timestamp.
    pub children: Vec<usize>,
}

impl SessionTree {
    /// The forest. Entries whose parent is missing are roots, and so is the first entry of every
    /// cycle of parents.
    #[must_use]
    pub fn nodes(&self) -> Nodes {
        let current = |at: usize| self.index.get(&self.entries[at].id) == Some(&at);
        let entries: Vec<_> = (0..self.entries.len()).filter(|at| current(*at)).collect();
        let all: Vec<Node> = entries
            .iter()
            .map(|at| self.node(&self.entries[*at]))
            .collect();
        let numbers: HashMap<&EntryId, usize> = entries
            .iter()
            .enumerate()
            .map(|(number, at)| (&self.entries[*at].id, number))
            .collect();
        let parent = |node: &Node| node.entry.parent().and_then(|id| numbers.get(id).copied());
        let parents: Vec<Option<usize>> = all.iter().map(parent).collect();
        let mut nodes = Nodes {
            all,
            roots: Vec::new(),
        };
        nodes.link(&parents);
        nodes.sort();
        nodes
    }

    fn node(&self, entry: &Arc<Entry>) -> Node {
        let label = self.label(entry.id()).cloned();
        Node {
            entry: Arc::clone(entry),
            label,
            children: Vec::new(),
        }
    }
}

impl Nodes {
    fn link(&mut self, parents: &[Option<usize>]) {
        for (number, parent) in without_cycles(parents).into_iter().enumerate() {
            match parent {
                Some(parent) => self.all[parent].children.push(number),
                None => self.roots.push(number),
            }
        }
    }

    fn sort(&mut self) {
        let times: Vec<i64> = self
            .all
            .iter()
            .map(|node| node.entry.timestamp_ms())
            .collect();
        for node in &mut self.all {
            node.children.sort_by_key(|number| times[*number]);
        }
        self.roots.sort_by_key(|number| times[*number]);
    }
}

/// Parents, with the first node of each cycle made a root. Every node is walked over once.
fn without_cycles(parents: &[Option<usize>]) -> Vec<Option<usize>> {
    let mut cut = parents.to_vec();
    let mut walk_of: Vec<Option<usize>> = vec![None; parents.len()];
    for start in 0..parents.len() {
        let mut at = start;
        loop {
            if let Some(walk) = walk_of[at] {
                if walk == start {
                    cut[at] = None;
                }
                break;
            }
            walk_of[at] = Some(start);
            match cut[at] {
                Some(parent) => at = parent,
                None => break,
            }
        }
    }
    cut
}

//! Looking at the session's tree, for front ends.

use std::sync::Arc;

use super::Session;
use crate::tree::{Entry, EntryId, Nodes, Projection};

impl Session {
    /// All entries in the order of the file.
    #[must_use]
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        self.0.tree().entries().to_vec()
    }

    /// The entry of that name.
    #[must_use]
    pub fn entry(&self, id: &EntryId) -> Option<Arc<Entry>> {
        self.0.tree().entry(id).cloned()
    }

    /// From the root to an entry, or to where the session stands.
    #[must_use]
    pub fn branch(&self, from: Option<&EntryId>) -> Vec<Arc<Entry>> {
        let tree = self.0.tree();
        match from {
            Some(from) => tree.get_branch(from),
            None => tree.path_to_leaf().to_vec(),
        }
    }

    /// The whole tree.
    #[must_use]
    pub fn nodes(&self) -> Nodes {
        self.0.tree().nodes()
    }

    /// What the next entry will follow.
    #[must_use]
    pub fn leaf(&self) -> Option<EntryId> {
        self.0.tree().leaf().cloned()
    }

    /// The name of an entry.
    #[must_use]
    pub fn label(&self, id: &EntryId) -> Option<String> {
        let tree = self.0.tree();
        tree.label(id).map(|label| label.text.clone())
    }

    /// The context of the next request, and which entries it comes from (S32).
    #[must_use]
    pub fn projection(&self) -> Projection {
        self.0.tree().projection().clone()
    }
}

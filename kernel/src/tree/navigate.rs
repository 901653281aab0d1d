//! The leaf, the branch that ends there, and what a request sees of it (`kernel.md` §2.5, §2.7).

use std::collections::HashSet;
use std::sync::Arc;

use pliant_sdk::message::Message;

use super::branch::Branch;
use super::{
    BranchSummary, Entry, EntryBody, EntryId, Projection, SessionTree, Settings, TreeError,
};

/// A place that a user goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// What the next entry will follow.
    pub leaf: Option<EntryId>,
    /// What he said there, to be said better.
    pub editor_text: Option<String>,
}

/// The leaf and its branch.
impl SessionTree {
    /// The entry that the next one will follow; `None` before the first.
    #[must_use]
    pub fn leaf(&self) -> Option<&EntryId> {
        self.leaf.map(|at| &self.entries[at].id)
    }

    /// Moves the leaf; writes nothing (S22).
    ///
    /// # Errors
    /// [`TreeError::UnknownEntry`]; the leaf then stays.
    pub fn branch(&mut self, id: &EntryId) -> Result<(), TreeError> {
        let at = self.index.get(id).copied();
        let at = at.ok_or_else(|| TreeError::UnknownEntry { id: id.clone() })?;
        self.move_leaf(Some(at));
        Ok(())
    }

    /// Where a user who goes to an entry wants to stand: before a message of his own, or one that an
    /// extension wrote in his place, with its text in the editor; else at the entry (R40).
    ///
    /// # Errors
    /// [`TreeError::UnknownEntry`].
    pub fn destination(&self, target: &EntryId) -> Result<Destination, TreeError> {
        let entry = self
            .entry(target)
            .ok_or_else(|| TreeError::UnknownEntry { id: target.clone() })?;
        let text = match entry.body() {
            EntryBody::CustomMessage(custom) => Some(custom.content.joined_text("")),
            EntryBody::Message(message) => match &**message {
                Message::User(user) => Some(user.content.joined_text("")),
                _ => None,
            },
            _ => None,
        };
        let leaf = match text {
            Some(_) => entry.parent().filter(|id| self.index.contains_key(*id)),
            None => Some(target),
        };
        Ok(Destination {
            leaf: leaf.cloned(),
            editor_text: text,
        })
    }

    /// Goes there. Writes nothing.
    ///
    /// # Errors
    /// [`TreeError::UnknownEntry`]; the leaf then stays.
    pub fn navigate(&mut self, target: &EntryId) -> Result<Option<String>, TreeError> {
        let goal = self.destination(target)?;
        match &goal.leaf {
            Some(leaf) => self.branch(leaf)?,
            None => self.reset_leaf(),
        }
        Ok(goal.editor_text)
    }

    /// The next entry will be another root (S22).
    pub fn reset_leaf(&mut self) {
        self.move_leaf(None);
    }

    fn move_leaf(&mut self, leaf: Option<usize>) {
        self.leaf = leaf;
        self.read_again(|tree| tree.branch = Branch::default());
    }

    /// Does something after which a request sees other entries. Of the entries that it saw before,
    /// those it does not see any more are read from the file when somebody asks, so that memory
    /// follows the branch in use.
    pub(super) fn read_again(&mut self, change: impl FnOnce(&mut Self)) {
        let Some(before) = self.branch.known_projection().cloned() else {
            return change(self);
        };
        change(self);
        let seen: HashSet<*const Entry> = self
            .projection()
            .sources()
            .iter()
            .map(|selected| Arc::as_ptr(&selected.entry))
            .collect();
        let mut released = false;
        for selected in before.sources() {
            let entry = &selected.entry;
            if seen.contains(&Arc::as_ptr(entry)) || !entry.is_read() {
                continue;
            }
            if let Some(at) = self.index.get(entry.id())
                && Arc::ptr_eq(&self.entries[*at], entry)
            {
                self.entries[*at] = Arc::new(entry.unread());
                released = true;
            }
        }
        if released {
            self.branch.forget_path();
        }
    }

    /// Moves the leaf and tells there what happened on the branch that was left (S23).
    ///
    /// # Errors
    /// As [`SessionTree::append`]; the leaf then stays.
    pub fn branch_with_summary(
        &mut self,
        to: Option<&EntryId>,
        summary: BranchSummary,
    ) -> Result<&Arc<Entry>, TreeError> {
        let left = self.leaf;
        let from_id = self.leaf().map_or("root", EntryId::as_str).to_owned();
        match to {
            Some(id) => self.branch(id)?,
            None => self.reset_leaf(),
        }
        let body = EntryBody::BranchSummary(BranchSummary { from_id, ..summary });
        if let Err(error) = self.append(body) {
            self.move_leaf(left);
            return Err(error);
        }
        Ok(&self.entries[self.entries.len() - 1])
    }

    /// Root to leaf, all kinds (S24).
    #[must_use]
    pub fn path_to_leaf(&self) -> &[Arc<Entry>] {
        self.branch.path(|| self.path_to(self.leaf))
    }

    /// Root to that entry; empty when there is no such entry.
    #[must_use]
    pub fn get_branch(&self, from: &EntryId) -> Vec<Arc<Entry>> {
        self.path_to(self.index.get(from).copied())
    }

    /// A missing parent and a cycle of parents end the path (S20).
    fn path_to(&self, leaf: Option<usize>) -> Vec<Arc<Entry>> {
        let mut path = Vec::new();
        let mut seen = vec![false; self.entries.len()];
        let mut next = leaf;
        while let Some(at) = next.filter(|at| !seen[*at]) {
            seen[at] = true;
            let entry = &self.entries[at];
            path.push(Arc::clone(entry));
            next = entry.parent().and_then(|id| self.index.get(id).copied());
        }
        path.reverse();
        path
    }

    /// The context of the next request (2.7). Messages that stay the same are the same `Arc`s.
    #[must_use]
    pub fn context(&self) -> &[Arc<Message>] {
        self.projection().messages()
    }

    /// The same with its provenance (S32).
    #[must_use]
    pub fn projection(&self) -> &Projection {
        self.branch.projection(|| self.path_to(self.leaf))
    }

    /// The context that another leaf would give: an unknown one falls back to the last entry, none
    /// gives an empty context (S36).
    #[must_use]
    pub fn projection_at(&self, leaf: Option<&EntryId>) -> Projection {
        let last = self.entries.len().checked_sub(1);
        let at = leaf.and_then(|id| self.index.get(id).copied().or(last));
        Projection::of(&self.path_to(at))
    }

    /// Model and thinking level that the branch says (2.7 step 1).
    #[must_use]
    pub fn settings(&self) -> &Settings {
        self.branch.settings(|| self.path_to(self.leaf))
    }
}

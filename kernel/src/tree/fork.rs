//! New sessions out of old ones (`kernel.md` §2.6). The old file is never touched.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use pliant_sdk::message::Message;

use super::body::{EntryBody, EntryKind, LabelChange};
use super::source::text_of;
use super::writing::write_lines;
use super::{
    Adopted, Entry, EntryId, Header, Ids, Place, SessionId, SessionTree, TreeError, store,
};

/// Where a fork is cut (S28).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// Before a user message, whose text goes back to the editor.
    Before,
    /// After the entry: a clone of its branch.
    At,
}

/// A new session, and the text to put into the editor.
pub struct Fork {
    /// The new session.
    pub tree: SessionTree,
    /// Text of the user message that was left out.
    pub editor_text: Option<String>,
}

impl SessionTree {
    /// Forks beside this session's file, or in memory if this session is (S28).
    ///
    /// # Errors
    /// [`TreeError::UnknownEntry`], [`TreeError::NotAUserMessage`], [`TreeError::NotOnDisk`], or a
    /// failed write.
    pub fn fork(&self, id: &EntryId, position: Position) -> Result<Fork, TreeError> {
        let entry = self
            .entry(id)
            .ok_or_else(|| TreeError::UnknownEntry { id: id.clone() })?;
        if matches!(self.place, Place::Pending(_)) {
            return Err(TreeError::NotOnDisk);
        }
        if position == Position::At {
            return Ok(Fork {
                tree: self.branched(id)?,
                editor_text: None,
            });
        }
        let Some(Message::User(user)) = entry.message().map(|message| &**message) else {
            return Err(TreeError::NotAUserMessage { id: id.clone() });
        };
        let editor_text = Some(user.content.joined_text(""));
        let parent = entry.parent().filter(|parent| self.entry(parent).is_some());
        let tree = match parent {
            Some(parent) => self.branched(parent)?,
            None => self.successor(Vec::new()),
        };
        Ok(Fork { tree, editor_text })
    }

    /// A session of the path to this leaf (S27).
    fn branched(&self, leaf: &EntryId) -> Result<Self, TreeError> {
        let path = self.get_branch(leaf);
        let entries = chained(&path, |entry| entry.kind() != EntryKind::Label);
        let mut tree = self.successor(entries);
        for entry in &path {
            let Some(label) = self
                .label(entry.id())
                .filter(|_| entry.kind() != EntryKind::Label)
            else {
                continue;
            };
            let id = tree.ids.entry_id(|id| tree.index.contains_key(id));
            let change = LabelChange {
                target_id: entry.id().clone(),
                label: Some(label.text.clone()),
            };
            let parent = tree.leaf().cloned();
            let entry = Entry::new(
                id,
                parent,
                label.timestamp.clone(),
                EntryBody::Label(change),
            )?;
            tree.adopt(Arc::new(entry), Adopted::AsLeaf);
        }
        if tree.entries.iter().any(|entry| entry.is_conversation()) {
            tree.begin_file(None)?;
        }
        Ok(tree)
    }

    /// A session with these entries, in the same place as this one but not yet written.
    fn successor(&self, entries: Vec<Arc<Entry>>) -> Self {
        let (id, now) = (self.ids.session_id(), self.ids.now_ms());
        let header = self
            .header
            .successor(id, now, &self.header.cwd, self.path());
        let place = match self.path() {
            Some(path) => Place::Pending(path.with_file_name(store::file_name(&header))),
            None => Place::Memory,
        };
        Self::with_entries(header, entries, place, self.ids.clone())
    }

    /// Copies a whole session file, with all its branches, to another folder and working directory
    /// (S29).
    ///
    /// # Errors
    /// As [`SessionTree::copy_of`], or a failed write.
    pub fn copy_into(
        source: &Path,
        dir: &Path,
        cwd: &Path,
        id: Option<SessionId>,
        ids: Ids,
    ) -> Result<Self, TreeError> {
        let mut tree = Self::copy_of(source, dir, cwd, id, ids)?;
        tree.write_out()?;
        Ok(tree)
    }

    /// As [`SessionTree::copy_into`], but nothing is written until [`SessionTree::write_out`] or the
    /// next message.
    ///
    /// # Errors
    /// As [`SessionTree::read`].
    pub fn copy_of(
        source: &Path,
        dir: &Path,
        cwd: &Path,
        id: Option<SessionId>,
        ids: Ids,
    ) -> Result<Self, TreeError> {
        let old = Self::read(source, ids.clone())?;
        let id = id.unwrap_or_else(|| ids.session_id());
        let header = old.header.successor(id, ids.now_ms(), cwd, Some(source));
        let place = Place::Pending(dir.join(store::file_name(&header)));
        let last = old.standing();
        let entries = old.entries.into_iter().chain(last).collect();
        let mut tree = Self::with_entries(header, entries, place, ids);
        tree.damage = old.damage;
        Ok(tree)
    }

    /// Where a copy of all entries has to end so that it stands where this session stands: nothing, or
    /// an entry without content behind the leaf, for a leaf is not stored (S21).
    pub(super) fn standing(&self) -> Option<Arc<Entry>> {
        let leaf = self.leaf()?;
        let last = self.entries.last()?;
        if last.id() == leaf {
            return None;
        }
        let id = self.ids.entry_id(|id| self.index.contains_key(id));
        let entry = Entry::gone(id, Some(leaf.clone()), last.timestamp());
        Some(Arc::new(entry))
    }

    /// Writes a session that is not in its file yet, whatever is in it.
    ///
    /// # Errors
    /// A failed write.
    pub fn write_out(&mut self) -> Result<(), TreeError> {
        self.begin_file(None)
    }

    /// The header and the branch of the leaf as one chain, in the form of a session file (S30).
    ///
    /// # Errors
    /// [`TreeError::Unserialisable`], or [`TreeError::Read`] when the session's file does not hold an
    /// entry any more.
    pub fn export_jsonl(&self) -> Result<String, TreeError> {
        let mut text = Vec::new();
        write_branch(&mut text, &self.header, self.path_to_leaf())
            .map_err(|error| TreeError::read(self.path().unwrap_or(Path::new("session")), error))?;
        Ok(text_of(text.into()).into_owned())
    }
}

/// Writes a header and the entries of a path as one chain, in the form of a session file (S30).
///
/// # Errors
/// Those of the writer, and when the session's file does not hold an entry any more.
pub fn write_branch(out: &mut dyn Write, header: &Header, path: &[Arc<Entry>]) -> io::Result<()> {
    let entries = chained(path, |_| true);
    let entries = entries.iter().map(|entry| &**entry);
    write_lines(out, &header.line()?, entries).map(drop)
}

/// The wanted entries of a path, each the parent of the next. A compaction that kept from an entry
/// that goes keeps from the one that followed it.
fn chained(path: &[Arc<Entry>], wanted: impl Fn(&Entry) -> bool) -> Vec<Arc<Entry>> {
    let mut stands_for: HashMap<&EntryId, &EntryId> = HashMap::new();
    let mut following = None;
    for entry in path.iter().rev() {
        if wanted(entry) {
            following = Some(entry.id());
        } else if let Some(following) = following {
            stands_for.insert(entry.id(), following);
        }
    }
    let mut chain: Vec<Arc<Entry>> = Vec::with_capacity(path.len());
    for entry in path.iter().filter(|entry| wanted(entry)) {
        let parent = chain.last().map(|last| last.id().clone());
        let first_kept = match entry.kind() {
            EntryKind::Compaction => first_kept(entry).and_then(|id| stands_for.get(id).copied()),
            _ => None,
        };
        let same = entry.parent() == parent.as_ref() && first_kept.is_none();
        let changed = if same {
            None
        } else {
            entry.rechained(parent.as_ref(), first_kept)
        };
        chain.push(changed.map_or_else(|| Arc::clone(entry), Arc::new));
    }
    chain
}

fn first_kept(entry: &Entry) -> Option<&EntryId> {
    match entry.body() {
        EntryBody::Compaction(compaction) => compaction.first_kept_entry_id.as_ref(),
        _ => None,
    }
}

//! The conversation as an append-only tree, kept in pi's JSONL file (`kernel.md` §2). Entries come
//! in, the context of a request goes out. Synchronous; knows no model, no tool and no registry.
//!
//! An append writes first and then changes the tree, so a failed one changes nothing (S12). Bodies
//! are read from their lines when somebody asks; opening a file reads only ids, parents and types.

mod body;
mod entry;
mod error;
mod ids;
mod time;

mod branch;
mod edit;
mod nodes;
mod projection;

mod file;
mod json;
mod migrate;
mod scan;

mod fork;
mod lease;
mod markdown;
mod store;
mod trash;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use pliant_sdk::message::{Message, Usage};

pub use body::{
    BranchSummary, Compaction, ContextEdit, CustomEntry, CustomMessageEntry, EntryBody, EntryKind,
    LabelChange, ModelChange, OtherEntry, Replacement, SessionInfoEntry, ThinkingLevelChange,
    UsageEntry, one_line,
};
pub use entry::Entry;
pub use error::TreeError;
pub use file::Header;
pub use fork::{Fork, Position};
pub use ids::{EntryId, Ids, SessionId};
pub use lease::{Lease, LeaseError, LeaseHolder};
pub use nodes::{Node, Nodes};
pub use projection::{ModelRef, Projection, Selected, Settings};
pub use scan::Damage;
pub use store::{
    Found, Listed, file_name, find, import, list, most_recent, peek, session_dir, session_files,
};
pub use time::{iso_from_ms, ms_from_iso};
pub use trash::{DiscardError, discard};

use branch::Branch;
use file::Log;

/// Where entries go.
enum Place {
    Memory,
    /// Here, as soon as there is a conversation (S11).
    Pending(PathBuf),
    File(PathBuf, Log),
}

/// The name a user gave an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The name.
    pub text: String,
    /// When it was given, ISO 8601.
    pub timestamp: String,
}

/// One session: its entries, and the leaf that the next one will follow.
pub struct SessionTree {
    header: Header,
    /// In file order. Entries with the same id all stand here; the index has the last (S20).
    entries: Vec<Arc<Entry>>,
    index: HashMap<EntryId, usize>,
    leaf: Option<usize>,
    labels: HashMap<EntryId, Label>,
    named_at: Option<usize>,
    place: Place,
    damage: Vec<Damage>,
    ids: Ids,
    branch: Branch,
    totals: OnceLock<Usage>,
}

impl SessionTree {
    /// A session that is never written (S14). Without an id it gets a new one.
    #[must_use]
    pub fn in_memory(cwd: &Path, id: Option<SessionId>, ids: Ids) -> Self {
        Self::starting(cwd, id, None, Place::Memory, ids)
    }

    /// A session that will be written to a file of its own in this folder (S1, S11).
    #[must_use]
    pub fn create(dir: &Path, cwd: &Path, id: Option<SessionId>, ids: Ids) -> Self {
        let mut tree = Self::in_memory(cwd, id, ids);
        tree.place = Place::Pending(dir.join(file_name(&tree.header)));
        tree
    }

    fn starting(
        cwd: &Path,
        id: Option<SessionId>,
        parent: Option<&Path>,
        place: Place,
        ids: Ids,
    ) -> Self {
        let id = id.unwrap_or_else(|| ids.session_id());
        let header = Header::new(id, ids.now_ms(), cwd, parent);
        Self::with_entries(header, Vec::new(), place, ids)
    }

    fn with_entries(header: Header, entries: Vec<Arc<Entry>>, place: Place, ids: Ids) -> Self {
        let mut tree = Self {
            header,
            entries: Vec::with_capacity(entries.len()),
            index: HashMap::with_capacity(entries.len()),
            leaf: None,
            labels: HashMap::new(),
            named_at: None,
            place,
            damage: Vec::new(),
            ids,
            branch: Branch::default(),
            totals: OnceLock::new(),
        };
        for entry in entries {
            tree.adopt(entry);
        }
        tree
    }

    /// Opens a file for reading and appending. A path without a file becomes a new session bound to
    /// exactly that path, an empty file gets a header; `cwd` is for these two (S15). Older versions
    /// are rewritten once (S19).
    ///
    /// # Errors
    /// [`TreeError::NotASession`], [`TreeError::Read`] or [`TreeError::Write`]; the file is then
    /// untouched.
    pub fn open(path: &Path, cwd: &Path, ids: Ids) -> Result<Self, TreeError> {
        let text = match file::read_text(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let place = Place::Pending(path.to_owned());
                return Ok(Self::starting(cwd, None, None, place, ids));
            }
            read => read.map_err(|error| TreeError::read(path, error))?,
        };
        let write_error = |error| TreeError::write(path, error);
        if text.is_empty() {
            let mut log = Log::open(path).map_err(write_error)?;
            let mut tree = Self::in_memory(cwd, None, ids);
            log.append(&tree.header.line()?).map_err(write_error)?;
            tree.place = Place::File(path.to_owned(), log);
            return Ok(tree);
        }
        let (mut tree, migrated) = Self::from_text(path, text, ids)?;
        if let Some(text) = migrated {
            file::rewrite(path, &text).map_err(write_error)?;
        }
        let mut log = Log::open(path).map_err(write_error)?;
        log.finish_line();
        tree.place = Place::File(path.to_owned(), log);
        Ok(tree)
    }

    /// Reads a file into a tree of its own: nothing is written, later appends stay in memory.
    ///
    /// # Errors
    /// [`TreeError::NotASession`] or [`TreeError::Read`].
    pub fn read(path: &Path, ids: Ids) -> Result<Self, TreeError> {
        let text = file::read_text(path).map_err(|error| TreeError::read(path, error))?;
        Ok(Self::from_text(path, text, ids)?.0)
    }

    /// The tree, and the text to put in the file's place if it was of an older version.
    fn from_text(
        path: &Path,
        text: String,
        ids: Ids,
    ) -> Result<(Self, Option<Arc<String>>), TreeError> {
        let no_session = || TreeError::NotASession {
            path: path.to_owned(),
        };
        let text = Arc::new(text);
        let mut contents = file::parse(Arc::clone(&text)).ok_or_else(no_session)?;
        let mut migrated = None;
        if contents.header.is_older_version() {
            let text = Arc::new(migrate::migrate(&text, |taken| ids.entry_id(taken)));
            contents = file::parse(Arc::clone(&text)).ok_or_else(no_session)?;
            migrated = Some(text);
        }
        let mut tree = Self::with_entries(contents.header, contents.entries, Place::Memory, ids);
        tree.damage = contents.damage;
        Ok((tree, migrated))
    }

    /// Appends an entry under the leaf; it is the leaf then (S7). When this returns, the entry is
    /// in the file, or the session has nothing worth a file yet (S11, S13).
    ///
    /// # Errors
    /// A refusal (unknown or unfit target, not storable) or a failed write; the tree is then as
    /// before (S12).
    pub fn append(&mut self, body: EntryBody) -> Result<&Arc<Entry>, TreeError> {
        let mut body = self.checked(body)?;
        let id = self.ids.entry_id(|id| self.index.contains_key(id));
        if let EntryBody::Compaction(compaction) = &mut body {
            self.complete(compaction, &id);
        }
        let timestamp = iso_from_ms(self.ids.now_ms());
        let entry = Entry::new(id, self.leaf().cloned(), timestamp, body)?;
        self.append_stored(entry)
    }

    fn append_stored(&mut self, entry: Entry) -> Result<&Arc<Entry>, TreeError> {
        self.write(&entry)?;
        Ok(self.adopt(Arc::new(entry)))
    }

    /// Appends a message entry.
    ///
    /// # Errors
    /// As [`SessionTree::append`].
    pub fn append_message(&mut self, message: Arc<Message>) -> Result<&Arc<Entry>, TreeError> {
        self.append(EntryBody::Message(message))
    }

    fn write(&mut self, entry: &Entry) -> Result<(), TreeError> {
        match &mut self.place {
            Place::Memory => Ok(()),
            Place::File(path, log) => log
                .append(entry.raw())
                .map_err(|error| TreeError::write(path, error)),
            Place::Pending(_) if entry.is_conversation() => self.begin_file(Some(entry)),
            Place::Pending(_) => Ok(()),
        }
    }

    /// Writes the header and all entries so far into a new file (S11).
    fn begin_file(&mut self, last: Option<&Entry>) -> Result<(), TreeError> {
        let Place::Pending(path) = &self.place else {
            return Ok(());
        };
        let path = path.clone();
        let text = self.to_text(self.entries.iter().map(|entry| &**entry).chain(last))?;
        let log = Log::create(&path, &text).map_err(|error| TreeError::write(&path, error))?;
        self.place = Place::File(path, log);
        Ok(())
    }

    fn to_text<'a>(&self, entries: impl Iterator<Item = &'a Entry>) -> Result<String, TreeError> {
        let mut text = self.header.line()?;
        text.push('\n');
        for entry in entries {
            text.push_str(entry.raw());
            text.push('\n');
        }
        Ok(text)
    }

    /// Takes an entry into memory as the new leaf.
    fn adopt(&mut self, entry: Arc<Entry>) -> &Arc<Entry> {
        let at = self.entries.len();
        match entry.kind() {
            EntryKind::Label => self.take_label(&entry),
            EntryKind::SessionInfo => self.named_at = Some(at),
            _ => {}
        }
        if let (Some(totals), Some(usage)) = (self.totals.get_mut(), entry.usage()) {
            add_usage(totals, usage);
        }
        self.index.insert(entry.id.clone(), at);
        self.leaf = Some(at);
        self.branch.append(&entry);
        self.entries.push(entry);
        &self.entries[at]
    }

    fn take_label(&mut self, entry: &Entry) {
        let EntryBody::Label(change) = entry.body() else {
            return;
        };
        match &change.label {
            Some(text) => {
                let label = Label {
                    text: text.clone(),
                    timestamp: entry.timestamp.clone(),
                };
                self.labels.insert(change.target_id.clone(), label);
            }
            None => drop(self.labels.remove(&change.target_id)),
        }
    }
}

/// Nothing is not a summand: a sum is the provider's own figure if all its parts are (M4).
fn add_usage(totals: &mut Usage, usage: Usage) {
    if *totals == Usage::default() {
        *totals = usage;
    } else {
        totals.add(&usage);
    }
}

/// Looking at the session.
impl SessionTree {
    /// The first record of the file.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Name of the session.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.header.id
    }

    /// The session's file, also before it exists; `None` in memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.place {
            Place::Memory => None,
            Place::Pending(path) | Place::File(path, _) => Some(path),
        }
    }

    /// The file exists.
    #[must_use]
    pub fn is_on_disk(&self) -> bool {
        matches!(self.place, Place::File(..))
    }

    /// Parts of the file that could not be read.
    #[must_use]
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// All entries in file order.
    #[must_use]
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// The entry of that name.
    #[must_use]
    pub fn entry(&self, id: &EntryId) -> Option<&Arc<Entry>> {
        self.index.get(id).map(|at| &self.entries[*at])
    }

    /// The label of an entry (S25).
    #[must_use]
    pub fn label(&self, id: &EntryId) -> Option<&Label> {
        self.labels.get(id)
    }

    /// The session's name, if it has one (S5).
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self.entries.get(self.named_at?)?.body() {
            EntryBody::SessionInfo(info) => Some(&*info.name).filter(|name| !name.is_empty()),
            _ => None,
        }
    }

    /// Tokens and money of all entries, whatever branch they are on (invariant 36).
    #[must_use]
    pub fn usage_totals(&self) -> &Usage {
        self.totals.get_or_init(|| {
            let mut totals = Usage::default();
            let current = |at: usize, entry: &Entry| self.index.get(&entry.id) == Some(&at);
            let entries = self.entries.iter().enumerate();
            let usages = entries.filter(|(at, entry)| current(*at, entry));
            let usages = usages.filter_map(|(_, entry)| entry.usage());
            usages.for_each(|usage| add_usage(&mut totals, usage));
            totals
        })
    }
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
        self.leaf = Some(at.ok_or_else(|| TreeError::UnknownEntry { id: id.clone() })?);
        self.branch = Branch::default();
        Ok(())
    }

    /// The next entry will be another root (S22).
    pub fn reset_leaf(&mut self) {
        self.leaf = None;
        self.branch = Branch::default();
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
            self.leaf = left;
            self.branch = Branch::default();
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

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
mod navigate;
mod nodes;
mod projection;
mod prompts;
mod scratch;

mod bridge;
mod damage;
mod head;
mod header;
mod json;
mod load;
mod migrate;
mod scan;
mod skim;
mod source;

mod lease;
mod log;
mod opening;
mod storage;
mod writing;

mod doctor;
mod fork;
mod listing;
mod markdown;
mod store;
mod trash;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use pliant_sdk::message::{Message, Usage};

pub use body::{
    BranchSummary, Compaction, ContextEdit, CustomEntry, CustomMessageEntry, EntryBody, EntryKind,
    LabelChange, ModelChange, OtherEntry, Replacement, SessionInfoEntry, ThinkingLevelChange,
    UsageEntry, one_line,
};
pub use damage::{Damage, tell_damage};
pub use doctor::{CopyCwd, Oddity, OddityKind, examine, write_mended_copy};
pub use entry::Entry;
pub use error::TreeError;
pub use fork::{Fork, Position, write_branch};
pub use header::Header;
pub use ids::{EntryId, Ids, SessionId};
pub use lease::{Lease, LeaseError, LeaseHolder};
pub use listing::{Listed, list, list_files};
pub use navigate::Destination;
pub use nodes::{Node, Nodes};
pub use projection::{ModelRef, Projection, Selected, Settings};
pub use storage::{SyncPolicy, Syncer};
pub use store::{
    Found, file_name, find, import, most_recent, peek, same_directory, session_dir, session_files,
    unreadable_since,
};
pub use time::{iso_from_ms, ms_from_iso};
pub use trash::{DiscardError, discard};

use branch::Branch;
use storage::Storage;

/// Where entries go.
enum Place {
    Memory,
    /// Here, as soon as there is a conversation (S11).
    Pending(PathBuf),
    File(Box<Storage>),
    /// Here, but nothing more goes there.
    Closed(PathBuf),
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
    notices: Vec<String>,
    /// Lines of the file, as far as they are known.
    lines: usize,
    /// Another program wrote to the file, and that was told.
    others_write: bool,
    sync: SyncPolicy,
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

    /// Names the session that this one follows. Only before anything is written.
    #[must_use]
    pub fn following(mut self, parent: Option<&Path>) -> Self {
        self.header.parent_session = parent.map(Path::to_owned);
        self
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
            notices: Vec::new(),
            lines: 0,
            others_write: false,
            sync: SyncPolicy::default(),
            ids,
            branch: Branch::default(),
            totals: OnceLock::new(),
        };
        for entry in entries {
            tree.adopt(entry, Adopted::AsLeaf);
        }
        tree
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

    fn append_stored(&mut self, mut entry: Entry) -> Result<&Arc<Entry>, TreeError> {
        self.write(&mut entry)?;
        let compacts = entry.kind() == EntryKind::Compaction;
        let entry = Arc::new(entry);
        if compacts {
            self.read_again(|tree| tree.adopt(entry, Adopted::AsLeaf));
        } else {
            self.adopt(entry, Adopted::AsLeaf);
        }
        Ok(&self.entries[self.entries.len() - 1])
    }

    /// Appends a message entry.
    ///
    /// # Errors
    /// As [`SessionTree::append`].
    pub fn append_message(&mut self, message: Arc<Message>) -> Result<&Arc<Entry>, TreeError> {
        self.append(EntryBody::Message(message))
    }

    /// Takes an entry into memory.
    fn adopt(&mut self, entry: Arc<Entry>, how: Adopted) {
        let at = self.entries.len();
        match entry.kind() {
            EntryKind::Label => self.take_label(&entry),
            EntryKind::SessionInfo => self.named_at = Some(at),
            _ => {}
        }
        // Asked for in this order: nobody wants every entry read only to be counted.
        if let Some(totals) = self.totals.get_mut()
            && let Some(usage) = entry.usage()
        {
            add_usage(totals, usage);
        }
        let earlier = self.index.insert(entry.id.clone(), at);
        if earlier.is_some() {
            // The later entry counts from now on, also where the earlier one did.
            self.totals = OnceLock::new();
            self.branch = Branch::default();
        }
        if how == Adopted::AsLeaf {
            self.leaf = Some(at);
            self.branch.append(&entry);
        }
        self.entries.push(entry);
    }

    fn take_label(&mut self, entry: &Entry) {
        let EntryBody::Label(change) = entry.body() else {
            return;
        };
        match &change.label {
            Some(text) => {
                let label = Label {
                    text: text.clone(),
                    timestamp: entry.timestamp.to_string(),
                };
                self.labels.insert(change.target_id.clone(), label);
            }
            None => drop(self.labels.remove(&change.target_id)),
        }
    }
}

/// How an entry comes into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Adopted {
    /// As the new leaf.
    AsLeaf,
    /// Another program wrote it; the leaf stays.
    Beside,
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
            Place::Pending(path) | Place::Closed(path) => Some(path),
            Place::File(storage) => Some(storage.path()),
        }
    }

    /// The file exists.
    #[must_use]
    pub fn is_on_disk(&self) -> bool {
        matches!(self.place, Place::File(_))
    }

    /// What the user should be told of the file, in sentences; each is told once.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// When the file is forced to the disk.
    pub fn set_sync(&mut self, policy: SyncPolicy) {
        self.sync = policy;
    }

    /// What has to be forced to the disk at the boundary of a run; `None` when there is nothing, or
    /// the policy is another.
    pub fn run_boundary(&mut self) -> Option<Syncer> {
        (self.sync == SyncPolicy::Run).then(|| self.syncer())?
    }

    fn syncer(&mut self) -> Option<Syncer> {
        match &mut self.place {
            Place::File(storage) => storage.syncer(),
            _ => None,
        }
    }

    /// Lets others open the session's file. Nothing can be appended any more, unless the session is in
    /// memory only.
    pub fn close(&mut self) {
        if let Some(path) = self.path() {
            self.place = Place::Closed(path.to_owned());
        }
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

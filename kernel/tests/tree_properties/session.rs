//! A session on disk and what it should be: every step is checked against a plain list of what was
//! appended.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use pliant_kernel::tree::{
    Compaction, Entry, EntryBody, EntryId, EntryKind, SessionTree, TreeError, one_line,
};
use pliant_sdk::history::replay;
use pliant_sdk::message::{Message, Usage};
use proptest::sample::Index;
use tempfile::TempDir;

use crate::{cwd, ids, open, reference};

/// The tree, and the plain list.
pub struct Session {
    pub folder: TempDir,
    pub path: PathBuf,
    pub tree: SessionTree,
    /// All entries in the order they were appended.
    entries: Vec<Arc<Entry>>,
    leaf: Option<EntryId>,
    labels: HashMap<EntryId, String>,
    name: String,
    seed: u64,
}

/// What a caller can see, for "as before".
#[derive(Debug, PartialEq)]
pub struct Look {
    leaf: Option<EntryId>,
    lines: Vec<String>,
    labels: Vec<Option<String>>,
    name: Option<String>,
    context: Vec<Arc<Message>>,
    usage: Usage,
    file: Option<Vec<u8>>,
}

impl Session {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tree = SessionTree::create(folder.path(), cwd(), None, ids(1));
        Self {
            path: tree.path().unwrap().to_owned(),
            folder,
            tree,
            entries: Vec::new(),
            leaf: None,
            labels: HashMap::new(),
            name: String::new(),
            seed: 1,
        }
    }

    pub fn look(&self) -> Look {
        let label = |entry: &Arc<Entry>| Some(self.tree.label(entry.id())?.text.clone());
        Look {
            leaf: self.tree.leaf().cloned(),
            lines: self.tree.entries().iter().map(line).collect(),
            labels: self.tree.entries().iter().map(label).collect(),
            name: self.tree.name().map(str::to_owned),
            context: self.tree.context().to_vec(),
            usage: self.tree.usage_totals().clone(),
            file: fs::read(&self.path).ok(),
        }
    }

    pub fn is_on_disk(&self) -> bool {
        self.entries.iter().any(|entry| is_conversation(entry))
    }

    /// Some entry, if there is one; every other time one of the last few, so that operations meet.
    pub fn pick(&self, index: Index) -> Option<Arc<Entry>> {
        let count = self.entries.len();
        let recent = if index.index(64).is_multiple_of(2) {
            4
        } else {
            count
        };
        let last = &self.entries[count.saturating_sub(recent)..];
        (!last.is_empty()).then(|| Arc::clone(&last[index.index(last.len())]))
    }

    /// Root to that entry, by the list.
    pub fn path_to(&self, leaf: Option<&EntryId>) -> Vec<Arc<Entry>> {
        let mut path = Vec::new();
        let mut next = leaf;
        while let Some(id) = next {
            let entry = self.entries.iter().find(|entry| entry.id() == id).unwrap();
            path.push(entry);
            next = entry.parent();
        }
        path.into_iter().rev().cloned().collect()
    }

    /// S7, S13
    pub fn append(&mut self, body: EntryBody) {
        self.with_append(body.clone(), |tree| tree.append(body).cloned());
    }

    /// Appends in some way; the entry must hold this body.
    pub fn with_append(
        &mut self,
        body: EntryBody,
        append: impl FnOnce(&mut SessionTree) -> Result<Arc<Entry>, TreeError>,
    ) {
        let before = self.tree.context().to_vec();
        let tokens = self.tree.usage_totals().total_tokens;
        let file = fs::read(&self.path).unwrap_or_default();
        let entry = append(&mut self.tree).unwrap();
        assert_eq!(entry.parent(), self.leaf.as_ref());
        assert_eq!(*entry.body(), self.completed(body, &entry, &before));
        let added = entry.body().usage().map_or(0, |usage| usage.total_tokens);
        // invariant 36
        assert_eq!(self.tree.usage_totals().total_tokens, tokens + added);
        if !file.is_empty() {
            // invariant 4
            let after = fs::read(&self.path).unwrap();
            let line = after.strip_prefix(&*file).unwrap();
            assert_eq!(line, format!("{}\n", entry.raw()).as_bytes());
        }
        self.record(entry);
    }

    /// Notes what was appended.
    pub fn record(&mut self, entry: Arc<Entry>) {
        self.leaf = Some(entry.id().clone());
        match entry.body() {
            EntryBody::Label(change) => {
                let label = change.label.clone().unwrap_or_default();
                self.labels.insert(change.target_id.clone(), label);
            }
            EntryBody::SessionInfo(info) => self.name.clone_from(&info.name),
            _ => {}
        }
        self.entries.push(entry);
    }

    /// The body as the tree stores it (S26, S33, S34).
    fn completed(&self, body: EntryBody, entry: &Entry, before: &[Arc<Message>]) -> EntryBody {
        match body {
            EntryBody::Compaction(compaction) => {
                let systems = before.iter().filter_map(|message| match &**message {
                    Message::System(system) => Some(system),
                    _ => None,
                });
                let system = replay(systems).map(|system| Arc::new(Message::System(system)));
                let kept = compaction.first_kept_entry_id.clone();
                EntryBody::Compaction(Compaction {
                    system_message: system,
                    first_kept_entry_id: kept.or_else(|| Some(entry.id().clone())),
                    ..compaction
                })
            }
            EntryBody::Label(mut change) => {
                change.label = change.label.filter(|label| !label.is_empty());
                EntryBody::Label(change)
            }
            EntryBody::SessionInfo(mut info) => {
                info.name = one_line(&info.name);
                EntryBody::SessionInfo(info)
            }
            EntryBody::ContextEdit(mut edit) => {
                let target = self.tree.entry(&edit.target_id).unwrap();
                let role = target.message().map_or("custom", |message| message.role());
                if let pliant_kernel::tree::Replacement::Content(content) = &mut edit.replacement
                    && matches!(role, "assistant" | "toolResult")
                {
                    *content = pliant_sdk::message::MessageContent::Blocks(content.to_blocks());
                }
                EntryBody::ContextEdit(edit)
            }
            body => body,
        }
    }

    /// S22: writes nothing.
    pub fn go_to(&mut self, leaf: Option<&EntryId>) {
        let before = self.look();
        match leaf {
            Some(id) => self.tree.branch(id).unwrap(),
            None => self.tree.reset_leaf(),
        }
        self.leaf = leaf.cloned();
        let after = self.look();
        assert_eq!(
            (&before.file, &before.lines, &before.usage),
            (&after.file, &after.lines, &after.usage)
        );
    }

    /// The next append will have this parent, wherever the leaf is now.
    pub fn expect_under(&mut self, parent: Option<&EntryId>) {
        self.leaf = parent.cloned();
    }

    /// What fails changes nothing (invariant 35).
    pub fn refuses<T>(&mut self, action: impl FnOnce(&mut SessionTree) -> Result<T, TreeError>) {
        let before = self.look();
        assert!(action(&mut self.tree).is_err());
        assert_eq!(self.look(), before);
    }

    /// Closes the file and opens it: the same entries, the last of them is the leaf (S21,
    /// invariants 5 and 6).
    pub fn reopen(&mut self) {
        if !self.is_on_disk() {
            return;
        }
        let before = self.look();
        self.seed += 1;
        self.tree = SessionTree::in_memory(cwd(), None, ids(0));
        self.tree = open(&self.path, self.seed);
        self.leaf = self.entries.last().map(|entry| entry.id().clone());
        let after = self.look();
        assert_eq!(
            (&before.lines, &before.labels, &before.name, &before.usage),
            (&after.lines, &after.labels, &after.name, &after.usage)
        );
        assert_eq!(before.file, after.file);
        assert!(self.tree.damage().is_empty());
        for (read, entry) in self.tree.entries().iter().zip(&self.entries) {
            assert_eq!(read.body(), entry.body());
            assert_eq!(read.timestamp(), entry.timestamp());
        }
    }

    /// Everything that holds between two steps.
    pub fn check(&self) {
        self.check_file();
        self.check_leaf();
        self.check_names();
        self.check_context();
    }

    /// Invariants 2, 3, 4 and 5.
    fn check_file(&self) {
        let mut seen = HashSet::new();
        for entry in &self.entries {
            assert!(entry.parent().is_none_or(|parent| seen.contains(parent)));
            assert!(seen.insert(entry.id().clone()), "{} twice", entry.id());
        }
        let lines: Vec<String> = self.entries.iter().map(line).collect();
        assert_eq!(
            self.tree.entries().iter().map(line).collect::<Vec<_>>(),
            lines
        );
        assert_eq!(self.path.exists(), self.is_on_disk());
        assert_eq!(self.tree.is_on_disk(), self.is_on_disk());
        if self.is_on_disk() {
            let file = fs::read_to_string(&self.path).unwrap();
            let header = self.tree.header().line().unwrap();
            assert!(!header.contains("parentId") && lines.iter().all(|l| l.contains("parentId")));
            let expected: String = [header]
                .iter()
                .chain(&lines)
                .map(|l| l.clone() + "\n")
                .collect();
            assert_eq!(file, expected);
        }
    }

    /// Invariant 1, S24.
    fn check_leaf(&self) {
        assert_eq!(self.tree.leaf(), self.leaf.as_ref());
        assert!(
            self.leaf
                .as_ref()
                .is_none_or(|leaf| self.tree.entry(leaf).is_some())
        );
        let path = self.path_to(self.leaf.as_ref());
        let same = |a: &[Arc<Entry>]| a.iter().map(line).eq(path.iter().map(line));
        assert!(same(self.tree.path_to_leaf()));
        if let Some(leaf) = &self.leaf {
            assert!(same(&self.tree.get_branch(leaf)));
        }
    }

    /// S25: the last label wins, an empty one clears.
    fn check_names(&self) {
        for entry in &self.entries {
            let label = self
                .labels
                .get(entry.id())
                .filter(|label| !label.is_empty());
            let found = self.tree.label(entry.id()).map(|label| &label.text);
            assert_eq!(found, label);
        }
        let name = Some(&*self.name).filter(|name| !name.is_empty());
        assert_eq!(self.tree.name(), name);
    }

    /// Invariants 8, 12 and 13: the context is what the branch says and nothing else.
    fn check_context(&self) {
        let path = self.path_to(self.leaf.as_ref());
        let context: Vec<Message> = self
            .tree
            .context()
            .iter()
            .map(|message| Message::clone(message))
            .collect();
        assert_eq!(context, reference::context(&path));
        let at = self.tree.projection_at(self.leaf.as_ref());
        assert_eq!(at.messages(), self.tree.context());
        let summary = |message: &Message| matches!(message, Message::CompactionSummary(_));
        if let Some(at) = context.iter().position(summary) {
            let leading = context[..at].iter().map(Message::role);
            assert!(at == 0 || leading.eq(["system"]));
            assert!(!context[at + 1..].iter().any(summary));
        }
        let settings = self.tree.settings();
        let level = settings
            .thinking_level
            .map(|level| level.as_str().to_owned());
        let model = settings
            .model
            .clone()
            .map(|model| (model.provider, model.model_id));
        assert_eq!((level, model), reference::thinking_level_and_model(&path));
    }
}

/// S11
pub fn is_conversation(entry: &Entry) -> bool {
    entry.kind() == EntryKind::Message
        && entry
            .message()
            .is_some_and(|message| matches!(message.role(), "user" | "assistant"))
}

pub fn line(entry: &Arc<Entry>) -> String {
    entry.raw().to_string()
}

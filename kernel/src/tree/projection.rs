//! From a branch to the messages of a request (`kernel.md` §2.7): a pure function of the path, and
//! the same result kept up while entries are appended. It selects and edits; it repairs nothing
//! (that is M18, below) and converts nothing.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use pliant_sdk::message::{Message, ThinkingLevel};

use super::body::{EntryBody, EntryKind};
use super::{Entry, EntryId};

/// The context of a branch, and which entry each message came from (S32).
#[derive(Debug, Clone, Default)]
pub struct Projection {
    messages: Vec<Arc<Message>>,
    sources: Vec<Selected>,
}

/// An entry that was selected, also when it contributes nothing.
#[derive(Debug, Clone)]
pub struct Selected {
    /// The entry.
    pub entry: Arc<Entry>,
    /// Its messages in the flat list; empty when it has none or an edit left them out.
    pub range: Range<usize>,
}

impl Projection {
    /// Projects a path from its root to a leaf.
    #[must_use]
    pub fn of(path: &[Arc<Entry>]) -> Self {
        let compacted_at = path
            .iter()
            .rposition(|entry| entry.kind() == EntryKind::Compaction);
        let selected = select(path, compacted_at);
        let edits = latest_edits(&selected);
        let mut projection = Self::default();
        for (at, entry) in selected.iter().enumerate() {
            let leads = at == 0 && compacted_at.is_some();
            projection.add(entry, leads, edits.get(&entry.id).copied());
        }
        projection
    }

    /// All that was said on a part of a path, compactions in it as what they say: nothing is left out
    /// because a summary stands for it. Edits among the entries count.
    #[must_use]
    pub fn uncompacted(entries: &[Arc<Entry>]) -> Self {
        let selected: Vec<&Arc<Entry>> = entries.iter().collect();
        let edits = latest_edits(&selected);
        let mut projection = Self::default();
        for entry in entries {
            projection.add(entry, true, edits.get(&entry.id).copied());
        }
        projection
    }

    /// The messages in order. Unchanged messages are the same `Arc`s from call to call.
    #[must_use]
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// The selected entries in order, with their messages.
    #[must_use]
    pub fn sources(&self) -> &[Selected] {
        &self.sources
    }

    /// The messages of one selected entry.
    #[must_use]
    pub fn messages_of(&self, selected: &Selected) -> &[Arc<Message>] {
        self.messages
            .get(selected.range.clone())
            .unwrap_or_default()
    }

    /// Takes a new leaf in. `false` when the whole path has to be projected again, as for a
    /// compaction.
    pub(super) fn append(&mut self, entry: &Arc<Entry>) -> bool {
        if entry.kind() == EntryKind::Compaction {
            return false;
        }
        if entry.kind() == EntryKind::ContextEdit
            && let EntryBody::ContextEdit(edit) = entry.body()
        {
            self.edit(&edit.target_id, entry);
        }
        self.add(entry, false, None);
        true
    }

    /// Reads an entry as an edit says from now on. Costs what stands between the two.
    fn edit(&mut self, target: &EntryId, edit: &Arc<Entry>) {
        let Some(at) = self.sources.iter().rposition(|s| s.entry.id == *target) else {
            return;
        };
        let target = &self.sources[at];
        if !is_editable(target.entry.kind()) {
            return;
        }
        let (old, new) = (target.range.clone(), edit.edited(&target.entry));
        let (removed, added) = (old.len(), new.len());
        self.messages.splice(old.clone(), new.iter().cloned());
        self.sources[at].range = old.start..old.start + added;
        for later in &mut self.sources[at + 1..] {
            let moved = |place: usize| place + added - removed;
            later.range = moved(later.range.start)..moved(later.range.end);
        }
    }

    fn add(&mut self, entry: &Arc<Entry>, leads: bool, edit: Option<&Arc<Entry>>) {
        let start = self.messages.len();
        self.messages.extend_from_slice(match (entry.kind(), edit) {
            (kind, Some(edit)) if is_editable(kind) => edit.edited(entry),
            (EntryKind::Compaction, _) if !leads => &[],
            // What an edit entry keeps is its target's message, not its own.
            (EntryKind::ContextEdit, _) => &[],
            _ => entry.messages(),
        });
        let range = start..self.messages.len();
        self.sources.push(Selected {
            entry: Arc::clone(entry),
            range,
        });
    }
}

/// Kinds that an edit can change (S26).
fn is_editable(kind: EntryKind) -> bool {
    matches!(kind, EntryKind::Message | EntryKind::CustomMessage)
}

/// Step 2: the latest compaction, what it keeps of the entries before it, what follows it.
fn select(path: &[Arc<Entry>], compacted_at: Option<usize>) -> Vec<&Arc<Entry>> {
    let Some(at) = compacted_at else {
        return path.iter().collect();
    };
    let first_kept = match path[at].body() {
        EntryBody::Compaction(compaction) => compaction.first_kept_entry_id.as_ref(),
        _ => None,
    };
    let kept_from = first_kept.and_then(|id| path[..at].iter().rposition(|entry| entry.id == *id));
    let kept = path[kept_from.unwrap_or(at)..at]
        .iter()
        .filter(|entry| !is_system(entry));
    std::iter::once(&path[at])
        .chain(kept)
        .chain(&path[at + 1..])
        .collect()
}

fn is_system(entry: &Entry) -> bool {
    entry
        .message()
        .is_some_and(|message| matches!(**message, Message::System(_)))
}

/// Step 3: of several edits of one entry the latest counts.
fn latest_edits<'a>(selected: &[&'a Arc<Entry>]) -> HashMap<&'a EntryId, &'a Arc<Entry>> {
    let edits = selected
        .iter()
        .filter(|entry| entry.kind() == EntryKind::ContextEdit);
    edits
        .filter_map(|entry| match entry.body() {
            EntryBody::ContextEdit(edit) => Some((&edit.target_id, *entry)),
            _ => None,
        })
        .collect()
}

/// A model by its names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelRef {
    /// Provider's name.
    pub provider: String,
    /// The provider's name of the model.
    pub model_id: String,
}

/// What a branch says about model and thinking level (2.7 step 1). V9 needs all three models: the
/// last change may name a virtual model whose answers come from others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// `None`: the branch never set a level.
    pub thinking_level: Option<ThinkingLevel>,
    /// The last of change and answer.
    pub model: Option<ModelRef>,
    /// Of the last `model_change`.
    pub changed_to: Option<ModelRef>,
    /// Of the last answer.
    pub answered_by: Option<ModelRef>,
}

impl Settings {
    /// Reads a path from its end, no further than needed.
    pub(super) fn of(path: &[Arc<Entry>]) -> Self {
        let mut found = Self::default();
        for entry in path.iter().rev() {
            let mut earlier = Self::default();
            let relevant = match entry.kind() {
                EntryKind::ThinkingLevelChange => found.thinking_level.is_none(),
                EntryKind::ModelChange => found.changed_to.is_none(),
                EntryKind::Message => found.answered_by.is_none(),
                _ => false,
            };
            if relevant {
                earlier.append(entry);
                found.thinking_level = found.thinking_level.or(earlier.thinking_level);
                found.model = found.model.or(earlier.model);
                found.changed_to = found.changed_to.or(earlier.changed_to);
                found.answered_by = found.answered_by.or(earlier.answered_by);
            }
        }
        found
    }

    pub(super) fn append(&mut self, entry: &Entry) {
        use EntryKind::{Message, ModelChange, ThinkingLevelChange};
        if !matches!(entry.kind(), Message | ModelChange | ThinkingLevelChange) {
            return;
        }
        match entry.body() {
            EntryBody::ThinkingLevelChange(change) => {
                let level = ThinkingLevel::parse(&change.thinking_level);
                self.thinking_level = level.or(self.thinking_level);
            }
            EntryBody::ModelChange(change) => {
                self.changed_to = Some(ModelRef {
                    provider: change.provider.clone(),
                    model_id: change.model_id.clone(),
                });
                self.model.clone_from(&self.changed_to);
            }
            EntryBody::Message(message) => {
                let Some(answer) = message.as_assistant() else {
                    return;
                };
                self.answered_by = Some(ModelRef {
                    provider: answer.provider.clone(),
                    model_id: answer.model.clone(),
                });
                self.model.clone_from(&self.answered_by);
            }
            _ => {}
        }
    }
}

//! What may be appended: the rules for labels, edits and messages, and the named ways to append
//! them (`kernel.md` M1, M5, S23–S26, S33, S34).

use std::sync::Arc;

use pliant_sdk::history::replay;
use pliant_sdk::message::{Message, MessageContent, StopReason};

use super::body::{EntryBody, EntryKind, LabelChange, SessionInfoEntry, one_line};
use super::{Compaction, ContextEdit, Entry, EntryId, Replacement, SessionTree, TreeError};

impl SessionTree {
    /// Names an entry; `None` or an empty text takes the name away (S25).
    ///
    /// # Errors
    /// [`TreeError::UnknownEntry`], or as [`SessionTree::append`].
    pub fn set_label(
        &mut self,
        target: &EntryId,
        label: Option<&str>,
    ) -> Result<&Arc<Entry>, TreeError> {
        let label = label.map(str::to_owned);
        self.append(EntryBody::Label(LabelChange {
            target_id: target.clone(),
            label,
        }))
    }

    /// Names the session; an empty text takes the name away.
    ///
    /// # Errors
    /// As [`SessionTree::append`].
    pub fn set_name(&mut self, name: &str) -> Result<&Arc<Entry>, TreeError> {
        self.append(EntryBody::SessionInfo(SessionInfoEntry {
            name: name.to_owned(),
        }))
    }

    /// Changes what requests say of an entry from here on (S26).
    ///
    /// # Errors
    /// [`TreeError::UnknownEntry`], [`TreeError::NotOnBranch`], [`TreeError::NotEditable`], or as
    /// [`SessionTree::append`].
    pub fn edit_context(
        &mut self,
        target: &EntryId,
        replacement: Replacement,
    ) -> Result<&Arc<Entry>, TreeError> {
        let edit = ContextEdit {
            target_id: target.clone(),
            replacement,
        };
        self.append(EntryBody::ContextEdit(edit))
    }

    /// The body as it is to be stored, or why it is not.
    pub(super) fn checked(&self, body: EntryBody) -> Result<EntryBody, TreeError> {
        match body {
            EntryBody::Message(message) => storable(message).map(EntryBody::Message),
            EntryBody::Label(change) => {
                self.known(&change.target_id)?;
                let label = change.label.filter(|label| !label.is_empty());
                Ok(EntryBody::Label(LabelChange { label, ..change }))
            }
            EntryBody::ContextEdit(edit) => self.checked_edit(edit).map(EntryBody::ContextEdit),
            EntryBody::SessionInfo(info) => Ok(EntryBody::SessionInfo(SessionInfoEntry {
                name: one_line(&info.name),
            })),
            EntryBody::Other(mut other) => {
                let name = &*other.type_name;
                if matches!(name, "" | "session") || EntryKind::parse(name) != EntryKind::Other {
                    return Err(TreeError::NotStorable {
                        what: format!("{name:?} entry without its fields"),
                    });
                }
                other
                    .fields
                    .retain(|key, _| !matches!(&**key, "type" | "id" | "parentId" | "timestamp"));
                Ok(EntryBody::Other(other))
            }
            body => Ok(body),
        }
    }

    fn known(&self, id: &EntryId) -> Result<&Arc<Entry>, TreeError> {
        self.entry(id)
            .ok_or_else(|| TreeError::UnknownEntry { id: id.clone() })
    }

    fn checked_edit(&self, edit: ContextEdit) -> Result<ContextEdit, TreeError> {
        let id = &edit.target_id;
        let target = self.known(id)?;
        if !self
            .path_to_leaf()
            .iter()
            .rev()
            .any(|entry| entry.id == *id)
        {
            return Err(TreeError::NotOnBranch { id: id.clone() });
        }
        let only_blocks = match (target.kind(), target.message().map(|message| &**message)) {
            (EntryKind::CustomMessage, _) | (_, Some(Message::User(_))) => false,
            (_, Some(Message::Assistant(_) | Message::ToolResult(_))) => true,
            (kind, message) => {
                let what = message.map_or(kind.as_str(), Message::role);
                return Err(TreeError::NotEditable {
                    id: id.clone(),
                    what: what.to_owned(),
                });
            }
        };
        let replacement = match edit.replacement {
            Replacement::Content(content) if only_blocks => {
                Replacement::Content(MessageContent::Blocks(content.to_blocks()))
            }
            other => other,
        };
        Ok(ContextEdit {
            replacement,
            ..edit
        })
    }

    /// What only the tree knows of a compaction: its own id and the prompt in force (S33, S34).
    pub(super) fn complete(&self, compaction: &mut Compaction, id: &EntryId) {
        compaction
            .first_kept_entry_id
            .get_or_insert_with(|| id.clone());
        if compaction.system_message.is_none() {
            let systems = self
                .context()
                .iter()
                .filter_map(|message| match &**message {
                    Message::System(system) => Some(system),
                    _ => None,
                });
            compaction.system_message = replay(systems).map(|s| Arc::new(Message::System(s)));
        }
    }
}

fn storable(message: Arc<Message>) -> Result<Arc<Message>, TreeError> {
    let what = match &*message {
        Message::CompactionSummary(_) | Message::BranchSummary(_) => "summary message",
        Message::Assistant(answer) if answer.stop_reason == StopReason::Pending => {
            "answer that is still streaming"
        }
        _ => return Ok(message),
    };
    Err(TreeError::NotStorable {
        what: what.to_owned(),
    })
}

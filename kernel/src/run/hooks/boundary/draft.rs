//! Entries as handlers of a boundary propose them (`extensions.md` §3.2), and as they are stored.

use pliant_sdk::Error;
use pliant_sdk::message::Usage;
use serde::Deserialize;
use serde_json::Value;

use crate::compaction::context_tokens;
use crate::tree::{
    Compaction, ContextEdit, CustomEntry, CustomMessageEntry, EntryBody, EntryId, Replacement,
    SessionTree,
};

/// An entry that is not stored yet.
#[derive(Debug, Clone)]
pub(in crate::run) struct Draft(EntryBody);

#[derive(Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
enum Written {
    Custom {
        custom_type: String,
        data: Option<Value>,
    },
    CustomMessage {
        custom_type: String,
        content: Value,
        display: bool,
        details: Option<Value>,
    },
    ContextEdit {
        target_id: EntryId,
        // Null says something, so the key must be there; the same for a compaction's first entry.
        replacement: Value,
    },
    Compaction {
        summary: String,
        first_kept_entry_id: Value,
        details: Option<Value>,
        usage: Option<Usage>,
    },
}

/// Reads a proposal.
///
/// # Errors
/// What is no draft.
pub(super) fn read(entries: &[Value]) -> Result<Vec<Draft>, Error> {
    let numbered = entries.iter().enumerate();
    let drafts = numbered.map(|(at, entry)| {
        Draft::read(entry)
            .map_err(|why| Error::invalid(format!("entry {at} of its proposal is none: {why}")))
    });
    drafts.collect()
}

impl Draft {
    fn read(entry: &Value) -> Result<Self, String> {
        let written = Written::deserialize(entry).map_err(|error| error.to_string())?;
        Ok(Self(match written {
            Written::Custom { custom_type, data } => {
                EntryBody::Custom(CustomEntry { custom_type, data })
            }
            Written::CustomMessage {
                custom_type,
                content,
                display,
                details,
            } => {
                if !content.is_string() && !content.is_array() {
                    return Err("its content is neither a text nor a list of blocks".to_owned());
                }
                EntryBody::CustomMessage(CustomMessageEntry {
                    custom_type,
                    content: serde_json::from_value(content).map_err(|e| e.to_string())?,
                    display,
                    details,
                })
            }
            Written::ContextEdit {
                target_id,
                replacement,
            } => EntryBody::ContextEdit(ContextEdit {
                target_id,
                replacement: Replacement::from_json(&replacement).map_err(|e| e.to_string())?,
            }),
            Written::Compaction { summary, .. } if summary.trim().is_empty() => {
                return Err("its summary is empty, so all that was said would be lost".to_owned());
            }
            Written::Compaction {
                summary,
                first_kept_entry_id,
                details,
                usage,
            } => EntryBody::Compaction(Compaction {
                summary,
                first_kept_entry_id: match first_kept_entry_id {
                    Value::Null => None,
                    Value::String(id) => Some(id.into()),
                    _ => return Err("firstKeptEntryId is neither an id nor null".to_owned()),
                },
                details,
                usage,
                from_hook: Some(true),
                ..Compaction::default()
            }),
        }))
    }

    /// As it is to be appended to this tree.
    ///
    /// # Errors
    /// For a compaction that would keep everything from an entry on that the branch does not have:
    /// it would keep nothing.
    pub(in crate::run) fn body(&self, tree: &SessionTree) -> Result<EntryBody, Error> {
        let mut body = self.0.clone();
        if let EntryBody::Compaction(compaction) = &mut body {
            compaction.tokens_before = context_tokens(tree);
            if let Some(kept) = &compaction.first_kept_entry_id
                && !tree.path_to_leaf().iter().any(|entry| entry.id() == kept)
            {
                return Err(Error::invalid(format!(
                    "its compaction keeps what follows the entry {kept}, which is not on the branch"
                )));
            }
        }
        Ok(body)
    }
}

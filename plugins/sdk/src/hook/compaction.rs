//! Around a compaction: refusing it, writing the summary, and hearing what became of it
//! (`extensions.md` §3.1).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Hook;
use crate::event::CompactionReason;
use crate::message::{Message, Usage};
use crate::session::SessionEntry;

/// The conversation is about to be compacted (`session_before_compact`). [`CallCtx::cancelled`] tells
/// when the user gives up.
///
/// [`CallCtx::cancelled`]: crate::plugin::CallCtx::cancelled
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionBeforeCompact {
    /// What will be summarised and what stays.
    pub preparation: CompactionPreparation,
    /// All entries of the branch, the root first.
    pub branch_entries: Vec<SessionEntry>,
    /// What the user wants the summary to keep in mind.
    #[serde(default)]
    pub custom_instructions: Option<String>,
    /// Why.
    pub reason: CompactionReason,
    /// The request that did not fit follows once more.
    pub will_retry: bool,
}
hook!(
    SessionBeforeCompact,
    "session_before_compact",
    CompactAnswer
);

/// What will be summarised and what stays.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompactionPreparation {
    /// First entry that stays; absent when none does.
    pub first_kept_entry_id: Option<String>,
    /// To be summarised.
    pub messages_to_summarize: Vec<Message>,
    /// The beginning of a turn whose end stays; summarised apart.
    pub turn_prefix_messages: Vec<Message>,
    /// Whether there is such a beginning.
    pub is_split_turn: bool,
    /// Tokens of the context before.
    pub tokens_before: u64,
    /// The summary that stands for what came before; the new one takes its place.
    pub previous_summary: Option<String>,
    /// Files that the summarised part was about.
    pub file_ops: FileOperations,
    /// The settings `compaction.*` as they hold for the model.
    pub settings: Value,
}

/// Paths as the model named them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileOperations {
    /// Read.
    pub read: BTreeSet<String>,
    /// Written whole.
    pub written: BTreeSet<String>,
    /// Changed in part.
    pub edited: BTreeSet<String>,
}

/// What a `session_before_compact` handler answers. The default lets a model write the summary.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompactAnswer {
    /// Nothing is compacted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancel: bool,
    /// The whole compaction; of several handlers' the last one counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compaction: Option<SuppliedCompaction>,
}

impl CompactAnswer {
    /// Keeps the conversation as it is.
    #[must_use]
    pub fn cancel() -> Self {
        Self {
            cancel: true,
            ..Self::default()
        }
    }
}

impl From<SuppliedCompaction> for CompactAnswer {
    fn from(compaction: SuppliedCompaction) -> Self {
        Self {
            compaction: Some(compaction),
            ..Self::default()
        }
    }
}

/// A compaction that a handler made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SuppliedCompaction {
    /// Stands for what was said before the first entry that stays.
    pub summary: String,
    /// First entry that stays, usually that of the preparation; without one nothing does.
    #[serde(default)]
    pub first_kept_entry_id: Option<String>,
    /// Tokens of the context before; without, those of the preparation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_before: Option<u64>,
    /// Whatever the plugin wants to find in the entry later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// What the summary cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// The conversation was compacted (`session_compact`).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionCompact {
    /// As it is stored.
    pub compaction_entry: SessionEntry,
    /// A plugin wrote the summary.
    pub from_extension: bool,
    /// Why.
    pub reason: CompactionReason,
    /// The request that did not fit follows once more.
    pub will_retry: bool,
}
hook!(SessionCompact, "session_compact", ());

/// The conversation was not compacted (`session_compact_failed`).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionCompactFailed {
    /// Why there was to be a compaction.
    pub reason: CompactionReason,
    /// What went wrong; absent when it was stopped.
    #[serde(default)]
    pub error_message: Option<String>,
    /// The user or a plugin stopped it.
    pub aborted: bool,
    /// The request that did not fit was to follow; it does not.
    pub will_retry: bool,
    /// The summary was a plugin's.
    pub from_extension: bool,
}
hook!(SessionCompactFailed, "session_compact_failed", ());

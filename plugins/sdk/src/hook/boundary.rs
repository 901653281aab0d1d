//! The boundaries of a run (`extensions.md` §3.2): a turn has ended, or the run is about to settle.
//! Handlers propose entries and may ask for one more request.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Hook;
use crate::message::{Message, MessageContent, Usage};

/// A part of both events that holds the whole conversation, which takes its time to make and to read.
const CONTEXT: &[&str] = &["context"];

/// A turn is stored (`turn_end`). The conversation is not among it: handlers that want it use
/// [`crate::Plugin::on_event`].
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnEndEvent {
    /// Number of the turn, from 0 at each `agent_start`.
    pub turn_index: u32,
    /// The answer.
    pub message: Option<Message>,
    /// Results of its calls, in the order of the calls.
    pub tool_results: Vec<Message>,
    /// Entry of the answer.
    pub message_entry_id: Option<String>,
    /// Entries of the results.
    pub tool_result_entry_ids: Vec<Option<String>>,
    /// `completed`, `aborted` or `error`.
    pub outcome: String,
    /// What handlers before this one propose.
    pub entries: Vec<Value>,
    /// Whether one of them wants one more request.
    #[serde(rename = "continue")]
    pub continues: bool,
}

impl Hook for TurnEndEvent {
    const EVENT: &'static str = "turn_end";
    const WITHOUT: &'static [&'static str] = CONTEXT;
    type Answer = BoundaryAnswer;
}

/// Nothing is left to do (`agent_before_settle`). The conversation is not among it, as in
/// [`TurnEndEvent`].
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BeforeSettleEvent {
    /// `completed` or `error`.
    pub outcome: String,
    /// What handlers before this one propose.
    pub entries: Vec<Value>,
    /// Whether one of them wants one more request.
    #[serde(rename = "continue")]
    pub continues: bool,
}

impl Hook for BeforeSettleEvent {
    const EVENT: &'static str = "agent_before_settle";
    const WITHOUT: &'static [&'static str] = CONTEXT;
    type Answer = BoundaryAnswer;
}

/// What a handler of a boundary answers. What is left out stays as it was proposed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BoundaryAnswer {
    /// Takes the place of the proposed entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<Vec<Value>>,
    /// One more request, if there is something to answer.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub continues: Option<bool>,
}

impl BoundaryAnswer {
    /// Proposes one more entry beside those that were proposed before.
    #[must_use]
    pub fn add(proposed: Vec<Value>, draft: EntryDraft) -> Self {
        let mut entries = proposed;
        entries.push(draft.into());
        Self {
            entries: Some(entries),
            continues: None,
        }
    }

    /// And asks for one more request.
    #[must_use]
    pub fn and_continue(self) -> Self {
        Self {
            continues: Some(true),
            ..self
        }
    }
}

/// An entry that is not stored yet.
#[derive(Debug, Clone, Serialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum EntryDraft {
    /// Data that no model sees.
    Custom {
        /// Kind, named by the extension.
        custom_type: String,
        /// Whatever the extension keeps.
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    },
    /// A message to the model.
    CustomMessage {
        /// Kind, named by the extension.
        custom_type: String,
        /// Sent as user content.
        content: MessageContent,
        /// Shown in the transcript.
        display: bool,
        /// Data for renderers; not sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
    },
    /// Changes what requests say of an entry from here on.
    ContextEdit {
        /// The entry.
        target_id: String,
        /// Its new content; `None` leaves it out.
        replacement: Option<EditedContent>,
    },
    /// A summary that stands for what came before.
    Compaction {
        /// The summary.
        summary: String,
        /// First entry before it that stays; `None` keeps nothing.
        first_kept_entry_id: Option<String>,
        /// Of whoever made the summary.
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        /// What the summary cost.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
}

/// New content of an entry.
#[derive(Debug, Clone, Serialize)]
pub struct EditedContent {
    /// The content.
    pub content: MessageContent,
}

impl From<EntryDraft> for Value {
    fn from(draft: EntryDraft) -> Self {
        serde_json::to_value(draft).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn drafts_are_written_as_the_format_has_them() {
        // extensions §3.2
        let edit = EntryDraft::ContextEdit {
            target_id: "a".into(),
            replacement: None,
        };
        let answer = BoundaryAnswer::add(vec![json!(1)], edit).and_continue();
        assert_eq!(
            serde_json::to_value(answer).unwrap(),
            json!({"entries": [1, {"type": "context_edit", "targetId": "a", "replacement": null}],
                "continue": true})
        );
        let compaction: Value = EntryDraft::Compaction {
            summary: "s".into(),
            first_kept_entry_id: None,
            details: None,
            usage: None,
        }
        .into();
        assert_eq!(
            compaction,
            json!({"type": "compaction", "summary": "s", "firstKeptEntryId": null})
        );
        let nothing = serde_json::to_value(BoundaryAnswer::default()).unwrap();
        assert_eq!(nothing, json!({}));
    }
}

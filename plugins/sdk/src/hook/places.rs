//! Going elsewhere: to another place of the session's tree, or to another session; and the session's
//! name (`extensions.md` §3.1).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Hook;
use crate::message::Usage;
use crate::session::SessionEntry;

/// The session is about to move to another place of its tree (`session_before_tree`).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionBeforeTree {
    /// Where it goes and what it leaves.
    pub preparation: TreePreparation,
}
hook!(SessionBeforeTree, "session_before_tree", TreeAnswer);

/// Where the session goes and what it leaves.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TreePreparation {
    /// The entry that was chosen.
    pub target_id: String,
    /// Where the session stands.
    pub old_leaf_id: Option<String>,
    /// The last entry that both branches have.
    pub common_ancestor_id: Option<String>,
    /// What is left behind, oldest first.
    pub entries_to_summarize: Vec<SessionEntry>,
    /// Whether a summary of it is wanted.
    pub user_wants_summary: bool,
    /// What the summary should keep in mind.
    pub custom_instructions: Option<String>,
    /// The instructions replace what a model is asked otherwise.
    pub replace_instructions: bool,
    /// Names the place.
    pub label: Option<String>,
}

/// What a `session_before_tree` handler answers. Of several answers the last one counts, whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TreeAnswer {
    /// The session stays where it is.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancel: bool,
    /// Tells of what is left behind; counts only where a summary is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<SuppliedSummary>,
    /// Other instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
    /// Whether they replace what a model is asked otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace_instructions: Option<bool>,
    /// Another name for the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

impl TreeAnswer {
    /// Keeps the session where it is.
    #[must_use]
    pub fn cancel() -> Self {
        Self {
            cancel: true,
            ..Self::default()
        }
    }
}

impl From<SuppliedSummary> for TreeAnswer {
    fn from(summary: SuppliedSummary) -> Self {
        Self {
            summary: Some(summary),
            ..Self::default()
        }
    }
}

/// A summary that a handler wrote.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SuppliedSummary {
    /// What happened on the branch that is left.
    pub summary: String,
    /// Whatever the plugin wants to find in the entry later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// What it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// The session moved to another place of its tree (`session_tree`): what a plugin worked out from the
/// branch has to be worked out anew.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionTree {
    /// Where it stands now.
    pub new_leaf_id: Option<String>,
    /// Where it stood.
    pub old_leaf_id: Option<String>,
    /// What tells of the branch that was left.
    pub summary_entry: Option<SessionEntry>,
    /// A plugin wrote that; absent without a summary.
    pub from_extension: Option<bool>,
}
hook!(SessionTree, "session_tree", ());

/// Another session is about to take the place of this one (`session_before_switch`).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionBeforeSwitch {
    /// `new` or `resume`.
    pub reason: String,
    /// The other session's file, if there is one already.
    pub target_session_file: Option<String>,
}
hook!(SessionBeforeSwitch, "session_before_switch", LeaveAnswer);

/// A fork of this session is about to take its place (`session_before_fork`).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionBeforeFork {
    /// Where it is cut.
    pub entry_id: String,
    /// `before` the entry or `at` it.
    pub position: String,
}
hook!(SessionBeforeFork, "session_before_fork", LeaveAnswer);

/// What a handler answers that is asked before the session is left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeaveAnswer {
    /// The user stays.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cancel: bool,
}

/// The session was named, or its name taken away (`session_info_changed`).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionInfoChanged {
    /// The name.
    pub name: Option<String>,
}
hook!(SessionInfoChanged, "session_info_changed", ());

//! What a session tells its subscribers (`kernel.md` §3.8, `interfaces.md` §7). The JSON form is
//! the line format of JSON and RPC mode; it never holds a cumulative message, so a stream of
//! events grows with what is said.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{Message, ThinkingLevel, Usage};
use crate::stream::StreamEvent;
use crate::tool::ToolResult;

/// One event of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum Event {
    /// A low-level run begins.
    AgentStart,
    /// A low-level run ends; not yet "finished", see [`Event::AgentSettled`].
    AgentEnd {
        /// What this run added.
        messages: Vec<Arc<Message>>,
        /// Another attempt follows.
        will_retry: bool,
    },
    /// Nothing more comes of this prompt.
    AgentSettled {
        /// The user stopped it.
        aborted: bool,
    },
    /// A turn begins.
    TurnStart,
    /// A turn ends.
    TurnEnd {
        /// The answer.
        message: Arc<Message>,
        /// Results of its calls, in the order of the calls.
        tool_results: Vec<Arc<Message>>,
    },
    /// A message begins. An assistant message is empty and `pending`, unless it failed at once.
    MessageStart {
        /// The message.
        message: Arc<Message>,
    },
    /// A piece of an assistant message.
    MessageUpdate {
        /// Tokens known so far.
        usage: Usage,
        /// The piece.
        assistant_message_event: StreamEvent,
    },
    /// A message is complete, and stored.
    MessageEnd {
        /// The message.
        message: Arc<Message>,
    },
    /// A tool call is prepared.
    ToolExecutionStart {
        /// Id of the call.
        tool_call_id: String,
        /// Name of the tool.
        tool_name: String,
        /// Arguments as the model gave them.
        args: Value,
        /// The call that made this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<String>,
    },
    /// A running tool shows a partial result.
    ToolExecutionUpdate {
        /// Id of the call.
        tool_call_id: String,
        /// Name of the tool.
        tool_name: String,
        /// Arguments as the model gave them.
        args: Value,
        /// The result so far.
        partial_result: ToolResult,
        /// The call that made this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<String>,
    },
    /// A tool call ended, also a blocked or invalid one.
    ToolExecutionEnd {
        /// Id of the call.
        tool_call_id: String,
        /// Name of the tool.
        tool_name: String,
        /// The result.
        result: ToolResult,
        /// It failed.
        is_error: bool,
        /// Wall time, milliseconds; absent when the tool did not run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        /// The call that made this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<String>,
    },
    /// A command of the user printed something.
    BashExecutionUpdate {
        /// Name that its front end gave it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<Value>,
        /// What it printed, cleaned.
        delta: String,
    },
    /// The queues changed; each list is the whole queue as texts.
    QueueUpdate {
        /// Enter before the next request.
        steering: Vec<String>,
        /// Enter when the run would stop.
        follow_up: Vec<String>,
    },
    /// An entry was stored that no message event announces.
    EntryAppended {
        /// The entry as stored.
        entry: Value,
    },
    /// The session was named, or its name cleared.
    SessionInfoChanged {
        /// The name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// Another thinking level is in force.
    ThinkingLevelChanged {
        /// The level.
        level: ThinkingLevel,
    },
    /// A failed answer will be asked for again.
    AutoRetryStart {
        /// Counted from 1.
        attempt: u32,
        /// Attempts there will be at most.
        max_attempts: u32,
        /// Until the request, milliseconds.
        delay_ms: u64,
        /// Why the last one failed.
        error_message: String,
    },
    /// A series of attempts is over.
    AutoRetryEnd {
        /// An answer came.
        success: bool,
        /// Attempts that were made.
        attempt: u32,
        /// Why there was none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        final_error: Option<String>,
    },
    /// The conversation is about to be compacted.
    CompactionStart {
        /// Why.
        reason: CompactionReason,
    },
    /// A compaction is over.
    CompactionEnd {
        /// Why there was one.
        reason: CompactionReason,
        /// What came of it, if it was done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<CompactionResult>,
        /// The user stopped it.
        aborted: bool,
        /// The request that did not fit follows once more.
        will_retry: bool,
        /// Why it was not done, unless the user stopped it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
    /// A summary that failed will be asked for again.
    SummarizationRetryScheduled {
        /// Counted from 1.
        attempt: u32,
        /// Attempts there will be at most.
        max_attempts: u32,
        /// Until the request, milliseconds.
        delay_ms: u64,
        /// Why the last one failed.
        error_message: String,
    },
    /// A summary is asked for again now.
    SummarizationRetryAttemptStart {
        /// What it is for.
        source: SummarySource,
        /// Why the conversation is compacted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<CompactionReason>,
    },
    /// A series of attempts at a summary is over.
    SummarizationRetryFinished,
    /// Something the user should know, such as what another program did to the session's file. An
    /// addition of pliant; clients that do not know it pass it by.
    Notice {
        /// A sentence or two.
        message: String,
    },
    /// Plugins or scripts were loaded anew, added or removed while the session is open, or could not be
    /// (`resources.md` §12.4). An addition of pliant.
    ResourcesChanged {
        /// A line for each source that was looked at.
        changes: Vec<SourceChange>,
    },
    /// Something of a plugin or script failed; the session goes on.
    ExtensionError {
        /// Whose.
        extension_path: String,
        /// In which event or operation.
        event: String,
        /// What, in a sentence.
        error: String,
    },
}

impl Event {
    /// The event as a line of JSON and RPC mode, without its end. It grows with what is new: an event
    /// never holds the answer so far, which [`crate::Draft`] keeps in process.
    ///
    /// # Errors
    /// When a value in it cannot be written.
    pub fn to_wire(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

/// What became of one source in a reload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceChange {
    /// Name of the plugin or script.
    pub source: String,
    /// Its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What was done.
    pub outcome: SourceOutcome,
    /// Number of the generation that serves now, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// The content that served before: the first eight digits of its SHA-256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The content that serves now, or that could not be loaded, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Why it could not be loaded and what to do, or what else there is to say, in sentences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl SourceChange {
    /// What was done with something of that name and file; the rest is filled in by who knows it.
    #[must_use]
    pub fn new(
        source: impl Into<String>,
        path: Option<&std::path::Path>,
        outcome: SourceOutcome,
    ) -> Self {
        Self {
            source: source.into(),
            path: path.map(|path| path.display().to_string()),
            outcome,
            generation: None,
            from: None,
            to: None,
            message: None,
        }
    }

    /// The same with something to say, in sentences.
    #[must_use]
    pub fn saying(self, message: impl Into<String>) -> Self {
        Self {
            message: Some(message.into()),
            ..self
        }
    }
}

/// What a reload did with a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SourceOutcome {
    /// It was not there before.
    Added,
    /// Other content serves now.
    Reloaded,
    /// The same content was started anew.
    Restarted,
    /// There was nothing to do.
    Unchanged,
    /// It is gone.
    Removed,
    /// It could not be loaded; what served before goes on.
    Failed,
}

/// Why a conversation is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompactionReason {
    /// The user wanted it.
    Manual,
    /// The context left too little room.
    Threshold,
    /// A request did not fit.
    Overflow,
}

/// What a summary is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SummarySource {
    /// A compaction.
    Compaction,
    /// A branch that was left.
    BranchSummary,
}

/// What came of a compaction (`kernel.md` R27).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionResult {
    /// Stands for what was said before.
    pub summary: String,
    /// First entry before the compaction that stays in the context; the compaction's own id when none
    /// does.
    pub first_kept_entry_id: String,
    /// Tokens of the context before.
    pub tokens_before: u64,
    /// Tokens of the context now, estimated.
    pub estimated_tokens_after: u64,
    /// What the summary cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Files that were read and changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

//! Hooks: places where handlers attach (`extensions.md` §3).
//!
//! A handler is named by its event; the events and what each may answer are listed there. The
//! common ones have types here; all others are used with [`crate::Plugin::on_event`] and JSON.
//!
//! # What ends a handler
//!
//! - Its limit, the setting `extensions.handlerTimeoutMs`. That is its own failure: it is told, and what
//!   it was shown stays as it was.
//! - An abort, at once, where nobody wants its answer any more. A prompt whose `input` handler is ended so
//!   is not sent. Handlers of `tool_result`, `message_end`, `turn_end` and `agent_before_settle`, whose
//!   answers decide what is stored, may finish, and so may every handler that is called after the
//!   abort: in a second and a half for all of them. Who has not finished then is left behind and named,
//!   and a result or message that it was to change is not stored as it was.
//! - A panic, in a handler that only hears of things: it hears no more until its plugin is loaded again.
//!   The same after three failures in a row where there may be thousands of events (`message_update`,
//!   `provider_stream_event`, `tool_execution_update`).

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::lenient;
use crate::message::{Content, ThinkingLevel, Usage};
use crate::model::Model;
use crate::session::MessageDraft;

/// An event with a typed payload and answer.
pub trait Hook: DeserializeOwned + Send + 'static {
    /// Event name.
    const EVENT: &'static str;
    /// Parts of the event that this type does not read; large ones are then not made for it.
    const WITHOUT: &'static [&'static str] = &[];
    /// What a handler may answer; `()` for events that only notify.
    type Answer: Serialize;
}

macro_rules! hook {
    ($type:ty, $event:literal, $answer:ty) => {
        impl Hook for $type {
            const EVENT: &'static str = $event;
            type Answer = $answer;
        }
    };
}

mod boundary;
mod compaction;
mod places;
mod request;
mod user_bash;

pub use boundary::{BeforeSettleEvent, BoundaryAnswer, EditedContent, EntryDraft, TurnEndEvent};
pub use compaction::{
    CompactAnswer, CompactionPreparation, FileOperations, SessionBeforeCompact, SessionCompact,
    SessionCompactFailed, SuppliedCompaction,
};
pub use places::{
    LeaveAnswer, SessionBeforeFork, SessionBeforeSwitch, SessionBeforeTree, SessionInfoChanged,
    SessionTree, SuppliedSummary, TreeAnswer, TreePreparation,
};
pub use request::{
    AfterProviderResponse, BeforeProviderHeaders, BeforeProviderRequest, ContextAnswer,
    ContextEvent, ContextWithSystemEvent, HeadersAnswer, ProviderStreamEvent,
};
pub use user_bash::{UserBashAnswer, UserBashEvent, UserBashResult};

/// A tool is about to run (`tool_call`). An error of the handler blocks the call.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolCallEvent {
    /// Id of the call.
    pub tool_call_id: String,
    /// Name of the tool.
    pub tool_name: String,
    /// The arguments, validated.
    pub input: Map<String, Value>,
    /// The call that made this one, for nested calls.
    pub parent_tool_call_id: Option<String>,
}
hook!(ToolCallEvent, "tool_call", ToolCallAnswer);

/// What a `tool_call` handler answers. The default lets the call run unchanged.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolCallAnswer {
    /// Do not run it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub block: bool,
    /// Why, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Ends the run after the batch.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub terminate: bool,
    /// The edited event; only `input` is read back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<Value>,
}

impl ToolCallAnswer {
    /// Blocks the call with a reason for the model.
    pub fn block(reason: impl Into<String>) -> Self {
        Self {
            block: true,
            reason: Some(reason.into()),
            ..Self::default()
        }
    }

    /// Lets the call run with other arguments. They are not validated again (T9).
    #[must_use]
    pub fn with_input(input: Map<String, Value>) -> Self {
        let event = Some(serde_json::json!({ "input": input }));
        Self {
            event,
            ..Self::default()
        }
    }
}

/// A tool has run (`tool_result`).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolResultEvent {
    /// Id of the call.
    pub tool_call_id: String,
    /// Name of the tool.
    pub tool_name: String,
    /// The arguments it ran with.
    pub input: Map<String, Value>,
    /// What the model will see.
    pub content: Vec<Content>,
    /// Data for user interfaces.
    pub details: Option<Value>,
    /// Data for programs that call the tool.
    pub structured_content: Option<Value>,
    /// The tool failed.
    pub is_error: bool,
    /// Model usage inside the tool.
    pub usage: Option<Usage>,
    /// The call that made this one, for nested calls.
    pub parent_tool_call_id: Option<String>,
}
hook!(ToolResultEvent, "tool_result", ToolResultPatch);

/// What a `tool_result` handler changes; absent fields stay.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolResultPatch {
    /// New content. Without new structured content the old one is dropped.
    #[serde(
        deserialize_with = "lenient::new_content",
        skip_serializing_if = "Option::is_none"
    )]
    pub content: Option<Vec<Content>>,
    /// New details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// New structured content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// New error flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// New usage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// The user typed something (`input`); raw text, before skills and templates.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InputEvent {
    /// The text.
    pub text: String,
    /// Attached images.
    pub images: Option<Vec<Content>>,
    /// `interactive`, `rpc` or `extension`.
    pub source: String,
    /// `steer` or `followUp`: how it will wait, while a run is active.
    pub streaming_behavior: Option<String>,
}
hook!(InputEvent, "input", InputAnswer);

/// What an `input` handler answers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub enum InputAnswer {
    /// Unchanged.
    #[default]
    Continue,
    /// Goes on with other text; images are kept when absent.
    Transform {
        /// The new text.
        text: String,
        /// The new images.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        images: Option<Vec<Content>>,
    },
    /// Consumed; nothing goes to the model.
    Handled,
}

/// A prompt was accepted and its run is being prepared (`before_agent_start`).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BeforeAgentStart {
    /// `user` for a prompt, `custom` for a message of an extension.
    pub message_type: String,
    /// What the user said, with `user`.
    pub prompt: Option<String>,
    /// Attached images, with `user`.
    pub images: Option<Vec<Content>>,
    /// The message, with `custom`.
    pub message: Option<Value>,
    /// The system prompt as it stands after the handlers before.
    pub system_prompt: String,
    /// What it is built from (`extensions.md` §3.6).
    pub system_prompt_options: Map<String, Value>,
}
hook!(
    BeforeAgentStart,
    "before_agent_start",
    BeforeAgentStartAnswer
);

/// What a `before_agent_start` handler answers. The default changes nothing.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BeforeAgentStartAnswer {
    /// Enters after the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageDraft>,
    /// Stands for the whole system prompt until the run has ended; the last handler that says one
    /// decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The edited event; only `systemPromptOptions` is read back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<Value>,
}

impl BeforeAgentStartAnswer {
    /// Builds the prompt from other options.
    #[must_use]
    pub fn with_options(options: Map<String, Value>) -> Self {
        let event = Some(serde_json::json!({ "systemPromptOptions": options }));
        Self {
            event,
            ..Self::default()
        }
    }
}

/// A session begins (`session_start`). Start background work here, not in the constructor.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionStart {
    /// `startup`, `reload`, `new`, `resume` or `fork`.
    pub reason: String,
    /// The session before it.
    pub previous_session_file: Option<String>,
}
hook!(SessionStart, "session_start", ());

/// The generation ends (`session_shutdown`); awaited, at most five seconds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionShutdown {
    /// `quit`, `reload`, `new`, `resume` or `fork`.
    pub reason: String,
}
hook!(SessionShutdown, "session_shutdown", ());

/// Another model is selected (`model_select`). A session that is opened does not tell; it answers
/// [`crate::session::Session::model`].
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelSelect {
    /// The model, with headers left out.
    pub model: Model,
    /// The one before.
    pub previous_model: Option<Model>,
    /// `set` or `cycle`.
    pub source: String,
}
hook!(ModelSelect, "model_select", ());

/// Another thinking level is in force (`thinking_level_select`).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ThinkingLevelSelect {
    /// The level.
    pub level: ThinkingLevel,
    /// The one before.
    pub previous_level: ThinkingLevel,
}
hook!(ThinkingLevelSelect, "thinking_level_select", ());

/// A session run has settled (`agent_settled`).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentSettled {
    /// The user stopped it.
    pub aborted: bool,
}
hook!(AgentSettled, "agent_settled", ());

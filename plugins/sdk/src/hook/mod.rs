//! Hooks: places where handlers attach (`extensions.md` §3).
//!
//! A handler is named by its event; the events and what each may answer are listed there. The
//! common ones have types here; all others are used with [`crate::Plugin::on_event`] and JSON.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::message::Content;
use crate::session::MessageDraft;

/// An event with a typed payload and answer.
pub trait Hook: DeserializeOwned + Send + 'static {
    /// Event name.
    const EVENT: &'static str;
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

mod request;

pub use request::{
    AfterProviderResponse, BeforeProviderHeaders, BeforeProviderRequest, ContextAnswer,
    ContextEvent, ContextWithSystemEvent, HeadersAnswer, ProviderStreamEvent,
};

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
    /// The tool failed.
    pub is_error: bool,
}
hook!(ToolResultEvent, "tool_result", ToolResultPatch);

/// What a `tool_result` handler changes; absent fields stay.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolResultPatch {
    /// New content.
    #[serde(skip_serializing_if = "Option::is_none")]
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

/// A session run has settled (`agent_settled`).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentSettled {
    /// The user stopped it.
    pub aborted: bool,
}
hook!(AgentSettled, "agent_settled", ());

//! The conversation as values: content blocks, messages, usage and tool declarations
//! (`kernel.md` §1, `providers.md` §2.1).
//!
//! JSON names are pi's, because they are stored in session files and sent to RPC clients. Reading
//! is total: any JSON value becomes some [`Message`], unknown roles and blocks are carried as they
//! are, unknown fields are kept in `extra` (M7), and ill-typed fields read as their defaults (M8).

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::lenient;

/// Unknown fields of an object, kept in their order.
pub type Extra = Map<String, Value>;

/// One block of a message's content (`kernel.md` §1.1).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Content {
    /// Text.
    Text(Text),
    /// An image, inline.
    Image(Image),
    /// Reasoning of the model.
    Thinking(Thinking),
    /// A call the model asked for.
    ToolCall(ToolCall),
    /// A block of a kind this version does not know; carried, never sent.
    #[serde(untagged)]
    Other(Value),
}

impl Content {
    /// A plain text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text {
            text: text.into(),
            ..Text::default()
        })
    }

    /// The text, if this is a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }

    /// The call, if this is a tool call.
    #[must_use]
    pub fn as_tool_call(&self) -> Option<&ToolCall> {
        match self {
            Self::ToolCall(call) => Some(call),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from(Value::deserialize(deserializer)?))
    }
}

impl From<Value> for Content {
    fn from(value: Value) -> Self {
        let kind = value.get("type").and_then(Value::as_str);
        let read: fn(Value) -> serde_json::Result<Self> = match kind {
            Some("text") => |value| Text::deserialize(value).map(Self::Text),
            Some("image") => |value| Image::deserialize(value).map(Self::Image),
            Some("thinking") => |value| Thinking::deserialize(value).map(Self::Thinking),
            Some("toolCall") => |value| ToolCall::deserialize(value).map(Self::ToolCall),
            _ => return Self::Other(value),
        };
        // An object is readable whatever its fields are; reading it takes it, so nothing is copied.
        read(value).unwrap_or(Self::Other(Value::Null))
    }
}

/// A text block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Text {
    /// The text.
    #[serde(deserialize_with = "lenient::field")]
    pub text: String,
    /// Opaque provider data; replayed unchanged to the same model.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub text_signature: Option<String>,
    /// Unknown fields.
    #[serde(flatten, deserialize_with = "without_type")]
    pub extra: Extra,
}

/// An image block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Image {
    /// Base64.
    #[serde(deserialize_with = "lenient::field")]
    pub data: String,
    /// E.g. `image/png`.
    #[serde(deserialize_with = "lenient::field")]
    pub mime_type: String,
    /// Unknown fields.
    #[serde(flatten, deserialize_with = "without_type")]
    pub extra: Extra,
}

/// A reasoning block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Thinking {
    /// Readable reasoning; may be empty for a redacted block.
    #[serde(deserialize_with = "lenient::field")]
    pub thinking: String,
    /// Opaque provider data.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub thinking_signature: Option<String>,
    /// The provider hid the text; the signature carries the payload.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub redacted: Option<bool>,
    /// Unknown fields.
    #[serde(flatten, deserialize_with = "without_type")]
    pub extra: Extra,
}

/// A tool call block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolCall {
    /// Id that the result names.
    #[serde(deserialize_with = "lenient::field")]
    pub id: String,
    /// Tool name.
    #[serde(deserialize_with = "lenient::field")]
    pub name: String,
    /// Arguments as the model gave them.
    #[serde(deserialize_with = "lenient::field")]
    pub arguments: Map<String, Value>,
    /// Opaque provider data.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub thought_signature: Option<String>,
    /// Namespace of the tool, where the wire knows one.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub namespace: Option<String>,
    /// Why the model's argument text was not a JSON object. Such a call fails validation (T13).
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub arguments_error: Option<String>,
    /// Unknown fields.
    #[serde(flatten, deserialize_with = "without_type")]
    pub extra: Extra,
}

/// The tag of a block is written by the enum around it, so it must not return through `extra`.
fn without_type<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Extra, D::Error> {
    let mut extra = Extra::deserialize(deserializer)?;
    extra.shift_remove("type");
    Ok(extra)
}

/// As [`without_type`] for messages, whose tag is `role`.
fn without_role<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Extra, D::Error> {
    let mut extra = Extra::deserialize(deserializer)?;
    extra.shift_remove("role");
    Ok(extra)
}

/// Content that pi writes as a plain string in some roles and as blocks in others.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum MessageContent {
    /// A plain string.
    Text(String),
    /// Blocks.
    Blocks(Vec<Content>),
}

impl Default for MessageContent {
    fn default() -> Self {
        Self::Blocks(Vec::new())
    }
}

impl MessageContent {
    /// All text, blocks joined by `separator`.
    #[must_use]
    pub fn joined_text(&self, separator: &str) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => joined_text(blocks, separator),
        }
    }

    /// The content as blocks; a string is one text block.
    #[must_use]
    pub fn to_blocks(&self) -> Vec<Content> {
        match self {
            Self::Text(text) => vec![Content::text(text.clone())],
            Self::Blocks(blocks) => blocks.clone(),
        }
    }
}

impl<'de> Deserialize<'de> for MessageContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::Blocks(items.into_iter().map(Content::from).collect()),
            _ => Self::default(),
        })
    }
}

/// The text blocks of a list, joined by `separator`.
#[must_use]
pub fn joined_text(blocks: &[Content], separator: &str) -> String {
    let texts: Vec<&str> = blocks.iter().filter_map(Content::as_text).collect();
    texts.join(separator)
}

/// Blocks of roles that never hold a plain string; one is tolerated as a single text block (M18).
fn blocks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Content>, D::Error> {
    Ok(MessageContent::deserialize(deserializer)?.to_blocks())
}

/// A message of any role (`kernel.md` §1.2). The first four roles are LLM messages (M1).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum Message {
    /// Prompt, prompt sections and tool declarations; patches earlier ones (M9).
    System(SystemMessage),
    /// What the user said.
    User(UserMessage),
    /// A model's answer.
    Assistant(AssistantMessage),
    /// The result of one tool call.
    ToolResult(ToolResultMessage),
    /// A command the user ran.
    BashExecution(BashExecutionMessage),
    /// A message of an extension.
    Custom(CustomMessage),
    /// Stands for a compacted history; made by projection only.
    CompactionSummary(CompactionSummaryMessage),
    /// Stands for an abandoned branch; made by projection only.
    BranchSummary(BranchSummaryMessage),
    /// A role this version does not know; carried, never sent.
    #[serde(untagged)]
    Other(Value),
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from(Value::deserialize(deserializer)?))
    }
}

impl From<Value> for Message {
    fn from(value: Value) -> Self {
        let role = value.get("role").and_then(Value::as_str);
        let read: fn(Value) -> serde_json::Result<Self> = match role {
            Some("system") => |value| SystemMessage::deserialize(value).map(Self::System),
            Some("user") => |value| UserMessage::deserialize(value).map(Self::User),
            Some("assistant") => |value| AssistantMessage::deserialize(value).map(Self::Assistant),
            Some("toolResult") => {
                |value| ToolResultMessage::deserialize(value).map(Self::ToolResult)
            }
            Some("bashExecution") => {
                |value| BashExecutionMessage::deserialize(value).map(Self::BashExecution)
            }
            Some("custom") => |value| CustomMessage::deserialize(value).map(Self::Custom),
            Some("compactionSummary") => {
                |value| CompactionSummaryMessage::deserialize(value).map(Self::CompactionSummary)
            }
            Some("branchSummary") => {
                |value| BranchSummaryMessage::deserialize(value).map(Self::BranchSummary)
            }
            _ => return Self::Other(value),
        };
        // An object is readable whatever its fields are; reading it takes it, so nothing is copied.
        read(value).unwrap_or(Self::Other(Value::Null))
    }
}

impl Message {
    /// A user message of one text block.
    pub fn user(text: impl Into<String>, timestamp: i64) -> Self {
        Self::User(UserMessage {
            content: MessageContent::Blocks(vec![Content::text(text)]),
            timestamp,
            extra: Extra::new(),
        })
    }

    /// The JSON name of the role.
    #[must_use]
    pub fn role(&self) -> &str {
        match self {
            Self::System(_) => "system",
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
            Self::ToolResult(_) => "toolResult",
            Self::BashExecution(_) => "bashExecution",
            Self::Custom(_) => "custom",
            Self::CompactionSummary(_) => "compactionSummary",
            Self::BranchSummary(_) => "branchSummary",
            Self::Other(value) => value.get("role").and_then(Value::as_str).unwrap_or(""),
        }
    }

    /// The answer, if this is an assistant message.
    #[must_use]
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        match self {
            Self::Assistant(message) => Some(message),
            _ => None,
        }
    }
}

/// Prompt and tool state, or a patch of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SystemMessage {
    /// Free prompt text.
    #[serde(deserialize_with = "system_content")]
    pub content: MessageContent,
    /// Named sections; null deletes.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub sections: Option<indexed::Sections>,
    /// Tools declared from here on.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub tools_added: Option<Vec<Tool>>,
    /// Tools withdrawn from here on.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub tools_removed: Option<Vec<ToolName>>,
    /// Unix milliseconds.
    #[serde(deserialize_with = "lenient::integer")]
    pub timestamp: i64,
    /// Unknown fields.
    #[serde(flatten, deserialize_with = "without_role")]
    pub extra: Extra,
}

/// Missing system content is an empty string, not an empty list (M8).
fn system_content<'de, D: Deserializer<'de>>(deserializer: D) -> Result<MessageContent, D::Error> {
    Ok(match MessageContent::deserialize(deserializer)? {
        MessageContent::Blocks(blocks) if blocks.is_empty() => MessageContent::Text(String::new()),
        content => content,
    })
}

/// Ordered maps that patches need.
pub mod indexed {
    use serde_json::{Map, Value};

    /// Section name → text, or null for a deleted section. Order is the order of the prompt.
    pub type Sections = Map<String, Value>;
}

/// Names one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolName {
    /// The name.
    pub name: String,
}

/// A tool as a model is told of it (M2).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tool {
    /// 1–64 characters of `[A-Za-z0-9_-]`.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON Schema of the arguments, an object schema.
    pub parameters: Value,
    /// `false`, `{type:"json_schema",strict}` or `{type:"grammar",variants}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constrained_sampling: Option<Value>,
}

/// What the user said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UserMessage {
    /// Text and images.
    #[serde(deserialize_with = "lenient::field")]
    pub content: MessageContent,
    /// Unix milliseconds.
    #[serde(deserialize_with = "lenient::integer")]
    pub timestamp: i64,
    /// Unknown fields.
    #[serde(flatten, deserialize_with = "without_role")]
    pub extra: Extra,
}

/// A model's answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AssistantMessage {
    /// Text, thinking and tool calls.
    #[serde(deserialize_with = "blocks")]
    pub content: Vec<Content>,
    /// Wire that carried it.
    #[serde(deserialize_with = "lenient::field")]
    pub api: String,
    /// Provider that answered.
    #[serde(deserialize_with = "lenient::field")]
    pub provider: String,
    /// Model id that was asked.
    #[serde(deserialize_with = "lenient::field")]
    pub model: String,
    /// Tokens and cost; zero when unknown.
    #[serde(deserialize_with = "lenient::field")]
    pub usage: Usage,
    /// Why the answer ended.
    #[serde(deserialize_with = "lenient::field")]
    pub stop_reason: StopReason,
    /// Unix milliseconds when the request started.
    #[serde(deserialize_with = "lenient::integer")]
    pub timestamp: i64,
    /// Model that really answered, if the service named another.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub response_model: Option<String>,
    /// The service's id of the response.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub response_id: Option<String>,
    /// Level the wire keeps inside the conversation.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub provider_thinking_level: Option<String>,
    /// Level the loop asked for (M6).
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub thinking_level: Option<ThinkingLevel>,
    /// Oddities worth keeping.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub diagnostics: Option<Vec<Value>>,
    /// Handle of a deferred answer.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub deferred: Option<Value>,
    /// Set when the stop reason is `error` or `aborted` (M6).
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub error_message: Option<String>,
    /// The service's own word for the stop reason.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub raw_stop_reason: Option<String>,
    /// The service said that the turn is over.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub end_turn: Option<bool>,
    /// Wall time of the request, milliseconds.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub duration_ms: Option<u64>,
    /// Unknown fields.
    #[serde(flatten, deserialize_with = "without_role")]
    pub extra: Extra,
}

impl AssistantMessage {
    /// The calls, in order. Whether they run depends on their presence, not on the stop reason (L14).
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(Content::as_tool_call)
    }
}

/// The result of one tool call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolResultMessage {
    /// Id of the call.
    #[serde(deserialize_with = "lenient::field")]
    pub tool_call_id: String,
    /// Name of the tool.
    #[serde(deserialize_with = "lenient::field")]
    pub tool_name: String,
    /// Text and images for the model.
    #[serde(deserialize_with = "blocks")]
    pub content: Vec<Content>,
    /// Data for user interfaces and later reading; not sent.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub details: Option<Value>,
    /// Model usage inside the tool.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub usage: Option<Usage>,
    /// Calls made inside the tool (T21).
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub nested_calls: Option<Value>,
    /// The tool failed.
    #[serde(deserialize_with = "lenient::field")]
    pub is_error: bool,
    /// Unix milliseconds.
    #[serde(deserialize_with = "lenient::integer")]
    pub timestamp: i64,
    /// Wall time, milliseconds; absent when the tool did not run.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub duration_ms: Option<u64>,
    /// Unknown fields.
    #[serde(flatten, deserialize_with = "without_role")]
    pub extra: Extra,
}

/// A command the user ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BashExecutionMessage {
    /// The command, without a configured prefix.
    #[serde(deserialize_with = "lenient::field")]
    pub command: String,
    /// Cleaned output, possibly cut.
    #[serde(deserialize_with = "lenient::field")]
    pub output: String,
    /// Exit code; absent when cancelled.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub exit_code: Option<i64>,
    /// The user stopped it.
    #[serde(deserialize_with = "lenient::field")]
    pub cancelled: bool,
    /// The output was cut.
    #[serde(deserialize_with = "lenient::field")]
    pub truncated: bool,
    /// Where the whole output is.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub full_output_path: Option<String>,
    /// Shown, but not sent.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub exclude_from_context: Option<bool>,
    /// Unix milliseconds.
    #[serde(deserialize_with = "lenient::integer")]
    pub timestamp: i64,
    /// Unknown fields.
    #[serde(flatten, deserialize_with = "without_role")]
    pub extra: Extra,
}

/// A message of an extension.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CustomMessage {
    /// Kind, named by the extension.
    #[serde(deserialize_with = "lenient::field")]
    pub custom_type: String,
    /// Sent as user content.
    #[serde(deserialize_with = "lenient::field")]
    pub content: MessageContent,
    /// Shown in the transcript.
    #[serde(deserialize_with = "lenient::field")]
    pub display: bool,
    /// Data for renderers; not sent.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub details: Option<Value>,
    /// Unix milliseconds.
    #[serde(deserialize_with = "lenient::integer")]
    pub timestamp: i64,
    /// Unknown fields.
    #[serde(flatten, deserialize_with = "without_role")]
    pub extra: Extra,
}

/// Stands for a compacted history.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CompactionSummaryMessage {
    /// The summary.
    #[serde(deserialize_with = "lenient::field")]
    pub summary: String,
    /// Context tokens before compaction.
    #[serde(deserialize_with = "lenient::count")]
    pub tokens_before: u64,
    /// Unix milliseconds.
    #[serde(deserialize_with = "lenient::integer")]
    pub timestamp: i64,
    /// Unknown fields.
    #[serde(flatten, deserialize_with = "without_role")]
    pub extra: Extra,
}

/// Stands for an abandoned branch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BranchSummaryMessage {
    /// The summary.
    #[serde(deserialize_with = "lenient::field")]
    pub summary: String,
    /// Entry that was the leaf before, or `root`.
    #[serde(deserialize_with = "lenient::field")]
    pub from_id: String,
    /// Unix milliseconds.
    #[serde(deserialize_with = "lenient::integer")]
    pub timestamp: i64,
    /// Unknown fields.
    #[serde(flatten, deserialize_with = "without_role")]
    pub extra: Extra,
}

/// Tokens of one answer, or a sum (M3, M4).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Input tokens, without cached ones.
    #[serde(deserialize_with = "lenient::count")]
    pub input: u64,
    /// Output tokens, reasoning included.
    #[serde(deserialize_with = "lenient::count")]
    pub output: u64,
    /// Tokens read from the prompt cache.
    #[serde(deserialize_with = "lenient::count")]
    pub cache_read: u64,
    /// Tokens written to the prompt cache.
    #[serde(deserialize_with = "lenient::count")]
    pub cache_write: u64,
    /// Part of `cache_write` with the one-hour lifetime.
    #[serde(
        rename = "cacheWrite1h",
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub cache_write_1h: Option<u64>,
    /// Part of `output`.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub reasoning: Option<u64>,
    /// Total as the service counts it.
    #[serde(deserialize_with = "lenient::count")]
    pub total_tokens: u64,
    /// US dollars.
    #[serde(deserialize_with = "lenient::field")]
    pub cost: UsageCost,
}

impl Usage {
    /// Tokens that the context held when this answer was complete (M3).
    #[must_use]
    pub fn context_tokens(&self) -> u64 {
        match self.total_tokens {
            0 => [self.output, self.cache_read, self.cache_write]
                .into_iter()
                .fold(self.input, u64::saturating_add),
            total => total,
        }
    }

    /// Adds another usage field by field (M4). Stored figures may be absurd; sums stay in range.
    pub fn add(&mut self, other: &Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.cache_write_1h = add_split(self.cache_write_1h, other.cache_write_1h);
        self.reasoning = add_split(self.reasoning, other.reasoning);
        self.total_tokens = self.total_tokens.saturating_add(other.total_tokens);
        self.cost.add(&other.cost);
    }
}

fn add_split(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    }
}

/// US dollars, by kind of token.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageCost {
    /// Of input tokens.
    #[serde(
        deserialize_with = "lenient::field",
        serialize_with = "lenient::js_number"
    )]
    pub input: f64,
    /// Of output tokens.
    #[serde(
        deserialize_with = "lenient::field",
        serialize_with = "lenient::js_number"
    )]
    pub output: f64,
    /// Of cached tokens read.
    #[serde(
        deserialize_with = "lenient::field",
        serialize_with = "lenient::js_number"
    )]
    pub cache_read: f64,
    /// Of cached tokens written.
    #[serde(
        deserialize_with = "lenient::field",
        serialize_with = "lenient::js_number"
    )]
    pub cache_write: f64,
    /// Sum, or what the provider charged.
    #[serde(
        deserialize_with = "lenient::field",
        serialize_with = "lenient::js_number"
    )]
    pub total: f64,
    /// The total is the provider's own figure.
    #[serde(
        deserialize_with = "lenient::field",
        skip_serializing_if = "Option::is_none"
    )]
    pub total_from_provider: Option<bool>,
}

impl UsageCost {
    fn add(&mut self, other: &Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.total += other.total;
        self.total_from_provider =
            Some(self.total_from_provider == Some(true) && other.total_from_provider == Some(true));
    }
}

/// Why an answer ended (M5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// Finished.
    #[default]
    Stop,
    /// The output limit was hit.
    Length,
    /// Tool calls are to be run.
    ToolUse,
    /// The request failed.
    Error,
    /// The caller gave up.
    Aborted,
    /// The answer comes later; ends the turn like `stop`.
    Deferred,
    /// Still streaming; never stored.
    Pending,
}

impl StopReason {
    /// The JSON name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolUse => "toolUse",
            Self::Error => "error",
            Self::Aborted => "aborted",
            Self::Deferred => "deferred",
            Self::Pending => "pending",
        }
    }

    /// `error` or `aborted`: the answer is not part of later requests (M18).
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Error | Self::Aborted)
    }
}

/// How much a model may think, in order (V4).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    /// No reasoning.
    #[default]
    Off,
    /// The least.
    Minimal,
    /// Little.
    Low,
    /// The default of a new session.
    Medium,
    /// Much.
    High,
    /// Very much, where a model offers it.
    Xhigh,
    /// The most, where a model offers it.
    Max,
}

impl ThinkingLevel {
    /// All levels in order.
    pub const ALL: [Self; 7] = [
        Self::Off,
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::Xhigh,
        Self::Max,
    ];

    /// The JSON name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// The level of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absurd_usage_stays_in_range() {
        let read = |value: Value| serde_json::from_value::<Usage>(value).unwrap();
        let mut usage = read(json!({"input": 1e300, "output": 5, "cacheWrite1h": u64::MAX}));
        assert_eq!(usage.context_tokens(), i64::MAX.unsigned_abs() + 5);
        for _ in 0..3 {
            usage.add(&usage.clone());
        }
        assert_eq!(usage.context_tokens(), u64::MAX);
    }

    fn round_trip(value: Value) {
        let message = Message::from(value.clone());
        assert_eq!(serde_json::to_value(message).unwrap(), value);
    }

    #[test]
    fn unknown_roles_blocks_and_fields_survive_a_round_trip() {
        // M7
        round_trip(json!({"role": "oracle", "content": 3}));
        round_trip(
            json!({"role": "user", "content": [{"type": "video", "src": "x"}], "timestamp": 1, "mood": "good"}),
        );
        round_trip(
            json!({"role": "assistant", "content": [{"type": "text", "text": "a", "lang": "en"}], "api": "a", "provider": "p",
            "model": "m", "usage": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 3,
            "cost": {"input": 0, "output": 0.5, "cacheRead": 0, "cacheWrite": 0, "total": 0.5}},
            "stopReason": "stop", "timestamp": 2, "later": {"b": 1, "a": 2}}),
        );
    }

    #[test]
    fn null_or_ill_typed_content_reads_as_empty() {
        // M8, M18
        let user = Message::from(json!({"role": "user", "content": null, "timestamp": "x"}));
        assert_eq!(user, Message::User(UserMessage::default()));
        let Message::Assistant(answer) =
            Message::from(json!({"role": "assistant", "content": "hi", "usage": 7}))
        else {
            panic!("not an assistant message")
        };
        assert_eq!(answer.content, vec![Content::text("hi")]);
        assert_eq!(answer.usage, Usage::default());
        let Message::System(system) = Message::from(json!({"role": "system"})) else {
            panic!()
        };
        assert_eq!(system.content.joined_text(""), "");
    }

    #[test]
    fn an_optional_split_of_a_sum_is_present_if_either_side_has_it() {
        // M4
        let mut sum = Usage {
            input: 1,
            ..Usage::default()
        };
        sum.add(&Usage {
            input: 2,
            reasoning: Some(5),
            ..Usage::default()
        });
        assert_eq!(
            (sum.input, sum.reasoning, sum.cache_write_1h),
            (3, Some(5), None)
        );
        assert_eq!(sum.cost.total_from_provider, Some(false));
    }
}

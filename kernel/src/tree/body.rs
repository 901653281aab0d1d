//! What each kind of entry holds, one to one with pi's format (`kernel.md` §2.3). Reading is total:
//! an ill-typed field reads as its default, an unreadable body as [`EntryBody::Other`].

use std::sync::{Arc, OnceLock};

use pliant_sdk::message::{Content, Message, MessageContent, SystemMessage, Usage};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::json::{fields, take, take_text};
use super::{EntryId, TreeError};

/// The `type` of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A message of any role but the two summaries.
    Message,
    /// An extension's message to the model.
    CustomMessage,
    /// From here on a summary stands for the history before it.
    Compaction,
    /// What happened on a branch that was left.
    BranchSummary,
    /// Changes what a request says of an earlier entry.
    ContextEdit,
    /// Another model from here on.
    ModelChange,
    /// Another thinking level from here on.
    ThinkingLevelChange,
    /// Tokens spent outside the conversation.
    Usage,
    /// Data of an extension.
    Custom,
    /// Names an entry for the user.
    Label,
    /// Names the session.
    SessionInfo,
    /// A type that this version does not know.
    Other,
}

impl EntryKind {
    const NAMES: [(Self, &'static str); 11] = [
        (Self::Message, "message"),
        (Self::CustomMessage, "custom_message"),
        (Self::Compaction, "compaction"),
        (Self::BranchSummary, "branch_summary"),
        (Self::ContextEdit, "context_edit"),
        (Self::ModelChange, "model_change"),
        (Self::ThinkingLevelChange, "thinking_level_change"),
        (Self::Usage, "usage"),
        (Self::Custom, "custom"),
        (Self::Label, "label"),
        (Self::SessionInfo, "session_info"),
    ];

    pub(super) fn parse(name: &str) -> Self {
        Self::NAMES
            .iter()
            .find(|(_, n)| *n == name)
            .map_or(Self::Other, |(kind, _)| *kind)
    }

    /// Whether entries of this kind put messages into a context (2.3).
    pub(super) fn gives_messages(self) -> bool {
        matches!(
            self,
            Self::Message | Self::CustomMessage | Self::Compaction | Self::BranchSummary
        )
    }

    /// The JSON name; empty for [`EntryKind::Other`].
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(kind, _)| *kind == self)
            .map_or("", |(_, name)| name)
    }
}

/// The typed view of an entry.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum EntryBody {
    /// A message of any role but the two summaries.
    #[serde(serialize_with = "under_message")]
    Message(Arc<Message>),
    /// An extension's message to the model.
    CustomMessage(CustomMessageEntry),
    /// From here on a summary stands for the history before it.
    Compaction(Compaction),
    /// What happened on a branch that was left.
    BranchSummary(BranchSummary),
    /// Changes what a request says of an earlier entry.
    ContextEdit(ContextEdit),
    /// Another model from here on.
    ModelChange(ModelChange),
    /// Another thinking level from here on.
    ThinkingLevelChange(ThinkingLevelChange),
    /// Tokens spent outside the conversation.
    Usage(UsageEntry),
    /// Data of an extension.
    Custom(CustomEntry),
    /// Names an entry for the user.
    Label(LabelChange),
    /// Names the session.
    SessionInfo(SessionInfoEntry),
    /// An unknown type, or a body that could not be read.
    Other(OtherEntry),
}

fn under_message<S: Serializer>(message: &Arc<Message>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Fields<'a> {
        message: &'a Message,
    }
    Fields { message }.serialize(serializer)
}

/// An extension's message to the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomMessageEntry {
    /// Kind, named by the extension.
    pub custom_type: String,
    /// Sent as user content.
    pub content: MessageContent,
    /// Shown in the transcript.
    pub display: bool,
    /// Data for renderers; not sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// From here on a summary stands for the history before it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    /// What stands for the history.
    pub summary: String,
    /// First entry before this one that stays in the context. `None` keeps nothing; it is stored as
    /// the compaction's own id (S34).
    pub first_kept_entry_id: Option<EntryId>,
    /// Context tokens before.
    pub tokens_before: u64,
    /// Of whoever made the summary, such as file lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// What the summary cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// A plugin made the summary (S9).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_hook: Option<bool>,
    /// The prompt and tools at this point; the tree fills it in on append (S33).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_message: Option<Arc<Message>>,
}

/// What happened on a branch that was left.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchSummary {
    /// The leaf before, or `root`. Filled in by the tree (S23).
    pub from_id: String,
    /// What happened there; an empty one is not in the context.
    pub summary: String,
    /// Of whoever made the summary, such as file lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// What the summary cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// A plugin made the summary (S9).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_hook: Option<bool>,
}

/// Changes what a request says of an earlier entry (S26).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextEdit {
    /// The entry that reads differently.
    pub target_id: EntryId,
    /// How.
    pub replacement: Replacement,
}

/// What takes the place of an entry's content.
#[derive(Debug, Clone, PartialEq)]
pub enum Replacement {
    /// `null`: the message is left out.
    Omit,
    /// Other content in the same message.
    Content(MessageContent),
}

impl Replacement {
    /// Reads `null` or `{content: string | list}`.
    ///
    /// # Errors
    /// [`TreeError::BadReplacement`] for anything else.
    pub fn from_json(value: &Value) -> Result<Self, TreeError> {
        match (value, value.get("content")) {
            (Value::Null, _) => Ok(Self::Omit),
            (_, Some(Value::String(text))) => Ok(Self::Content(MessageContent::Text(text.clone()))),
            (_, Some(Value::Array(blocks))) => Ok(Self::Content(MessageContent::Blocks(
                blocks.iter().cloned().map(Content::from).collect(),
            ))),
            _ => Err(TreeError::BadReplacement),
        }
    }

    /// The message as a request shows it; `None` when it is left out.
    pub(super) fn applied_to(&self, message: &Arc<Message>) -> Option<Arc<Message>> {
        let Self::Content(content) = self else {
            return None;
        };
        let mut message = Message::clone(message);
        match &mut message {
            Message::System(system) => system.content = content.clone(),
            Message::User(user) => user.content = content.clone(),
            Message::Custom(custom) => custom.content = content.clone(),
            Message::Assistant(answer) => answer.content = content.to_blocks(),
            Message::ToolResult(result) => result.content = content.to_blocks(),
            _ => {}
        }
        Some(Arc::new(message))
    }
}

impl Serialize for Replacement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<'a> {
            content: &'a MessageContent,
        }
        match self {
            Self::Omit => serializer.serialize_none(),
            Self::Content(content) => Fields { content }.serialize(serializer),
        }
    }
}

/// Another model from here on.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelChange {
    /// Provider's name.
    pub provider: String,
    /// The provider's name of the model.
    pub model_id: String,
}

/// Another thinking level from here on.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingLevelChange {
    /// Text, because a later version may know more levels.
    pub thinking_level: String,
}

/// Tokens spent outside the conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct UsageEntry {
    /// What for; free text.
    pub kind: String,
    /// Provider that was asked.
    pub provider: String,
    /// Model that was asked.
    pub model: String,
    /// How much.
    pub usage: Usage,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Data of an extension; no model sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomEntry {
    /// Kind, named by the extension.
    pub custom_type: String,
    /// Whatever the extension keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// Names an entry for the user, or with no label takes the name away.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelChange {
    /// The entry.
    pub target_id: EntryId,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// Names the session; an empty name takes the name away.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SessionInfoEntry {
    /// On one line, without spaces around it.
    pub name: String,
}

/// An entry of a type that this version does not know.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OtherEntry {
    /// The `type` field.
    #[serde(skip)]
    pub type_name: String,
    /// Without the four fields that every entry has.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl EntryBody {
    /// The kind of entry this is the body of.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        match self {
            Self::Message(_) => EntryKind::Message,
            Self::CustomMessage(_) => EntryKind::CustomMessage,
            Self::Compaction(_) => EntryKind::Compaction,
            Self::BranchSummary(_) => EntryKind::BranchSummary,
            Self::ContextEdit(_) => EntryKind::ContextEdit,
            Self::ModelChange(_) => EntryKind::ModelChange,
            Self::ThinkingLevelChange(_) => EntryKind::ThinkingLevelChange,
            Self::Usage(_) => EntryKind::Usage,
            Self::Custom(_) => EntryKind::Custom,
            Self::Label(_) => EntryKind::Label,
            Self::SessionInfo(_) => EntryKind::SessionInfo,
            Self::Other(_) => EntryKind::Other,
        }
    }

    /// The `type` field.
    #[must_use]
    pub fn type_name(&self) -> &str {
        match self {
            Self::Other(other) => &other.type_name,
            known => known.kind().as_str(),
        }
    }

    /// Tokens and money of this entry.
    #[must_use]
    pub fn usage(&self) -> Option<&Usage> {
        match self {
            Self::Message(message) => match &**message {
                Message::Assistant(answer) => Some(&answer.usage),
                Message::ToolResult(result) => result.usage.as_ref(),
                _ => None,
            },
            Self::Compaction(compaction) => compaction.usage.as_ref(),
            Self::BranchSummary(summary) => summary.usage.as_ref(),
            Self::Usage(entry) => Some(&entry.usage),
            _ => None,
        }
    }

    /// Of an entry of which nothing is known.
    pub(super) fn unknown() -> &'static Self {
        static UNKNOWN: OnceLock<EntryBody> = OnceLock::new();
        UNKNOWN.get_or_init(|| Self::other(String::new(), Map::new()))
    }

    /// Reads the line of an entry.
    pub(super) fn read(kind: EntryKind, line: &str) -> Self {
        let mut f = fields(line).unwrap_or_default();
        match kind {
            EntryKind::Message => Self::Message(Arc::new(Message::from(
                f.get_mut("message").map(Value::take).unwrap_or_default(),
            ))),
            EntryKind::CustomMessage => Self::CustomMessage(CustomMessageEntry {
                custom_type: take_text(&mut f, "customType"),
                content: take(&mut f, "content").map(content).unwrap_or_default(),
                display: take(&mut f, "display") == Some(Value::Bool(true)),
                details: take(&mut f, "details"),
            }),
            EntryKind::Compaction => Self::Compaction(Compaction::read(f)),
            EntryKind::BranchSummary => Self::BranchSummary(BranchSummary {
                from_id: take_text(&mut f, "fromId"),
                summary: take_text(&mut f, "summary"),
                details: take(&mut f, "details"),
                usage: take_usage(&mut f),
                from_hook: take_bool(&mut f, "fromHook"),
            }),
            EntryKind::ContextEdit => match f.get("replacement").map(Replacement::from_json) {
                Some(Ok(replacement)) => Self::ContextEdit(ContextEdit {
                    target_id: take_text(&mut f, "targetId").into(),
                    replacement,
                }),
                _ => Self::other(kind.as_str().to_owned(), f),
            },
            EntryKind::ModelChange => Self::ModelChange(ModelChange {
                provider: take_text(&mut f, "provider"),
                model_id: take_text(&mut f, "modelId"),
            }),
            EntryKind::ThinkingLevelChange => Self::ThinkingLevelChange(ThinkingLevelChange {
                thinking_level: take_text(&mut f, "thinkingLevel"),
            }),
            EntryKind::Usage => Self::Usage(UsageEntry {
                kind: take_text(&mut f, "kind"),
                provider: take_text(&mut f, "provider"),
                model: take_text(&mut f, "model"),
                usage: take_usage(&mut f).unwrap_or_default(),
                note: Some(take_text(&mut f, "note")).filter(|note| !note.is_empty()),
            }),
            EntryKind::Custom => Self::Custom(CustomEntry {
                custom_type: take_text(&mut f, "customType"),
                data: take(&mut f, "data"),
            }),
            EntryKind::Label => Self::Label(LabelChange {
                target_id: take_text(&mut f, "targetId").into(),
                label: Some(take_text(&mut f, "label")).filter(|label| !label.is_empty()),
            }),
            EntryKind::SessionInfo => Self::SessionInfo(SessionInfoEntry {
                name: one_line(&take_text(&mut f, "name")),
            }),
            EntryKind::Other => Self::other(take_text(&mut f, "type"), f),
        }
    }

    fn other(type_name: String, mut fields: Map<String, Value>) -> Self {
        fields.retain(|key, _| !matches!(&**key, "type" | "id" | "parentId" | "timestamp"));
        Self::Other(OtherEntry { type_name, fields })
    }
}

impl Compaction {
    fn read(mut f: Map<String, Value>) -> Self {
        let first_kept = take_text(&mut f, "firstKeptEntryId");
        Self {
            summary: take_text(&mut f, "summary"),
            first_kept_entry_id: (!first_kept.is_empty()).then(|| first_kept.into()),
            tokens_before: take(&mut f, "tokensBefore").map_or(0, |value| whole(&value)),
            details: take(&mut f, "details"),
            usage: take_usage(&mut f),
            from_hook: take_bool(&mut f, "fromHook"),
            system_message: take(&mut f, "systemMessage")
                .map(Message::from)
                .and_then(as_system),
        }
    }
}

fn content(value: Value) -> MessageContent {
    serde_json::from_value(value).unwrap_or_default()
}

fn take_usage(fields: &mut Map<String, Value>) -> Option<Usage> {
    take(fields, "usage").and_then(|value| serde_json::from_value(value).ok())
}

fn take_bool(fields: &mut Map<String, Value>, key: &str) -> Option<bool> {
    take(fields, key).and_then(|value| value.as_bool())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturating is what an absurd count deserves"
)]
fn whole(value: &Value) -> u64 {
    value
        .as_u64()
        .or_else(|| value.as_f64().map(|f| f as u64))
        .unwrap_or(0)
}

/// A compaction's system message, whatever a plugin left out of it.
fn as_system(message: Message) -> Option<Arc<Message>> {
    match message {
        Message::System(_) => Some(Arc::new(message)),
        Message::Other(value) if value.is_object() => SystemMessage::deserialize(value)
            .ok()
            .map(|system| Arc::new(Message::System(system))),
        _ => None,
    }
}

/// A session name as it is stored: on one line, without spaces around it (2.3).
#[must_use]
pub fn one_line(name: &str) -> String {
    let flat = name.replace("\r\n", " ").replace(['\r', '\n'], " ");
    flat.trim().to_owned()
}

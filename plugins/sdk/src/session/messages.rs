//! Messages and entries of plugins.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::Session;
use crate::error::Error;
use crate::message::{Content, CustomMessage, MessageContent};

/// A message of a plugin. The model sees its content as the user's words; what it is, is for people
/// and renderers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageDraft {
    /// Its kind, named by the plugin.
    pub custom_type: String,
    /// A text, or blocks of text and images.
    #[serde(deserialize_with = "text_and_images")]
    pub content: MessageContent,
    /// Shown in the transcript.
    #[serde(default)]
    pub display: bool,
    /// Data for renderers; not sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl MessageDraft {
    /// A text that is shown.
    pub fn text(custom_type: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            custom_type: custom_type.into(),
            content: MessageContent::Text(text.into()),
            display: true,
            details: None,
        }
    }

    /// Shown to the model only.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.display = false;
        self
    }
}

impl From<MessageDraft> for CustomMessage {
    fn from(draft: MessageDraft) -> Self {
        Self {
            custom_type: draft.custom_type,
            content: draft.content,
            display: draft.display,
            details: draft.details,
            ..Self::default()
        }
    }
}

/// When a message enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SendAs {
    /// Before the next request of the active run.
    Steer,
    /// When the active run would end.
    FollowUp,
    /// With the next prompt of the user, and not before.
    NextTurn,
}

/// How a plugin's message is delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MessageOptions {
    /// While a run is active; before its next request unless this says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliver_as: Option<SendAs>,
    /// Starts a run when none is active. `Some(false)` keeps an active one from answering it: it is
    /// stored when the turn has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_turn: Option<bool>,
}

/// How a message in the user's name is delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UserMessageOptions {
    /// While a run is active; needed then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliver_as: Option<SendAs>,
    /// Commands, skills and prompt templates count as they do in what the user types.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub expand_prompt_templates: bool,
}

/// What `session.send_message` takes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SendMessage {
    /// The message.
    pub message: MessageDraft,
    /// How it is delivered.
    #[serde(default)]
    pub options: MessageOptions,
}

/// What `session.send_user_message` takes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SendUserMessage {
    /// A text, or blocks of text and images.
    #[serde(deserialize_with = "text_and_images")]
    pub content: MessageContent,
    /// How it is delivered.
    #[serde(default)]
    pub options: UserMessageOptions,
}

/// What `session.append` takes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppendEntry {
    /// Kind, named by the plugin.
    pub custom_type: String,
    /// Whatever it keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// Files hold anything; what a plugin gives is read strictly, so that a mistake is told to its author.
fn text_and_images<'de, D: Deserializer<'de>>(given: D) -> Result<MessageContent, D::Error> {
    let unfit = "\"content\" is a text, or a list of text and image blocks";
    let unfit = || serde::de::Error::custom(unfit);
    let blocks = match Value::deserialize(given)? {
        Value::String(text) => return Ok(MessageContent::Text(text)),
        given => Vec::<Content>::deserialize(given).map_err(|_| unfit())?,
    };
    let fits = |block: &Content| matches!(block, Content::Text(_) | Content::Image(_));
    let fits = blocks.iter().all(fits);
    fits.then_some(MessageContent::Blocks(blocks))
        .ok_or_else(unfit)
}

impl Session<'_> {
    /// Sends a message of the plugin's own. Returns at once, whatever comes of it; what goes wrong
    /// later is reported as an error of the plugin, `send_message`.
    ///
    /// # Errors
    /// When the message cannot be read; `unsupported` outside a session.
    pub async fn send_message(
        &self,
        message: MessageDraft,
        options: MessageOptions,
    ) -> Result<(), Error> {
        let payload = SendMessage { message, options };
        self.host.call("session.send_message", &payload).await
    }

    /// Sends a message in the user's name. Returns at once, whatever comes of it; a refusal, such as of
    /// one without `deliver_as` while a run is active, is reported as an error of the plugin,
    /// `send_user_message`.
    ///
    /// # Errors
    /// `unsupported` outside a session.
    pub async fn send_user_message(
        &self,
        content: MessageContent,
        options: UserMessageOptions,
    ) -> Result<(), Error> {
        let payload = SendUserMessage { content, options };
        self.host.call("session.send_user_message", &payload).await
    }

    /// Stores something with the conversation that no model sees, and answers the entry as it is
    /// stored. Only sessions in which something was said have a file.
    ///
    /// # Errors
    /// When it cannot be written; `unsupported` outside a session.
    pub async fn append(
        &self,
        custom_type: impl Into<String>,
        data: Option<Value>,
    ) -> Result<Value, Error> {
        let payload = AppendEntry {
            custom_type: custom_type.into(),
            data,
        };
        self.host.call("session.append", &payload).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_draft_with_content_of_another_kind_cannot_be_read() {
        for content in [
            json!(5),
            json!(null),
            json!([{"type": "toolCall", "id": "x"}]),
            json!(["x"]),
        ] {
            let draft = json!({"customType": "note", "content": content});
            let read: Result<MessageDraft, _> = serde_json::from_value(draft);
            assert!(read.is_err(), "{content}");
        }
        let draft = json!({"customType": "note", "content": [{"type": "text", "text": "a"}]});
        let read: MessageDraft = serde_json::from_value(draft).unwrap();
        assert_eq!(read.content.joined_text(""), "a");
    }
}

//! System messages: what they lead to, and their texts.

use serde_json::Value;

use super::named::Named;
use crate::message::{Content, Extra, MessageContent, SystemMessage, Tool};

/// Joins the system messages of a transcript into the state they lead to (M9, M10).
///
/// Content texts are joined by a blank line; sections are patched by name, a deleted and set one
/// moves to the end; tools likewise. `None` without any message.
#[must_use]
pub fn replay<'a>(messages: impl IntoIterator<Item = &'a SystemMessage>) -> Option<SystemMessage> {
    let mut messages = messages.into_iter().peekable();
    let timestamp = messages.peek()?.timestamp;
    let mut texts = Vec::new();
    let (mut sections, mut tools) = (Named::default(), Named::default());
    for message in messages {
        texts.push(content_text(&message.content));
        patch_sections(&mut sections, message);
        patch_named_tools(&mut tools, message);
    }
    let sections: Extra = sections.into_values().collect();
    let tools: Vec<Tool> = tools.into_values().cloned().collect();
    Some(SystemMessage {
        content: MessageContent::Text(join_paragraphs(texts)),
        sections: Some(sections).filter(|sections| !sections.is_empty()),
        tools_added: Some(tools).filter(|tools| !tools.is_empty()),
        timestamp,
        ..SystemMessage::default()
    })
}

fn patch_sections(sections: &mut Named<(String, Value)>, message: &SystemMessage) {
    for (name, value) in message.sections.iter().flatten() {
        match value {
            Value::String(_) => sections.set(name, (name.clone(), value.clone())),
            _ => sections.remove(name),
        }
    }
}

/// Applies the removals, then the additions of a message to a list of tools (M9).
pub fn patch_tools(tools: &mut Vec<Tool>, message: &SystemMessage) {
    if message.tools_removed.is_none() && message.tools_added.is_none() {
        return;
    }
    let before = std::mem::take(tools);
    let mut named = Named::default();
    for tool in &before {
        named.set(&tool.name, tool);
    }
    patch_named_tools(&mut named, message);
    *tools = named.into_values().cloned().collect();
}

fn patch_named_tools<'a>(tools: &mut Named<&'a Tool>, message: &'a SystemMessage) {
    for removed in message.tools_removed.iter().flatten() {
        tools.remove(&removed.name);
    }
    for added in message.tools_added.iter().flatten() {
        tools.set(&added.name, added);
    }
}

/// The text of a leading system message: content, then each section, by blank lines (M10).
#[must_use]
pub fn render(message: &SystemMessage) -> String {
    let sections = message.sections.iter().flatten();
    let sections = sections.filter_map(|(_, value)| value.as_str().map(str::to_owned));
    join_paragraphs(std::iter::once(content_text(&message.content)).chain(sections))
}

/// The text of a system message that is sent where it stands: its content, and what it changes.
#[must_use]
pub fn render_update(message: &SystemMessage) -> String {
    let changes = message
        .sections
        .iter()
        .flatten()
        .map(|(name, value)| match value.as_str() {
            Some(text) => format!("Updated system prompt section \"{name}\":\n\n{text}"),
            None => format!("Removed system prompt section \"{name}\"."),
        });
    join_paragraphs(std::iter::once(content_text(&message.content)).chain(changes))
}

pub(super) fn content_text(content: &MessageContent) -> String {
    match content {
        MessageContent::Text(text) => text.clone(),
        MessageContent::Blocks(blocks) => join_paragraphs(
            blocks
                .iter()
                .filter_map(Content::as_text)
                .map(str::to_owned),
        ),
    }
}

fn join_paragraphs(parts: impl IntoIterator<Item = String>) -> String {
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

//! Prepared messages → the entries of the body's `messages` (`providers.md` §3.1), as bytes that are
//! only ever appended to: what was written for a message is never written again.

use std::sync::Arc;

use pliant_sdk::Model;
use pliant_sdk::history::{self, IdRule};
use pliant_sdk::message::{
    AssistantMessage, Content, Image, Message, MessageContent, SystemMessage, Thinking, UserMessage,
};
use pliant_sdk::wire::tools::is_declarable;
use serde_json::{Value, json};

use crate::API;
use crate::quirks::Quirks;
use crate::results;
use crate::thinking::is_effort;
use crate::tools::{Style, declare};

/// Services refuse longer ids.
const MAX_ID_CHARS: usize = 64;

/// The user's turn in a conversation that is known from an answer on; services want one first.
const BEGINNING: &str = "(The beginning of the conversation is not known.)";

/// What the conversion depends on besides the messages.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    pub(crate) provider: String,
    pub(crate) api: String,
    pub(crate) model: String,
    pub(crate) images: bool,
    pub(crate) quirks: Quirks,
    pub(crate) style: Style,
    /// The effort of each answer stands before it.
    pub(crate) marks_effort: bool,
}

impl Target {
    /// For a model with these switches.
    pub(crate) fn of(model: &Model, quirks: &Quirks, style: Style, marks_effort: bool) -> Self {
        Self {
            provider: model.provider.clone(),
            api: model.api.clone(),
            model: model.id.clone(),
            images: model.takes_images(),
            quirks: quirks.clone(),
            style,
            marks_effort,
        }
    }
}

impl IdRule for Target {
    fn foreign(&self, id: &str, _from: &AssistantMessage) -> String {
        history::sanitize_id(id, MAX_ID_CHARS)
    }

    fn accepts(&self, id: &str) -> bool {
        !id.is_empty() && history::sanitize_id(id, MAX_ID_CHARS) == id
    }
}

/// The converted messages.
#[derive(Debug, Default)]
pub(crate) struct Items {
    /// JSON values separated by commas.
    pub(crate) bytes: Vec<u8>,
    /// The last entry, if it is the user's: where it begins, and what it is.
    pub(crate) last: Option<(usize, Value)>,
    /// Entries of system messages that wait for the next answer: nothing may stand between a call
    /// and its result.
    pub(crate) held: Vec<Value>,
    /// The first system message leads and is no entry.
    led: bool,
}

impl Items {
    /// Appends what [`history::Preparer`] made of the next messages.
    pub(crate) fn append(
        &mut self,
        prepared: &[Arc<Message>],
        target: &Target,
        tools_in_place: bool,
    ) {
        let mut rest = prepared;
        while let Some(message) = rest.first() {
            let mut taken = 1;
            match &**message {
                Message::System(system) => self.system(system, target, tools_in_place),
                Message::User(user) => self.user(user),
                Message::Assistant(answer) => self.answer(answer, target),
                Message::ToolResult(_) => {
                    let (blocks, results) = results::blocks(rest);
                    self.push(json!({"role": "user", "content": blocks}));
                    taken = results;
                }
                _ => {}
            }
            rest = &rest[taken..];
        }
    }

    fn system(&mut self, system: &SystemMessage, target: &Target, tools_in_place: bool) {
        if !std::mem::replace(&mut self.led, true) || !target.quirks.system_in_place {
            return;
        }
        let mut blocks = Vec::new();
        let text = history::render_update(system);
        if !text.trim().is_empty() {
            blocks.push(text_block(&text));
        }
        if tools_in_place {
            blocks.extend(tool_changes(system, target));
        }
        if !blocks.is_empty() {
            self.held.push(json!({"role": "system", "content": blocks}));
        }
    }

    fn user(&mut self, user: &UserMessage) {
        match &user.content {
            MessageContent::Text(text) if text.trim().is_empty() => {}
            MessageContent::Text(text) => self.push(json!({"role": "user", "content": text})),
            MessageContent::Blocks(blocks) => {
                let blocks: Vec<Value> = blocks.iter().filter_map(visible_block).collect();
                if !blocks.is_empty() {
                    self.push(json!({"role": "user", "content": blocks}));
                }
            }
        }
    }

    fn answer(&mut self, answer: &AssistantMessage, target: &Target) {
        let blocks: Vec<Value> = answer
            .content
            .iter()
            .filter_map(|block| answer_block(block, target))
            .collect();
        if blocks.is_empty() {
            return;
        }
        if self.bytes.is_empty() {
            self.push(json!({"role": "user", "content": BEGINNING}));
        }
        for held in std::mem::take(&mut self.held) {
            self.push(held);
        }
        let effort = answer.provider_thinking_level.as_deref();
        let is_known = answer.api == API && answer.provider == target.provider;
        if let Some(effort) = effort.filter(|effort| is_known && is_effort(effort))
            && target.marks_effort
        {
            self.push(effort_entry(effort));
        }
        self.push(json!({"role": "assistant", "content": blocks}));
    }

    fn push(&mut self, entry: Value) {
        if !self.bytes.is_empty() {
            self.bytes.push(b',');
        }
        let start = self.bytes.len();
        // Writing JSON values to memory does not fail.
        let _ = serde_json::to_writer(&mut self.bytes, &entry);
        self.last = (entry["role"] == "user").then_some((start, entry));
    }
}

/// What sets the effort from here on.
pub(crate) fn effort_entry(effort: &str) -> Value {
    json!({"role": "system", "content": [], "output_config": {"effort": effort}})
}

/// A new definition under a known name replaces the old one without a removal.
fn tool_changes(system: &SystemMessage, target: &Target) -> Vec<Value> {
    let added = || {
        let added = system.tools_added.iter().flatten();
        added.filter(|tool| is_declarable(tool))
    };
    let removed = system.tools_removed.iter().flatten();
    let removed = removed.filter(|removed| !added().any(|tool| tool.name == removed.name));
    let removals = removed.map(|tool| {
        json!({"type": "tool_removal", "tool": {"type": "tool_reference", "name": tool.name}})
    });
    // One that cannot be declared fails the request before this is sent.
    let definitions = added().filter_map(|tool| declare(tool, target.style).ok());
    let additions = definitions.map(|declared| {
        let tool = json!({"type": "tool_definition", "definition": declared.value});
        json!({"type": "tool_addition", "tool": tool})
    });
    removals.chain(additions).collect()
}

pub(crate) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(crate) fn image_block(image: &Image) -> Value {
    let media_type = match image.mime_type.as_str() {
        "image/jpg" => "image/jpeg",
        kind => kind,
    };
    let source = json!({"type": "base64", "media_type": media_type, "data": image.data});
    json!({"type": "image", "source": source})
}

/// Text that says something, or an image.
pub(crate) fn visible_block(block: &Content) -> Option<Value> {
    match block {
        Content::Text(text) if !text.text.trim().is_empty() => Some(text_block(&text.text)),
        Content::Image(image) => Some(image_block(image)),
        _ => None,
    }
}

fn answer_block(block: &Content, target: &Target) -> Option<Value> {
    match block {
        Content::Thinking(thinking) => thinking_block(thinking, target),
        Content::ToolCall(call) => Some(json!({
            "type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments,
        })),
        Content::Text(_) => visible_block(block),
        Content::Image(_) | Content::Other(_) => None,
    }
}

/// Thinking of the same model, for others' is left out before (`providers.md` §6).
fn thinking_block(thinking: &Thinking, target: &Target) -> Option<Value> {
    let signature = thinking.thinking_signature.as_deref();
    let signature = signature.filter(|signature| !signature.trim().is_empty());
    let text = &thinking.thinking;
    match signature {
        Some(data) if thinking.redacted == Some(true) => {
            Some(json!({"type": "redacted_thinking", "data": data}))
        }
        Some(signature) => {
            Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
        }
        // What stands in for reasoning that is lost is no text of the model.
        None if thinking.redacted == Some(true) || text.trim().is_empty() => None,
        None if target.quirks.empty_signature => {
            Some(json!({"type": "thinking", "thinking": text, "signature": ""}))
        }
        None => Some(text_block(text)),
    }
}

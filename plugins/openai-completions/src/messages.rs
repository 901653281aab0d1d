//! Prepared messages → the entries of the body's `messages` (`providers.md` §3.2), as bytes that
//! are only ever appended to: what was written for a message is never written again.

use std::ops::Range;
use std::sync::Arc;

use pliant_sdk::Model;
use pliant_sdk::history::{self, IdRule};
use pliant_sdk::message::{
    AssistantMessage, Content, Image, Message, MessageContent, SystemMessage, Thinking, ToolCall,
    ToolResultMessage, UserMessage, joined_text,
};
use pliant_sdk::wire::tools::is_declarable;
use serde_json::{Map, Value, json};

use crate::quirks::Quirks;
use crate::tools::{Grammars, declare};

/// Fields that a service may use for readable reasoning. The one it used is kept as the signature.
pub(crate) const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

const BRIDGE: &str = "I have processed the tool results.";
const IMAGES_OF_RESULTS: &str = "Attached image(s) from tool result:";

/// What the conversion depends on besides the messages.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    pub(crate) provider: String,
    pub(crate) api: String,
    pub(crate) model: String,
    pub(crate) reasoning: bool,
    pub(crate) images: bool,
    pub(crate) quirks: Quirks,
}

impl Target {
    /// For a model with these switches.
    pub(crate) fn of(model: &Model, quirks: &Quirks) -> Self {
        Self {
            provider: model.provider.clone(),
            api: model.api.clone(),
            model: model.id.clone(),
            reasoning: model.reasoning,
            images: model.takes_images(),
            quirks: quirks.clone(),
        }
    }

    /// The role of system messages.
    pub(crate) fn system_role(&self) -> &'static str {
        match self.reasoning && self.quirks.developer_role {
            true => "developer",
            false => "system",
        }
    }
}

impl IdRule for Target {
    fn foreign(&self, id: &str, _from: &AssistantMessage) -> String {
        const SHORT: usize = 40;
        const HASH: usize = 8;
        let max = self.quirks.max_id_chars;
        // Two ids in one, as the responses protocol makes them; only the first matters here.
        let Some((call, _)) = id.split_once('|') else {
            return match self.accepts(id) {
                true => id.to_owned(),
                false => history::sanitize_id(id, max),
            };
        };
        let whole = history::sanitize_id(id, SHORT + 1);
        if whole.len() <= SHORT {
            return whole;
        }
        let call = history::sanitize_id(call, SHORT - HASH - 1);
        let hash: String = history::short_hash(id).chars().take(HASH).collect();
        format!("{call}_{hash}")
    }

    /// Services made up ids like `functions.bash:0` themselves and want them back unchanged.
    fn accepts(&self, id: &str) -> bool {
        // LiteLLM carries Gemini's signatures inside ids; cutting one would lose it.
        let carries_data = id.contains("__thought__");
        let fits = id.len() <= self.quirks.max_id_chars || carries_data;
        fits && !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_graphic())
    }
}

/// Which system messages and tools do not stand in place.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Plan {
    /// Tools added by later system messages than this one are sent where they were added.
    pub(crate) folded_until: usize,
    pub(crate) grammars: Grammars,
}

/// The converted messages.
#[derive(Debug, Default)]
pub(crate) struct Items {
    /// JSON values separated by commas.
    pub(crate) bytes: Vec<u8>,
    /// Some message carries a call or a result.
    pub(crate) has_tool_history: bool,
    /// The last user, assistant or tool entry that has text: where it is, and what.
    pub(crate) last_text: Option<(Range<usize>, Value)>,
    after_result: bool,
    systems: usize,
}

impl Items {
    /// Appends what [`history::Preparer`] made of the next messages.
    pub(crate) fn append(&mut self, prepared: &[Arc<Message>], target: &Target, plan: &Plan) {
        let mut rest = prepared;
        while let Some(message) = rest.first() {
            let mut taken = 1;
            match &**message {
                Message::System(system) => self.system(system, target, plan),
                Message::User(user) => self.user(user, target),
                Message::Assistant(answer) => self.answer(answer, target, plan),
                Message::ToolResult(_) => taken = self.results(rest, target),
                _ => {}
            }
            rest = &rest[taken..];
        }
    }

    fn push(&mut self, value: Value, target: &Target) {
        let place = self.write(&value);
        if target.quirks.cache_markers && has_text(&value) {
            self.last_text = Some((place, value));
        }
    }

    fn write(&mut self, value: &Value) -> Range<usize> {
        if !self.bytes.is_empty() {
            self.bytes.push(b',');
        }
        let start = self.bytes.len();
        // Writing a `Value` to memory does not fail.
        let _ = serde_json::to_writer(&mut self.bytes, value);
        start..self.bytes.len()
    }

    /// The first system message leads the body and is not part of the items.
    fn system(&mut self, system: &SystemMessage, target: &Target, plan: &Plan) {
        let index = self.systems;
        self.systems += 1;
        if index == 0 || !target.quirks.system_in_place {
            return;
        }
        let role = target.system_role();
        let text = history::render_update(system);
        if !text.is_empty() {
            self.after_result = false;
            self.write(&json!({"role": role, "content": text}));
        }
        if !target.quirks.tools_in_place || index <= plan.folded_until {
            return;
        }
        let mut added = Vec::new();
        history::patch_tools(&mut added, system);
        // Tools that need a strict schema and cannot have one fail the whole request, see `Head`.
        let tools: Vec<Value> = added
            .iter()
            .filter(|tool| is_declarable(tool))
            .filter_map(|tool| declare(tool, &target.quirks).ok())
            .collect();
        if !tools.is_empty() {
            self.after_result = false;
            self.write(&json!({"role": "system", "tools": tools}));
        }
    }

    fn user(&mut self, user: &UserMessage, target: &Target) {
        let content = match &user.content {
            MessageContent::Text(text) => json!(text),
            MessageContent::Blocks(blocks) => {
                let parts: Vec<Value> = blocks.iter().filter_map(user_part).collect();
                if parts.is_empty() {
                    return;
                }
                Value::Array(parts)
            }
        };
        self.bridge(target);
        self.push(json!({"role": "user", "content": content}), target);
    }

    /// Some chat templates refuse a user turn right after a result.
    fn bridge(&mut self, target: &Target) {
        let after_result = std::mem::take(&mut self.after_result);
        if after_result && target.quirks.assistant_after_tool_result {
            self.push(json!({"role": "assistant", "content": BRIDGE}), target);
        }
    }

    fn answer(&mut self, answer: &AssistantMessage, target: &Target, plan: &Plan) {
        let texts = answer
            .content
            .iter()
            .filter_map(Content::as_text)
            .filter(|text| !text.trim().is_empty());
        let text: String = texts.collect();
        let calls: Vec<Value> = answer
            .tool_calls()
            .map(|call| call_entry(call, plan))
            .collect();
        let mut entry = Map::new();
        entry.insert("role".to_owned(), json!("assistant"));
        entry.insert("content".to_owned(), json!(text));
        add_thinking(&mut entry, answer, target);
        if entry["content"] == "" && calls.is_empty() {
            return;
        }
        let quirks = &target.quirks;
        if entry["content"] == ""
            && !quirks.non_null_assistant_content
            && !quirks.assistant_after_tool_result
        {
            entry["content"] = Value::Null;
        }
        if !calls.is_empty() {
            self.has_tool_history = true;
            entry.insert("tool_calls".to_owned(), Value::Array(calls));
        }
        self.after_result = false;
        self.push(Value::Object(entry), target);
    }

    /// A run of results, then their images in one user message. Answers how many messages it took.
    fn results(&mut self, messages: &[Arc<Message>], target: &Target) -> usize {
        let mut taken = 0;
        let mut images = Vec::new();
        for message in messages {
            let Message::ToolResult(result) = &**message else {
                break;
            };
            taken += 1;
            self.push(result_entry(result, target), target);
            if target.images {
                images.extend(result.content.iter().filter_map(image_part));
            }
        }
        self.has_tool_history = true;
        self.after_result = true;
        if !images.is_empty() {
            self.bridge(target);
            let mut parts = vec![json!({"type": "text", "text": IMAGES_OF_RESULTS})];
            parts.append(&mut images);
            self.push(json!({"role": "user", "content": parts}), target);
        }
        taken
    }
}

fn has_text(entry: &Value) -> bool {
    match &entry["content"] {
        Value::String(text) => !text.is_empty(),
        Value::Array(parts) => parts.iter().any(|part| part["type"] == "text"),
        _ => false,
    }
}

fn user_part(block: &Content) -> Option<Value> {
    match block {
        Content::Text(text) if !text.text.is_empty() => {
            Some(json!({"type": "text", "text": text.text}))
        }
        block => image_part(block),
    }
}

fn image_part(block: &Content) -> Option<Value> {
    let Content::Image(Image {
        data, mime_type, ..
    }) = block
    else {
        return None;
    };
    let url = format!("data:{mime_type};base64,{data}");
    Some(json!({"type": "image_url", "image_url": {"url": url}}))
}

fn call_entry(call: &ToolCall, plan: &Plan) -> Value {
    if let Some(property) = plan.grammars.get(&call.name) {
        let input = call.arguments.get(property).and_then(Value::as_str);
        let custom = json!({"name": call.name, "input": input.unwrap_or_default()});
        return json!({"id": call.id, "type": "custom", "custom": custom});
    }
    let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

fn result_entry(result: &ToolResultMessage, target: &Target) -> Value {
    let mut text = joined_text(&result.content, "\n");
    if text.trim().is_empty() {
        let has_image = result
            .content
            .iter()
            .any(|block| matches!(block, Content::Image(_)));
        let placeholder = match has_image {
            true => "(see attached image)",
            false => "(no tool output)",
        };
        placeholder.clone_into(&mut text);
    }
    let mut entry = json!({"role": "tool", "content": text, "tool_call_id": result.tool_call_id});
    if target.quirks.tool_result_name {
        entry["name"] = json!(result.tool_name);
    }
    entry
}

/// Reasoning goes back the way it came: as details, in the service's own field, or as text.
fn add_thinking(entry: &mut Map<String, Value>, answer: &AssistantMessage, target: &Target) {
    let blocks: Vec<&Thinking> = answer
        .content
        .iter()
        .filter_map(|block| match block {
            Content::Thinking(thinking) => Some(thinking),
            _ => None,
        })
        .collect();
    let readable = blocks
        .iter()
        .map(|block| block.thinking.as_str())
        .filter(|thinking| !thinking.trim().is_empty());
    if target.quirks.thinking_as_text {
        let mut parts: Vec<Value> = readable.map(text_part).collect();
        if !parts.is_empty() {
            let text = entry["content"].as_str().filter(|text| !text.is_empty());
            parts.extend(text.map(text_part));
            entry["content"] = Value::Array(parts);
        }
    } else if let Some(signature) = blocks
        .iter()
        .find_map(|block| block.thinking_signature.as_deref())
    {
        if let Some(details) = reasoning_details(signature) {
            entry.insert("reasoning_details".to_owned(), details);
        } else if REASONING_FIELDS.contains(&signature) {
            let readable: Vec<&str> = readable.collect();
            if !readable.is_empty() {
                entry.insert(signature.to_owned(), json!(readable.join("\n")));
            }
        }
    }
    let wants_field = target.quirks.reasoning_content_on_assistant && target.reasoning;
    if wants_field && !entry.contains_key("reasoning_content") {
        entry.insert("reasoning_content".to_owned(), json!(""));
    }
}

fn text_part(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn reasoning_details(signature: &str) -> Option<Value> {
    if !signature.starts_with('[') {
        return None;
    }
    let details: Value = serde_json::from_str(signature).ok()?;
    details.is_array().then_some(details)
}

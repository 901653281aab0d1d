//! One request: address, headers and body (`providers.md` §1.3, §3.1, §11).
//!
//! The messages come from [`Conversation`]; this file puts the other fields around them, in one order,
//! so that the bytes before the last turn are the same in every request of a conversation.

use std::borrow::Cow;

use pliant_sdk::Model;
use pliant_sdk::host::FramedRequest;
use pliant_sdk::provider::{StreamOptions, StreamRequest};
use pliant_sdk::wire::{self, Fields, Headers, Retention};
use serde_json::{Value, json};

use crate::conversation::Conversation;
use crate::messages::{Target, effort_entry};
use crate::quirks::Quirks;
use crate::thinking::{Mode, Thinking};
use crate::tools::Style;

/// The version of the protocol.
const VERSION: &str = "2023-06-01";

/// Headers with which a user pays in another way than by key.
const OTHER_CREDENTIALS: [&str; 3] = ["authorization", "x-api-key", "cf-aig-authorization"];

/// What is kept of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    conversation: wire::Kept<Conversation>,
    /// Asking again would be refused again, and change what the service has cached.
    pub(crate) strict_tools_refused: bool,
}

/// What goes to the host.
#[derive(Debug)]
pub(crate) struct Built {
    /// Its headers have unique names; `None` removes one of the host.
    pub(crate) http: FramedRequest,
    /// The effort that the answer is made with, if it stands between the messages.
    pub(crate) effort: Option<String>,
    /// Some tool is strict, and need not be.
    pub(crate) prefers_strict_tools: bool,
}

/// Builds a request on what is kept of its conversation.
///
/// # Errors
/// A sentence for the user: the request cannot be made.
pub(crate) fn build(kept: &mut Kept, request: &StreamRequest) -> Result<Built, String> {
    let StreamRequest { model, options, .. } = request;
    let base = wire::base_url(model)?;
    let quirks = Quirks::of(model);
    let style = Style {
        eager_input_streaming: quirks.eager_input_streaming,
        strict: quirks.strict_tools,
        only_required_strict: kept.strict_tools_refused,
    };
    // Whether the effort stands in place does not depend on how full the request is.
    let asked = Thinking::of(model, &quirks, options, kept.conversation.estimate());
    let marks_effort = asked.effort_in_place().is_some();
    let target = Target::of(model, &quirks, style, marks_effort);
    kept.conversation.update(model, target, &request.messages);
    let conversation = kept.conversation.converted();
    if let Some(reason) = &conversation.head.refused {
        return Err(reason.clone());
    }
    let draft = Draft {
        model,
        options,
        quirks: &quirks,
        thinking: Thinking::of(model, &quirks, options, kept.conversation.estimate()),
        marker: Retention::of(options).marker(quirks.long_retention),
        conversation,
    };
    Ok(Built {
        http: draft.framed(format!("{base}/v1/messages?beta=true")),
        effort: draft.thinking.effort_in_place().map(str::to_owned),
        prefers_strict_tools: conversation.head.prefers_strict,
    })
}

struct Draft<'a> {
    model: &'a Model,
    options: &'a StreamOptions,
    quirks: &'a Quirks,
    thinking: Thinking,
    /// What marks the end of a part that the service should cache.
    marker: Option<Value>,
    conversation: &'a Conversation,
}

impl<'a> Draft<'a> {
    fn framed(&self, url: String) -> FramedRequest {
        let (headers, fields) = (self.headers(), self.fields());
        let pays_otherwise = OTHER_CREDENTIALS.iter().any(|name| headers.has(name));
        let credential = wire::credential(self.model, "x-api-key", "");
        let credential = (!pays_otherwise).then_some(credential);
        wire::post(url, headers, credential, self.options, &fields)
    }

    fn fields(&self) -> Fields<'a> {
        let (options, head) = (self.options, &self.conversation.head);
        let mut fields = Fields::default();
        fields.value("model", self.model.id.as_str());
        fields.written("messages", self.messages());
        fields.value("max_tokens", self.thinking.max_tokens);
        fields.value("stream", true);
        if !head.system.is_empty() {
            let block = json!({"type": "text", "text": head.system});
            fields.value("system", json!([self.marked(block)]));
        }
        if let Some(temperature) = options.temperature
            && self.quirks.temperature
            && !self.quirks.effort_in_place
            && !self.thinking.is_on()
        {
            fields.value("temperature", json!(temperature));
        }
        if !head.tools.is_empty() {
            fields.value("tools", self.tools());
        }
        let (thinking, output) = self.thinking.fields();
        let user = options
            .metadata
            .as_ref()
            .and_then(|data| data.get("user_id"));
        let user = user.filter(|user| user.is_string());
        // Services refuse a choice without tools.
        let choice = options
            .tool_choice
            .as_ref()
            .filter(|_| !head.tools.is_empty());
        let others = [
            ("thinking", thinking),
            ("output_config", output),
            ("metadata", user.map(|user| json!({"user_id": user}))),
            ("tool_choice", choice.map(tool_choice)),
            ("fallbacks", self.fallbacks()),
        ];
        for (name, value) in others {
            if let Some(value) = value {
                fields.value(name, value);
            }
        }
        fields
    }

    fn messages(&self) -> Vec<Cow<'a, [u8]>> {
        let items = &self.conversation.items;
        let mut pieces = vec![Cow::Borrowed(&b"["[..])];
        match (&items.last, items.held.as_slice()) {
            (Some((start, entry)), []) if self.marker.is_some() => {
                pieces.push(Cow::Borrowed(&items.bytes[..*start]));
                pieces.push(bytes(&self.marked_entry(entry)));
            }
            _ => pieces.push(Cow::Borrowed(&items.bytes)),
        }
        let mut behind: Vec<Cow<'a, [u8]>> = items.held.iter().map(bytes).collect();
        if let (Some(last), Some(entry)) = (behind.last_mut(), items.held.last()) {
            *last = bytes(&self.marked_entry(entry));
        }
        behind.extend(
            self.thinking
                .effort_in_place()
                .map(|e| bytes(&effort_entry(e))),
        );
        let mut is_first = items.bytes.is_empty();
        for entry in behind {
            if !std::mem::take(&mut is_first) {
                pieces.push(Cow::Borrowed(b","));
            }
            pieces.push(entry);
        }
        pieces.push(Cow::Borrowed(b"]"));
        pieces
    }

    fn tools(&self) -> Value {
        let head = &self.conversation.head;
        let mut tools = head.tools.clone();
        if self.quirks.cache_control_on_tools
            && let Some(last) = tools.pop()
        {
            tools.push(self.marked(last));
        }
        tools.extend(head.deferred.clone());
        Value::Array(tools)
    }

    fn fallbacks(&self) -> Option<Value> {
        let named = self.quirks.fallbacks.iter();
        let named: Vec<Value> = named.map(|other| json!({"model": other.model})).collect();
        (!named.is_empty()).then_some(Value::Array(named))
    }

    fn marked(&self, mut value: Value) -> Value {
        if let Some(marker) = &self.marker {
            value["cache_control"] = marker.clone();
        }
        value
    }

    /// The entry with the marker on its last block; a plain text becomes a block.
    fn marked_entry(&self, entry: &Value) -> Value {
        let mut entry = entry.clone();
        match &mut entry["content"] {
            Value::Array(blocks) => {
                if let Some(last) = blocks.pop() {
                    blocks.push(self.marked(last));
                }
            }
            text if self.marker.is_some() => {
                let block = json!({"type": "text", "text": text.take()});
                *text = json!([self.marked(block)]);
            }
            _ => {}
        }
        entry
    }

    /// Header layers, the weakest first. Identity and credential are the host's.
    fn headers(&self) -> Headers {
        let mut headers = Headers::of_json();
        headers.set("anthropic-version", Some(VERSION.to_owned()));
        let betas = self.betas();
        if !betas.is_empty() {
            headers.set("anthropic-beta", Some(betas.join(",")));
        }
        let session = Retention::of(self.options).session(self.options);
        if let (Some(name), Some(session)) = (self.quirks.affinity, session) {
            headers.set(name, Some(session.to_owned()));
        }
        headers.layer(self.model, self.options);
        headers
    }

    fn betas(&self) -> Vec<&'static str> {
        let (quirks, head) = (self.quirks, &self.conversation.head);
        let mut betas = Vec::new();
        if !head.tools.is_empty() && !quirks.eager_input_streaming {
            betas.push("fine-grained-tool-streaming-2025-05-14");
        }
        if matches!(self.thinking.mode, Mode::Budget(_)) {
            betas.push("interleaved-thinking-2025-05-14");
        }
        if !quirks.fallbacks.is_empty() {
            betas.push("server-side-fallback-2026-07-01");
        }
        if quirks.effort_in_place {
            betas.push("mid-conversation-output-config-2026-07-01");
            betas.push("thinking-binding-controls-2026-08-01");
        }
        if head.tools_in_place {
            betas.push("inline-tools-2026-09-15");
        }
        betas
    }
}

fn tool_choice(choice: &Value) -> Value {
    match choice {
        Value::String(word) => json!({"type": word}),
        other => other.clone(),
    }
}

fn bytes<'a>(value: &Value) -> Cow<'a, [u8]> {
    // Writing JSON values to memory does not fail.
    Cow::Owned(serde_json::to_vec(value).unwrap_or_default())
}

//! One request: address, headers and body (`providers.md` §1.3, §3.2, §4, §11).
//!
//! The messages come from [`Prefix`]; this file puts the other fields around them, in one order,
//! so that the bytes before the last turn are the same in every request of a conversation.

use std::borrow::Cow;

use pliant_sdk::Model;
use pliant_sdk::host::FramedRequest;
use pliant_sdk::provider::{StreamOptions, StreamRequest};
use pliant_sdk::wire::thinking::level;
use pliant_sdk::wire::{self, Fields, Headers, Retention};
use serde_json::{Map, Value, json};

use crate::messages::Target;
use crate::prefix::{Conversation, Prefix};
use crate::quirks::{CacheKey, Quirks};
use crate::thinking::Wish;
use crate::tools::Grammars;

/// What goes to the host.
#[derive(Debug)]
pub(crate) struct Built {
    /// Its headers have unique names; `None` removes one of the host.
    pub(crate) http: FramedRequest,
    /// Needed to read the answer.
    pub(crate) grammars: Grammars,
}

/// Builds a request on what is kept of its conversation.
///
/// # Errors
/// A sentence for the user: the request cannot be made.
pub(crate) fn build(request: &StreamRequest) -> Result<Built, String> {
    request.with_cache(|prefix: &mut Prefix| build_on(prefix, request))
}

fn build_on(prefix: &mut Prefix, request: &StreamRequest) -> Result<Built, String> {
    let model = &request.model;
    let base = wire::base_url(model)?;
    let quirks = Quirks::of(model);
    prefix.update(model, Target::of(model, &quirks), &request.messages);
    let conversation = prefix.converted();
    if let Some(reason) = &conversation.head.refused {
        return Err(reason.clone());
    }
    let draft = Draft {
        model,
        options: &request.options,
        quirks: &quirks,
        retention: Retention::of(&request.options),
        conversation,
        limit: prefix.estimate().clamp_output(
            request.options.max_tokens.unwrap_or(model.max_tokens),
            model.context_window,
        ),
    };
    Ok(Built {
        http: draft.framed(format!("{base}/chat/completions")),
        grammars: conversation.plan.grammars.clone(),
    })
}

struct Draft<'a> {
    model: &'a Model,
    options: &'a StreamOptions,
    quirks: &'a Quirks,
    retention: Retention,
    conversation: &'a Conversation,
    /// Tokens of the answer; 0 = not known.
    limit: u64,
}

impl<'a> Draft<'a> {
    fn framed(&self, url: String) -> FramedRequest {
        let credential = wire::credential(self.model, "authorization", "Bearer ");
        let (headers, fields) = (self.headers(), self.fields());
        wire::post(url, headers, Some(credential), self.options, &fields)
    }

    fn fields(&self) -> Fields<'a> {
        let mut fields = Fields::default();
        self.add_fields(&mut fields);
        // Sampling parameters override anything, the stronger layer last.
        let level = level(self.model, self.options.reasoning).unwrap_or_default();
        let by_level = self.model.extra.get("samplingParamsByThinkingLevel");
        let by_level = by_level.and_then(|levels| levels.get(level.as_str())?.as_object());
        let layers = [
            self.model.sampling_params.as_ref(),
            by_level,
            self.options.sampling_params.as_ref(),
        ];
        for (name, value) in layers.into_iter().flatten().flatten() {
            fields.value(name, value.clone());
        }
        fields
    }

    fn add_fields(&self, fields: &mut Fields<'a>) {
        let (options, quirks) = (self.options, self.quirks);
        fields.value("model", json!(self.model.id));
        fields.written("messages", self.messages());
        fields.value("stream", json!(true));
        if let Some(key) = self.cache_key() {
            fields.value("prompt_cache_key", json!(key));
        }
        if self.wants_long_retention() {
            fields.value("prompt_cache_retention", json!("24h"));
        }
        if quirks.usage_in_streaming {
            fields.value("stream_options", json!({"include_usage": true}));
        }
        if quirks.store {
            fields.value("store", json!(false));
        }
        let limit = self.limit;
        if limit > 0 {
            fields.value(&quirks.max_tokens_field, json!(limit));
        }
        if let Some(temperature) = options.temperature {
            fields.value("temperature", json!(temperature));
        }
        self.add_tools(fields);
        if let Some(priority) = &quirks.priority {
            fields.value("priority", priority.clone());
        }
        let wish = Wish {
            model: self.model,
            quirks,
            level: level(self.model, options.reasoning),
            budgets: options.thinking_budgets.as_ref(),
            limit: if limit > 0 {
                limit
            } else {
                self.model.max_tokens
            },
        };
        for (name, value) in wish.fields() {
            fields.value(&name, value);
        }
        self.add_routing(fields);
    }

    fn add_tools(&self, fields: &mut Fields<'a>) {
        let has_tools = !self.conversation.head.tools.is_empty();
        let wants_list =
            self.quirks.tools_with_tool_history && self.conversation.items.has_tool_history;
        if has_tools || wants_list {
            fields.written("tools", self.tools());
        }
        if !has_tools {
            return;
        }
        if self.quirks.zai_tool_stream {
            fields.value("tool_stream", json!(true));
        }
        // Services refuse a choice without tools.
        if let Some(choice) = &self.options.tool_choice {
            fields.value("tool_choice", choice.clone());
        }
    }

    fn add_routing(&self, fields: &mut Fields<'a>) {
        if let Some(routing) = &self.quirks.open_router_routing {
            fields.value("provider", routing.clone());
        }
        let routing = self.quirks.vercel_gateway_routing.as_ref();
        let kept: Map<String, Value> = ["only", "order"]
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), routing?.get(name)?.clone())))
            .collect();
        if !kept.is_empty() {
            fields.value("providerOptions", json!({"gateway": kept}));
        }
    }

    fn wants_long_retention(&self) -> bool {
        self.retention == Retention::Long && self.quirks.long_retention
    }

    fn cache_key(&self) -> Option<String> {
        const MAX_KEY_CHARS: usize = 64;
        let wanted = match self.quirks.cache_key {
            CacheKey::Always => self.retention != Retention::None,
            CacheKey::OnLongRetention => self.wants_long_retention(),
            CacheKey::Never => false,
        };
        let session = self.options.session_id.as_ref().filter(|_| wanted)?;
        Some(session.chars().take(MAX_KEY_CHARS).collect())
    }

    /// Header layers, the weakest first. Identity and credential are the host's.
    fn headers(&self) -> Headers {
        let mut headers = Headers::of_json();
        if let (Some(affinity), Some(session)) =
            (self.quirks.affinity, self.retention.session(self.options))
        {
            for name in affinity.headers() {
                headers.set(name, Some(session.to_owned()));
            }
        }
        headers.layer(self.model, self.options);
        headers
    }

    fn messages(&self) -> Vec<Cow<'a, [u8]>> {
        let Conversation { head, items, .. } = self.conversation;
        let marker = self.marker();
        let mut pieces = vec![Cow::Borrowed(&b"["[..])];
        if let Some(system) = &head.system {
            pieces.push(match &marker {
                Some(marker) => json_bytes(&mark_text(system, marker)),
                None => json_bytes(system),
            });
            if !items.bytes.is_empty() {
                pieces.push(Cow::Borrowed(b","));
            }
        }
        match (&marker, &items.last_text) {
            (Some(marker), Some((place, entry))) => {
                pieces.push(Cow::Borrowed(&items.bytes[..place.start]));
                pieces.push(json_bytes(&mark_text(entry, marker)));
                pieces.push(Cow::Borrowed(&items.bytes[place.end..]));
            }
            _ => pieces.push(Cow::Borrowed(&items.bytes)),
        }
        pieces.push(Cow::Borrowed(b"]"));
        pieces
    }

    fn tools(&self) -> Vec<Cow<'a, [u8]>> {
        let head = &self.conversation.head;
        let marked = self.marker().zip(head.tools.split_last());
        let Some((marker, (last, others))) = marked else {
            return vec![Cow::Borrowed(&head.tools_bytes)];
        };
        let mut last = last.clone();
        last["cache_control"] = marker;
        let tools: Vec<&Value> = others.iter().chain([&last]).collect();
        vec![json_bytes(&tools)]
    }

    /// What marks the end of a part that the service should cache.
    fn marker(&self) -> Option<Value> {
        let marks = self.quirks.cache_markers;
        let marker = self.retention.marker(self.quirks.long_retention);
        marker.filter(|_| marks)
    }
}

fn json_bytes<'a>(value: &(impl serde::Serialize + ?Sized)) -> Cow<'a, [u8]> {
    // Writing JSON values to memory does not fail.
    Cow::Owned(serde_json::to_vec(value).unwrap_or_default())
}

/// The entry with the marker on its last text part; a plain text becomes a part.
fn mark_text(entry: &Value, marker: &Value) -> Value {
    let mut entry = entry.clone();
    match &mut entry["content"] {
        Value::Array(parts) => {
            let text = parts.iter_mut().rev().find(|part| part["type"] == "text");
            if let Some(part) = text {
                part["cache_control"] = marker.clone();
            }
        }
        content => {
            let text = content.take();
            *content = json!([{"type": "text", "text": text, "cache_control": marker}]);
        }
    }
    entry
}

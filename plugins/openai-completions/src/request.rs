//! One request: address, headers and body (`providers.md` §1.3, §3.2, §4, §11).
//!
//! The messages come from [`Prefix`]; this file puts the other fields around them, in one order,
//! so that the bytes before the last turn are the same in every request of a conversation.

use pliant_sdk::Model;
use pliant_sdk::host::{FramedRequest, HttpCredential, HttpRequest};
use pliant_sdk::provider::{StreamOptions, StreamRequest};
use serde_json::{Map, Value, json};

use crate::prefix::{Head, Prefix};
use crate::quirks::{CacheKey, Quirks};
use crate::thinking::{self, Wish};
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
    let base = model.base_url.trim_end_matches('/');
    if base.is_empty() {
        return Err(format!(
            "The model {} has no base URL. Set `baseUrl` for its provider.",
            model.reference()
        ));
    }
    let quirks = Quirks::of(model);
    prefix.update(model, &quirks, &request.messages);
    if let Some(reason) = &prefix.head.refused {
        return Err(reason.clone());
    }
    let draft = Draft {
        model,
        options: &request.options,
        quirks: &quirks,
        retention: Retention::of(&request.options),
        prefix,
    };
    Ok(Built {
        http: draft.framed(format!("{base}/chat/completions")),
        grammars: prefix.plan.grammars.clone(),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retention {
    None,
    Short,
    Long,
}

impl Retention {
    fn of(options: &StreamOptions) -> Self {
        match options.cache_retention.as_deref() {
            Some("none") => Self::None,
            Some("long") => Self::Long,
            _ => Self::Short,
        }
    }
}

/// A field of the body. The two big ones are bytes already.
enum Field {
    Value(Value),
    Messages,
    Tools,
}

struct Draft<'a> {
    model: &'a Model,
    options: &'a StreamOptions,
    quirks: &'a Quirks,
    retention: Retention,
    prefix: &'a Prefix,
}

impl Draft<'_> {
    fn framed(&self, url: String) -> FramedRequest {
        let options = self.options;
        let request = HttpRequest {
            method: "POST".to_owned(),
            url,
            headers: self.headers(),
            credential: Some(HttpCredential {
                provider: self.model.provider.clone(),
                header: "authorization".to_owned(),
                prefix: "Bearer ".to_owned(),
            }),
            timeout_ms: options.timeout_ms,
            max_retries: options.max_retries,
            max_retry_delay_ms: options.max_retry_delay_ms,
        };
        let fields = self.fields();
        let Prefix { head, items, .. } = self.prefix;
        let size = items.bytes.len() + head.tools_bytes.len() + 4096;
        FramedRequest::new(request, size, |body| self.write(&fields, body))
    }

    fn fields(&self) -> Fields {
        let mut fields = Fields::default();
        self.add_fields(&mut fields);
        // Sampling parameters override anything, the stronger layer last.
        let level = thinking::level(self.model, self.options.reasoning).unwrap_or_default();
        let by_level = self.model.extra.get("samplingParamsByThinkingLevel");
        let by_level = by_level.and_then(|levels| levels.get(level.as_str())?.as_object());
        let layers = [
            self.model.sampling_params.as_ref(),
            by_level,
            self.options.sampling_params.as_ref(),
        ];
        for (name, value) in layers.into_iter().flatten().flatten() {
            fields.set(name, Field::Value(value.clone()));
        }
        fields
    }

    fn add_fields(&self, fields: &mut Fields) {
        let (options, quirks) = (self.options, self.quirks);
        fields.value("model", json!(self.model.id));
        fields.set("messages", Field::Messages);
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
        let limit = self.output_limit();
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
            level: thinking::level(self.model, options.reasoning),
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

    fn add_tools(&self, fields: &mut Fields) {
        let has_tools = !self.prefix.head.tools.is_empty();
        let wants_list = self.quirks.tools_with_tool_history && self.prefix.items.has_tool_history;
        if has_tools || wants_list {
            fields.set("tools", Field::Tools);
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

    fn add_routing(&self, fields: &mut Fields) {
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

    fn output_limit(&self) -> u64 {
        let cap = self.options.max_tokens.unwrap_or(self.model.max_tokens);
        self.prefix
            .estimate
            .clamp_output(cap, self.model.context_window)
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
    fn headers(&self) -> Vec<(String, Option<String>)> {
        let mut headers = Headers::default();
        headers.set("accept", Some("application/json".to_owned()));
        headers.set("content-type", Some("application/json".to_owned()));
        if let (Some(affinity), Some(session)) = (self.quirks.affinity, &self.options.session_id)
            && self.retention != Retention::None
        {
            for name in affinity.headers() {
                headers.set(name, Some(session.clone()));
            }
        }
        let layers = [self.model.headers.as_ref(), Some(&self.options.headers)];
        for (name, value) in layers.into_iter().flatten().flatten() {
            match value {
                Value::Null => headers.set(name, None),
                Value::String(text) => headers.set(name, Some(text.clone())),
                other => headers.set(name, Some(other.to_string())),
            }
        }
        headers.0
    }

    fn write(&self, fields: &Fields, body: &mut Vec<u8>) {
        let mut separator = b'{';
        for (name, field) in &fields.0 {
            body.push(separator);
            separator = b',';
            write_json(body, name);
            body.push(b':');
            match field {
                Field::Value(value) => write_json(body, value),
                Field::Messages => self.write_messages(body),
                Field::Tools => self.write_tools(body, &self.prefix.head),
            }
        }
        body.push(b'}');
    }

    fn write_messages(&self, body: &mut Vec<u8>) {
        let Prefix { head, items, .. } = self.prefix;
        let marker = self.marker();
        body.push(b'[');
        if let Some(system) = &head.system {
            match &marker {
                Some(marker) => write_json(body, &mark_text(system, marker)),
                None => write_json(body, system),
            }
            if !items.bytes.is_empty() {
                body.push(b',');
            }
        }
        match (&marker, &items.last_text) {
            (Some(marker), Some((place, entry))) => {
                body.extend_from_slice(&items.bytes[..place.start]);
                write_json(body, &mark_text(entry, marker));
                body.extend_from_slice(&items.bytes[place.end..]);
            }
            _ => body.extend_from_slice(&items.bytes),
        }
        body.push(b']');
    }

    fn write_tools(&self, body: &mut Vec<u8>, head: &Head) {
        let marked = self.marker().zip(head.tools.split_last());
        let Some((marker, (last, others))) = marked else {
            body.extend_from_slice(&head.tools_bytes);
            return;
        };
        let mut last = last.clone();
        last["cache_control"] = marker;
        let tools: Vec<&Value> = others.iter().chain([&last]).collect();
        write_json(body, &tools);
    }

    /// What marks the end of a part that the service should cache.
    fn marker(&self) -> Option<Value> {
        if !self.quirks.cache_markers || self.retention == Retention::None {
            return None;
        }
        Some(match self.wants_long_retention() {
            true => json!({"type": "ephemeral", "ttl": "1h"}),
            false => json!({"type": "ephemeral"}),
        })
    }
}

fn write_json(body: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    // Writing JSON values to memory does not fail.
    let _ = serde_json::to_writer(body, value);
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

/// The body in order; setting a field again keeps its place.
#[derive(Default)]
struct Fields(Vec<(String, Field)>);

impl Fields {
    fn value(&mut self, name: &str, value: Value) {
        self.set(name, Field::Value(value));
    }

    fn set(&mut self, name: &str, field: Field) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, place)) => *place = field,
            None => self.0.push((name.to_owned(), field)),
        }
    }
}

/// Headers with names that are unique without regard to case; the later value wins.
#[derive(Default)]
struct Headers(Vec<(String, Option<String>)>);

impl Headers {
    fn set(&mut self, name: &str, value: Option<String>) {
        self.0
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.0.push((name.to_owned(), value));
    }
}

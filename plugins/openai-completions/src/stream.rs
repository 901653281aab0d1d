//! Events of the service → events of an answer, and at the end the message. No I/O: the data of
//! each server-sent event goes in, [`StreamEvent`]s go to a sink.
//!
//! There is one text block and one thinking block; calls are told apart by index or id. All blocks
//! stay open until the end and are closed together, in order (`providers.md` §2.2, §3.2).

use pliant_sdk::history::short_hash;
use pliant_sdk::message::{AssistantMessage, Content, StopReason, Text, Thinking, ToolCall};
use pliant_sdk::partial_json::{PartialObject, parse_arguments};
use pliant_sdk::stream::EventSink;
use pliant_sdk::{Model, StreamEvent};
use serde_json::{Map, Value};

use crate::chunk::{self, Chunk, Delta, Fragment};
use crate::failure;
use crate::messages::REASONING_FIELDS;
use crate::quirks::Quirks;
use crate::tools::Grammars;
use crate::usage;

/// What one event led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// More may come.
    Continue,
    /// `[DONE]`; what follows is ignored.
    Done,
}

/// An answer being read.
#[derive(Debug)]
pub(crate) struct Answer {
    model: Model,
    quirks: Quirks,
    grammars: Grammars,
    message: AssistantMessage,
    text: Option<usize>,
    thinking: Option<usize>,
    calls: Vec<OpenCall>,
    details: Vec<Map<String, Value>>,
    finish: Option<StopReason>,
    done: bool,
}

/// A call whose arguments are still arriving; they are kept as text.
#[derive(Debug)]
struct OpenCall {
    block: usize,
    index: Option<u64>,
    raw: String,
    /// A call of a grammar tool: what arrives is the text of this property.
    property: Option<String>,
}

impl Answer {
    /// Starts with an empty message; `start` is the caller's to send.
    pub(crate) fn new(model: Model, grammars: Grammars, message: AssistantMessage) -> Self {
        Self {
            quirks: Quirks::of(&model),
            model,
            grammars,
            message,
            text: None,
            thinking: None,
            calls: Vec::new(),
            details: Vec::new(),
            finish: None,
            done: false,
        }
    }

    /// Takes the data of one event.
    ///
    /// # Errors
    /// The text of the failure: end with [`Answer::fail`].
    pub(crate) fn take(
        &mut self,
        name: Option<&str>,
        data: &str,
        sink: &mut impl EventSink,
    ) -> Result<Step, String> {
        if self.done || data.trim_ascii() == "[DONE]" {
            self.done = true;
            return Ok(Step::Done);
        }
        if name == Some("error") {
            return Err(error_event(data));
        }
        match chunk::read(data, |chunk| self.chunk(chunk, sink)) {
            Ok(Some(result)) => result.map(|()| Step::Continue),
            Ok(None) => Ok(Step::Continue),
            Err(chunk::Malformed) => Err(failure::MALFORMED.to_owned()),
        }
    }

    /// The stream is over: closes the blocks and answers the message.
    pub(crate) fn finish(mut self, sink: &mut impl EventSink) -> AssistantMessage {
        self.close(sink);
        let has_calls = !self.calls.is_empty();
        self.message.stop_reason = match self.finish {
            Some(reason) => reason,
            None if self.quirks.finish_reason => {
                self.message.error_message = Some(failure::UNFINISHED.to_owned());
                StopReason::Error
            }
            None if has_calls => StopReason::ToolUse,
            None => StopReason::Stop,
        };
        self.message
    }

    /// The stream broke: what arrived stays, its blocks stay open.
    pub(crate) fn fail(mut self, text: String) -> AssistantMessage {
        for open in &self.calls {
            let mut partial = PartialObject::new();
            partial.push(&open.raw);
            if let Some(Content::ToolCall(call)) = self.message.content.get_mut(open.block) {
                call.arguments = partial.into_map();
            }
        }
        self.message.stop_reason = StopReason::Error;
        self.message.error_message = Some(text);
        self.message
    }

    fn chunk(&mut self, chunk: Chunk<'_>, sink: &mut impl EventSink) -> Result<(), String> {
        if let Some(error) = &chunk.error {
            return Err(failure::of_error(error));
        }
        self.identify(&chunk, sink);
        let choice = chunk.choices.and_then(|choices| choices.0);
        let choice = choice.unwrap_or_default();
        if let Some(raw) = chunk.usage.or(choice.usage) {
            self.count(&raw, sink);
        }
        if let Some(reason) = choice.finish_reason {
            self.finished(&reason.0);
        }
        if let Some(delta) = choice.delta {
            self.delta(delta, sink);
        }
        Ok(())
    }

    fn identify(&mut self, chunk: &Chunk<'_>, sink: &mut impl EventSink) {
        let id = text_of(chunk.id.as_ref()).filter(|_| self.message.response_id.is_none());
        let model = text_of(chunk.model.as_ref())
            .filter(|model| self.message.response_model.is_none() && *model != self.model.id);
        if id.is_none() && model.is_none() {
            return;
        }
        let (id, model) = (id.map(str::to_owned), model.map(str::to_owned));
        if id.is_some() {
            self.message.response_id.clone_from(&id);
        }
        if model.is_some() {
            self.message.response_model.clone_from(&model);
        }
        sink.event(StreamEvent::Meta {
            usage: None,
            response_id: id,
            response_model: model,
        });
    }

    fn count(&mut self, raw: &Value, sink: &mut impl EventSink) {
        if !raw.is_object() {
            return;
        }
        let usage = usage::read(raw, &self.model, self.quirks.reports_cost);
        if usage == self.message.usage {
            return;
        }
        self.message.usage = usage.clone();
        sink.event(StreamEvent::Meta {
            usage: Some(Box::new(usage)),
            response_id: None,
            response_model: None,
        });
    }

    fn finished(&mut self, reason: &str) {
        // Some services send an empty one with every chunk.
        if reason.is_empty() {
            return;
        }
        self.message.raw_stop_reason = Some(reason.to_owned());
        self.message.error_message = None;
        self.finish = Some(match reason {
            "stop" | "end" => StopReason::Stop,
            "length" => StopReason::Length,
            "tool_calls" | "function_call" => StopReason::ToolUse,
            other => {
                self.message.error_message = Some(format!("Provider finish_reason: {other}"));
                StopReason::Error
            }
        });
    }

    fn delta(&mut self, delta: Delta<'_>, sink: &mut impl EventSink) {
        let reasoning = [
            delta.reasoning_content,
            delta.reasoning,
            delta.reasoning_text,
        ];
        let mut reasoning = REASONING_FIELDS.into_iter().zip(reasoning);
        let first = reasoning.find_map(|(field, text)| {
            let text = text.map(|text| text.0).filter(|text| !text.is_empty());
            Some((field, text?))
        });
        if let Some((field, text)) = first {
            self.reasoning(field, text.into_owned(), sink);
        }
        for detail in delta.reasoning_details.into_iter().flatten() {
            self.detail(detail, sink);
        }
        if let Some(text) = delta.content.map(|text| text.0)
            && !text.is_empty()
        {
            self.content(text.into_owned(), sink);
        }
        for fragment in delta.tool_calls.into_iter().flatten() {
            self.fragment(fragment, sink);
        }
    }

    fn content(&mut self, delta: String, sink: &mut impl EventSink) {
        let content_index = match self.text {
            Some(block) => block,
            None => {
                let content_index = self.open(Content::Text(Text::default()));
                self.text = Some(content_index);
                sink.event(StreamEvent::TextStart { content_index });
                content_index
            }
        };
        if let Some(Content::Text(block)) = self.message.content.get_mut(content_index) {
            block.text.push_str(&delta);
        }
        sink.event(StreamEvent::TextDelta {
            content_index,
            delta,
        });
    }

    fn reasoning(&mut self, field: &str, delta: String, sink: &mut impl EventSink) {
        let content_index = self.thinking_block(sink);
        let field = match field {
            "reasoning" if self.quirks.renames_reasoning => "reasoning_content",
            field => field,
        };
        if let Some(Content::Thinking(block)) = self.message.content.get_mut(content_index) {
            block.thinking.push_str(&delta);
            block
                .thinking_signature
                .get_or_insert_with(|| field.to_owned());
        }
        sink.event(StreamEvent::ThinkingDelta {
            content_index,
            delta,
        });
    }

    fn thinking_block(&mut self, sink: &mut impl EventSink) -> usize {
        if let Some(block) = self.thinking {
            return block;
        }
        let content_index = self.open(Content::Thinking(Thinking::default()));
        self.thinking = Some(content_index);
        sink.event(StreamEvent::ThinkingStart { content_index });
        content_index
    }

    /// Details are not shown; together they become the signature.
    fn detail(&mut self, detail: Map<String, Value>, sink: &mut impl EventSink) {
        let Some(field) = detail_field(&detail) else {
            return;
        };
        self.thinking_block(sink);
        let last = self
            .details
            .last_mut()
            .filter(|last| field != "data" && last.get("type") == detail.get("type"));
        match last {
            Some(last) => merge_detail(last, detail, field),
            None => self.details.push(detail),
        }
    }

    fn fragment(&mut self, fragment: Fragment<'_>, sink: &mut impl EventSink) {
        let (custom_name, input) = match fragment.custom {
            Some(custom) => (custom.name, custom.input),
            None => (None, None),
        };
        let (name, arguments) = match fragment.function {
            Some(function) => (function.name, function.arguments),
            None => (None, None),
        };
        let id = text_of(fragment.id.as_ref()).unwrap_or_default();
        let name = text_of(custom_name.as_ref().or(name.as_ref())).unwrap_or_default();
        let slot = match self.find_call(fragment.index, id, name) {
            Some(slot) => slot,
            None => self.open_call(fragment.index, id, name, input.is_some(), sink),
        };
        let Some(open) = self.calls.get_mut(slot) else {
            return;
        };
        if let Some(Content::ToolCall(call)) = self.message.content.get_mut(open.block) {
            fill(&mut call.id, id);
            fill(&mut call.name, name);
        }
        let piece = input.or(arguments).map(|text| text.0).unwrap_or_default();
        let delta = open.add(&piece);
        sink.event(StreamEvent::ToolcallDelta {
            content_index: open.block,
            delta,
        });
    }

    fn find_call(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let slot = match index {
            Some(_) => self.calls.iter().rposition(|open| open.index == index)?,
            None if !id.is_empty() => self
                .calls
                .iter()
                .rposition(|open| self.call(open).is_some_and(|call| call.id == id))?,
            // Neither: the next piece of the last call, unless it names a tool.
            None if name.is_empty() => return self.calls.len().checked_sub(1),
            None => return None,
        };
        // Services exist that give every call of an answer the index 0. Another id with another
        // name after complete arguments is another call; anything added there would break both.
        let open = self.calls.get(slot)?;
        let other_id = self
            .call(open)
            .is_some_and(|call| !call.id.is_empty() && !id.is_empty() && call.id != id);
        let is_complete = || serde_json::from_str::<Map<String, Value>>(&open.raw).is_ok();
        (!(other_id && !name.is_empty() && is_complete())).then_some(slot)
    }

    fn call(&self, open: &OpenCall) -> Option<&ToolCall> {
        self.message.content.get(open.block)?.as_tool_call()
    }

    fn open_call(
        &mut self,
        index: Option<u64>,
        id: &str,
        name: &str,
        is_custom: bool,
        sink: &mut impl EventSink,
    ) -> usize {
        let content_index = self.open(Content::ToolCall(ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            ..ToolCall::default()
        }));
        sink.event(StreamEvent::ToolcallStart {
            content_index,
            id: id.to_owned(),
            tool_name: name.to_owned(),
        });
        let property = self.grammars.get(name).cloned();
        self.calls.push(OpenCall {
            block: content_index,
            index,
            raw: String::new(),
            property: is_custom.then(|| property.unwrap_or_else(|| "input".to_owned())),
        });
        self.calls.len() - 1
    }

    fn open(&mut self, block: Content) -> usize {
        self.message.content.push(block);
        self.message.content.len() - 1
    }

    fn close(&mut self, sink: &mut impl EventSink) {
        let mut calls = self.calls.iter();
        let details = signature(&self.details);
        for (content_index, block) in self.message.content.iter_mut().enumerate() {
            match block {
                Content::Text(block) => sink.event(StreamEvent::TextEnd {
                    content_index,
                    content: block.text.clone(),
                }),
                Content::Thinking(block) => {
                    if details.is_some() {
                        block.thinking_signature.clone_from(&details);
                    }
                    sink.event(StreamEvent::ThinkingEnd {
                        content_index,
                        content: block.thinking.clone(),
                    });
                }
                Content::ToolCall(call) => {
                    if let Some(open) = calls.next() {
                        if call.id.is_empty() {
                            call.id = made_up_id(self.message.response_id.as_deref(), open);
                        }
                        open.close(call, sink);
                    }
                }
                Content::Image(_) | Content::Other(_) => {}
            }
        }
    }
}

impl OpenCall {
    /// Takes a piece and answers it as a piece of JSON.
    fn add(&mut self, piece: &str) -> String {
        let Some(property) = &self.property else {
            self.raw.push_str(piece);
            return piece.to_owned();
        };
        let opening = match self.raw.is_empty() {
            true => format!("{{{}:\"", Value::from(property.as_str())),
            false => String::new(),
        };
        let delta = opening + &escaped(piece);
        self.raw.push_str(&delta);
        delta
    }

    fn close(&self, call: &mut ToolCall, sink: &mut impl EventSink) {
        let mut raw = self.raw.clone();
        if self.property.is_some() && !raw.is_empty() {
            raw.push_str("\"}");
            sink.event(StreamEvent::ToolcallDelta {
                content_index: self.block,
                delta: "\"}".to_owned(),
            });
        }
        match parse_arguments(&raw) {
            Ok(arguments) => call.arguments = arguments,
            Err(error) => call.arguments_error = Some(error),
        }
        sink.event(StreamEvent::ToolcallEnd {
            content_index: self.block,
            tool_call: Box::new(call.clone()),
        });
    }
}

/// A service may send no id at all, but a result must name its call.
fn made_up_id(response: Option<&str>, open: &OpenCall) -> String {
    let seed = format!("{response:?} {} {}", open.block, open.raw);
    format!("call_{}", short_hash(&seed))
}

/// The inside of a JSON string.
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn text_of<'a>(text: Option<&'a chunk::Text<'_>>) -> Option<&'a str> {
    text.map(|text| &*text.0).filter(|text| !text.is_empty())
}

fn fill(place: &mut String, text: &str) {
    if place.is_empty() {
        text.clone_into(place);
    }
}

/// Where the content of a detail is; `None` for one that is not of a known shape.
fn detail_field(detail: &Map<String, Value>) -> Option<&'static str> {
    let is_text = |name: &str| detail.get(name).is_some_and(Value::is_string);
    match detail.get("type")?.as_str()? {
        "reasoning.summary" if is_text("summary") => Some("summary"),
        "reasoning.text" if is_text("text") || is_text("signature") => Some("text"),
        "reasoning.encrypted" if is_text("data") => Some("data"),
        _ => None,
    }
}

/// Appends the text; of everything else the first value stays.
fn merge_detail(into: &mut Map<String, Value>, detail: Map<String, Value>, field: &str) {
    for (name, value) in detail {
        match (into.get_mut(&name), value) {
            (Some(Value::String(known)), Value::String(more)) if name == field => {
                known.push_str(&more);
            }
            (Some(known), value) if known.is_null() => *known = value,
            (Some(_), _) => {}
            (None, value) => drop(into.insert(name, value)),
        }
    }
}

fn signature(details: &[Map<String, Value>]) -> Option<String> {
    if details.is_empty() {
        return None;
    }
    serde_json::to_string(details).ok()
}

/// The failure that an event of the name `error` tells.
fn error_event(data: &str) -> String {
    match serde_json::from_str::<Value>(data) {
        Ok(Value::Object(event)) => match event.get("error") {
            Some(error) if !error.is_null() => failure::of_error(error),
            _ => failure::of_error(&Value::Object(event)),
        },
        _ => failure::of_error(&Value::from(data)),
    }
}

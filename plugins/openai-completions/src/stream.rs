//! Events of the service → events of an answer, and at the end the message. No I/O: the data of
//! each server-sent event goes in, [`StreamEvent`]s go to a sink.
//!
//! There is one text block and one thinking block; calls are told apart by index or id. All blocks
//! stay open until the end and are closed together, in order (`providers.md` §2.2, §3.2).

use pliant_sdk::history::short_hash;
use pliant_sdk::message::{AssistantMessage, StopReason, Thinking};
use pliant_sdk::stream::EventSink;
use pliant_sdk::wire::{Draft, Reader, Step};
use pliant_sdk::{Model, StreamEvent};
use serde_json::{Map, Value};

use crate::chunk::{self, Chunk, Delta, Fragment};
use crate::failure;
use crate::messages::REASONING_FIELDS;
use crate::quirks::Quirks;
use crate::tools::Grammars;
use crate::usage;

/// An answer being read.
#[derive(Debug)]
pub(crate) struct Answer {
    model: Model,
    quirks: Quirks,
    grammars: Grammars,
    draft: Draft,
    text: Option<usize>,
    thinking: Option<usize>,
    calls: Vec<OpenCall>,
    details: Vec<Map<String, Value>>,
    finish: Option<StopReason>,
    done: bool,
}

/// A call whose arguments are still arriving.
#[derive(Debug)]
struct OpenCall {
    block: usize,
    index: Option<u64>,
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
            draft: Draft::new(message),
            text: None,
            thinking: None,
            calls: Vec::new(),
            details: Vec::new(),
            finish: None,
            done: false,
        }
    }
}

impl Reader for Answer {
    fn take(
        &mut self,
        event: Option<&str>,
        data: &str,
        sink: &mut Vec<StreamEvent>,
    ) -> Result<Step, String> {
        if self.done || data.trim_ascii() == "[DONE]" {
            self.done = true;
            return Ok(Step::Done);
        }
        if event == Some("error") {
            return Err(error_event(data));
        }
        match chunk::read(data, |chunk| self.chunk(chunk, sink)) {
            Ok(Some(result)) => result.map(|()| Step::Continue),
            Ok(None) => Ok(Step::Continue),
            Err(chunk::Malformed) => Err(failure::MALFORMED.to_owned()),
        }
    }

    fn finish(mut self, sink: &mut Vec<StreamEvent>) -> AssistantMessage {
        self.close(sink);
        let has_calls = !self.calls.is_empty();
        let reason = match self.finish {
            Some(reason) => reason,
            None if self.quirks.finish_reason => {
                self.draft.message_mut().error_message = Some(failure::UNFINISHED.to_owned());
                StopReason::Error
            }
            None if has_calls => StopReason::ToolUse,
            None => StopReason::Stop,
        };
        self.draft.end(reason)
    }

    fn fail(self, text: String) -> AssistantMessage {
        self.draft.fail(text)
    }

    fn told(body: &Value) -> Option<String> {
        failure::told(body)
    }
}

impl Answer {
    fn chunk(&mut self, chunk: Chunk<'_>, sink: &mut impl EventSink) -> Result<(), String> {
        if let Some(error) = &chunk.error {
            return Err(failure::of_error(error));
        }
        let (id, model) = (text_of(chunk.id.as_ref()), text_of(chunk.model.as_ref()));
        self.draft.identify(id, model, sink);
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

    fn count(&mut self, raw: &Value, sink: &mut impl EventSink) {
        if raw.is_object() {
            let usage = usage::read(raw, &self.model, self.quirks.reports_cost);
            self.draft.count(usage, sink);
        }
    }

    fn finished(&mut self, reason: &str) {
        // Some services send an empty one with every chunk.
        if reason.is_empty() {
            return;
        }
        let message = self.draft.message_mut();
        message.raw_stop_reason = Some(reason.to_owned());
        message.error_message = None;
        self.finish = Some(match reason {
            "stop" | "end" => StopReason::Stop,
            "length" => StopReason::Length,
            "tool_calls" | "function_call" => StopReason::ToolUse,
            other => {
                message.error_message = Some(format!("Provider finish_reason: {other}"));
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
        let block = match self.text {
            Some(block) => block,
            None => self.draft.open_text(sink),
        };
        self.text = Some(block);
        self.draft.add_text(block, delta, sink);
    }

    fn reasoning(&mut self, field: &str, delta: String, sink: &mut impl EventSink) {
        let block = self.thinking_block(sink);
        let field = match field {
            "reasoning" if self.quirks.renames_reasoning => "reasoning_content",
            field => field,
        };
        if let Some(thinking) = self.draft.thinking_mut(block) {
            let signature = &mut thinking.thinking_signature;
            signature.get_or_insert_with(|| field.to_owned());
        }
        self.draft.add_thinking(block, delta, sink);
    }

    fn thinking_block(&mut self, sink: &mut impl EventSink) -> usize {
        let block = match self.thinking {
            Some(block) => block,
            None => self.draft.open_thinking(Thinking::default(), sink),
        };
        self.thinking = Some(block);
        block
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
        let Some(open) = self.calls.get(slot) else {
            return;
        };
        if let Some(call) = self.draft.call_mut(open.block) {
            fill(&mut call.id, id);
            fill(&mut call.name, name);
        }
        let piece = input.or(arguments).map(|text| text.0).unwrap_or_default();
        let delta = open.piece(&piece, self.draft.arguments(open.block));
        self.draft.add_arguments(open.block, delta, sink);
    }

    fn find_call(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let slot = match index {
            Some(_) => self.calls.iter().rposition(|open| open.index == index)?,
            None if !id.is_empty() => self.calls.iter().rposition(|open| {
                self.draft
                    .call(open.block)
                    .is_some_and(|call| call.id == id)
            })?,
            // Neither: the next piece of the last call, unless it names a tool.
            None if name.is_empty() => return self.calls.len().checked_sub(1),
            None => return None,
        };
        // Services exist that give every call of an answer the index 0. Another id with another
        // name after complete arguments is another call; anything added there would break both.
        let open = self.calls.get(slot)?;
        let known = self.draft.call(open.block);
        let other_id =
            known.is_some_and(|call| !call.id.is_empty() && !id.is_empty() && call.id != id);
        let arguments = self.draft.arguments(open.block);
        let is_complete = || serde_json::from_str::<Map<String, Value>>(arguments).is_ok();
        (!(other_id && !name.is_empty() && is_complete())).then_some(slot)
    }

    fn open_call(
        &mut self,
        index: Option<u64>,
        id: &str,
        name: &str,
        is_custom: bool,
        sink: &mut impl EventSink,
    ) -> usize {
        let property = self.grammars.get(name).cloned();
        self.calls.push(OpenCall {
            block: self.draft.open_call(id, name, sink),
            index,
            property: is_custom.then(|| property.unwrap_or_else(|| "input".to_owned())),
        });
        self.calls.len() - 1
    }

    /// All blocks are closed together, in order.
    fn close(&mut self, sink: &mut impl EventSink) {
        let details = signature(&self.details);
        if let Some(block) = self.thinking.filter(|_| details.is_some())
            && let Some(thinking) = self.draft.thinking_mut(block)
        {
            thinking.thinking_signature = details;
        }
        let mut calls = self.calls.iter().peekable();
        for block in 0..self.draft.message().content.len() {
            if let Some(open) = calls.next_if(|open| open.block == block) {
                open.complete(&mut self.draft, sink);
            }
            self.draft.close(block, sink);
        }
    }
}

impl OpenCall {
    /// What came, as a piece of JSON behind the arguments so far.
    fn piece(&self, piece: &str, arguments: &str) -> String {
        match &self.property {
            None => piece.to_owned(),
            Some(property) if arguments.is_empty() => {
                format!("{{{}:\"{}", Value::from(property.as_str()), escaped(piece))
            }
            Some(_) => escaped(piece),
        }
    }

    /// Adds what a call lacks that nothing more is added to.
    fn complete(&self, draft: &mut Draft, sink: &mut impl EventSink) {
        let response = draft.message().response_id.as_deref();
        let arguments = draft.arguments(self.block);
        let made_up = made_up_id(response, self.block, arguments);
        if self.property.is_some() && !arguments.is_empty() {
            draft.add_arguments(self.block, "\"}".to_owned(), sink);
        }
        if let Some(call) = draft.call_mut(self.block) {
            fill(&mut call.id, &made_up);
        }
    }
}

/// A service may send no id at all, but a result must name its call.
fn made_up_id(response: Option<&str>, block: usize, arguments: &str) -> String {
    let seed = format!("{response:?} {block} {arguments}");
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

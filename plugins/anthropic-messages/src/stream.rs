//! Events of the service → events of an answer, and at the end the message. No I/O: the data of
//! each server-sent event goes in, events go to a sink.
//!
//! The service numbers its blocks; each opens, grows and closes on its own (`providers.md` §3.1).

use pliant_sdk::history::short_hash;
use pliant_sdk::message::{AssistantMessage, StopReason, Thinking};
use pliant_sdk::stream::EventSink;
use pliant_sdk::wire::{Draft, Reader, Step};
use pliant_sdk::{Model, StreamEvent};
use serde_json::{Map, Value, json};

use crate::event::{self, Delta, Event};
use crate::failure;
use crate::quirks::Quirks;
use crate::usage::Counts;

/// What stands for reasoning that the service keeps to itself.
const REDACTED: &str = "[Reasoning redacted]";

/// The events that carry an answer. Others are not even read.
const EVENTS: [&str; 6] = [
    "message_start",
    "message_delta",
    "message_stop",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
];

/// An answer being read.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Whose rates count: the model asked, or the one that took over.
    model: Model,
    quirks: Quirks,
    draft: Draft,
    open: Vec<OpenBlock>,
    counts: Counts,
    stop: Option<StopReason>,
    started: bool,
    ended: bool,
    transformations: Vec<Value>,
}

#[derive(Debug)]
struct OpenBlock {
    index: u64,
    block: usize,
    /// Arguments that came with the call itself.
    input: Map<String, Value>,
}

impl Answer {
    /// Starts with an empty message; `start` is the caller's to send.
    pub(crate) fn new(model: Model, message: AssistantMessage) -> Self {
        Self {
            quirks: Quirks::of(&model),
            model,
            draft: Draft::new(message),
            open: Vec::new(),
            counts: Counts::default(),
            stop: None,
            started: false,
            ended: false,
            transformations: Vec::new(),
        }
    }
}

impl Reader for Answer {
    fn take(
        &mut self,
        name: Option<&str>,
        data: &str,
        sink: &mut Vec<StreamEvent>,
    ) -> Result<Step, String> {
        if self.ended {
            return Ok(Step::Done);
        }
        match name {
            Some("error") => return Err(data.to_owned()),
            Some(name) if !EVENTS.contains(&name) => return Ok(Step::Continue),
            _ => {}
        }
        let read = event::read(data, |event| self.event(name, event, data, sink));
        match (read, name) {
            (Ok(result), _) => result.unwrap_or(Ok(()))?,
            (Err(error), Some(name)) => {
                return Err(failure::malformed(name, &error.to_string(), data));
            }
            // Without a name it need not be an event of this protocol.
            (Err(_), None) => {}
        }
        Ok(match self.ended {
            true => Step::Done,
            false => Step::Continue,
        })
    }

    fn finish(mut self, sink: &mut Vec<StreamEvent>) -> AssistantMessage {
        if self.started && !self.ended {
            return self.fail(failure::UNFINISHED.to_owned());
        }
        let Some(stop) = self.stop else {
            return self.fail(failure::WITHOUT_REASON.to_owned());
        };
        if stop == StopReason::Error {
            let told = self.draft.message_mut().error_message.take();
            return self.fail(told.unwrap_or_default());
        }
        // The service closes its blocks itself; the call of one that does not still has to run.
        for open in std::mem::take(&mut self.open) {
            self.close(open, sink);
        }
        if !self.transformations.is_empty() {
            let message = self.draft.message_mut();
            let diagnostic = json!({
                "type": "anthropic_input_transformations",
                "timestamp": message.timestamp,
                "details": {"transformations": self.transformations},
            });
            message.diagnostics.get_or_insert_default().push(diagnostic);
        }
        self.draft.end(stop)
    }

    fn fail(self, text: String) -> AssistantMessage {
        self.draft.fail(text)
    }

    fn told(body: &Value) -> Option<String> {
        failure::told(body)
    }
}

impl Answer {
    fn event(
        &mut self,
        name: Option<&str>,
        event: Event<'_>,
        data: &str,
        sink: &mut impl EventSink,
    ) -> Result<(), String> {
        let kind = event.kind.as_ref().map(|kind| &*kind.0).or(name);
        match kind.unwrap_or_default() {
            "message_start" => self.start(event, sink),
            "content_block_start" => return self.open_block(event, sink),
            "content_block_delta" => self.delta(event, sink),
            "content_block_stop" => {
                let index = event.index.unwrap_or_default();
                if let Some(at) = self.open.iter().rposition(|open| open.index == index) {
                    let open = self.open.remove(at);
                    self.close(open, sink);
                }
            }
            "message_delta" => return self.message_delta(event, sink),
            "message_stop" => self.ended = true,
            "error" => return Err(data.to_owned()),
            _ => {}
        }
        Ok(())
    }

    fn start(&mut self, event: Event<'_>, sink: &mut impl EventSink) {
        self.started = true;
        let Some(message) = event.message else {
            return;
        };
        let word = |name| message.get(name).and_then(Value::as_str);
        let answering = word("model");
        self.draft.identify(word("id"), answering, sink);
        let fallback = self.quirks.fallbacks.iter().find(|fallback| {
            answering == Some(&fallback.model) && answering != Some(&self.model.id)
        });
        if let Some(cost) = fallback.and_then(|fallback| fallback.cost.clone()) {
            self.model.cost = cost;
        }
        self.note_transformations(message.get("input_transformations"));
        self.count(message.get("usage").unwrap_or(&Value::Null), sink);
    }

    fn open_block(&mut self, event: Event<'_>, sink: &mut impl EventSink) -> Result<(), String> {
        let content = event.content_block.unwrap_or_default();
        let word = |name| {
            content
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let index = event.index.unwrap_or_default();
        let block = match word("type") {
            "text" => {
                let block = self.draft.open_text(sink);
                if !word("text").is_empty() {
                    self.draft.add_text(block, word("text").to_owned(), sink);
                }
                block
            }
            "thinking" => {
                let thinking = Thinking {
                    thinking_signature: Some(word("signature").to_owned()),
                    ..Thinking::default()
                };
                let block = self.draft.open_thinking(thinking, sink);
                if !word("thinking").is_empty() {
                    self.draft
                        .add_thinking(block, word("thinking").to_owned(), sink);
                }
                block
            }
            "redacted_thinking" => {
                let thinking = Thinking {
                    thinking: REDACTED.to_owned(),
                    thinking_signature: Some(word("data").to_owned()),
                    redacted: Some(true),
                    ..Thinking::default()
                };
                self.draft.open_thinking(thinking, sink)
            }
            "tool_use" => {
                let id = match word("id") {
                    "" => self.made_up_id(index),
                    id => id.to_owned(),
                };
                self.draft.open_call(&id, word("name"), sink)
            }
            "fallback" if !self.draft.message().content.is_empty() => {
                return Err(failure::FALLBACK.to_owned());
            }
            _ => return Ok(()),
        };
        let input = content.get("input").and_then(Value::as_object);
        self.open.push(OpenBlock {
            index,
            block,
            input: input.cloned().unwrap_or_default(),
        });
        Ok(())
    }

    /// A service may send no id at all, but a result must name its call.
    fn made_up_id(&self, index: u64) -> String {
        let message = self.draft.message();
        let seed = format!("{:?} {index}", message.response_id);
        format!("toolu_{}", short_hash(&seed))
    }

    fn delta(&mut self, event: Event<'_>, sink: &mut impl EventSink) {
        let index = event.index.unwrap_or_default();
        let open = self.open.iter().rfind(|open| open.index == index);
        let (Some(open), Some(delta)) = (open, event.delta) else {
            return;
        };
        let Delta {
            kind,
            text,
            thinking,
            partial_json,
            signature,
            ..
        } = delta;
        let owned = |text: Option<event::Text<'_>>| text.unwrap_or_default().0.into_owned();
        match &*kind.unwrap_or_default().0 {
            "text_delta" => self.draft.add_text(open.block, owned(text), sink),
            "thinking_delta" => self.draft.add_thinking(open.block, owned(thinking), sink),
            "input_json_delta" => {
                self.draft
                    .add_arguments(open.block, owned(partial_json), sink);
            }
            "signature_delta" => {
                if let Some(thinking) = self.draft.thinking_mut(open.block) {
                    let known = thinking.thinking_signature.get_or_insert_default();
                    known.push_str(&owned(signature));
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, open: OpenBlock, sink: &mut impl EventSink) {
        let OpenBlock { block, input, .. } = open;
        if !input.is_empty() && self.draft.arguments(block).is_empty() {
            let whole = Value::Object(input).to_string();
            self.draft.add_arguments(block, whole, sink);
        }
        self.draft.close(block, sink);
    }

    fn message_delta(&mut self, event: Event<'_>, sink: &mut impl EventSink) -> Result<(), String> {
        self.note_transformations(event.input_transformations.as_ref());
        self.count(event.usage.as_ref().unwrap_or(&Value::Null), sink);
        let delta = event.delta.unwrap_or_default();
        let reason = delta.stop_reason.unwrap_or_default().0;
        if reason.is_empty() {
            return Ok(());
        }
        let message = self.draft.message_mut();
        message.raw_stop_reason = Some(reason.clone().into_owned());
        let (stop, told) = match &*reason {
            "end_turn" | "pause_turn" | "stop_sequence" => (StopReason::Stop, None),
            "max_tokens" => (StopReason::Length, None),
            "tool_use" => (StopReason::ToolUse, None),
            "refusal" => {
                let details = delta.stop_details.unwrap_or_default();
                let told = details["explanation"]
                    .as_str()
                    .filter(|text| !text.is_empty());
                (
                    StopReason::Error,
                    Some(told.unwrap_or(failure::REFUSED).to_owned()),
                )
            }
            "sensitive" => {
                let told = "Provider stopped with: sensitive";
                (StopReason::Error, Some(told.to_owned()))
            }
            other => return Err(format!("Unhandled stop reason: {other}")),
        };
        message.error_message = told;
        self.stop = Some(stop);
        Ok(())
    }

    fn count(&mut self, raw: &Value, sink: &mut impl EventSink) {
        if self.started || raw.is_object() {
            self.counts.take(raw, self.quirks.reports_cost);
            self.draft.count(self.counts.priced(&self.model), sink);
        }
    }

    /// What the service did to the input before the model saw it; the last report counts.
    fn note_transformations(&mut self, reported: Option<&Value>) {
        if let Some(Value::Array(reported)) = reported {
            let named = |one: &Value| {
                let fields = ["type", "path", "reason"].map(|name| (name, one.get(name)));
                let fields = fields.into_iter().filter_map(|(name, value)| {
                    let value = value.filter(|value| !value.is_null())?;
                    Some((name.to_owned(), value.clone()))
                });
                Value::Object(fields.collect())
            };
            self.transformations = reported.iter().map(named).collect();
        }
    }
}

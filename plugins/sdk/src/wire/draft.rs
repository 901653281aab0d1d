//! The message of an answer while it comes: what is added to a block is told as an event, and the
//! arguments of calls are kept as text until the call is complete.

use crate::message::{AssistantMessage, Content, StopReason, Text, Thinking, ToolCall, Usage};
use crate::partial_json::{PartialObject, parse_arguments};
use crate::stream::{EventSink, StreamEvent};

/// An answer that is being written. Blocks are named by their place in it; what is added to a block
/// of another kind is ignored.
#[derive(Debug)]
pub struct Draft {
    message: AssistantMessage,
    /// By block: the arguments of a call that is open.
    arguments: Vec<Option<String>>,
}

impl Draft {
    /// Begins with a message without content.
    #[must_use]
    pub fn new(message: AssistantMessage) -> Self {
        Self {
            message,
            arguments: Vec::new(),
        }
    }

    /// The message so far. Arguments of open calls are not in it.
    #[must_use]
    pub fn message(&self) -> &AssistantMessage {
        &self.message
    }

    /// The same, to set what is told only at the end: signatures, ids, the stop reason.
    pub fn message_mut(&mut self) -> &mut AssistantMessage {
        &mut self.message
    }

    /// Opens a text block and answers its place.
    pub fn open_text(&mut self, sink: &mut impl EventSink) -> usize {
        let content_index = self.open(Content::Text(Text::default()), None);
        sink.event(StreamEvent::TextStart { content_index });
        content_index
    }

    /// Opens a thinking block, perhaps with content that is never told piece by piece.
    pub fn open_thinking(&mut self, thinking: Thinking, sink: &mut impl EventSink) -> usize {
        let content_index = self.open(Content::Thinking(thinking), None);
        sink.event(StreamEvent::ThinkingStart { content_index });
        content_index
    }

    /// Opens a call. Id or name may come later.
    pub fn open_call(&mut self, id: &str, name: &str, sink: &mut impl EventSink) -> usize {
        let (id, tool_name) = (id.to_owned(), name.to_owned());
        let call = ToolCall {
            id: id.clone(),
            name: tool_name.clone(),
            ..ToolCall::default()
        };
        let content_index = self.open(Content::ToolCall(call), Some(String::new()));
        sink.event(StreamEvent::ToolcallStart {
            content_index,
            id,
            tool_name,
        });
        content_index
    }

    /// Adds text.
    pub fn add_text(&mut self, block: usize, delta: String, sink: &mut impl EventSink) {
        if let Some(Content::Text(text)) = self.message.content.get_mut(block) {
            text.text.push_str(&delta);
            sink.event(StreamEvent::TextDelta {
                content_index: block,
                delta,
            });
        }
    }

    /// Adds reasoning.
    pub fn add_thinking(&mut self, block: usize, delta: String, sink: &mut impl EventSink) {
        if let Some(thinking) = self.thinking_mut(block) {
            thinking.thinking.push_str(&delta);
            sink.event(StreamEvent::ThinkingDelta {
                content_index: block,
                delta,
            });
        }
    }

    /// Adds to the arguments of an open call.
    pub fn add_arguments(&mut self, block: usize, delta: String, sink: &mut impl EventSink) {
        if let Some(Some(arguments)) = self.arguments.get_mut(block) {
            arguments.push_str(&delta);
            sink.event(StreamEvent::ToolcallDelta {
                content_index: block,
                delta,
            });
        }
    }

    /// The arguments of an open call as they came.
    #[must_use]
    pub fn arguments(&self, block: usize) -> &str {
        let arguments = self.arguments.get(block).and_then(Option::as_deref);
        arguments.unwrap_or_default()
    }

    /// A thinking block.
    pub fn thinking_mut(&mut self, block: usize) -> Option<&mut Thinking> {
        match self.message.content.get_mut(block)? {
            Content::Thinking(thinking) => Some(thinking),
            _ => None,
        }
    }

    /// A call.
    #[must_use]
    pub fn call(&self, block: usize) -> Option<&ToolCall> {
        self.message.content.get(block)?.as_tool_call()
    }

    /// A call, to fill in id or name.
    pub fn call_mut(&mut self, block: usize) -> Option<&mut ToolCall> {
        match self.message.content.get_mut(block)? {
            Content::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    /// Closes a block. The arguments of a call are read for good; what is wrong with them stands in
    /// the call.
    pub fn close(&mut self, block: usize, sink: &mut impl EventSink) {
        let content_index = block;
        match self.message.content.get_mut(block) {
            Some(Content::Text(text)) => sink.event(StreamEvent::TextEnd {
                content_index,
                content: text.text.clone(),
            }),
            Some(Content::Thinking(thinking)) => sink.event(StreamEvent::ThinkingEnd {
                content_index,
                content: thinking.thinking.clone(),
            }),
            Some(Content::ToolCall(call)) => {
                let Some(arguments) = self.arguments.get_mut(block).and_then(Option::take) else {
                    return;
                };
                match parse_arguments(&arguments) {
                    Ok(arguments) => call.arguments = arguments,
                    Err(error) => call.arguments_error = Some(error),
                }
                sink.event(StreamEvent::ToolcallEnd {
                    content_index,
                    tool_call: Box::new(call.clone()),
                });
            }
            _ => {}
        }
    }

    /// Notes the service's id of the answer and the model that gives it, unless it is the one asked.
    /// The first of each counts.
    pub fn identify(&mut self, id: Option<&str>, model: Option<&str>, sink: &mut impl EventSink) {
        let known = &mut self.message;
        let is_new = |text: &&str| !text.is_empty();
        let id = id
            .filter(is_new)
            .filter(|_| known.response_id.is_none())
            .map(str::to_owned);
        let model = model
            .filter(is_new)
            .filter(|model| known.response_model.is_none() && *model != known.model)
            .map(str::to_owned);
        if id.is_none() && model.is_none() {
            return;
        }
        if id.is_some() {
            known.response_id.clone_from(&id);
        }
        if model.is_some() {
            known.response_model.clone_from(&model);
        }
        sink.event(StreamEvent::Meta {
            usage: None,
            response_id: id,
            response_model: model,
        });
    }

    /// Notes the tokens so far.
    pub fn count(&mut self, usage: Usage, sink: &mut impl EventSink) {
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

    /// The message with its stop reason.
    #[must_use]
    pub fn end(mut self, reason: StopReason) -> AssistantMessage {
        self.message.stop_reason = reason;
        self.message
    }

    /// The answer broke: what arrived stays, open calls have the arguments that can be read.
    #[must_use]
    pub fn fail(mut self, text: String) -> AssistantMessage {
        for (block, arguments) in self.message.content.iter_mut().zip(self.arguments) {
            if let (Content::ToolCall(call), Some(arguments)) = (block, arguments) {
                let mut partial = PartialObject::new();
                partial.push(&arguments);
                call.arguments = partial.into_map();
            }
        }
        self.message.stop_reason = StopReason::Error;
        self.message.error_message = Some(text);
        self.message
    }

    fn open(&mut self, block: Content, arguments: Option<String>) -> usize {
        self.message.content.push(block);
        self.arguments.push(arguments);
        self.message.content.len() - 1
    }
}

//! The unified assistant event stream (`providers.md` §2.2) and the two ends of it: an
//! [`Assembler`] keeps the message so far on the reading side, a [`MessageWriter`] makes the events
//! on the writing side.
//!
//! Events carry no cumulative message: a long answer must not be cloned once per delta. The final
//! message is not an event; it is the value the stream call returns, so there is exactly one.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::message::{AssistantMessage, Content, StopReason, Text, Thinking, ToolCall, Usage};
use crate::partial_json::PartialObject;

/// One step of an answer. Order: `start` before all others; blocks are only appended and
/// `content_index` is the position of the block in the message; blocks may be open side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum StreamEvent {
    /// The service began to answer.
    Start,
    /// Facts known before the end, so that an aborted answer keeps them.
    Meta {
        /// Tokens so far.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Box<Usage>>,
        /// The service's id of the response.
        #[serde(skip_serializing_if = "Option::is_none")]
        response_id: Option<String>,
        /// The model that answers, if it is not the one asked.
        #[serde(skip_serializing_if = "Option::is_none")]
        response_model: Option<String>,
    },
    /// A text block opens.
    TextStart {
        /// Position of the block.
        content_index: usize,
    },
    /// Text.
    TextDelta {
        /// Position of the block.
        content_index: usize,
        /// The new piece.
        delta: String,
    },
    /// A text block is complete.
    TextEnd {
        /// Position of the block.
        content_index: usize,
        /// The whole text; authoritative.
        content: String,
    },
    /// A thinking block opens.
    ThinkingStart {
        /// Position of the block.
        content_index: usize,
    },
    /// Reasoning.
    ThinkingDelta {
        /// Position of the block.
        content_index: usize,
        /// The new piece.
        delta: String,
    },
    /// A thinking block is complete.
    ThinkingEnd {
        /// Position of the block.
        content_index: usize,
        /// The whole reasoning; authoritative.
        content: String,
    },
    /// A tool call opens. Id or name may still be empty.
    ToolcallStart {
        /// Position of the block.
        content_index: usize,
        /// Id of the call.
        id: String,
        /// Name of the tool.
        tool_name: String,
    },
    /// A piece of the arguments' JSON text, possibly empty.
    ToolcallDelta {
        /// Position of the block.
        content_index: usize,
        /// The new piece.
        delta: String,
    },
    /// A tool call is complete.
    ToolcallEnd {
        /// Position of the block.
        content_index: usize,
        /// The call; authoritative.
        tool_call: Box<ToolCall>,
    },
}

/// The value of `type`. One name per variant of [`StreamEvent`].
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Start,
    Meta,
    TextStart,
    TextDelta,
    TextEnd,
    ThinkingStart,
    ThinkingDelta,
    ThinkingEnd,
    ToolcallStart,
    ToolcallDelta,
    ToolcallEnd,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    usage: Option<Box<Usage>>,
    response_id: Option<String>,
    response_model: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block {
    content_index: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Piece {
    content_index: usize,
    delta: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Whole {
    content_index: usize,
    content: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenCall {
    content_index: usize,
    #[serde(default)]
    id: String,
    #[serde(default)]
    tool_name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WholeCall {
    content_index: usize,
    tool_call: Box<ToolCall>,
}

impl Kind {
    /// Reads the other fields. Those of other variants are ignored, whatever they hold.
    fn read<'de, D: Deserializer<'de>>(self, fields: D) -> Result<StreamEvent, D::Error> {
        Ok(match self {
            Self::Start => {
                IgnoredAny::deserialize(fields)?;
                StreamEvent::Start
            }
            Self::Meta => {
                let Meta {
                    usage,
                    response_id,
                    response_model,
                } = Meta::deserialize(fields)?;
                StreamEvent::Meta {
                    usage,
                    response_id,
                    response_model,
                }
            }
            Self::TextStart => {
                let Block { content_index } = Block::deserialize(fields)?;
                StreamEvent::TextStart { content_index }
            }
            Self::TextDelta => {
                let Piece {
                    content_index,
                    delta,
                } = Piece::deserialize(fields)?;
                StreamEvent::TextDelta {
                    content_index,
                    delta,
                }
            }
            Self::TextEnd => {
                let Whole {
                    content_index,
                    content,
                } = Whole::deserialize(fields)?;
                StreamEvent::TextEnd {
                    content_index,
                    content,
                }
            }
            Self::ThinkingStart => {
                let Block { content_index } = Block::deserialize(fields)?;
                StreamEvent::ThinkingStart { content_index }
            }
            Self::ThinkingDelta => {
                let Piece {
                    content_index,
                    delta,
                } = Piece::deserialize(fields)?;
                StreamEvent::ThinkingDelta {
                    content_index,
                    delta,
                }
            }
            Self::ThinkingEnd => {
                let Whole {
                    content_index,
                    content,
                } = Whole::deserialize(fields)?;
                StreamEvent::ThinkingEnd {
                    content_index,
                    content,
                }
            }
            Self::ToolcallStart => {
                let OpenCall {
                    content_index,
                    id,
                    tool_name,
                } = OpenCall::deserialize(fields)?;
                StreamEvent::ToolcallStart {
                    content_index,
                    id,
                    tool_name,
                }
            }
            Self::ToolcallDelta => {
                let Piece {
                    content_index,
                    delta,
                } = Piece::deserialize(fields)?;
                StreamEvent::ToolcallDelta {
                    content_index,
                    delta,
                }
            }
            Self::ToolcallEnd => {
                let WholeCall {
                    content_index,
                    tool_call,
                } = WholeCall::deserialize(fields)?;
                StreamEvent::ToolcallEnd {
                    content_index,
                    tool_call,
                }
            }
        })
    }
}

/// By hand, because the derived code keeps every field until it knows the variant: there is one of
/// these per delta. It only has to when `type` does not come first; as we write them it does.
impl<'de> Deserialize<'de> for StreamEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EventVisitor)
    }
}

struct EventVisitor;

impl<'de> Visitor<'de> for EventVisitor {
    type Value = StreamEvent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event of a stream: an object with a `type`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StreamEvent, A::Error> {
        let first: Option<Key<'de>> = map.next_key()?;
        let Key(first) = first.ok_or_else(|| A::Error::missing_field("type"))?;
        read_event(first, map)
    }
}

/// A key, which seldom has to be copied.
#[derive(Deserialize)]
pub(crate) struct Key<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// Reads an event whose first key was read.
pub(crate) fn read_event<'de, A: MapAccess<'de>>(
    first: Cow<'de, str>,
    mut map: A,
) -> Result<StreamEvent, A::Error> {
    if first == "type" {
        let kind: Kind = map.next_value()?;
        return kind.read(MapAccessDeserializer::new(map));
    }
    let mut fields = Map::new();
    fields.insert(first.into_owned(), map.next_value()?);
    while let Some((key, value)) = map.next_entry()? {
        fields.insert(key, value);
    }
    let kind = fields
        .get("type")
        .ok_or_else(|| A::Error::missing_field("type"))?;
    let kind = Kind::deserialize(kind).map_err(A::Error::custom)?;
    kind.read(Value::Object(fields)).map_err(A::Error::custom)
}

/// Takes events as they are made.
pub trait EventSink {
    /// Takes one event.
    fn event(&mut self, event: StreamEvent);
}

impl EventSink for Vec<StreamEvent> {
    fn event(&mut self, event: StreamEvent) {
        self.push(event);
    }
}

/// Builds the message so far from events. Costs what the event adds, not what the message holds.
#[derive(Debug, Default)]
pub struct Assembler {
    message: AssistantMessage,
    arguments: Vec<Option<PartialObject>>,
    /// By block: it is not complete yet.
    open: Vec<bool>,
    started: bool,
}

impl Assembler {
    /// Starts from a message that names api, provider, model and time; its stop reason becomes `pending`.
    #[must_use]
    pub fn new(mut message: AssistantMessage) -> Self {
        message.stop_reason = StopReason::Pending;
        Self {
            message,
            arguments: Vec::new(),
            open: Vec::new(),
            started: false,
        }
    }

    /// Whether `start` was seen.
    #[must_use]
    pub fn started(&self) -> bool {
        self.started
    }

    /// The message so far. Arguments of open calls are filled in only by [`Assembler::finish`] and
    /// [`Assembler::arguments`], because copying them per delta would be quadratic.
    #[must_use]
    pub fn message(&self) -> &AssistantMessage {
        &self.message
    }

    /// The arguments of a call as far as they can be read.
    #[must_use]
    pub fn arguments(&self, content_index: usize) -> Option<&Map<String, Value>> {
        match self.arguments.get(content_index)? {
            Some(partial) => Some(partial.as_map()),
            None => self
                .message
                .content
                .get(content_index)?
                .as_tool_call()
                .map(|call| &call.arguments),
        }
    }

    /// Takes one event, and answers whether it fits what came before. One that does not is ignored: for
    /// a block that does not exist, is of another kind or complete, and one that opens a block out of
    /// its place.
    pub fn push(&mut self, event: &StreamEvent) -> bool {
        match event {
            StreamEvent::Start => self.started = true,
            StreamEvent::Meta {
                usage,
                response_id,
                response_model,
            } => {
                if let Some(usage) = usage {
                    self.message.usage.clone_from(usage);
                }
                if response_id.is_some() {
                    self.message.response_id.clone_from(response_id);
                }
                if response_model.is_some() {
                    self.message.response_model.clone_from(response_model);
                }
            }
            StreamEvent::TextStart { content_index } => {
                return self.open(*content_index, Content::Text(Text::default()), None);
            }
            StreamEvent::ThinkingStart { content_index } => {
                return self.open(*content_index, Content::Thinking(Thinking::default()), None);
            }
            StreamEvent::ToolcallStart {
                content_index,
                id,
                tool_name,
            } => {
                let call = ToolCall {
                    id: id.clone(),
                    name: tool_name.clone(),
                    ..ToolCall::default()
                };
                let arguments = Some(PartialObject::new());
                return self.open(*content_index, Content::ToolCall(call), arguments);
            }
            StreamEvent::TextDelta {
                content_index,
                delta,
            } => match self.block(*content_index) {
                Some(Content::Text(block)) => block.text.push_str(delta),
                _ => return false,
            },
            StreamEvent::ThinkingDelta {
                content_index,
                delta,
            } => match self.block(*content_index) {
                Some(Content::Thinking(block)) => block.thinking.push_str(delta),
                _ => return false,
            },
            StreamEvent::ToolcallDelta {
                content_index,
                delta,
            } => match self.arguments.get_mut(*content_index) {
                Some(Some(partial)) => partial.push(delta),
                _ => return false,
            },
            StreamEvent::TextEnd {
                content_index,
                content,
            } => match self.block(*content_index) {
                Some(Content::Text(block)) => {
                    block.text.clone_from(content);
                    self.open[*content_index] = false;
                }
                _ => return false,
            },
            StreamEvent::ThinkingEnd {
                content_index,
                content,
            } => match self.block(*content_index) {
                Some(Content::Thinking(block)) => {
                    block.thinking.clone_from(content);
                    self.open[*content_index] = false;
                }
                _ => return false,
            },
            StreamEvent::ToolcallEnd {
                content_index,
                tool_call,
            } => match self.block(*content_index) {
                Some(Content::ToolCall(call)) => {
                    call.clone_from(tool_call);
                    self.arguments[*content_index] = None;
                    self.open[*content_index] = false;
                }
                _ => return false,
            },
        }
        true
    }

    /// The ends of texts and thinking that a stream left open when it broke off. Calls have none: what
    /// came of their arguments is not to be run.
    #[must_use]
    pub fn missing_ends(&self) -> Vec<StreamEvent> {
        let blocks = self.message.content.iter().zip(&self.open).enumerate();
        let open = blocks.filter(|(_, (_, open))| **open);
        open.filter_map(|(content_index, (block, _))| match block {
            Content::Text(block) => Some(StreamEvent::TextEnd {
                content_index,
                content: block.text.clone(),
            }),
            Content::Thinking(block) => Some(StreamEvent::ThinkingEnd {
                content_index,
                content: block.thinking.clone(),
            }),
            _ => None,
        })
        .collect()
    }

    /// The message as it stands, with a stop reason, for a stream that ended without its own.
    #[must_use]
    pub fn finish(mut self, reason: StopReason, error: Option<String>) -> AssistantMessage {
        for (block, partial) in self.message.content.iter_mut().zip(self.arguments) {
            if let (Content::ToolCall(call), Some(partial)) = (block, partial) {
                call.arguments = partial.as_map().clone();
            }
        }
        self.message.stop_reason = reason;
        self.message.error_message = error;
        self.message
    }

    fn open(
        &mut self,
        content_index: usize,
        block: Content,
        partial: Option<PartialObject>,
    ) -> bool {
        let fits = content_index == self.open.len();
        if fits {
            self.message.content.push(block);
            self.arguments.push(partial);
            self.open.push(true);
        }
        fits
    }

    /// A block that is not complete.
    fn block(&mut self, content_index: usize) -> Option<&mut Content> {
        let open = self.open.get(content_index) == Some(&true);
        self.message.content.get_mut(content_index).filter(|_| open)
    }
}

/// Writes an answer block by block: text and thinking close when another block opens, calls are
/// written whole. For providers that think in whole pieces (scripts, simple services).
pub struct MessageWriter<S> {
    sink: S,
    message: AssistantMessage,
    open: bool,
}

impl<S: EventSink> MessageWriter<S> {
    /// Emits `start`.
    pub fn new(message: AssistantMessage, mut sink: S) -> Self {
        sink.event(StreamEvent::Start);
        Self {
            sink,
            message,
            open: false,
        }
    }

    /// Appends text.
    pub fn text(&mut self, delta: &str) {
        if !(self.open && matches!(self.message.content.last(), Some(Content::Text(_)))) {
            self.open_block(Content::Text(Text::default()));
            let content_index = self.message.content.len() - 1;
            self.sink.event(StreamEvent::TextStart { content_index });
        }
        let content_index = self.message.content.len() - 1;
        if let Some(Content::Text(block)) = self.message.content.last_mut() {
            block.text.push_str(delta);
        }
        self.sink.event(StreamEvent::TextDelta {
            content_index,
            delta: delta.to_owned(),
        });
    }

    /// Appends reasoning.
    pub fn thinking(&mut self, delta: &str) {
        if !(self.open && matches!(self.message.content.last(), Some(Content::Thinking(_)))) {
            self.open_block(Content::Thinking(Thinking::default()));
            let content_index = self.message.content.len() - 1;
            self.sink
                .event(StreamEvent::ThinkingStart { content_index });
        }
        let content_index = self.message.content.len() - 1;
        if let Some(Content::Thinking(block)) = self.message.content.last_mut() {
            block.thinking.push_str(delta);
        }
        self.sink.event(StreamEvent::ThinkingDelta {
            content_index,
            delta: delta.to_owned(),
        });
    }

    /// Writes one whole tool call.
    pub fn tool_call(&mut self, call: ToolCall) {
        self.open_block(Content::ToolCall(call.clone()));
        self.open = false;
        let content_index = self.message.content.len() - 1;
        self.sink.event(StreamEvent::ToolcallStart {
            content_index,
            id: call.id.clone(),
            tool_name: call.name.clone(),
        });
        let delta = serde_json::to_string(&call.arguments).unwrap_or_default();
        self.sink.event(StreamEvent::ToolcallDelta {
            content_index,
            delta,
        });
        self.sink.event(StreamEvent::ToolcallEnd {
            content_index,
            tool_call: Box::new(call),
        });
    }

    /// The message so far, to set usage or signatures.
    pub fn message_mut(&mut self) -> &mut AssistantMessage {
        &mut self.message
    }

    /// Closes the open block and answers the message. Without a reason it is `toolUse` if there are
    /// calls, else `stop`.
    pub fn finish(mut self, reason: Option<StopReason>) -> AssistantMessage {
        self.close();
        let natural = match self.message.tool_calls().next() {
            Some(_) => StopReason::ToolUse,
            None => StopReason::Stop,
        };
        self.message.stop_reason = reason.unwrap_or(natural);
        self.message
    }

    fn open_block(&mut self, block: Content) {
        self.close();
        self.message.content.push(block);
        self.open = true;
    }

    fn close(&mut self) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        let content_index = self.message.content.len().saturating_sub(1);
        match self.message.content.last() {
            Some(Content::Text(block)) => {
                let content = block.text.clone();
                self.sink.event(StreamEvent::TextEnd {
                    content_index,
                    content,
                });
            }
            Some(Content::Thinking(block)) => {
                let content = block.thinking.clone();
                self.sink.event(StreamEvent::ThinkingEnd {
                    content_index,
                    content,
                });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::event::Event;

    #[test]
    fn what_the_writer_emits_the_assembler_rebuilds() {
        let mut events = Vec::new();
        struct Into<'a>(&'a mut Vec<StreamEvent>);
        impl EventSink for Into<'_> {
            fn event(&mut self, event: StreamEvent) {
                self.0.push(event);
            }
        }
        let mut writer = MessageWriter::new(AssistantMessage::default(), Into(&mut events));
        writer.thinking("hm");
        writer.text("a");
        writer.text("b");
        let arguments = serde_json::json!({"path": "x"})
            .as_object()
            .cloned()
            .unwrap();
        writer.tool_call(ToolCall {
            id: "1".into(),
            name: "read".into(),
            arguments,
            ..ToolCall::default()
        });
        let written = writer.finish(None);
        assert_eq!(written.stop_reason, StopReason::ToolUse);
        let mut assembler = Assembler::new(AssistantMessage::default());
        for event in &events {
            assembler.push(event);
        }
        assert_eq!(assembler.finish(StopReason::ToolUse, None), written);
    }

    #[test]
    fn what_fits_nothing_before_it_is_ignored_and_said() {
        // L22
        let text = |at: usize, delta: &str| StreamEvent::TextDelta {
            content_index: at,
            delta: delta.into(),
        };
        let end = |content: &str| StreamEvent::TextEnd {
            content_index: 0,
            content: content.into(),
        };
        let thought = StreamEvent::ThinkingDelta {
            content_index: 0,
            delta: "hm".into(),
        };
        let open = |content_index| StreamEvent::TextStart { content_index };
        let events = [
            (text(0, "early"), false),
            (open(1), false),
            (open(0), true),
            (text(0, "a"), true),
            (thought, false),
            (text(usize::MAX, "b"), false),
            (end("ab"), true),
            (text(0, "c"), false),
            (end("abc"), false),
            (open(0), false),
        ];
        let mut assembler = Assembler::new(AssistantMessage::default());
        for (event, fits) in events {
            assert_eq!(assembler.push(&event), fits, "{event:?}");
        }
        let message = assembler.finish(StopReason::Stop, None);
        assert_eq!(message.content, [Content::text("ab")]);
    }

    #[test]
    fn an_interrupted_call_keeps_the_arguments_read_so_far() {
        let mut assembler = Assembler::new(AssistantMessage::default());
        assembler.push(&StreamEvent::ToolcallStart {
            content_index: 0,
            id: "1".into(),
            tool_name: "bash".into(),
        });
        assembler.push(&StreamEvent::ToolcallDelta {
            content_index: 0,
            delta: "{\"command\":\"l".into(),
        });
        let message = assembler.finish(StopReason::Aborted, Some("aborted".into()));
        let call = message.tool_calls().next().unwrap();
        assert_eq!(
            serde_json::to_value(&call.arguments).unwrap(),
            serde_json::json!({"command": "l"})
        );
    }

    /// One of each kind, with every field set.
    fn every_event() -> Vec<StreamEvent> {
        let content_index = 3;
        let text = || "a \"piece\"\n漢".to_owned();
        let arguments = serde_json::json!({"path": "x", "type": "y"});
        vec![
            StreamEvent::Start,
            StreamEvent::Meta {
                usage: Some(Box::new(Usage {
                    input: 5,
                    ..Usage::default()
                })),
                response_id: Some("r".into()),
                response_model: Some("m".into()),
            },
            StreamEvent::TextStart { content_index },
            StreamEvent::TextDelta {
                content_index,
                delta: text(),
            },
            StreamEvent::TextEnd {
                content_index,
                content: text(),
            },
            StreamEvent::ThinkingStart { content_index },
            StreamEvent::ThinkingDelta {
                content_index,
                delta: text(),
            },
            StreamEvent::ThinkingEnd {
                content_index,
                content: text(),
            },
            StreamEvent::ToolcallStart {
                content_index,
                id: "1".into(),
                tool_name: "read".into(),
            },
            StreamEvent::ToolcallDelta {
                content_index,
                delta: text(),
            },
            StreamEvent::ToolcallEnd {
                content_index,
                tool_call: Box::new(ToolCall {
                    id: "1".into(),
                    name: "read".into(),
                    arguments: arguments.as_object().cloned().unwrap(),
                    ..ToolCall::default()
                }),
            },
        ]
    }

    /// Every order of a few things.
    fn orders<T: Clone>(of: &[T]) -> Vec<Vec<T>> {
        if of.is_empty() {
            return vec![Vec::new()];
        }
        let starting_with = |first: usize| {
            let mut rest = of.to_vec();
            let first = rest.remove(first);
            orders(&rest).into_iter().map(move |mut order| {
                order.insert(0, first.clone());
                order
            })
        };
        (0..of.len()).flat_map(starting_with).collect()
    }

    #[test]
    fn every_event_is_read_in_any_order_of_its_keys() {
        for event in every_event() {
            let text = serde_json::to_string(&event).unwrap();
            assert!(text.starts_with("{\"type\":"), "the fast way: {text}");
            assert_eq!(serde_json::from_str::<StreamEvent>(&text).unwrap(), event);
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(StreamEvent::deserialize(&value).unwrap(), event);
            let update = Event::MessageUpdate {
                usage: Usage::default(),
                assistant_message_event: event.clone(),
            };
            let nested = serde_json::to_string(&update).unwrap();
            assert_eq!(serde_json::from_str::<Event>(&nested).unwrap(), update);
            let mut fields: Vec<String> = value
                .as_object()
                .unwrap()
                .iter()
                .map(|(key, value)| format!("{}:{value}", Value::from(key.as_str())))
                .collect();
            fields.push("\"later\":[{\"type\":1}]".to_owned());
            for order in orders(&fields) {
                let text = format!("{{{}}}", order.join(","));
                let read: StreamEvent = serde_json::from_str(&text).unwrap();
                assert_eq!(read, event, "{text}");
            }
        }
    }

    #[test]
    fn what_is_optional_may_be_missing_or_belong_to_another_kind() {
        let check = |text: &str, expected: StreamEvent| {
            let read: StreamEvent = serde_json::from_str(text).unwrap();
            assert_eq!(read, expected, "{text}");
        };
        let meta = StreamEvent::Meta {
            usage: None,
            response_id: None,
            response_model: None,
        };
        check(r#"{"type":"meta"}"#, meta.clone());
        check(r#"{"usage":null,"responseId":null,"type":"meta"}"#, meta);
        let opened = StreamEvent::ToolcallStart {
            content_index: 0,
            id: String::new(),
            tool_name: String::new(),
        };
        check(r#"{"type":"toolcall_start","contentIndex":0}"#, opened);
        check(r#"{"delta":7,"type":"start"}"#, StreamEvent::Start);
        check(r#"{"t\u0079pe":"start","delta":7}"#, StreamEvent::Start);
    }

    #[test]
    fn what_is_no_event_is_refused_with_its_reason() {
        let check = |text: &str, reason: &str| {
            let error = serde_json::from_str::<StreamEvent>(text).unwrap_err();
            assert!(error.to_string().starts_with(reason), "{text}: {error}");
        };
        check("{}", "missing field `type`");
        check(r#"{"delta":"x"}"#, "missing field `type`");
        check(r#"{"type":"text"}"#, "unknown variant `text`");
        check(
            r#"{"type":"text_delta","delta":"x"}"#,
            "missing field `contentIndex`",
        );
        check(
            r#"{"delta":"x","type":"text_delta"}"#,
            "missing field `contentIndex`",
        );
        check(
            r#"{"type":"text_delta","contentIndex":-1}"#,
            "invalid value: integer `-1`",
        );
        check("[]", "invalid type: sequence");
    }
}

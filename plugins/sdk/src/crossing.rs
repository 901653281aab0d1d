//! How the events of an answer cross from a wire to the kernel: one event as it is, several as a list.
//! Pieces of one block that were read together, which is most of a fast answer, cross as one item:
//! what they have in common is written and read once.
//!
//! `{"run":"text_delta","contentIndex":0,"deltas":["a","b"]}` stands for one event per text.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::stream::{Key, StreamEvent, read_event};

/// Of an event with a word in it.
const USUAL_BYTES: usize = 32;

/// Which events a run stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Pieces {
    #[serde(rename = "text_delta")]
    Text,
    #[serde(rename = "thinking_delta")]
    Thinking,
    #[serde(rename = "toolcall_delta")]
    Toolcall,
}

impl Pieces {
    fn event(self, content_index: usize, delta: String) -> StreamEvent {
        match self {
            Self::Text => StreamEvent::TextDelta {
                content_index,
                delta,
            },
            Self::Thinking => StreamEvent::ThinkingDelta {
                content_index,
                delta,
            },
            Self::Toolcall => StreamEvent::ToolcallDelta {
                content_index,
                delta,
            },
        }
    }
}

/// A piece of a block: what kind, which block, and the text.
fn piece(event: &StreamEvent) -> Option<(Pieces, usize, &str)> {
    match event {
        StreamEvent::TextDelta {
            content_index,
            delta,
        } => Some((Pieces::Text, *content_index, delta)),
        StreamEvent::ThinkingDelta {
            content_index,
            delta,
        } => Some((Pieces::Thinking, *content_index, delta)),
        StreamEvent::ToolcallDelta {
            content_index,
            delta,
        } => Some((Pieces::Toolcall, *content_index, delta)),
        _ => None,
    }
}

/// Writes events that came at once.
///
/// # Errors
/// When one holds what JSON cannot.
pub fn write(events: &[StreamEvent]) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(events.len() * USUAL_BYTES);
    match events {
        [event] => serde_json::to_writer(&mut bytes, event)?,
        events => serde_json::to_writer(&mut bytes, &Packed(events))?,
    }
    Ok(bytes)
}

struct Packed<'a>(&'a [StreamEvent]);

impl Serialize for Packed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        let alike = |one: &StreamEvent, next: &StreamEvent| {
            let block =
                |event| piece(event).map(|(pieces, content_index, _)| (pieces, content_index));
            block(one).is_some() && block(one) == block(next)
        };
        for group in self.0.chunk_by(alike) {
            match group {
                [event] => list.serialize_element(event)?,
                run => list.serialize_element(&Run(run))?,
            }
        }
        list.end()
    }
}

/// Pieces of one block.
struct Run<'a>(&'a [StreamEvent]);

impl Serialize for Run<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Written<'a> {
            run: Option<Pieces>,
            content_index: usize,
            deltas: Deltas<'a>,
        }
        let first = self.0.first().and_then(piece);
        let written = Written {
            run: first.map(|(pieces, ..)| pieces),
            content_index: first.map_or(0, |(_, content_index, _)| content_index),
            deltas: Deltas(self.0),
        };
        written.serialize(serializer)
    }
}

struct Deltas<'a>(&'a [StreamEvent]);

impl Serialize for Deltas<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().filter_map(piece).map(|(.., delta)| delta))
    }
}

/// Reads what was written: one item, or a list.
///
/// # Errors
/// When any of it is unknown or not JSON; the items of a list can then be read one by one.
pub fn read(text: &str) -> serde_json::Result<Vec<StreamEvent>> {
    if text.starts_with('[') {
        serde_json::from_str(text).map(|List(events)| events)
    } else {
        serde_json::from_str(text).map(|item| {
            let mut events = Vec::new();
            Item::add_to(item, &mut events);
            events
        })
    }
}

struct List(Vec<StreamEvent>);

impl<'de> Deserialize<'de> for List {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor;

        impl<'de> Visitor<'de> for ListVisitor {
            type Value = List;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("events of a stream")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<List, A::Error> {
                let mut events = Vec::new();
                while let Some(item) = items.next_element::<Item>()? {
                    item.add_to(&mut events);
                }
                Ok(List(events))
            }
        }

        deserializer.deserialize_seq(ListVisitor)
    }
}

enum Item {
    Event(StreamEvent),
    Run(Pieces, Texts),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Texts {
    content_index: usize,
    deltas: Vec<String>,
}

impl Item {
    fn add_to(self, events: &mut Vec<StreamEvent>) {
        match self {
            Self::Event(event) => events.push(event),
            Self::Run(pieces, texts) => {
                let event = |delta| pieces.event(texts.content_index, delta);
                events.extend(texts.deltas.into_iter().map(event));
            }
        }
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ItemVisitor;

        impl<'de> Visitor<'de> for ItemVisitor {
            type Value = Item;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an event of a stream, or a run of them")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Item, A::Error> {
                let first: Option<Key<'de>> = map.next_key()?;
                let Key(first) = first.ok_or_else(|| A::Error::missing_field("type"))?;
                if first != "run" {
                    return read_event(first, map).map(Item::Event);
                }
                let pieces = map.next_value()?;
                let texts = Texts::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Item::Run(pieces, texts))
            }
        }

        deserializer.deserialize_map(ItemVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content_index: usize, delta: &str) -> StreamEvent {
        Pieces::Text.event(content_index, delta.to_owned())
    }

    #[track_caller]
    fn check(events: &[StreamEvent], expected: &str) {
        let written = write(events).expect("events are JSON");
        let written = String::from_utf8(written).expect("JSON is text");
        assert_eq!(written, expected);
        assert_eq!(
            read(&written).expect("what was written can be read"),
            events
        );
    }

    #[test]
    fn one_event_crosses_as_it_is() {
        check(
            &[text(0, "a")],
            r#"{"type":"text_delta","contentIndex":0,"delta":"a"}"#,
        );
        check(&[], "[]");
    }

    #[test]
    fn pieces_of_one_block_that_follow_each_other_cross_as_one_item() {
        let thought = |delta: &str| Pieces::Thinking.event(0, delta.to_owned());
        let call = |delta: &str| Pieces::Toolcall.event(2, delta.to_owned());
        check(
            &[
                StreamEvent::Start,
                thought("h"),
                thought("m"),
                text(1, "\"a\""),
                text(1, ""),
                text(1, "é\n"),
                text(0, "b"),
                call("{"),
                call("}"),
            ],
            concat!(
                r#"[{"type":"start"},"#,
                r#"{"run":"thinking_delta","contentIndex":0,"deltas":["h","m"]},"#,
                r#"{"run":"text_delta","contentIndex":1,"deltas":["\"a\"","","é\n"]},"#,
                r#"{"type":"text_delta","contentIndex":0,"delta":"b"},"#,
                r#"{"run":"toolcall_delta","contentIndex":2,"deltas":["{","}"]}]"#,
            ),
        );
    }

    #[test]
    fn only_pieces_are_joined() {
        let both = [StreamEvent::Start, StreamEvent::Start];
        check(&both, r#"[{"type":"start"},{"type":"start"}]"#);
    }

    #[test]
    fn fields_may_come_in_any_order_where_nothing_is_a_run() {
        let shuffled = r#"{"delta":"a","contentIndex":0,"type":"text_delta"}"#;
        assert_eq!(read(shuffled).expect("an event"), [text(0, "a")]);
    }

    #[test]
    fn what_is_unknown_or_no_json_is_an_error() {
        for unread in [
            "",
            "[",
            "[1]",
            "{}",
            r#"{"type":"of_later"}"#,
            r#"{"run":"start","contentIndex":0,"deltas":[]}"#,
            r#"[{"run":"text_delta","contentIndex":0}]"#,
        ] {
            assert!(read(unread).is_err(), "{unread}");
        }
    }
}

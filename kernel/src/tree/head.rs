//! The fields that every record has, read from any JSON without keeping its body.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::json::mend;

/// The fields that every record has. Of a field that occurs twice the last one counts, as in
/// JavaScript.
#[derive(Debug, Default)]
pub(super) struct Head<'a> {
    pub(super) kind: Loose<'a>,
    pub(super) id: Loose<'a>,
    pub(super) parent: Loose<'a>,
    pub(super) timestamp: Loose<'a>,
    pub(super) version: Loose<'a>,
}

/// A value of which only simple kinds matter.
#[derive(Debug, Default)]
pub(super) enum Loose<'a> {
    #[default]
    Missing,
    Null,
    Number(f64),
    Text(Cow<'a, str>),
    Other,
}

impl Loose<'_> {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn into_owned(self) -> Loose<'static> {
        match self {
            Self::Missing => Loose::Missing,
            Self::Null => Loose::Null,
            Self::Number(number) => Loose::Number(number),
            Self::Text(text) => Loose::Text(Cow::Owned(text.into_owned())),
            Self::Other => Loose::Other,
        }
    }
}

impl<'a> Head<'a> {
    /// Reads the head of one JSON value; `None` when the text is not exactly one value.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        if let Ok(head) = serde_json::from_str(text) {
            return Some(head);
        }
        let mended = mend(text)?;
        serde_json::from_str::<Head<'_>>(&mended)
            .ok()
            .map(Head::into_owned)
    }

    fn into_owned(self) -> Head<'static> {
        Head {
            kind: self.kind.into_owned(),
            id: self.id.into_owned(),
            parent: self.parent.into_owned(),
            timestamp: self.timestamp.into_owned(),
            version: self.version.into_owned(),
        }
    }

    pub(super) fn is_header(&self) -> bool {
        self.kind.text() == Some("session") && self.id.text().is_some()
    }

    /// Version of the file whose header this is (S19).
    pub(super) fn file_version(&self) -> f64 {
        match self.version {
            Loose::Number(version) => version,
            Loose::Missing | Loose::Null => 1.0,
            _ => 3.0,
        }
    }

    /// Enough fields to tell a whole record from a content block that survived in a torn one.
    pub(super) fn is_surely_record(&self, version: f64) -> bool {
        let text = |field: &Loose<'_>| field.text().is_some();
        let chained = matches!(self.parent, Loose::Null | Loose::Text(_)) && text(&self.id);
        text(&self.kind) && text(&self.timestamp) && (chained || version < 2.0)
    }
}

impl<'de> Deserialize<'de> for Head<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HeadVisitor;
        impl<'de> Visitor<'de> for HeadVisitor {
            type Value = Head<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a record")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Head<'de>, A::Error> {
                let mut head = Head::default();
                while let Some(key) = map.next_key::<Key>()? {
                    match key {
                        Key::Kind => head.kind = map.next_value()?,
                        Key::Id => head.id = map.next_value()?,
                        Key::Parent => head.parent = map.next_value()?,
                        Key::Timestamp => head.timestamp = map.next_value()?,
                        Key::Version => head.version = map.next_value()?,
                        Key::Other => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(head)
            }
        }
        deserializer.deserialize_map(HeadVisitor)
    }
}

enum Key {
    Kind,
    Id,
    Parent,
    Timestamp,
    Version,
    Other,
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl Visitor<'_> for KeyVisitor {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a field name")
            }

            fn visit_str<E>(self, name: &str) -> Result<Key, E> {
                Ok(match name {
                    "type" => Key::Kind,
                    "id" => Key::Id,
                    "parentId" => Key::Parent,
                    "timestamp" => Key::Timestamp,
                    "version" => Key::Version,
                    _ => Key::Other,
                })
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

impl<'de> Deserialize<'de> for Loose<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Loose<'de>, E> {
        Ok(Loose::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Loose<'de>, E> {
        Ok(Loose::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Loose<'de>, E> {
        Ok(Loose::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Loose<'de>, E> {
        Ok(Loose::Other)
    }

    fn visit_f64<E>(self, number: f64) -> Result<Loose<'de>, E> {
        Ok(Loose::Number(number))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "JavaScript reads it the same way"
    )]
    fn visit_u64<E>(self, number: u64) -> Result<Loose<'de>, E> {
        Ok(Loose::Number(number as f64))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "JavaScript reads it the same way"
    )]
    fn visit_i64<E>(self, number: i64) -> Result<Loose<'de>, E> {
        Ok(Loose::Number(number as f64))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Loose<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Loose::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Loose<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Loose::Other)
    }
}

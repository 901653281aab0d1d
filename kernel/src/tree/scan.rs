//! A session file's text cut into records, without reading their bodies. Damaged pieces are told
//! apart from whole records, also when both stand on one line; nothing in the text is dropped.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::json::mend;

/// Part of a session file that could not be read. It stays in the file (S16).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Counted from 1.
    pub line: usize,
    /// Size of the unreadable part.
    pub bytes: usize,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            bytes,
            reason,
        } = self;
        write!(
            f,
            "Line {line} of the session file was skipped: {bytes} bytes are {reason}. They stay in \
             the file."
        )
    }
}

/// A stretch of the text between line ends.
pub(super) struct Piece<'a> {
    pub(super) line: usize,
    pub(super) range: Range<usize>,
    /// `None`: damaged.
    pub(super) head: Option<Head<'a>>,
}

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
    fn parse(text: &'a str) -> Option<Self> {
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
    fn is_surely_record(&self, version: f64) -> bool {
        let text = |field: &Loose<'_>| field.text().is_some();
        let chained = matches!(self.parent, Loose::Null | Loose::Text(_)) && text(&self.id);
        text(&self.kind) && text(&self.timestamp) && (chained || version < 2.0)
    }
}

/// The pieces of a session file from its header on, and the damaged ones before it. `None` when
/// the first readable record is not a header (S15).
pub(super) fn scan(text: &str) -> Option<Vec<Piece<'_>>> {
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    let mut version = None;
    let mut start = 0;
    for (number, line) in text.split('\n').enumerate() {
        let range = trimmed(text, start..start + line.len());
        start += line.len() + 1;
        if range.is_empty() {
            continue;
        }
        let head = Head::parse(&text[range.clone()]);
        let damaged = head.is_none();
        let whole = Piece {
            line: number + 1,
            range: range.clone(),
            head,
        };
        match (&whole.head, version) {
            (Some(head), None) if head.is_header() => version = Some(head.file_version()),
            (Some(_), None) => return None,
            _ => {}
        }
        if !damaged {
            pieces.push(whole);
            continue;
        }
        let parts = recover(text, range, number + 1, version);
        let header = parts
            .iter()
            .filter_map(|part| part.head.as_ref())
            .find(|head| head.is_header());
        match (version, header) {
            (None, None) => pieces.push(whole),
            (None, Some(header)) => {
                version = Some(header.file_version());
                pieces.extend(parts);
            }
            (Some(_), _) => pieces.extend(parts),
        }
    }
    version.map(|_| pieces)
}

/// Without white space at both ends, and without a byte order mark at the start of the file.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let line = &text[range.clone()];
    let kept = if range.start == 0 {
        line.trim_start_matches('\u{feff}')
    } else {
        line
    };
    let kept = kept.trim_start();
    let start = range.end - kept.len();
    start..start + kept.trim_end().len()
}

/// Finds whole records on a damaged line: a record written half and then whole, or several records
/// without line ends between them. What lies between them is damaged.
fn recover(text: &str, line: Range<usize>, number: usize, version: Option<f64>) -> Vec<Piece<'_>> {
    const START: &str = "{\"type\":";
    let mut pieces = Vec::new();
    let piece = |range, head| Piece {
        line: number,
        range,
        head,
    };
    let (mut from, mut damaged_from) = (line.start, line.start);
    let mut version = version;
    // A line of nothing but record starts would otherwise be read once for each of them.
    let mut budget = line.len().saturating_mul(16).saturating_add(1 << 20);
    while let Some(start) = text[from..line.end].find(START).map(|at| from + at) {
        let mut stream =
            serde_json::Deserializer::from_str(&text[start..line.end]).into_iter::<Head<'_>>();
        match stream.next() {
            Some(Ok(head)) => {
                let end = start + stream.byte_offset();
                from = end;
                let sought = match version {
                    None => head.is_header(),
                    Some(version) => head.is_surely_record(version),
                };
                if sought {
                    version = version.or(Some(head.file_version()));
                    pieces.push(piece(trimmed(text, damaged_from..start), None));
                    pieces.push(piece(start..end, Some(head)));
                    damaged_from = end;
                }
            }
            Some(Err(error)) if budget > error.column() => {
                budget -= error.column();
                from = start + START.len();
            }
            _ => break,
        }
    }
    pieces.push(piece(trimmed(text, damaged_from..line.end), None));
    pieces.retain(|piece| !piece.range.is_empty());
    pieces
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

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/"}"#;
    const ENTRY: &str = r#"{"type":"custom","id":"a","parentId":null,"timestamp":"t","data":{"type":"text","id":"n"}}"#;

    /// The pieces as text: records by their id, damaged ones between angle brackets.
    fn pieces(text: &str) -> Option<Vec<String>> {
        let show = |piece: Piece<'_>| match piece.head {
            Some(head) => format!("{}:{}", piece.line, head.id.text().unwrap_or("?")),
            None => format!("{}:<{}>", piece.line, &text[piece.range]),
        };
        Some(scan(text)?.into_iter().map(show).collect())
    }

    #[test]
    fn a_record_written_half_and_then_whole_on_the_same_line_is_found() {
        // reports S05
        for cut in 1..ENTRY.len() {
            let half = &ENTRY[..cut];
            let text = format!("{HEADER}\n{half}{ENTRY}\n");
            assert_eq!(
                pieces(&text).unwrap(),
                ["1:s".into(), format!("2:<{half}>"), "2:a".into()]
            );
        }
        let glued = format!("{HEADER}{ENTRY}{ENTRY}");
        assert_eq!(pieces(&glued).unwrap(), ["1:s", "1:a", "1:a"]);
    }

    #[test]
    fn blocks_inside_a_torn_record_are_not_taken_for_records() {
        let torn = &ENTRY[..ENTRY.len() - 1];
        assert_eq!(
            pieces(&format!("{HEADER}\n{torn}")).unwrap(),
            ["1:s".into(), format!("2:<{torn}>")]
        );
    }

    #[test]
    fn junk_blank_lines_and_a_byte_order_mark_may_precede_the_header() {
        // 2.2, M18
        let text = format!(
            "\u{feff}{{torn\r\n\r\n{}{HEADER}\r\n{ENTRY}\r\n",
            &HEADER[..30]
        );
        let want = [
            "1:<{torn>".into(),
            format!("3:<{}>", &HEADER[..30]),
            "3:s".into(),
            "4:a".into(),
        ];
        assert_eq!(pieces(&text).unwrap(), want);
        assert_eq!(pieces(&format!("\u{feff}{HEADER}")).unwrap(), ["1:s"]);
    }

    #[test]
    fn a_file_whose_first_record_is_something_else_is_no_session() {
        // S15
        for text in [
            "",
            "\n",
            "junk",
            "3",
            "[]",
            "{\"a\":1}",
            &format!("{ENTRY}\n{HEADER}"),
            r#"{"type":"session","id":7}"#,
        ] {
            assert!(pieces(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_line_of_endless_record_starts_is_given_up_in_time() {
        let text = format!("{HEADER}\n{}", "{\"type\":".repeat(40_000));
        assert_eq!(scan(&text).unwrap().len(), 2);
    }
}

//! Front matter: the fields that a Markdown file begins with, in YAML between two lines of dashes
//! (P24). Fields and body come out; what the fields mean is the business of whoever asked.

use std::io;
use std::path::Path;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::textfile;

/// Instructions that are larger would fill the context of most models.
const FILE_LIMIT: u64 = 1 << 20;

/// The YAML parser takes more than linear time for some nonsense; real fields are a few lines.
const FIELDS_LIMIT: usize = 64 << 10;

const DEPTH_LIMIT: usize = 16;

/// A Markdown file, taken apart.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// Plain `true`, `false` and nothing are values of those types, all other scalars are texts.
    pub fields: Map<String, Value>,
    /// What follows; trimmed if there was front matter (P26).
    pub body: String,
}

/// Why a file cannot be taken apart; reads on after "because".
#[derive(Debug, Error)]
pub enum DocumentError {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    /// The front matter makes no sense.
    #[error("its front matter is not valid YAML: {what} (line {line})")]
    Yaml {
        /// The parser's reason.
        what: String,
        /// Of the file.
        line: usize,
    },
    /// The front matter is no front matter.
    #[error("its front matter is larger than {} KB", FIELDS_LIMIT >> 10)]
    TooLarge,
}

impl Document {
    /// Reads a file.
    ///
    /// # Errors
    /// [`DocumentError`]; also for what is no regular file or too large.
    pub fn read(path: &Path) -> Result<Self, DocumentError> {
        Self::parse(&textfile::read_at_most(path, FILE_LIMIT)?)
    }

    /// Takes a text apart.
    ///
    /// # Errors
    /// When the front matter cannot be read.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let Some((yaml, body)) = split(&text) else {
            return Ok(Self {
                body: text,
                ..Self::default()
            });
        };
        Ok(Self {
            fields: fields(yaml)?,
            body: body.trim().to_owned(),
        })
    }

    /// A field that is a text and not blank.
    #[must_use]
    pub fn text(&self, field: &str) -> Option<&str> {
        let text = self.fields.get(field)?.as_str()?.trim();
        (!text.is_empty()).then_some(text)
    }
}

/// What stands between the dashes, and what after them.
fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---")?;
    let end = rest.find("\n---")?;
    Some((&rest[..end], &rest[end + "\n---".len()..]))
}

fn fields(yaml: &str) -> Result<Map<String, Value>, DocumentError> {
    if yaml.len() > FIELDS_LIMIT {
        return Err(DocumentError::TooLarge);
    }
    let mut reader = Reader {
        parser: Parser::new_from_str(yaml),
        line: 1,
    };
    loop {
        match reader.next()? {
            Some(Event::StreamStart | Event::DocumentStart(_) | Event::Nothing) => {}
            Some(Event::StreamEnd | Event::DocumentEnd) | None => return Ok(Map::new()),
            Some(event) => {
                return match reader.value(event, 0)? {
                    Value::Object(fields) => Ok(fields),
                    Value::Null => Ok(Map::new()),
                    _ => Err(reader.error("it holds no fields")),
                };
            }
        }
    }
}

/// Makes values of the parser's events.
struct Reader<'a> {
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
    line: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Option<Event<'a>>, DocumentError> {
        match self.parser.next_event() {
            None => Ok(None),
            Some(Ok((event, span))) => {
                self.line = span.start.line();
                Ok(Some(event))
            }
            Some(Err(error)) => {
                self.line = error.marker().line();
                Err(self.error(error.info()))
            }
        }
    }

    fn value(&mut self, event: Event<'a>, depth: usize) -> Result<Value, DocumentError> {
        if depth > DEPTH_LIMIT {
            return Err(self.error("it is nested too deeply"));
        }
        match event {
            Event::Scalar(text, style, _, tag) => Ok(scalar(&text, style, tag.as_deref())),
            Event::SequenceStart(..) => self.sequence(depth),
            Event::MappingStart(..) => self.mapping(depth),
            // A few lines with aliases can stand for gigabytes.
            Event::Alias(_) => Err(self.error("aliases are not supported")),
            _ => Err(self.error("it ends too early")),
        }
    }

    fn sequence(&mut self, depth: usize) -> Result<Value, DocumentError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Some(Event::SequenceEnd) => return Ok(Value::Array(items)),
                Some(event) => items.push(self.value(event, depth + 1)?),
                None => return Err(self.error("it ends too early")),
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Result<Value, DocumentError> {
        let mut fields = Map::new();
        loop {
            let name = match self.next()? {
                Some(Event::MappingEnd) => return Ok(Value::Object(fields)),
                Some(Event::Scalar(name, ..)) => name.into_owned(),
                _ => return Err(self.error("a field's name is not a word")),
            };
            if fields.contains_key(&name) {
                return Err(self.error(&format!("the field \"{name}\" stands there twice")));
            }
            let value = match self.next()? {
                Some(event) => self.value(event, depth + 1)?,
                None => return Err(self.error("it ends too early")),
            };
            fields.insert(name, value);
        }
    }

    /// The text begins on the file's first line, behind the dashes, so the lines are the file's.
    fn error(&self, what: &str) -> DocumentError {
        DocumentError::Yaml {
            what: what.to_owned(),
            line: self.line,
        }
    }
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let is_text = style != ScalarStyle::Plain || tag.is_some_and(|tag| tag.suffix == "str");
    match text {
        _ if is_text => text.into(),
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn check(text: &str, fields: Value, body: &str) {
        let document = Document::parse(text).unwrap();
        assert_eq!(Value::Object(document.fields), fields, "{text:?}");
        assert_eq!(document.body, body, "{text:?}");
    }

    fn error(text: &str) -> String {
        Document::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn front_matter_stands_between_two_lines_that_begin_with_dashes() {
        // P24
        check(
            "---\nname: a\n---\n\n Body \n",
            json!({"name": "a"}),
            "Body",
        );
        check(
            "\u{feff}---\r\nname: a\r\n---\r\nB\rC",
            json!({"name": "a"}),
            "B\nC",
        );
        check("---\n---\nx", json!({}), "x");
        check("---\n# only a comment\n---\nx", json!({}), "x");
        check("---\nname: a\n---", json!({"name": "a"}), "");
    }

    #[test]
    fn without_a_second_line_of_dashes_everything_is_body_as_it_stands() {
        // P24, P26
        for text in [
            "---\nname: a\nBody ",
            " ---\na: b\n---\n",
            "Body\n",
            "",
            "---",
        ] {
            check(text, json!({}), text);
        }
    }

    #[test]
    fn fields_are_yaml() {
        check(
            "---\na: true\nb: \"true\"\nc: 1.0\nd:\ne: >-\n  two\n  lines\nf: |\n  x\n  y\ng: [p, q]\nh:\n  i: 'it''s'\n---\n",
            json!({"a": true, "b": "true", "c": "1.0", "d": null, "e": "two lines", "f": "x\ny\n",
                   "g": ["p", "q"], "h": {"i": "it's"}}),
            "",
        );
    }

    #[test]
    fn an_error_says_what_and_where() {
        let text = error("---\nname: a\ndescription: Use when: it rains\n---\n");
        assert!(text.ends_with("(line 3)"), "{text}");
        assert_eq!(
            error("---\na: 1\na: 2\n---\n"),
            "its front matter is not valid YAML: the field \"a\" stands there twice (line 3)"
        );
        assert!(error("---\nonly words\n---\n").contains("it holds no fields"));
        assert!(error("---\na: &x 1\nb: *x\n---\n").contains("aliases are not supported"));
    }

    #[test]
    fn nonsense_is_an_error_and_soon() {
        let flow = format!("---\na: {}\n---\n", "[".repeat(60_000));
        let block = format!("---\n{}a\n---\n", "- ".repeat(30_000));
        for text in [flow, block] {
            assert!(Document::parse(&text).is_err());
        }
        let long = format!("---\na: {}\n---\n", "x".repeat(FIELDS_LIMIT));
        assert!(matches!(
            Document::parse(&long),
            Err(DocumentError::TooLarge)
        ));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(---\n)?[-\\[\\]{}:,&*!|>'\"%@`#? \t\na-c\\\\]{0,60}(\n---\n.{0,9})?") {
            let _ = Document::parse(&text);
        }
    }
}

//! Tool-call arguments: the text of a JSON object, as a model writes it, becomes a map.
//!
//! Two readers. [`PartialObject`] is for the time of streaming: it takes fragments, never fails,
//! and always has a map of what can be read so far. [`parse_arguments`] is for the end: it takes
//! the whole text and either has the arguments or the error that the model gets to see. Whether
//! the arguments fit the tool's schema is not decided here.

use std::{borrow::Cow, mem};

use serde_json::{Map, Value};

/// Containers nested deeper than this are shown empty. [`parse_arguments`] refuses such a text,
/// because `serde_json` has the same limit.
const MAX_DEPTH: usize = 128;

/// A longer number is shown when it is complete, so that reading its digits again for every
/// fragment stays cheap.
const MAX_OPEN_NUMBER_CHARS: usize = 64;

/// What can be read so far of a JSON object that arrives in fragments.
///
/// - A string is shown up to the last complete character, a member as soon as its value begins, a
///   number as soon as its digits are one, and `true`, `false` and `null` from their first letter.
/// - What is not JSON is tolerated: control characters and unknown escapes in strings are kept,
///   commas and colons may be missing, and what makes no sense where it stands is dropped. A text
///   whose root is not an object shows `{}`.
/// - The last of several members with one name wins.
///
/// One map is changed in place: the total work is linear in the text, and reading copies nothing.
///
/// ```
/// use pliant_sdk::partial_json::PartialObject;
/// use serde_json::json;
///
/// let mut arguments = PartialObject::new();
/// arguments.push(r#"{"path": "src/ma"#);
/// assert_eq!(json!(arguments.as_map()), json!({"path": "src/ma"}));
/// arguments.push(r#"in.rs", "limit": 20, "of"#);
/// assert_eq!(json!(arguments.as_map()), json!({"path": "src/main.rs", "limit": 20}));
/// ```
#[derive(Debug, Clone, Default)]
pub struct PartialObject {
    /// What a reader sees. It is complete only between two fragments: during [`Self::push`] every
    /// open container is in its frame, and the place in its parent is empty.
    root: Map<String, Value>,
    /// The open containers, the root first.
    frames: Vec<Frame>,
    lexeme: Lexeme,
    /// An unfinished escape, read again together with the next fragment.
    held: String,
    /// How many open containers are being skipped, because their place or depth is impossible.
    skipped: usize,
    shown_scalar: Option<ShownScalar>,
    /// The root value is complete; what follows is dropped.
    ended: bool,
}

/// What the next character belongs to.
#[derive(Debug, Clone, Default)]
enum Lexeme {
    #[default]
    Between,
    Text(Role, String),
    /// A number, a literal, or a word that is neither.
    Scalar(String),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Role {
    Key,
    Value,
    Dropped,
}

/// An open scalar is shown provisionally, since more characters can make it unreadable.
#[derive(Debug, Clone)]
struct ShownScalar {
    /// The value of an earlier member with the same name.
    replaced: Option<Value>,
}

#[derive(Debug, Clone)]
enum Frame {
    Array(Vec<Value>),
    Object(OpenObject),
}

#[derive(Debug, Clone, Default)]
struct OpenObject {
    members: Map<String, Value>,
    /// The name of the member whose value is to come.
    key: Option<String>,
    /// The name of the newest member if it is not the last of the map, having had a value before.
    repeated_key: Option<String>,
}

impl PartialObject {
    /// An object of which nothing has arrived.
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything that can be read so far.
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.root
    }

    /// Gives away what could be read.
    pub fn into_map(self) -> Map<String, Value> {
        self.root
    }

    /// Reads the next fragment of the text.
    pub fn push(&mut self, text: &str) {
        if text.is_empty() || self.ended {
            return;
        }
        self.detach_frames();
        let held = mem::take(&mut self.held);
        if held.is_empty() {
            self.read(text);
        } else {
            self.read(&(held + text));
        }
        self.attach_frames();
    }

    fn read(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() && !self.ended {
            rest = match mem::take(&mut self.lexeme) {
                Lexeme::Between => self.read_between(rest),
                Lexeme::Text(role, text) => self.read_text(role, text, rest),
                Lexeme::Scalar(text) => self.read_scalar(text, rest),
            };
        }
    }

    fn read_between<'a>(&mut self, rest: &'a str) -> &'a str {
        let Some(first) = rest.chars().next() else {
            return rest;
        };
        match first {
            '"' => self.begin_text(),
            '{' => self.open(Frame::Object(OpenObject::default())),
            '[' => self.open(Frame::Array(Vec::new())),
            '}' | ']' => self.close(first),
            ',' => self.drop_key(),
            _ if is_scalar_char(first) => {
                self.lexeme = Lexeme::Scalar(String::new());
                return rest;
            }
            // White space, junk, and the colon: whether it is there makes no difference.
            _ => {}
        }
        &rest[first.len_utf8()..]
    }

    fn begin_text(&mut self) {
        let role = match self.frames.last_mut() {
            None => {
                self.ended = true;
                return;
            }
            _ if self.skipped > 0 => Role::Dropped,
            Some(frame) if frame.accepts_value() => {
                frame.put(Value::String(String::new()));
                Role::Value
            }
            Some(_) => Role::Key,
        };
        self.lexeme = Lexeme::Text(role, String::new());
    }

    fn read_text<'a>(&mut self, role: Role, mut text: String, rest: &'a str) -> &'a str {
        if role == Role::Dropped {
            text.clear();
        }
        let (read, closed) = append_text(rest, &mut text);
        if closed {
            self.end_text(role, text);
            return &rest[read..];
        }
        rest[read..].clone_into(&mut self.held);
        self.lexeme = Lexeme::Text(role, text);
        ""
    }

    fn end_text(&mut self, role: Role, text: String) {
        match (role, self.frames.last_mut()) {
            (Role::Key, Some(Frame::Object(object))) => object.key = Some(text),
            (Role::Value, Some(frame)) => frame.set_newest(Value::String(text)),
            _ => {}
        }
    }

    fn read_scalar<'a>(&mut self, mut text: String, rest: &'a str) -> &'a str {
        let end = rest.find(|ch| !is_scalar_char(ch)).unwrap_or(rest.len());
        text.push_str(&rest[..end]);
        if end == rest.len() {
            self.lexeme = Lexeme::Scalar(text);
        } else if let Ok(value) = serde_json::from_str(&text) {
            self.end_scalar(value);
        }
        &rest[end..]
    }

    fn end_scalar(&mut self, value: Value) {
        if self.frames.is_empty() {
            self.ended = true;
        } else if let Some(frame) = self.frame_for_value() {
            frame.put(value);
        }
    }

    fn open(&mut self, frame: Frame) {
        if self.skipped > 0 {
            self.skipped += 1;
            return;
        }
        let depth = self.frames.len();
        match self.frames.last_mut() {
            None if matches!(frame, Frame::Array(_)) => self.ended = true,
            None => self.frames.push(frame),
            Some(parent) if parent.accepts_value() => {
                parent.put(frame.empty_value());
                if depth < MAX_DEPTH {
                    self.frames.push(frame);
                } else {
                    self.skipped = 1;
                }
            }
            Some(_) => self.skipped = 1,
        }
    }

    fn close(&mut self, bracket: char) {
        if self.skipped > 0 {
            self.skipped -= 1;
        } else if self
            .frames
            .last()
            .is_some_and(|frame| frame.closing_bracket() == bracket)
        {
            self.attach_frame(self.frames.len() - 1);
            self.frames.pop();
            self.ended = self.frames.is_empty();
        }
    }

    fn drop_key(&mut self) {
        if let Some(Frame::Object(object)) = self.frames.last_mut()
            && self.skipped == 0
        {
            object.key = None;
        }
    }

    /// The innermost container, if a value may stand here.
    fn frame_for_value(&mut self) -> Option<&mut Frame> {
        self.frames
            .last_mut()
            .filter(|frame| self.skipped == 0 && frame.accepts_value())
    }

    /// Takes the open containers, and the open string or scalar, out of the map.
    fn detach_frames(&mut self) {
        for index in 0..self.frames.len() {
            let content = match index {
                0 => Value::Object(mem::take(&mut self.root)),
                _ => self.frames[index - 1].take_newest(),
            };
            self.frames[index].restore(content);
        }
        let Some(frame) = self.frames.last_mut() else {
            return;
        };
        if let Lexeme::Text(Role::Value, text) = &mut self.lexeme
            && let Value::String(shown) = frame.take_newest()
        {
            *text = shown;
        }
        if let Some(scalar) = self.shown_scalar.take() {
            frame.hide_scalar(scalar);
        }
    }

    /// The opposite of [`Self::detach_frames`]: makes the map readable.
    fn attach_frames(&mut self) {
        match mem::take(&mut self.lexeme) {
            Lexeme::Text(Role::Value, text) => {
                if let Some(frame) = self.frames.last_mut() {
                    frame.set_newest(Value::String(text));
                }
                self.lexeme = Lexeme::Text(Role::Value, String::new());
            }
            Lexeme::Scalar(text) => {
                if let Some(frame) = self.frame_for_value()
                    && let Some(value) = open_scalar(&text)
                {
                    self.shown_scalar = Some(frame.show_scalar(value));
                }
                self.lexeme = Lexeme::Scalar(text);
            }
            other => self.lexeme = other,
        }
        for index in (0..self.frames.len()).rev() {
            self.attach_frame(index);
        }
    }

    fn attach_frame(&mut self, index: usize) {
        match (index.checked_sub(1), self.frames[index].take()) {
            (Some(parent), content) => self.frames[parent].set_newest(content),
            (None, Value::Object(members)) => self.root = members,
            (None, _) => {}
        }
    }
}

impl Frame {
    fn closing_bracket(&self) -> char {
        match self {
            Self::Array(_) => ']',
            Self::Object(_) => '}',
        }
    }

    fn empty_value(&self) -> Value {
        match self {
            Self::Array(_) => Value::Array(Vec::new()),
            Self::Object(_) => Value::Object(Map::new()),
        }
    }

    fn take(&mut self) -> Value {
        match self {
            Self::Array(items) => Value::Array(mem::take(items)),
            Self::Object(object) => Value::Object(mem::take(&mut object.members)),
        }
    }

    fn restore(&mut self, content: Value) {
        match (self, content) {
            (Self::Array(items), Value::Array(content)) => *items = content,
            (Self::Object(object), Value::Object(content)) => object.members = content,
            _ => {}
        }
    }

    fn accepts_value(&self) -> bool {
        match self {
            Self::Array(_) => true,
            Self::Object(object) => object.key.is_some(),
        }
    }

    fn put(&mut self, value: Value) {
        match self {
            Self::Array(items) => items.push(value),
            Self::Object(object) => object.put(value),
        }
    }

    /// The place of the value that was put last.
    fn newest(&mut self) -> Option<&mut Value> {
        match self {
            Self::Array(items) => items.last_mut(),
            // By position where possible: looking up a name costs its length.
            Self::Object(object) => match &object.repeated_key {
                Some(key) => object.members.get_mut(key),
                None => object.members.values_mut().next_back(),
            },
        }
    }

    fn take_newest(&mut self) -> Value {
        self.newest().map(Value::take).unwrap_or_default()
    }

    fn set_newest(&mut self, value: Value) {
        if let Some(place) = self.newest() {
            *place = value;
        }
    }

    fn show_scalar(&mut self, value: Value) -> ShownScalar {
        let replaced = match self {
            Self::Array(items) => {
                items.push(value);
                None
            }
            Self::Object(object) => object
                .members
                .insert(object.key.clone().unwrap_or_default(), value),
        };
        ShownScalar { replaced }
    }

    fn hide_scalar(&mut self, scalar: ShownScalar) {
        match (self, scalar.replaced) {
            (Self::Array(items), _) => {
                items.pop();
            }
            (
                Self::Object(OpenObject {
                    members,
                    key: Some(key),
                    ..
                }),
                Some(replaced),
            ) => {
                members.insert(key.clone(), replaced);
            }
            // The scalar is the last member, so removing it moves no other.
            (
                Self::Object(OpenObject {
                    members,
                    key: Some(key),
                    ..
                }),
                None,
            ) => {
                members.shift_remove(key);
            }
            (Self::Object(_), _) => {}
        }
    }
}

impl OpenObject {
    fn put(&mut self, value: Value) {
        let Some(key) = self.key.take() else {
            return;
        };
        if let Some(place) = self.members.get_mut(&key) {
            *place = value;
            self.repeated_key = Some(key);
        } else {
            self.members.insert(key, value);
            self.repeated_key = None;
        }
    }
}

fn is_scalar_char(ch: char) -> bool {
    ch.is_ascii_alphanumeric() || matches!(ch, '-' | '+' | '.' | '_')
}

/// The value of a scalar that may go on.
fn open_scalar(text: &str) -> Option<Value> {
    if text.len() > MAX_OPEN_NUMBER_CHARS {
        return None;
    }
    let literals = [
        ("true", Value::Bool(true)),
        ("false", Value::Bool(false)),
        ("null", Value::Null),
    ];
    if let Some((_, value)) = literals
        .into_iter()
        .find(|(word, _)| word.starts_with(text))
    {
        return Some(value);
    }
    let unsigned = text.strip_suffix(['+', '-']).unwrap_or(text);
    let digits = unsigned.strip_suffix(['e', 'E']).unwrap_or(text);
    serde_json::from_str(digits).ok()
}

/// Appends the characters of a string whose opening quote has been read. Tells how many bytes
/// were read, and whether the closing quote was among them; an unfinished escape is not read.
fn append_text(input: &str, text: &mut String) -> (usize, bool) {
    let mut at = 0;
    loop {
        let rest = &input[at..];
        let Some(plain) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\')) else {
            text.push_str(rest);
            return (input.len(), false);
        };
        text.push_str(&rest[..plain]);
        at += plain;
        if rest.as_bytes()[plain] == b'"' {
            return (at + 1, true);
        }
        let escape = read_escape(&input.as_bytes()[at..]);
        match escape {
            Escape::Unfinished => return (at, false),
            Escape::Char(ch, _) => text.push(ch),
            Escape::LoneSurrogate => text.push(char::REPLACEMENT_CHARACTER),
            Escape::Invalid => text.push('\\'),
        }
        at += escape.len();
    }
}

#[derive(Clone, Copy)]
enum Escape {
    /// More text is needed to tell.
    Unfinished,
    /// A character, and the number of bytes that stood for it.
    Char(char, usize),
    /// Half a surrogate pair, which no Rust string can hold.
    LoneSurrogate,
    /// The backslash stands for itself, and so does what follows.
    Invalid,
}

impl Escape {
    fn len(self) -> usize {
        match self {
            Self::Unfinished => 0,
            Self::Char(_, len) => len,
            Self::LoneSurrogate => UNICODE_ESCAPE_LEN,
            Self::Invalid => 1,
        }
    }
}

/// The length of `\u0000`.
const UNICODE_ESCAPE_LEN: usize = 6;

/// Reads the escape at the start of `bytes`, which is a backslash.
fn read_escape(bytes: &[u8]) -> Escape {
    let ch = match bytes.get(1) {
        None => return Escape::Unfinished,
        Some(b'u') => return read_unicode_escape(bytes),
        Some(&ch @ (b'"' | b'\\' | b'/')) => char::from(ch),
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(_) => return Escape::Invalid,
    };
    Escape::Char(ch, 2)
}

fn read_unicode_escape(bytes: &[u8]) -> Escape {
    let unit = match read_unit(bytes) {
        Unit::Complete(unit) => unit,
        Unit::Unfinished => return Escape::Unfinished,
        Unit::Invalid => return Escape::Invalid,
    };
    if let Some(ch) = char::from_u32(unit) {
        return Escape::Char(ch, UNICODE_ESCAPE_LEN);
    }
    if !(0xD800..0xDC00).contains(&unit) {
        return Escape::LoneSurrogate;
    }
    match read_unit(&bytes[UNICODE_ESCAPE_LEN..]) {
        Unit::Unfinished => Escape::Unfinished,
        Unit::Complete(low @ 0xDC00..0xE000) => {
            let code_point = 0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
            let ch = char::from_u32(code_point).unwrap_or(char::REPLACEMENT_CHARACTER);
            Escape::Char(ch, 2 * UNICODE_ESCAPE_LEN)
        }
        Unit::Complete(_) | Unit::Invalid => Escape::LoneSurrogate,
    }
}

enum Unit {
    Unfinished,
    Complete(u32),
    Invalid,
}

/// Reads the UTF-16 unit of a `\u0000` that may not have arrived completely.
fn read_unit(bytes: &[u8]) -> Unit {
    let mut unit = 0;
    for index in 0..UNICODE_ESCAPE_LEN {
        let Some(&byte) = bytes.get(index) else {
            return Unit::Unfinished;
        };
        match (index, char::from(byte).to_digit(16)) {
            (0, _) if byte == b'\\' => {}
            (1, _) if byte == b'u' => {}
            (2.., Some(digit)) => unit = unit * 16 + digit,
            _ => return Unit::Invalid,
        }
    }
    Unit::Complete(unit)
}

/// Reads the complete text of a call's arguments.
///
/// A blank text and `null` are `{}`. A text that is not JSON gets a second chance after
/// [`repair_json`].
///
/// # Errors
///
/// The text of `argumentsError`: the parser's message and the text as it was received.
///
/// ```
/// use pliant_sdk::partial_json::parse_arguments;
///
/// assert!(parse_arguments("").is_ok_and(|arguments| arguments.is_empty()));
/// let error = parse_arguments(r#"{"path": "#).unwrap_err();
/// assert!(error.ends_with("\n\nReceived arguments:\n{\"path\": "));
/// ```
pub fn parse_arguments(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let message = match parse_or_repair(text) {
        Ok(Value::Object(arguments)) => return Ok(arguments),
        Ok(Value::Null) => return Ok(Map::new()),
        Ok(_) => "expected a JSON object".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(format!("{message}\n\nReceived arguments:\n{text}"))
}

/// Reads JSON, and if that fails, once more what [`repair_json`] makes of it.
///
/// # Errors
///
/// What still is no JSON after the repair; the error's position is that in the repaired text.
pub fn parse_or_repair(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match repair_json(text) {
        Cow::Borrowed(_) => Err(error),
        Cow::Owned(repaired) => serde_json::from_str(&repaired),
    })
}

/// Repairs what models get wrong inside JSON strings, and leaves everything else alone.
///
/// Raw control characters become escapes, the backslash of an invalid escape is doubled, and an
/// escaped half of a surrogate pair becomes `\ufffd`. JSON that a parser accepts is not changed.
pub fn repair_json(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut repaired = String::new();
    let mut copied = 0;
    let mut at = 0;
    let mut in_string = false;
    while let Some(plain) = bytes[at..]
        .iter()
        .position(|&byte| is_special(byte, in_string))
    {
        at += plain;
        in_string ^= bytes[at] == b'"';
        let (len, replacement) = repair_at(&bytes[at..]);
        if let Some(replacement) = replacement {
            repaired.push_str(&text[copied..at]);
            repaired.push_str(&replacement);
            copied = at + len;
        }
        at += len;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    repaired.push_str(&text[copied..]);
    Cow::Owned(repaired)
}

fn is_special(byte: u8, in_string: bool) -> bool {
    byte == b'"' || in_string && (byte == b'\\' || byte < b' ')
}

/// The length of the special character or escape at the start of `bytes`, and what to write
/// instead of it.
fn repair_at(bytes: &[u8]) -> (usize, Option<Cow<'static, str>>) {
    match bytes[0] {
        b'"' => (1, None),
        b'\\' => match read_escape(bytes) {
            Escape::Unfinished => (bytes.len(), None),
            escape @ Escape::Char(..) => (escape.len(), None),
            escape @ Escape::LoneSurrogate => (escape.len(), Some(Cow::Borrowed("\\ufffd"))),
            escape @ Escape::Invalid => (escape.len(), Some(Cow::Borrowed("\\\\"))),
        },
        control => (1, Some(Cow::Owned(format!("\\u{control:04x}")))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn snapshot(fragments: &[&str]) -> Value {
        let mut object = PartialObject::new();
        for fragment in fragments {
            object.push(fragment);
        }
        Value::Object(object.into_map())
    }

    fn check(text: &str, expected: Value) {
        assert_eq!(snapshot(&[text]), expected, "{text}");
    }

    /// Feeds fragments to one object and compares its map after each.
    fn check_deltas(deltas: &[(&str, Value)]) {
        let mut object = PartialObject::new();
        for (delta, expected) in deltas {
            object.push(delta);
            assert_eq!(&json!(object.as_map()), expected, "after {delta:?}");
        }
    }

    // The next five are `delta` and `arguments` of the wire fixtures; what they show is pi's.

    #[test]
    fn arguments_of_anthropic_messages_are_shown_as_by_pi() {
        let edit = |old: &str| json!({"path": "src/main.rs", "edits": [{"oldText": old}]});
        let both = |new: &str| json!({"path": "src/main.rs", "edits": [{"oldText": "let x = \"a\\n\";", "newText": new}]});
        check_deltas(&[
            ("", json!({})),
            ("{\"pat", json!({})),
            ("h\": \"", json!({"path": ""})),
            ("src/m", json!({"path": "src/m"})),
            ("ain.r", json!({"path": "src/main.r"})),
            ("s\", \"", json!({"path": "src/main.rs"})),
            ("edits", json!({"path": "src/main.rs"})),
            ("\": [{", json!({"path": "src/main.rs", "edits": [{}]})),
            ("\"oldT", json!({"path": "src/main.rs", "edits": [{}]})),
            ("ext\":", json!({"path": "src/main.rs", "edits": [{}]})),
            (" \"let", edit("let")),
            (" x = ", edit("let x = ")),
            ("\\\"a\\\\", edit("let x = \"a\\")),
            ("n\\\";\"", edit("let x = \"a\\n\";")),
            (", \"ne", edit("let x = \"a\\n\";")),
            ("wText", edit("let x = \"a\\n\";")),
            ("\": \"l", both("l")),
            ("et x ", both("let x ")),
            ("= \\\"\\", both("let x = \"")),
            ("u00e9", both("let x = \"é")),
            ("\\u6f2", both("let x = \"é")),
            ("2\\\";\"", both("let x = \"é漢\";")),
            ("}]}", both("let x = \"é漢\";")),
        ]);
    }

    #[test]
    fn numbers_of_anthropic_messages_are_shown_as_by_pi() {
        check_deltas(&[
            ("{\"path\":\"", json!({"path": ""})),
            ("a.txt\",\"l", json!({"path": "a.txt"})),
            ("imit\":20}", json!({"path": "a.txt", "limit": 20})),
        ]);
        check_deltas(&[
            ("{\"command\":\"ls -", json!({"command": "ls -"})),
            ("l\",\"", json!({"command": "ls -l"})),
            ("timeout\"", json!({"command": "ls -l"})),
            (":1.5", json!({"command": "ls -l", "timeout": 1.5})),
            ("e1}", json!({"command": "ls -l", "timeout": 15.0})),
        ]);
    }

    #[test]
    fn arguments_of_bedrock_are_shown_as_by_pi() {
        check_deltas(&[
            ("{\"path", json!({})),
            ("\":\"a.r", json!({"path": "a.r"})),
            ("s\",\"ed", json!({"path": "a.rs"})),
            ("its\":[", json!({"path": "a.rs", "edits": []})),
            ("{\"oldT", json!({"path": "a.rs", "edits": [{}]})),
            (
                "ext\":\"",
                json!({"path": "a.rs", "edits": [{"oldText": ""}]}),
            ),
            (
                "\\n\",\"n",
                json!({"path": "a.rs", "edits": [{"oldText": "\n"}]}),
            ),
            (
                "ewText",
                json!({"path": "a.rs", "edits": [{"oldText": "\n"}]}),
            ),
            (
                "\":\"é\"}",
                json!({"path": "a.rs", "edits": [{"oldText": "\n", "newText": "é"}]}),
            ),
            (
                "]}",
                json!({"path": "a.rs", "edits": [{"oldText": "\n", "newText": "é"}]}),
            ),
        ]);
    }

    #[test]
    fn arguments_of_openai_completions_are_shown_as_by_pi() {
        let edit = |old: &str| json!({"path": "src/lib.rs", "edits": [{"oldText": old}]});
        let both = |new: &str| json!({"path": "src/lib.rs", "edits": [{"oldText": "a\tb", "newText": new}]});
        check_deltas(&[
            ("{\"pa", json!({})),
            ("th\":", json!({})),
            ("\"src", json!({"path": "src"})),
            ("/lib", json!({"path": "src/lib"})),
            (".rs\"", json!({"path": "src/lib.rs"})),
            (",\"ed", json!({"path": "src/lib.rs"})),
            ("its\"", json!({"path": "src/lib.rs"})),
            (":[{\"", json!({"path": "src/lib.rs", "edits": [{}]})),
            ("oldText\"", json!({"path": "src/lib.rs", "edits": [{}]})),
            (":\"a\\", edit("a")),
            ("tb\",", edit("a\tb")),
            ("\"newText", edit("a\tb")),
            ("\":\"\\", both("")),
            ("ud83", both("")),
            ("d\\ud", both("")),
            ("e00 ", both("😀 ")),
            ("ok\"}", both("😀 ok")),
            ("]}", both("😀 ok")),
        ]);
    }

    #[test]
    fn arguments_of_the_other_wires_are_shown_as_by_pi() {
        let both =
            |new: &str| json!({"path": "src/lib.rs", "edits": [{"oldText": "x", "newText": new}]});
        check_deltas(&[
            (
                "{\"path\":\"src/lib.rs\",\"edits\":[{\"oldText\":\"x\",\"newText\":",
                json!({"path": "src/lib.rs", "edits": [{"oldText": "x"}]}),
            ),
            ("\"\\\"y\\", both("\"y")),
            ("\"\\n\"}", both("\"y\"\n")),
            ("]}", both("\"y\"\n")),
        ]);
        check_deltas(&[(
            "{\"path\":\"a\",\"edits\":[{\"oldText\":\"x\",\"newText\":\"é\"}]}",
            json!({"path": "a", "edits": [{"oldText": "x", "newText": "é"}]}),
        )]);
        check_deltas(&[("{\"command\": \"ls", json!({"command": "ls"}))]);
        check_deltas(&[("{\"path\"", json!({})), (":\"b\"}", json!({"path": "b"}))]);
    }

    // From here on one test for each rule of §2.3, "While streaming".

    #[test]
    fn an_unfinished_escape_is_held_back() {
        for tail in ["\\", "\\u", "\\u0", "\\u00", "\\u00e"] {
            check(&format!("{{\"a\": \"x{tail}"), json!({"a": "x"}));
        }
        check("{\"a\": \"x\\u00e9", json!({"a": "xé"}));
    }

    #[test]
    fn the_first_half_of_a_surrogate_pair_is_held_back() {
        for tail in ["", "\\", "\\u", "\\ude", "\\ude0"] {
            check(&format!("{{\"a\": \"x\\ud83d{tail}"), json!({"a": "x"}));
        }
        check("{\"a\": \"x\\uD83D\\uDE00", json!({"a": "x😀"}));
    }

    #[test]
    fn a_lone_surrogate_is_shown_as_the_replacement_character() {
        check(r#"{"a": "\ud83dx"#, json!({"a": "\u{fffd}x"}));
        check(r#"{"a": "\ud83d\n"#, json!({"a": "\u{fffd}\n"}));
        check(r#"{"a": "\ud83d\ud83d\ude00"#, json!({"a": "\u{fffd}😀"}));
        check(
            r#"{"a": "\ude00", "\ud83d": 1"#,
            json!({"a": "\u{fffd}", "\u{fffd}": 1}),
        );
    }

    #[test]
    fn open_containers_show_their_members_so_far() {
        check(
            "{\"a\": [1, {\"b\": [[\"x",
            json!({"a": [1, {"b": [["x"]]}]}),
        );
        check("{\"a\": {\"b\": {", json!({"a": {"b": {}}}));
    }

    #[test]
    fn a_member_without_value_and_a_partial_key_are_omitted() {
        for tail in ["", "\"", "\"b", "\"b\\", "\"b\"", "\"b\":", "\"b\": "] {
            check(&format!("{{\"a\": 1, {tail}"), json!({"a": 1}));
        }
    }

    #[test]
    fn a_literal_is_shown_from_its_first_letter() {
        for (word, value) in [
            ("true", json!(true)),
            ("false", json!(false)),
            ("null", json!(null)),
        ] {
            for end in 1..=word.len() {
                let prefix = &word[..end];
                check(&format!("{{\"a\": {prefix}"), json!({"a": value}));
                check(&format!("{{\"a\": [{prefix}"), json!({"a": [value]}));
            }
        }
    }

    #[test]
    fn a_word_that_is_no_literal_is_dropped_again() {
        check_deltas(&[
            ("{\"a\": [tru", json!({"a": [true]})),
            ("x", json!({"a": []})),
            (", t, 2", json!({"a": [2]})),
        ]);
        check("{\"a\": undefined, \"b\": True, \"c\": 1", json!({"c": 1}));
    }

    #[test]
    fn a_number_is_shown_while_its_digits_are_one() {
        for (digits, value) in [
            ("1", json!({"a": 1})),
            ("-", json!({})),
            ("-0", json!({"a": -0.0})),
            ("-12", json!({"a": -12})),
            ("1.", json!({})),
            ("1.5", json!({"a": 1.5})),
            ("1.5e", json!({"a": 1.5})),
            ("2E", json!({"a": 2})),
            ("2e+", json!({"a": 2})),
            ("2e-", json!({"a": 2})),
            ("2e-1", json!({"a": 0.2})),
            ("1.e", json!({})),
            ("-e", json!({})),
            ("1-", json!({})),
            ("01", json!({})),
        ] {
            check(&format!("{{\"a\": {digits}"), value);
        }
    }

    #[test]
    fn a_long_number_is_hidden_until_it_is_complete() {
        let digits = "1".repeat(64);
        let value: Value = serde_json::from_str(&digits).expect("a number");
        let longer: Value = serde_json::from_str(&format!("{digits}1")).expect("a number");
        check_deltas(&[
            ("{\"a\": ", json!({})),
            (&digits, json!({"a": value})),
            ("1", json!({})),
            ("}", json!({"a": longer})),
        ]);
    }

    #[test]
    fn control_characters_and_invalid_escapes_are_kept() {
        check("{\"a\": \"x\n\t\u{0}y", json!({"a": "x\n\t\u{0}y"}));
        check(r#"{"a": "\d+\.\'"#, json!({"a": r"\d+\.\'"}));
        check(
            r#"{"a": "\é\u12g4\u", "\u12": 1"#,
            json!({"a": r"\é\u12g4\u", r"\u12": 1}),
        );
        check("{\"a\": \"x\\\ny", json!({"a": "x\\\ny"}));
    }

    #[test]
    fn missing_commas_and_colons_are_tolerated() {
        check(r#"{"a" 1 "b" [1 2"x"{"c" null}] "d""e""#, {
            json!({"a": 1, "b": [1, 2, "x", {"c": null}], "d": "e"})
        });
    }

    #[test]
    fn values_in_an_impossible_place_are_dropped() {
        check(
            r#"{1, [2, {"x": "}]"}], {"y": ["\"}"]}, null "a": 1, "b", "c": , "d": 2"#,
            json!({"a": 1, "d": 2}),
        );
        check(r#"{"a": [1}, 2], "b": 3"#, json!({"a": [1, 2], "b": 3}));
    }

    #[test]
    fn text_around_the_root_is_dropped() {
        check("```json\n{\"a\": 1} {\"b\": 2}, \"c\": 3", json!({"a": 1}));
        check("\u{feff} — {\"a\": 1", json!({"a": 1}));
    }

    #[test]
    fn a_root_that_is_no_object_shows_as_an_empty_one() {
        for root in [
            "[{\"a\": 1}]",
            "\"x\" {\"a\": 1}",
            "12 {\"a\": 1}",
            "null",
            "tr",
            "",
            " ",
        ] {
            check(root, json!({}));
        }
    }

    #[test]
    fn the_last_of_repeated_members_wins() {
        check(r#"{"a": 1, "b": 2, "a": "x"#, json!({"a": "x", "b": 2}));
        check_deltas(&[
            (
                "{\"a\": {\"x\": 1}, \"b\": 2, \"a",
                json!({"a": {"x": 1}, "b": 2}),
            ),
            ("\": -", json!({"a": {"x": 1}, "b": 2})),
            ("3", json!({"a": -3, "b": 2})),
            (".", json!({"a": {"x": 1}, "b": 2})),
            ("5, \"a\": [", json!({"a": [], "b": 2})),
            ("{\"y\": \"", json!({"a": [{"y": ""}], "b": 2})),
            ("z\"}", json!({"a": [{"y": "z"}], "b": 2})),
            ("], \"c\": {\"", json!({"a": [{"y": "z"}], "b": 2, "c": {}})),
        ]);
    }

    #[test]
    fn proto_is_an_ordinary_key() {
        check(r#"{"__proto__": {"a": 1}, "constructor": "x"#, {
            json!({"__proto__": {"a": 1}, "constructor": "x"})
        });
    }

    // Splitting.

    const WILD: &str = "junk {\"päth\": \"é\\u00e9漢\\ud83d\\ude00\\ud83d\\n\\d\\\\\", \"n\": [-1.5e+3, 0, 12],\
        \"o\": {\"a\": {}, \"b\": [[], [true, nul, null]], \"a\": \"again\"}, 7 \"x\" [1}, 2],\
        \"n\": {\"\\u006e\": \"raw\tcontrol\"}, \"last\": false} {\"after\": 1}";

    #[test]
    fn snapshots_do_not_depend_on_where_the_text_is_cut() {
        let cuts: Vec<usize> = (0..=WILD.len())
            .filter(|&at| WILD.is_char_boundary(at))
            .collect();
        let mut by_char = PartialObject::new();
        for pair in cuts.windows(2) {
            by_char.push(&WILD[pair[0]..pair[1]]);
            let prefix = &WILD[..pair[1]];
            assert_eq!(json!(by_char.as_map()), snapshot(&[prefix]), "{prefix}");
        }
        let whole = snapshot(&[WILD]);
        assert_eq!(whole["last"], json!(false));
        for &first in &cuts {
            for &second in cuts.iter().filter(|&&at| at >= first) {
                let parts = [&WILD[..first], &WILD[first..second], &WILD[second..]];
                assert_eq!(snapshot(&parts), whole, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn random_text_in_random_fragments_reads_as_in_one_piece() {
        const PIECES: [&str; 24] = [
            "{", "}", "[", "]", "\"", "\"", "\"", ",", ":", "\\", "\\u", "\\ud83d", "\\ude00",
            "d8", "1", "-", ".", "e", "tr", "null", " ", "é", "\"a\":", "\"b\": [",
        ];
        let mut state: u64 = 1;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for _ in 0..3000 {
            let mut text = String::from("{");
            let mut object = PartialObject::new();
            object.push("{");
            for _ in 0..random(40) {
                let fragment: String = (0..random(4))
                    .map(|_| PIECES[random(PIECES.len())])
                    .collect();
                object.push(&fragment);
                text += &fragment;
                assert_eq!(json!(object.as_map()), snapshot(&[&text]), "{text}");
            }
            if let Ok(Value::Object(strict)) = parse_or_repair(&text) {
                assert_eq!(object.as_map(), &strict, "{text}");
            }
        }
    }

    #[test]
    fn a_complete_object_reads_as_by_the_strict_parser() {
        let text = r#" {"z": 1, "a": [1.5, -2e3, 18446744073709551615, true, false, null, []],
            "m": {"\"\\\/\b\f\n\r\t\u0041": {"deep": [{"er": "\ud83d\ude00"}]}}, "": ""} "#;
        let strict = parse_arguments(text).expect("valid");
        let partial = snapshot(&[text]);
        assert_eq!(partial, json!(strict));
        assert_eq!(
            partial.to_string(),
            json!(strict).to_string(),
            "the order is kept"
        );
    }

    // Bounds.

    #[test]
    fn deeper_nesting_than_the_limit_is_shown_empty() {
        let text = format!("{{\"a\": {}\"x\"", "[".repeat(100_000));
        let mut value = &snapshot(&[&text])["a"];
        let mut depth = 1;
        while let Some(inner) = value.get(0) {
            value = inner;
            depth += 1;
        }
        assert_eq!((depth, value), (MAX_DEPTH, &json!([])));

        let closed = format!("{text}{}, \"b\": 1", "]".repeat(100_000));
        assert_eq!(snapshot(&[&closed])["b"], json!(1));
    }

    // Each would take minutes if a fragment cost more than its length.
    #[test]
    fn long_texts_in_small_fragments_are_read_once() {
        let size = 1_000_000;
        let string = "x".repeat(size);
        for text in [
            format!("{{\"a\": \"{string}\"}}"),
            format!("{{\"{string}\": \"{string}\"}}"),
            format!("{{\"a\": {}}}", "1".repeat(size)),
            format!("{{\"a\": [{}]}}", "{\"b\": 1},".repeat(size / 9)),
            format!("{{\"a\": \"{}\"}}", "\\u00e9".repeat(size / 6)),
        ] {
            let mut object = PartialObject::new();
            for start in (0..text.len()).step_by(4) {
                object.push(&text[start..(start + 4).min(text.len())]);
            }
            assert_eq!(object.as_map().len(), usize::from(!text.contains("111")));
        }
    }

    // The end parse.

    // P08
    #[test]
    fn blank_arguments_and_null_are_an_empty_object() {
        for text in ["", " ", "\n\t", "null", " null\n", "{}"] {
            assert_eq!(parse_arguments(text), Ok(Map::new()), "{text:?}");
        }
    }

    #[test]
    fn arguments_are_repaired_when_they_are_not_json() {
        for (text, expected) in [
            ("{\"a\": \"x\n\ty\"}", json!({"a": "x\n\ty"})),
            (
                r#"{"a": "\d+\\d\'\u12\"", "b": 1}"#,
                json!({"a": "\\d+\\d\\'\\u12\"", "b": 1}),
            ),
            (
                r#"{"\ud800": "\udc00x\ud83d\ude00"}"#,
                json!({"\u{fffd}": "\u{fffd}x😀"}),
            ),
            ("{\"a\": \"x\\\ny\"}", json!({"a": "x\\\ny"})),
        ] {
            assert_eq!(
                parse_arguments(text).map(Value::Object),
                Ok(expected.clone()),
                "{text}"
            );
            check(text, expected);
        }
    }

    #[test]
    fn unreadable_arguments_are_an_error_with_the_text_as_received() {
        for text in [
            "{\"a\": \"\\d\n",
            "{\"a\"",
            "{\"a\": 1} x",
            "{'a': 1}",
            "[1]",
            "7",
            "\"x\"",
        ] {
            let error = parse_arguments(text).expect_err(text);
            let (message, received) = error.split_once("\n\nReceived arguments:\n").expect(text);
            assert_eq!(received, text);
            assert!(!message.is_empty());
        }
    }

    #[test]
    fn valid_json_is_not_repaired() {
        for text in [
            "{\n\t\"a\": \"\\n\\u00e9\\ud83d\\ude00\\\\\"\r\n}",
            "[\"\\\\\", \"\u{7f}é\"]",
            "",
        ] {
            assert!(
                matches!(repair_json(text), Cow::Borrowed(same) if same == text),
                "{text}"
            );
        }
    }

    #[test]
    fn only_strings_are_repaired() {
        assert_eq!(
            repair_json("\n\\d\"\n\\d\"\n\\d"),
            "\n\\d\"\\u000a\\\\d\"\n\\d"
        );
    }
}

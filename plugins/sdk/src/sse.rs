//! Server-sent events: the bytes of a response body go in, as they arrive, and events come out.
//!
//! One decoder for every wire. It follows the WHATWG rules with one deliberate exception: an event
//! that is still pending at the end of input is dispatched too, because servers that end a stream
//! without its last blank line exist. What `data` means (`[DONE]`, JSON, …) is the wire's business,
//! and so are `retry` fields, which are ignored: reconnecting would repeat a paid request.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr2;

/// The limit of [`Decoder::new`] for one event.
pub const DEFAULT_MAX_EVENT_BYTES: usize = 64 * 1024 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event of the stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The value of the `event` field; `None` when it is absent or empty.
    pub event: Option<String>,
    /// The values of the `data` fields, joined by `\n`.
    pub data: String,
    /// The value of this event's own `id` field; an earlier event's id is not carried over.
    pub id: Option<String>,
}

/// How the input ended, as told by [`Decoder::finish`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a wire may have to refuse an incomplete tail"]
pub enum End {
    /// Nothing was pending: the last event had its blank line.
    Complete,
    /// The input stopped inside an event or a line. The event was dispatched if it had data.
    Incomplete,
}

/// Why a stream cannot be decoded further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseError {
    /// One event, or one line, is larger than the decoder allows.
    EventTooLarge {
        /// The limit that was exceeded.
        max_bytes: usize,
    },
}

impl fmt::Display for SseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EventTooLarge { max_bytes } => {
                write!(
                    f,
                    "an event of the response stream is larger than {max_bytes} bytes"
                )
            }
        }
    }
}

impl std::error::Error for SseError {}

/// One event, lent by the decoder until it reads on; the parts are those of [`Event`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The value of the `event` field; `None` when it is absent or empty.
    pub event: Option<&'a str>,
    /// The values of the `data` fields, joined by `\n`.
    pub data: &'a str,
    /// The value of this event's own `id` field.
    pub id: Option<&'a str>,
}

impl Frame<'_> {
    /// A copy that may be kept.
    #[must_use]
    pub fn to_event(self) -> Event {
        Event {
            event: self.event.map(str::to_owned),
            data: self.data.to_owned(),
            id: self.id.map(str::to_owned),
        }
    }
}

/// An incremental decoder for one response body.
///
/// Chunks may be cut anywhere: inside a line, a `\r\n` pair or a character. Bytes that are not
/// UTF-8 become U+FFFD. The work is linear in the bytes, however small the chunks are.
///
/// ```
/// use pliant_sdk::sse::{Decoder, End};
///
/// let mut decoder = Decoder::new();
/// let mut frames = decoder.frames(b"event: ping\ndata: {}\n\ndata: [DO");
/// let ping = frames.next()?.expect("the first event is complete");
/// assert_eq!((ping.event, ping.data), (Some("ping"), "{}"));
/// assert_eq!(frames.next()?, None);
///
/// assert_eq!(decoder.frames(b"NE]").next()?, None);
/// let (last, end) = decoder.finish_lent();
/// assert_eq!(last.map(|last| last.data), Some("[DONE]"));
/// assert_eq!(end, End::Incomplete);
/// # Ok::<(), pliant_sdk::sse::SseError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Decoder {
    max_event_bytes: usize,
    /// The start of a line whose end has not arrived.
    partial_line: Vec<u8>,
    /// The last byte was `\r`; a `\n` that follows belongs to it.
    after_cr: bool,
    /// No line has ended yet, so the next one may start with a byte order mark.
    at_start: bool,
    pending: Pending,
}

/// The fields of the event being read. There are thousands of events in an answer, so the room of one
/// serves the next.
#[derive(Debug, Clone, Default)]
struct Pending {
    event: Field,
    data: Field,
    id: Field,
    /// It was lent out as it is; what comes is another event.
    lent: bool,
}

#[derive(Debug, Clone, Default)]
struct Field {
    text: String,
    present: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A decoder with the default limit.
    pub fn new() -> Self {
        Self::with_max_event_bytes(DEFAULT_MAX_EVENT_BYTES)
    }

    /// A decoder that refuses an event when its data so far and the line being read are together
    /// larger than `max_event_bytes`.
    pub fn with_max_event_bytes(max_event_bytes: usize) -> Self {
        Self {
            max_event_bytes,
            partial_line: Vec::new(),
            after_cr: false,
            at_start: true,
            pending: Pending::default(),
        }
    }

    /// Decodes the next bytes, event by event, without copying any out. Take them all: what is not
    /// taken of `bytes` is lost.
    pub fn frames<'a>(&'a mut self, bytes: &'a [u8]) -> Frames<'a> {
        Frames {
            decoder: self,
            rest: bytes,
        }
    }

    /// Decodes the next bytes and appends the events they complete to `out`.
    ///
    /// # Errors
    ///
    /// An event over the limit. `out` then holds the events before it, and the decoder is of no
    /// further use.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<Event>) -> Result<(), SseError> {
        let mut frames = self.frames(bytes);
        while let Some(frame) = frames.next()? {
            out.push(frame.to_event());
        }
        Ok(())
    }

    /// Ends the input: dispatches what is pending, tells whether it was complete, and leaves the
    /// decoder ready for another body.
    pub fn finish(&mut self, out: &mut Vec<Event>) -> End {
        let (last, end) = self.finish_lent();
        out.extend(last.map(Frame::to_event));
        end
    }

    /// As [`Decoder::finish`], with the last event lent.
    pub fn finish_lent(&mut self) -> (Option<Frame<'_>>, End) {
        self.pending.begin();
        let line = std::mem::take(&mut self.partial_line);
        let end = match line.is_empty() && self.pending.is_empty() {
            true => End::Complete,
            false => End::Incomplete,
        };
        self.line(&line);
        self.after_cr = false;
        self.at_start = true;
        let last = self.pending.dispatch().then(|| self.pending.frame());
        (last, end)
    }

    fn keep_partial_line(&mut self, bytes: &[u8]) -> Result<(), SseError> {
        self.check_size(bytes)?;
        self.partial_line.extend_from_slice(bytes);
        Ok(())
    }

    /// Reads a line whose last part is `bytes`, and answers whether it ends an event. The common line
    /// lies in one chunk and is not copied.
    fn end_line(&mut self, bytes: &[u8]) -> Result<bool, SseError> {
        if self.partial_line.is_empty() {
            self.check_size(bytes)?;
            return Ok(self.line(bytes));
        }
        self.keep_partial_line(bytes)?;
        let mut line = std::mem::take(&mut self.partial_line);
        let dispatched = self.line(&line);
        line.clear();
        self.partial_line = line;
        Ok(dispatched)
    }

    /// Measures the event with `more` bytes of its current line, so that the limit does not depend
    /// on where chunks are cut.
    fn check_size(&self, more: &[u8]) -> Result<(), SseError> {
        let data = self.pending.data.text.len();
        if data + self.partial_line.len() + more.len() > self.max_event_bytes {
            return Err(SseError::EventTooLarge {
                max_bytes: self.max_event_bytes,
            });
        }
        Ok(())
    }

    /// Answers whether the line ends an event that is one.
    fn line(&mut self, line: &[u8]) -> bool {
        let line = match line.strip_prefix(BYTE_ORDER_MARK) {
            Some(stripped) if self.at_start => stripped,
            _ => line,
        };
        self.at_start = false;
        if line.is_empty() {
            return self.pending.dispatch();
        }
        // A comment is a line with an empty field name, and falls through like an unknown field.
        let (field, value) = split_field(line);
        match field {
            b"data" => self.pending.data.add_line(value),
            b"event" => self.pending.event.set_unless_empty(value),
            b"id" => self.pending.id.set(value),
            _ => {}
        }
        false
    }
}

/// The events that some bytes complete, see [`Decoder::frames`].
#[derive(Debug)]
pub struct Frames<'a> {
    decoder: &'a mut Decoder,
    rest: &'a [u8],
}

impl Frames<'_> {
    /// The next event, or `None` when the bytes are used up.
    ///
    /// # Errors
    ///
    /// An event over the limit; the decoder is then of no further use.
    // It lends, which an iterator cannot.
    #[expect(clippy::should_implement_trait, reason = "each item borrows from this")]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, SseError> {
        let decoder = &mut *self.decoder;
        decoder.pending.begin();
        while let Some(first) = self.rest.first() {
            if std::mem::take(&mut decoder.after_cr) && *first == b'\n' {
                self.rest = &self.rest[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', self.rest) else {
                decoder.keep_partial_line(std::mem::take(&mut self.rest))?;
                break;
            };
            let (line, rest) = self.rest.split_at(end);
            decoder.after_cr = rest[0] == b'\r';
            self.rest = &rest[1..];
            if decoder.end_line(line)? {
                return Ok(Some(decoder.pending.frame()));
            }
        }
        Ok(None)
    }
}

impl Pending {
    /// Makes room for another event if the last one was lent out.
    fn begin(&mut self) {
        if std::mem::take(&mut self.lent) {
            self.forget();
        }
    }

    fn is_empty(&self) -> bool {
        !(self.event.present || self.data.present || self.id.present)
    }

    /// Whether there is an event to lend. Without a `data` field there is none; its other fields are
    /// forgotten all the same.
    fn dispatch(&mut self) -> bool {
        self.lent = self.data.present;
        if !self.lent {
            self.forget();
        }
        self.lent
    }

    fn frame(&self) -> Frame<'_> {
        Frame {
            event: self.event.get(),
            data: &self.data.text,
            id: self.id.get(),
        }
    }

    fn forget(&mut self) {
        self.event.clear();
        self.data.clear();
        self.id.clear();
    }
}

impl Field {
    /// Room that is kept from one event to the next; a huge one is an exception.
    const KEPT_BYTES: usize = 64 * 1024;

    fn get(&self) -> Option<&str> {
        self.present.then_some(self.text.as_str())
    }

    fn set(&mut self, value: &[u8]) {
        self.text.clear();
        self.text.push_str(&utf8(value));
        self.present = true;
    }

    fn set_unless_empty(&mut self, value: &[u8]) {
        self.set(value);
        self.present = !value.is_empty();
    }

    fn add_line(&mut self, value: &[u8]) {
        if std::mem::replace(&mut self.present, true) {
            self.text.push('\n');
        }
        self.text.push_str(&utf8(value));
    }

    fn clear(&mut self) {
        self.present = false;
        self.text.clear();
        if self.text.capacity() > Self::KEPT_BYTES {
            self.text = String::new();
        }
    }
}

/// As `from_utf8_lossy`, which looks at every character; the plain check takes whole words.
fn utf8(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(value),
    }
}

/// Splits `field: value`. One space after the colon is not part of the value; a line without a
/// colon is a field with an empty value.
fn split_field(line: &[u8]) -> (&[u8], &[u8]) {
    let Some(colon) = line.iter().position(|&byte| byte == b':') else {
        return (line, b"");
    };
    let value = &line[colon + 1..];
    (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes the chunks to the end and writes each event as `name|id|data`.
    fn decode(chunks: &[&[u8]]) -> (Vec<String>, End) {
        let mut decoder = Decoder::new();
        let mut events = Vec::new();
        for chunk in chunks {
            decoder
                .push(chunk, &mut events)
                .expect("no event is too large");
        }
        let end = decoder.finish(&mut events);
        (events.iter().map(show).collect(), end)
    }

    fn show(event: &Event) -> String {
        let Event { event, data, id } = event;
        let or_dash = |field: &Option<String>| field.clone().unwrap_or("-".to_owned());
        format!("{}|{}|{data}", or_dash(event), or_dash(id))
    }

    fn check(input: &str, expected: &[&str]) {
        assert_eq!(decode(&[input.as_bytes()]).0, expected, "{input:?}");
    }

    #[test]
    fn fields_make_an_event_and_a_blank_line_dispatches_it() {
        check(
            "event: a\nid: 7\ndata: {\"x\":1}\n\ndata: y\n\n",
            &["a|7|{\"x\":1}", "-|-|y"],
        );
    }

    #[test]
    fn several_data_lines_are_joined_by_a_line_feed() {
        check("data: a\ndata:\ndata: b\n\n", &["-|-|a\n\nb"]);
    }

    #[test]
    fn one_space_after_the_colon_is_dropped() {
        check(
            "data:x\n\ndata: x\n\ndata:  x\n\ndata:\tx \n\n",
            &["-|-|x", "-|-|x", "-|-| x", "-|-|\tx "],
        );
    }

    #[test]
    fn a_line_without_a_colon_is_an_empty_field() {
        check("data\n\ndata\ndata\n\n", &["-|-|", "-|-|\n"]);
    }

    #[test]
    fn a_value_may_hold_colons() {
        check("event: a:b\ndata: c: d\n\n", &["a:b|-|c: d"]);
    }

    #[test]
    fn unknown_and_misspelt_fields_are_ignored() {
        check(
            "retry: 5\nDATA: no\n data: no\ndatax: no\ndata: yes\n\n",
            &["-|-|yes"],
        );
    }

    #[test]
    fn without_data_nothing_is_dispatched_and_the_name_is_forgotten() {
        check("event: a\nid: 1\n\n\n\ndata: x\n\n", &["-|-|x"]);
    }

    #[test]
    fn an_empty_event_name_is_no_name() {
        check("event: a\nevent:\ndata: x\n\n", &["-|-|x"]);
    }

    // P06
    #[test]
    fn comments_are_ignored_before_between_and_inside_events() {
        check(
            ":\n: ping\n\n:ping\ndata: a\n:\ndata: b\n\n: ping\n\n:\ndata: c\n\n:\n",
            &["-|-|a\nb", "-|-|c"],
        );
    }

    #[test]
    fn every_kind_of_line_end_separates_lines() {
        for end in ["\n", "\r", "\r\n"] {
            let input = "data: a~event: n~~data: b~~".replace('~', end);
            check(&input, &["n|-|a", "-|-|b"]);
        }
        check(
            "data: a\r\n\ndata: b\n\r\ndata: c\r\r\ndata: d\n\n",
            &["-|-|a", "-|-|b", "-|-|c", "-|-|d"],
        );
    }

    // P05
    #[test]
    fn a_pending_event_is_dispatched_at_end_of_input() {
        for tail in ["\n\n", "\n", ""] {
            check(
                &format!("data: a\n\nevent: e\ndata: last{tail}"),
                &["-|-|a", "e|-|last"],
            );
        }
    }

    // Google refuses an incomplete tail.
    #[test]
    fn the_caller_learns_whether_the_last_event_was_complete() {
        for input in [
            "",
            "data: a\n\n",
            "data: a\r\r",
            "data: a\n\n: bye\n",
            "data: a\r\n\r\n\n",
        ] {
            assert_eq!(decode(&[input.as_bytes()]).1, End::Complete, "{input:?}");
        }
        for input in [
            "d",
            "data: a",
            "data: a\n",
            "event: a\n",
            "data: a\r\n",
            "data: a\n\n: b",
        ] {
            assert_eq!(decode(&[input.as_bytes()]).1, End::Incomplete, "{input:?}");
        }
    }

    #[test]
    fn a_finished_decoder_reads_another_body() {
        let mut decoder = Decoder::new();
        let mut events = Vec::new();
        decoder.push(b"event: a\r", &mut events).expect("small");
        assert_eq!(decoder.finish(&mut events), End::Incomplete);
        decoder
            .push(b"\xEF\xBB\xBFdata: x\n\n", &mut events)
            .expect("small");
        assert_eq!(decoder.finish(&mut events), End::Complete);
        assert_eq!(events.iter().map(show).collect::<Vec<_>>(), ["-|-|x"]);
    }

    #[test]
    fn only_a_leading_byte_order_mark_is_skipped() {
        check("\u{feff}data: a\n\n\u{feff}data: b\n\n", &["-|-|a"]);
        check("\u{feff}\u{feff}data: a\n\n", &[]);
        check("data: \u{feff}a\n\n", &["-|-|\u{feff}a"]);
    }

    #[test]
    fn invalid_utf8_becomes_the_replacement_character() {
        let input = b"data: a\xFFb\xE6\xBC\n\ndata: \xF0\x9F\x98";
        let expected = ["-|-|a\u{fffd}b\u{fffd}", "-|-|\u{fffd}"];
        assert_eq!(decode(&[input]).0, expected);
    }

    const MIXED: &[u8] =
        "\u{feff}event: é\r\ndata: 漢😀\r\n\r\n: ping\r\rid: 1\rdata: x\ndata: y\n\n\
        data: \r\n\r\ndata: a line that is longer than one block of the search for its end …………\n\
        \r\ndata: tail"
            .as_bytes();

    #[test]
    fn the_events_do_not_depend_on_where_chunks_are_cut() {
        let whole = decode(&[MIXED]);
        assert_eq!(whole.0.len(), 5);
        for first in 0..=MIXED.len() {
            for second in first..=MIXED.len() {
                let chunks = [&MIXED[..first], &MIXED[first..second], &MIXED[second..]];
                assert_eq!(decode(&chunks), whole, "cut at {first} and {second}");
            }
        }
        assert_eq!(decode(&MIXED.chunks(1).collect::<Vec<_>>()), whole);
    }

    #[test]
    fn an_event_over_the_limit_is_an_error_after_the_events_before_it() {
        let expected = Err(SseError::EventTooLarge { max_bytes: 10 });
        for tail in [
            "data: 12345\n\n",
            "data: 12345",
            "data: 123\ndata: 12\n",
            ":0123456789\n",
        ] {
            let input = format!("data: ok\n\n{tail}");
            for size in 1..=input.len() {
                let mut decoder = Decoder::with_max_event_bytes(10);
                let mut events = Vec::new();
                let mut chunks = input.as_bytes().chunks(size);
                let result = chunks.try_for_each(|chunk| decoder.push(chunk, &mut events));
                assert_eq!(result, expected, "{tail:?} in chunks of {size}");
                assert_eq!(events.len(), 1);
            }
        }
    }

    #[test]
    fn the_limit_is_for_one_event_and_not_for_the_stream() {
        let mut decoder = Decoder::with_max_event_bytes(10);
        let mut events = Vec::new();
        for _ in 0..100 {
            decoder
                .push(b": comment\ndata:1234\n\n", &mut events)
                .expect("fits");
        }
        assert_eq!(events.len(), 100);
    }

    // Would take hours if every chunk looked at the whole line again.
    #[test]
    fn a_long_line_in_single_bytes_is_read_once() {
        let input = format!("data: {}\n\n", "x".repeat(4_000_000));
        let mut decoder = Decoder::new();
        let mut events = Vec::new();
        for byte in input.as_bytes() {
            decoder
                .push(std::slice::from_ref(byte), &mut events)
                .expect("below the limit");
        }
        assert_eq!(events[0].data.len(), 4_000_000);
    }
}

//! A file's bytes as lines. What matching looks at is a view of them: without the byte order mark,
//! and with every line break (CRLF, lone CR, LF) as one line feed. Each place of the view has its
//! place in the bytes, so that what is not replaced keeps its bytes.

use std::borrow::Cow;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// One line: offsets of its first byte, of its line break, and of its first byte in the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) start: usize,
    pub(crate) end: usize,
    view: usize,
}

/// A file that is about to be edited.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    /// All bytes, the byte order mark included.
    pub(crate) bytes: &'a [u8],
    /// At least one; the text after the last line break is a line, even when it is empty.
    pub(crate) lines: Vec<Line>,
    /// The bytes with line feeds only.
    pub(crate) view: Cow<'a, [u8]>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let bom = if bytes.starts_with(BOM) { BOM.len() } else { 0 };
        let mut lines = Vec::new();
        let (mut start, mut view_start) = (bom, 0);
        for at in memchr::memchr2_iter(b'\n', b'\r', &bytes[bom..]).map(|at| at + bom) {
            let second_of_crlf = bytes[at] == b'\n' && at > bom && bytes[at - 1] == b'\r';
            if second_of_crlf {
                start = at + 1;
                continue;
            }
            lines.push(Line {
                start,
                end: at,
                view: view_start,
            });
            view_start += at - start + 1;
            start = at + 1;
        }
        lines.push(Line {
            start,
            end: bytes.len(),
            view: view_start,
        });
        let view = match memchr::memchr(b'\r', bytes) {
            None => Cow::Borrowed(&bytes[bom..]),
            Some(_) => Cow::Owned(line_feeds_only(bytes, &lines)),
        };
        Self { bytes, lines, view }
    }

    /// Bytes of a line without its break.
    pub(crate) fn line(&self, index: usize) -> &'a [u8] {
        self.lines
            .get(index)
            .map_or(&[], |line| &self.bytes[line.start..line.end])
    }

    /// Number, from 0, of the line that holds a place of the view.
    pub(crate) fn line_at(&self, view: usize) -> usize {
        self.lines.partition_point(|line| line.view <= view) - 1
    }

    /// Offset in the bytes of a place in the view. The place of a line break is where it begins.
    pub(crate) fn offset(&self, view: usize) -> usize {
        let line = self.lines[self.line_at(view)];
        line.start + (view - line.view)
    }

    /// The view as text.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.view)
    }

    /// The line break for text that is put in at an offset: that of the line there; where no line
    /// feed follows, that of the line before; CR only in a file that knows no line feed.
    pub(crate) fn line_break_at(&self, offset: usize) -> &'static str {
        let here = memchr::memchr(b'\n', &self.bytes[offset..]).map(|at| at + offset);
        let before = || memchr::memrchr(b'\n', &self.bytes[..offset]);
        match here.or_else(before) {
            Some(at) if at > 0 && self.bytes[at - 1] == b'\r' => "\r\n",
            Some(_) => "\n",
            None if memchr::memchr(b'\r', self.bytes).is_some() => "\r",
            None => "\n",
        }
    }
}

fn line_feeds_only(bytes: &[u8], lines: &[Line]) -> Vec<u8> {
    let mut view = Vec::with_capacity(bytes.len());
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            view.push(b'\n');
        }
        view.extend_from_slice(&bytes[line.start..line.end]);
    }
    view
}

/// Text of an argument as the view has it.
pub(crate) fn with_line_feeds(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(bytes: &[u8]) -> String {
        Source::new(bytes).text().into_owned()
    }

    #[test]
    fn the_view_has_line_feeds_only_and_no_byte_order_mark() {
        assert_eq!(view(b"\xef\xbb\xbfa\r\nb\rc\n\r\r\n\n"), "a\nb\nc\n\n\n\n");
        assert_eq!(view(b"\r"), "\n");
        assert_eq!(view(b"\n\r"), "\n\n");
        assert_eq!(view(b""), "");
        assert_eq!(with_line_feeds("a\r\nb\rc\r\r\n"), "a\nb\nc\n\n");
    }

    #[test]
    fn every_place_of_the_view_has_its_place_in_the_bytes() {
        let bytes = b"\xef\xbb\xbfab\r\n\rc\n";
        let source = Source::new(bytes);
        let offsets: Vec<_> = (0..=source.view.len())
            .map(|at| source.offset(at))
            .collect();
        //                    a  b  CRLF CR c  LF end
        assert_eq!(offsets, [3, 4, 5, 7, 8, 9, 10]);
        assert_eq!(source.lines.len(), 4);
        assert_eq!(source.line(2), b"c");
        assert_eq!(source.line(9), b"");
    }

    #[test]
    fn a_line_break_is_the_one_of_the_line_there() {
        let at = |bytes: &[u8], offset| Source::new(bytes).line_break_at(offset);
        assert_eq!(at(b"a\r\nb\nc", 0), "\r\n");
        assert_eq!(at(b"a\r\nb\nc", 1), "\r\n");
        assert_eq!(at(b"a\r\nb\nc", 3), "\n");
        assert_eq!(at(b"a\r\nb\r\nc", 6), "\r\n");
        assert_eq!(at(b"a\rb\nc", 0), "\n");
        assert_eq!(at(b"a\rb", 2), "\r");
        assert_eq!(at(b"ab", 1), "\n");
    }
}

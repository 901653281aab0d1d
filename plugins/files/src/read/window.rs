//! Which lines of a file a call asks for, and the window over a stream of text that keeps them and
//! counts the rest.

use pliant_sdk::truncation::{MAX_BYTES, MAX_LINES, Truncation};

use crate::truncate::Head;

/// The lines asked for, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) start: usize,
    pub(crate) end: End,
}

/// The line before which a selection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The end of the file.
    Open,
    /// This line.
    At(usize),
    /// So many lines before the end of the file.
    BeforeLast(usize),
}

impl Selection {
    /// Numbers mean what they mean to a slice of an array of lines: fractions are cut off after
    /// start and length are added, and a negative end counts from the end of the file.
    pub(crate) fn new(offset: Option<f64>, limit: Option<f64>) -> Self {
        let start = (offset.unwrap_or(0.0) - 1.0).max(0.0);
        let end = match limit.map(|limit| (start + limit).trunc()) {
            None => End::Open,
            Some(end) if end < 0.0 => End::BeforeLast(index(-end)),
            Some(end) => End::At(index(end)),
        };
        Self {
            start: index(start),
            end,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is what is wanted"
)]
fn index(number: f64) -> usize {
    number as usize
}

/// Keeps the selected lines of a text that arrives in pieces, and counts all lines.
#[derive(Debug)]
pub(crate) struct Window {
    start: usize,
    end: usize,
    head: Head,
    /// Complete lines so far, which is the number of the line now open.
    line: usize,
    line_open: bool,
}

impl Window {
    pub(crate) fn new(start: usize, end: Option<usize>) -> Self {
        Self {
            start,
            end: end.unwrap_or(usize::MAX),
            head: Head::new(MAX_LINES, MAX_BYTES),
            line: 0,
            line_open: false,
        }
    }

    /// Bytes of the first selected line.
    pub(crate) fn first_line_bytes(&self) -> usize {
        self.head.first_line_bytes()
    }

    /// Takes the next piece of the text.
    pub(crate) fn push(&mut self, mut text: &str) {
        while !text.is_empty() {
            let (until, selected) = if self.line < self.start {
                (self.start, false)
            } else if self.line < self.end {
                (self.end, true)
            } else {
                (usize::MAX, false)
            };
            let piece = self.take_lines(&mut text, until - self.line);
            if selected {
                self.head.push(piece);
            }
        }
    }

    /// Splits off at most so many lines and counts them.
    fn take_lines<'a>(&mut self, text: &mut &'a str, most: usize) -> &'a str {
        let mut taken = 0;
        let mut end = text.len();
        for newline in memchr::memchr_iter(b'\n', text.as_bytes()) {
            taken += 1;
            if taken == most {
                end = newline + 1;
                break;
            }
        }
        let (piece, rest) = text.split_at(end);
        *text = rest;
        self.line += taken;
        self.line_open = !piece.ends_with('\n');
        piece
    }

    /// The number of lines of the file, and the head of the selection.
    pub(crate) fn finish(self) -> (usize, Truncation) {
        (self.line + usize::from(self.line_open), self.head.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(text: &str, start: usize, end: Option<usize>, piece: usize) -> (usize, String) {
        let mut window = Window::new(start, end);
        for chunk in text.as_bytes().chunks(piece) {
            window.push(std::str::from_utf8(chunk).unwrap());
        }
        let (total, head) = window.finish();
        (total, head.content)
    }

    #[test]
    fn the_window_keeps_its_lines_and_counts_all() {
        for piece in 1..9 {
            let select = |start, end| select("a\nb\n\nd\n", start, end, piece);
            assert_eq!(select(0, None), (4, "a\nb\n\nd\n".to_owned()));
            assert_eq!(select(1, Some(2)), (4, "b\n".to_owned()));
            assert_eq!(select(1, Some(3)), (4, "b\n\n".to_owned()));
            assert_eq!(select(3, Some(9)), (4, "d\n".to_owned()));
            assert_eq!(select(4, None), (4, String::new()));
            assert_eq!(select(2, Some(1)), (4, String::new()));
        }
        assert_eq!(select("a\nb", 1, None, 1), (2, "b".to_owned()));
        assert_eq!(select("", 0, None, 1), (0, String::new()));
    }

    #[test]
    fn offset_zero_is_offset_one() {
        assert_eq!(
            Selection::new(Some(0.0), None),
            Selection::new(Some(1.0), None)
        );
        assert_eq!(Selection::new(None, None).start, 0);
    }

    #[test]
    fn odd_numbers_mean_what_they_mean_to_a_slice() {
        let select = |offset, limit| {
            let selection = Selection::new(offset, limit);
            (selection.start, selection.end)
        };
        assert_eq!(select(Some(3.0), Some(2.0)), (2, End::At(4)));
        assert_eq!(select(Some(-5.0), Some(2.0)), (0, End::At(2)));
        assert_eq!(select(Some(2.5), Some(1.5)), (1, End::At(3)));
        assert_eq!(select(None, Some(0.0)), (0, End::At(0)));
        assert_eq!(select(None, Some(-1.0)), (0, End::BeforeLast(1)));
        assert_eq!(select(None, Some(-0.5)), (0, End::At(0)));
        assert_eq!(select(Some(6.0), Some(-1.0)), (5, End::At(4)));
        assert_eq!(select(Some(1e300), Some(1e300)).0, usize::MAX);
    }
}

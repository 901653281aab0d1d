//! Limits on what a tool shows (`extensions.md` §8.1): whole lines from the start until the line or
//! the byte limit would be passed. Text comes in pieces of any size and only what will be shown is
//! kept, so a caller may push a file of any length.

use pliant_sdk::truncation::{Limit, Truncation};

/// "No line limit" as a number that every JSON reader keeps exact.
pub(crate) const NO_LINE_LIMIT: usize = (1 << 53) - 1;

/// Keeps the head of a text that arrives in pieces.
#[derive(Debug)]
pub(crate) struct Head {
    max_lines: usize,
    max_bytes: usize,
    kept: String,
    /// Lines begun in `kept`.
    kept_lines: usize,
    /// Length of `kept` before the line now open, and before the line feed that leads to it.
    line_start: usize,
    cut: Option<Limit>,
    newlines: usize,
    total_bytes: usize,
    first_line_bytes: usize,
    ends_in_newline: bool,
}

impl Head {
    pub(crate) fn new(max_lines: usize, max_bytes: usize) -> Self {
        Self {
            max_lines,
            max_bytes,
            kept: String::new(),
            kept_lines: 0,
            line_start: 0,
            cut: None,
            newlines: 0,
            total_bytes: 0,
            first_line_bytes: 0,
            ends_in_newline: false,
        }
    }

    /// Bytes of the first line, also when it is too long to be kept.
    pub(crate) fn first_line_bytes(&self) -> usize {
        self.first_line_bytes
    }

    /// Takes the next piece of the text.
    pub(crate) fn push(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.newlines == 0 {
            let end = memchr::memchr(b'\n', text.as_bytes());
            self.first_line_bytes += end.unwrap_or(text.len());
        }
        let mut at_line_start = self.total_bytes == 0 || self.ends_in_newline;
        if self.cut.is_none() {
            for piece in text.split_inclusive('\n') {
                self.keep(piece, at_line_start);
                if self.cut.is_some() {
                    break;
                }
                at_line_start = piece.ends_with('\n');
            }
        }
        self.newlines += memchr::memchr_iter(b'\n', text.as_bytes()).count();
        self.total_bytes += text.len();
        self.ends_in_newline = text.ends_with('\n');
    }

    /// Keeps one piece of one line. The line feed before a line is written with that line, because
    /// the one after the last line shown does not count.
    fn keep(&mut self, piece: &str, starts_line: bool) {
        let body = piece.strip_suffix('\n').unwrap_or(piece);
        if starts_line {
            if self.kept_lines == self.max_lines {
                self.cut = Some(Limit::Lines);
                return;
            }
            self.line_start = self.kept.len();
            if self.kept_lines > 0 {
                self.kept.push('\n');
            }
            self.kept_lines += 1;
        }
        if self.kept.len() + body.len() > self.max_bytes {
            self.kept.truncate(self.line_start);
            self.kept_lines -= 1;
            self.cut = Some(Limit::Bytes);
        } else {
            self.kept.push_str(body);
        }
    }

    /// The head, and what it is the head of.
    pub(crate) fn finish(mut self) -> Truncation {
        let complete = self.cut.is_none();
        if complete && self.ends_in_newline && self.kept.len() < self.max_bytes {
            self.kept.push('\n');
        }
        let open_line = usize::from(self.total_bytes > 0 && !self.ends_in_newline);
        Truncation {
            truncated: !complete,
            truncated_by: self.cut,
            total_lines: self.newlines + open_line,
            total_bytes: self.total_bytes,
            output_lines: self.kept_lines,
            output_bytes: self.kept.len(),
            last_line_partial: false,
            first_line_exceeds_limit: self.cut == Some(Limit::Bytes) && self.kept_lines == 0,
            max_lines: self.max_lines,
            max_bytes: self.max_bytes,
            content: self.kept,
        }
    }
}

/// The text, and after a blank line a note in brackets.
pub(crate) fn with_note(text: &str, note: &str) -> String {
    let text = text.strip_suffix('\n').unwrap_or(text);
    if text.is_empty() {
        format!("[{note}]")
    } else {
        format!("{text}\n\n[{note}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str, max_lines: usize, max_bytes: usize) -> Truncation {
        let mut head = Head::new(max_lines, max_bytes);
        head.push(text);
        head.finish()
    }

    #[test]
    fn text_within_both_limits_is_kept_as_it_is() {
        for text in ["", "a", "a\n", "a\nb", "a\nb\n", "\n\n"] {
            let cut = head(text, 2, 5);
            assert_eq!(
                (cut.content.as_str(), cut.truncated, cut.truncated_by),
                (text, false, None)
            );
            assert_eq!(cut.output_bytes, text.len());
        }
    }

    #[test]
    fn a_final_newline_ends_a_line_and_starts_none() {
        for (text, lines) in [
            ("", 0),
            ("\n", 1),
            ("a", 1),
            ("a\n", 1),
            ("a\n\n", 2),
            ("a\nb", 2),
        ] {
            let cut = head(text, 9, 99);
            assert_eq!(
                (cut.total_lines, cut.output_lines),
                (lines, lines),
                "{text:?}"
            );
        }
    }

    #[test]
    fn exactly_the_line_limit_is_whole_and_one_more_is_cut() {
        assert!(!head("1\n2\n", 2, 99).truncated);
        let cut = head("1\n2\n3", 2, 99);
        assert_eq!(
            (cut.content.as_str(), cut.truncated_by, cut.output_lines),
            ("1\n2", Some(Limit::Lines), 2)
        );
        assert_eq!((cut.total_lines, cut.total_bytes), (3, 5));
    }

    #[test]
    fn exactly_the_byte_limit_is_whole_and_one_more_is_cut() {
        assert!(!head("12\n45", 9, 5).truncated);
        let cut = head("12\n456", 9, 5);
        assert_eq!(
            (cut.content.as_str(), cut.truncated_by),
            ("12", Some(Limit::Bytes))
        );
        assert!(!cut.first_line_exceeds_limit && !cut.last_line_partial);
    }

    #[test]
    fn a_first_line_over_the_byte_limit_leaves_nothing() {
        let cut = head("123456\n7", 9, 5);
        assert_eq!((cut.content.as_str(), cut.output_lines), ("", 0));
        assert!(cut.first_line_exceeds_limit);
        assert_eq!((cut.total_lines, cut.total_bytes), (2, 8));
    }

    #[test]
    fn pieces_of_any_size_give_the_same_as_the_whole() {
        let text = "ab\n\nzwölf €\n🦀🦀\nlast\n";
        for max_lines in 0..7 {
            for max_bytes in 0..40 {
                let whole = head(text, max_lines, max_bytes);
                let mut pieces = Head::new(max_lines, max_bytes);
                for (at, ch) in text.char_indices() {
                    pieces.push(&text[at..at + ch.len_utf8()]);
                }
                assert_eq!(
                    pieces.finish(),
                    whole,
                    "{max_lines} lines, {max_bytes} bytes"
                );
            }
        }
    }

    #[test]
    fn the_head_is_always_a_prefix_of_whole_lines_within_the_limits() {
        // T07
        let text = "é\n👩‍👩‍👧\n日本語\n";
        for max_bytes in 0..40 {
            let cut = head(text, 9, max_bytes);
            assert!(cut.content.len() <= max_bytes);
            assert!(text.starts_with(&cut.content));
            let rest = &text[cut.content.len()..];
            assert!(cut.content.is_empty() || rest.is_empty() || rest.starts_with('\n'));
        }
    }

    #[test]
    fn the_record_has_the_fields_of_the_format() {
        let json = serde_json::to_value(head("1\n2", 1, 9)).unwrap();
        assert_eq!(
            json,
            serde_json::json!({"content": "1", "truncated": true, "truncatedBy": "lines",
            "totalLines": 2, "totalBytes": 3, "outputLines": 1, "outputBytes": 1,
            "lastLinePartial": false, "firstLineExceedsLimit": false, "maxLines": 1, "maxBytes": 9})
        );
    }
}

//! The end of a text, in whole lines, within two limits: what is shown of the output of a command. A
//! final line feed ends the last line and does not begin another one.

use super::{Limit, Truncation};

/// Counts of a text that is not kept whole.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    bytes: usize,
    line_feeds: usize,
    /// Bytes since the last line feed.
    open: usize,
    /// Bytes of the line that the last line feed ended.
    closed: usize,
}

impl Totals {
    /// Counts the next piece.
    pub fn count(&mut self, text: &str) {
        self.bytes += text.len();
        let Some((before, after)) = text.rsplit_once('\n') else {
            self.open += text.len();
            return;
        };
        self.line_feeds += text.bytes().filter(|byte| *byte == b'\n').count();
        self.closed = match before.rsplit_once('\n') {
            Some((_, line)) => line.len(),
            None => self.open + before.len(),
        };
        self.open = after.len();
    }

    /// Lines so far.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.line_feeds + usize::from(self.open > 0)
    }

    /// Bytes of the last line.
    #[must_use]
    pub fn last_line_bytes(&self) -> usize {
        if self.open > 0 {
            self.open
        } else {
            self.closed
        }
    }

    /// Whether the text is over a limit.
    #[must_use]
    pub fn exceed(&self, max_lines: usize, max_bytes: usize) -> bool {
        let final_line_feed = usize::from(self.bytes > 0 && self.open == 0);
        self.lines() > max_lines || self.bytes - final_line_feed > max_bytes
    }
}

/// The part of a text that is shown. `recent` is its end: all of it, or at least `max_bytes` and one
/// more line feed.
#[must_use]
pub fn tail(recent: &str, totals: Totals, max_lines: usize, max_bytes: usize) -> Truncation {
    let whole = !totals.exceed(max_lines, max_bytes);
    let shown = if whole {
        Shown {
            content: recent,
            lines: totals.lines(),
            cut_by: None,
            partial: false,
        }
    } else {
        end_of(
            recent.strip_suffix('\n').unwrap_or(recent),
            max_lines,
            max_bytes,
        )
    };
    Truncation {
        truncated: !whole,
        truncated_by: shown.cut_by,
        total_lines: totals.lines(),
        total_bytes: totals.bytes,
        output_lines: shown.lines,
        output_bytes: shown.content.len(),
        last_line_partial: shown.partial,
        first_line_exceeds_limit: false,
        max_lines,
        max_bytes,
        content: shown.content.to_owned(),
    }
}

struct Shown<'a> {
    content: &'a str,
    lines: usize,
    cut_by: Option<Limit>,
    partial: bool,
}

fn end_of(text: &str, max_lines: usize, max_bytes: usize) -> Shown<'_> {
    let mut start = text.len();
    let mut lines = 0;
    let mut cut_by = None;
    for line in text.rsplit('\n') {
        let line_start = match lines {
            0 => start - line.len(),
            _ => start - 1 - line.len(),
        };
        if lines == max_lines {
            cut_by = Some(Limit::Lines);
        } else if text.len() - line_start > max_bytes {
            cut_by = Some(Limit::Bytes);
        }
        if cut_by.is_some() {
            break;
        }
        start = line_start;
        lines += 1;
    }
    let partial = lines == 0 && max_lines > 0;
    if partial {
        start = text.ceil_char_boundary(text.len().saturating_sub(max_bytes));
        lines = 1;
    }
    Shown {
        content: text.get(start..).unwrap_or_default(),
        lines,
        cut_by,
        partial,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, max_lines: usize, max_bytes: usize) -> Truncation {
        let mut totals = Totals::default();
        totals.count(text);
        tail(text, totals, max_lines, max_bytes)
    }

    fn shown(text: &str, max_lines: usize, max_bytes: usize) -> (String, Option<Limit>, usize) {
        let cut = cut(text, max_lines, max_bytes);
        (cut.content, cut.truncated_by, cut.output_lines)
    }

    #[test]
    fn text_within_both_limits_is_shown_as_it_is() {
        for (text, lines) in [
            ("", 0),
            ("\n", 1),
            ("a", 1),
            ("a\n", 1),
            ("a\nb", 2),
            ("a\nbcd\n", 2),
        ] {
            assert_eq!(
                shown(text, 2, 5),
                (text.to_owned(), None, lines),
                "{text:?}"
            );
        }
    }

    #[test]
    fn whole_lines_are_kept_from_the_end() {
        assert_eq!(
            shown("1\n2\n3\n", 2, 99),
            ("2\n3".to_owned(), Some(Limit::Lines), 2)
        );
        assert_eq!(
            shown("12\n45\n78", 9, 5),
            ("45\n78".to_owned(), Some(Limit::Bytes), 2)
        );
        assert_eq!(
            shown("12\n456\n8", 9, 5),
            ("456\n8".to_owned(), Some(Limit::Bytes), 2)
        );
        assert_eq!(
            shown("12\n4567\n9", 9, 5),
            ("9".to_owned(), Some(Limit::Bytes), 1)
        );
        assert_eq!(
            shown("a\n\n\n", 2, 9),
            ("\n".to_owned(), Some(Limit::Lines), 2)
        );
    }

    #[test]
    fn of_a_last_line_over_the_limit_the_end_is_kept() {
        let cut = cut("1\n23456789\n", 9, 5);
        assert_eq!(
            (cut.content.as_str(), cut.truncated_by),
            ("56789", Some(Limit::Bytes))
        );
        assert!(cut.last_line_partial && !cut.first_line_exceeds_limit);
        assert_eq!((cut.total_lines, cut.total_bytes), (2, 11));
    }

    #[test]
    fn t07_the_cut_never_falls_into_a_character() {
        let text = "zwölf\n👩‍👩‍👧 日本語 €";
        for max_bytes in 0..=text.len() {
            let cut = cut(text, 9, max_bytes);
            assert!(cut.content.len() <= max_bytes && text.ends_with(&cut.content));
            assert!(!cut.content.contains('\u{FFFD}'));
        }
    }

    #[test]
    fn totals_do_not_depend_on_the_pieces() {
        let text = "ab\n\nzwölf €\n🦀🦀\nlast";
        for text in [text.to_owned(), format!("{text}\n"), format!("{text}\n\n")] {
            let mut totals = Totals::default();
            for (at, ch) in text.char_indices() {
                totals.count(&text[at..at + ch.len_utf8()]);
            }
            let last = text.lines().last().unwrap();
            assert_eq!(
                (totals.lines(), totals.bytes, totals.last_line_bytes()),
                (text.lines().count(), text.len(), last.len())
            );
        }
    }

    #[test]
    fn the_record_has_the_fields_of_the_format() {
        assert_eq!(
            serde_json::to_value(cut("1\n2", 1, 9)).unwrap(),
            serde_json::json!({"content": "2", "truncated": true, "truncatedBy": "lines",
                "totalLines": 2, "totalBytes": 3, "outputLines": 1, "outputBytes": 1,
                "lastLinePartial": false, "firstLineExceedsLimit": false, "maxLines": 1, "maxBytes": 9})
        );
    }
}

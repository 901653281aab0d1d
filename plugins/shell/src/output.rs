//! The output of one command in bounded memory: counts of all of it, its first and its last part as
//! text, and the whole in a file once it is over a limit.

use crate::spill::Spill;
use pliant_sdk::truncation::{MAX_BYTES, MAX_LINES, Totals, Truncation, size, tail};
use pliant_sdk::utf8::Decoder;

/// Bytes kept of either end for programs (`structuredContent`).
const HALF: usize = 512 * 1024;

/// Bytes that are looked at for the shown part. It begins inside a line, which is therefore never
/// among the lines that fit.
const RECENT: usize = 2 * MAX_BYTES;

/// What a command has printed so far.
#[derive(Default)]
pub(crate) struct Output {
    decoder: Decoder,
    totals: Totals,
    /// The first [`HALF`].
    head: String,
    /// `head` takes no more: the next character went to `tail`.
    head_is_full: bool,
    /// What follows; from time to time cut to its last [`HALF`].
    tail: String,
    /// Bytes that were between the two.
    dropped: usize,
    spill: Spill,
}

impl Output {
    /// Takes the next raw bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.spill.push(bytes);
        let mut decoder = std::mem::take(&mut self.decoder);
        decoder.push(bytes, |text| self.keep(text));
        self.decoder = decoder;
    }

    /// No more bytes follow.
    pub(crate) fn finish(&mut self) {
        let mut decoder = std::mem::take(&mut self.decoder);
        decoder.finish(|text| self.keep(text));
    }

    /// The part for a conversation.
    pub(crate) fn shown(&self) -> Truncation {
        let missing = RECENT.saturating_sub(self.tail.len());
        let recent = if missing == 0 {
            last(&self.tail, RECENT).to_owned()
        } else {
            [last(&self.head, missing), &self.tail].concat()
        };
        tail(&recent, self.totals, MAX_LINES, MAX_BYTES)
    }

    /// The part for programs, and whether something is missing in it.
    pub(crate) fn structured(&self) -> (String, bool) {
        let end = last(&self.tail, HALF);
        let omitted = self.dropped + self.tail.len() - end.len();
        if omitted == 0 {
            return ([&self.head, end].concat(), false);
        }
        let marker = format!("\n\n[{} left out here]\n\n", size(omitted));
        ([&self.head, marker.as_str(), end].concat(), true)
    }

    /// Bytes of the last line, also when only its end is kept.
    pub(crate) fn last_line_bytes(&self) -> usize {
        self.totals.last_line_bytes()
    }

    /// Where the whole output is.
    pub(crate) fn whole(&self) -> &Spill {
        &self.spill
    }

    fn keep(&mut self, text: &str) {
        self.totals.count(text);
        if self.totals.exceed(MAX_LINES, MAX_BYTES) {
            self.spill.open();
        }
        let mut rest = text;
        if !self.head_is_full {
            let room = HALF - self.head.len();
            let (fits, more) = text.split_at(text.floor_char_boundary(room));
            self.head.push_str(fits);
            self.head_is_full = !more.is_empty();
            rest = more;
        }
        self.tail.push_str(rest);
        // Cut seldom, so that long outputs are not moved with every chunk.
        if self.tail.len() > 2 * HALF {
            let cut = self.tail.len() - last(&self.tail, HALF).len();
            self.tail.drain(..cut);
            self.dropped += cut;
        }
    }
}

/// The end of a text: at most so many bytes, whole characters.
fn last(text: &str, bytes: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(bytes));
    text.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str, chunk: usize) -> Output {
        let mut output = Output::default();
        for bytes in text.as_bytes().chunks(chunk) {
            output.push(bytes);
        }
        output.finish();
        if let Some(path) = output.whole().path() {
            std::fs::remove_file(path).unwrap();
        }
        output
    }

    #[test]
    fn short_output_is_shown_whole_and_makes_no_file() {
        let output = output("a\nb\n", 1);
        assert_eq!(
            (output.shown().content.as_str(), output.shown().truncated),
            ("a\nb\n", false)
        );
        assert_eq!(output.structured(), ("a\nb\n".to_owned(), false));
        assert_eq!(output.whole().path(), None);
    }

    #[test]
    fn exactly_the_limits_are_whole_and_one_more_is_cut() {
        for (text, truncated) in [
            ("x\n".repeat(MAX_LINES), false),
            ("x\n".repeat(MAX_LINES) + "y", true),
            ("x".repeat(MAX_BYTES) + "\n", false),
            ("x".repeat(MAX_BYTES + 1), true),
        ] {
            let output = output(&text, 1000);
            assert_eq!(output.shown().truncated, truncated);
            assert_eq!(output.whole().path().is_some(), truncated);
        }
    }

    #[test]
    fn what_is_shown_is_the_end_of_any_output_in_any_chunks() {
        let line = "zwölf € 👩‍👩‍👧 日本語\n";
        for length in [1000, 60_000, 600_000, 1_200_000, 3_000_000] {
            let text = line.repeat(length / line.len());
            for chunk in [997, 65_536] {
                let output = output(&text, chunk);
                let shown = output.shown();
                assert!(
                    text.trim_end().ends_with(shown.content.trim_end()),
                    "{length}"
                );
                assert!(shown.content.len() <= MAX_BYTES && shown.content.starts_with("zwölf"));
                assert_eq!(shown.total_bytes, text.len());
                assert_eq!(shown.total_lines, length / line.len());
            }
        }
    }

    #[test]
    fn memory_is_bounded_and_both_ends_are_kept_for_programs() {
        let mut output = Output::default();
        for number in 0..300_000 {
            output.push(format!("{number}\n").as_bytes());
            assert!(output.head.len() + output.tail.len() <= 3 * HALF + 8);
        }
        let (text, truncated) = output.structured();
        assert!(truncated && text.starts_with("0\n1\n") && text.ends_with("299998\n299999\n"));
        let (head, end) = text.split_once(" left out here]\n\n").unwrap();
        assert!(head.len() < HALF + 20 && end.len() == HALF);
        std::fs::remove_file(output.whole().path().unwrap()).unwrap();
    }

    #[test]
    fn up_to_a_mebibyte_programs_get_everything() {
        let text = "é".repeat(HALF);
        assert_eq!(output(&text, 65_535).structured(), (text.clone(), false));
        let (cut, truncated) = output(&(text + "é"), 65_535).structured();
        assert!(truncated && cut.contains("\n\n[2B left out here]\n\n"));
    }

    #[test]
    fn t07_a_long_last_line_is_cut_between_characters() {
        for shift in 0..8 {
            let text = "x".repeat(shift) + &"日👩‍👩‍👧".repeat(30_000);
            let shown = output(&text, 4096).shown();
            assert!(shown.last_line_partial && text.ends_with(&shown.content));
            assert!(shown.content.len() > MAX_BYTES - 4);
        }
    }
}

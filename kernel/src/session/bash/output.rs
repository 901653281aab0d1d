//! What a command of the user has printed, in bounded memory: its end, and the whole in a file once
//! it is over a limit (R44).

use pliant_sdk::truncation::{MAX_BYTES, MAX_LINES, Totals, Truncation, tail};
use pliant_sdk::utf8::Decoder;

use super::clean::Cleaner;
use super::whole::Whole;

/// Bytes that are kept for the shown part. It begins inside a line, which is therefore never among
/// the lines that fit.
const RECENT: usize = 2 * MAX_BYTES;

/// The output of one command.
#[derive(Debug, Default)]
pub(super) struct Output {
    decoder: Decoder,
    cleaner: Cleaner,
    totals: Totals,
    /// The end; from time to time cut to [`RECENT`].
    recent: String,
    whole: Whole,
}

impl Output {
    /// Takes the next raw bytes and answers them as clean text.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        let mut text = String::new();
        self.decoder
            .push(bytes, |piece| self.cleaner.push(piece, &mut text));
        self.keep(&text);
        text
    }

    /// No more bytes follow.
    pub(super) fn finish(&mut self) {
        let mut text = String::new();
        self.decoder
            .finish(|piece| self.cleaner.push(piece, &mut text));
        self.keep(&text);
    }

    /// The part that is stored and shown.
    pub(super) fn shown(&self) -> Truncation {
        tail(&self.recent, self.totals, MAX_LINES, MAX_BYTES)
    }

    /// The file with all of it, if there is one.
    pub(super) fn path(&self) -> Option<String> {
        self.whole.path()
    }

    fn keep(&mut self, text: &str) {
        self.totals.count(text);
        self.whole.push(text);
        if self.totals.exceed(MAX_LINES, MAX_BYTES) {
            self.whole.open();
        }
        self.recent.push_str(text);
        // Cut seldom, so that long outputs are not moved with every chunk.
        if self.recent.len() > 2 * RECENT {
            let cut = self.recent.ceil_char_boundary(self.recent.len() - RECENT);
            self.recent.drain(..cut);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_long_output_is_shown_and_all_of_it_is_in_a_file() {
        // R44
        let mut output = Output::default();
        let mut said = String::new();
        for number in 0..100_000 {
            said += &output.push(format!("\u{1b}[1m{number} é\u{1b}[m\r\n").as_bytes());
            assert!(output.recent.len() <= 2 * RECENT);
        }
        output.finish();
        let shown = output.shown();
        assert_eq!((shown.output_lines, shown.truncated), (MAX_LINES, true));
        assert!(shown.content.starts_with("98000 é\n") && shown.content.ends_with("99999 é"));
        let path = output.path().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), said);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn short_output_makes_no_file_and_a_cut_character_is_put_together() {
        let mut output = Output::default();
        let said: String = [&b"a \xe2"[..], b"\x82", b"\xac\n\xff"]
            .map(|bytes| output.push(bytes))
            .concat();
        output.finish();
        assert_eq!(said, "a €\n\u{FFFD}");
        assert_eq!((output.shown().content, output.path()), (said, None));
    }
}

//! What the user is told on stderr, one sentence a line. Where nobody can be told, nothing is left to
//! do: a stderr that is closed ends no run.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write;

/// Says what made the program, or a prompt, fail.
pub fn error(text: impl Display) {
    note(format_args!("Error: {text}"));
}

/// Says what goes on differently from what was asked for.
pub fn warning(text: impl Display) {
    note(format_args!("Warning: {text}"));
}

/// Says something that is neither.
pub fn note(text: impl Display) {
    // One write, so that lines of several threads do not mix.
    let line = printable(&format!("{text}\n"));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Control characters of answers, tools and plugins must not reach the terminal (U06), nor those that
/// turn the direction of what stands around them.
pub fn printable(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .filter(|c| matches!(c, '\n' | '\t') || !(c.is_control() || turns(*c)))
        .collect()
}

/// A text that more is said after, with a full stop if nothing ends it: services rarely speak in
/// sentences.
pub fn ended(text: &str) -> Cow<'_, str> {
    let text = text.trim_end();
    match text.ends_with(['.', '!', '?', '…']) {
        true => text.into(),
        false => format!("{text}.").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_text_begins_a_new_sentence() {
        assert_eq!(
            ended("503 status code (no body)"),
            "503 status code (no body)."
        );
        assert_eq!(ended("Try again! "), "Try again!");
    }

    #[test]
    fn control_sequences_do_not_reach_the_terminal() {
        // U06
        assert_eq!(
            printable("a\u{1b}]52;c;x\u{7}b\u{9b}1mc\n"),
            "a]52;c;xb1mc\n"
        );
        assert_eq!(
            printable("exe.\u{202e}txt.a \u{1f468}\u{200d}\u{1f469}"),
            "exe.txt.a 👨\u{200d}👩"
        );
    }
}

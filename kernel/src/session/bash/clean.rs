//! Output without what is meant for a terminal (R44): escape sequences and control characters, all but
//! tab and line feed. A sequence may be cut by the edge of a chunk.

/// Cleans one stream of text.
#[derive(Debug, Default)]
pub(super) struct Cleaner(Inside);

/// What the last character left open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Inside {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and a character that needs another one.
    Longer,
    /// A control sequence, up to its final character.
    Sequence,
    /// A string such as a window title, up to its terminator.
    Command,
    /// After ESC in such a string.
    CommandEscape,
}

const ESC: char = '\u{1b}';

impl Cleaner {
    /// The next piece, cleaned.
    pub(super) fn push(&mut self, text: &str, clean: &mut String) {
        for c in text.chars() {
            self.take(c, clean);
        }
    }

    fn take(&mut self, c: char, clean: &mut String) {
        self.0 = match (self.0, c) {
            (Inside::Command, '\u{7}' | '\u{9c}' | '\u{18}' | '\u{1a}') => Inside::Text,
            (Inside::Command, ESC) => Inside::CommandEscape,
            (Inside::CommandEscape, '\\') => Inside::Text,
            // No such string goes over a line: one that does not end must not eat the output.
            (Inside::Command, c) if c != '\n' => Inside::Command,

            (_, ESC) => Inside::Escape,
            (Inside::Escape | Inside::CommandEscape, '[') | (Inside::Text, '\u{9b}') => {
                Inside::Sequence
            }
            (Inside::Escape | Inside::CommandEscape, ']' | 'P' | 'X' | '^' | '_')
            | (Inside::Text, '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}') => Inside::Command,
            (Inside::Escape | Inside::CommandEscape | Inside::Longer, ' '..='/') => Inside::Longer,
            (Inside::Escape | Inside::CommandEscape | Inside::Longer, '0'..='~')
            | (Inside::Sequence, '@'..='~') => Inside::Text,
            (Inside::Sequence, ' '..='?') => Inside::Sequence,

            (_, c) => {
                if !c.is_control() || matches!(c, '\t' | '\n') {
                    clean.push(c);
                }
                Inside::Text
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str) -> String {
        let mut clean = String::new();
        Cleaner::default().push(text, &mut clean);
        clean
    }

    #[test]
    fn what_is_meant_for_a_terminal_is_left_out_in_any_pieces() {
        // R44
        for (text, expected) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("10%\r50%\r100%\r\n", "10%50%100%\n"),
            ("a\u{8}\u{7}\0b\u{7f}", "ab"),
            (
                "\u{1b}]0;title\u{7}x\u{1b}]8;;http://a\u{1b}\\link",
                "xlink",
            ),
            ("\u{1b}(B\u{1b}=\u{1b}7y", "y"),
            ("\u{9b}31mz\u{9d}0;t\u{9c}!", "z!"),
            ("\u{1b}]never ended\nnext", "\nnext"),
            ("\u{1b}[12\nnext", "\nnext"),
            ("\u{1b}P1$r\u{1b}\\q", "q"),
            ("zwölf € 👩‍👩‍👧", "zwölf € 👩‍👩‍👧"),
        ] {
            assert_eq!(clean(text), expected, "{text:?}");
            let (mut pieces, mut cleaner) = (String::new(), Cleaner::default());
            for c in text.chars() {
                cleaner.push(c.encode_utf8(&mut [0; 4]), &mut pieces);
            }
            assert_eq!(pieces, expected, "{text:?}");
        }
    }
}

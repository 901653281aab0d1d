//! Output of programs as a terminal would show it: colours and styles as classes, a line that was
//! written over as what stood there last, everything else that is meant for a terminal left out.

use super::markup::Html;

/// What SGR sequences have set. Colours are numbers of the palette of 256.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Style {
    fore: Option<u8>,
    back: Option<u8>,
    /// Bits of [`FLAGS`].
    flags: u8,
}

/// Classes by bit: bold, dim, italic, underlined, inverse, struck out.
const FLAGS: [&str; 6] = ["k", "m", "i", "u", "v", "s"];

/// SGR parameters that set a bit.
const SET: [(u16, u8); 6] = [(1, 1), (2, 2), (3, 4), (4, 8), (7, 16), (9, 32)];

/// SGR parameters that take bits away.
const UNSET: [(u16, u8); 6] = [(22, 3), (21, 1), (23, 4), (24, 8), (27, 16), (29, 32)];

const ESC: char = '\u{1b}';

/// Whether a text has anything to convert.
pub(super) fn is_styled(text: &str) -> bool {
    memchr::memchr2(b'\x1b', b'\r', text.as_bytes()).is_some()
        || memchr::memchr(b'\x08', text.as_bytes()).is_some()
}

/// Writes it; the caller has opened an element that keeps white space.
pub(super) fn write(out: &mut Html, text: &str) {
    if !is_styled(text) {
        out.text(text);
        return;
    }
    let mut screen = Screen {
        out,
        style: Style::default(),
        line: Vec::new(),
    };
    let mut rest = text;
    while let Some(at) = rest.find([ESC, '\r', '\n', '\u{8}']) {
        screen.put(&rest[..at]);
        let after = &rest[at + 1..];
        rest = match rest.as_bytes()[at] {
            b'\n' => {
                screen.end_line();
                after
            }
            b'\r' => {
                // What follows takes the place of the line; before a line feed nothing follows.
                let next = after.trim_start_matches('\r');
                if !next.is_empty() && !next.starts_with('\n') {
                    screen.line.clear();
                }
                next
            }
            b'\x08' => {
                screen.back();
                after
            }
            _ => screen.sequence(after),
        };
    }
    screen.put(rest);
    screen.flush();
}

struct Screen<'a> {
    out: &'a mut Html,
    style: Style,
    /// The line that may still be written over.
    line: Vec<(Style, String)>,
}

impl Screen<'_> {
    fn put(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.line.last_mut() {
            Some((style, last)) if *style == self.style => last.push_str(text),
            _ => self.line.push((self.style, text.to_owned())),
        }
    }

    fn back(&mut self) {
        while let Some((_, last)) = self.line.last_mut() {
            if last.pop().is_some() {
                return;
            }
            self.line.pop();
        }
    }

    fn end_line(&mut self) {
        self.flush();
        self.out.raw("\n");
    }

    fn flush(&mut self) {
        for (style, text) in self.line.drain(..) {
            if style == Style::default() {
                self.out.text(&text);
                continue;
            }
            self.out.raw("<span class=\"");
            if let Some(colour) = style.fore {
                self.out.raw("f").number(colour).raw(" ");
            }
            if let Some(colour) = style.back {
                self.out.raw("b").number(colour).raw(" ");
            }
            let flags = FLAGS.iter().enumerate();
            for (_, class) in flags.filter(|(bit, _)| style.flags & (1 << bit) != 0) {
                self.out.raw(class).raw(" ");
            }
            self.out.raw("\">").text(&text).raw("</span>");
        }
    }

    /// Reads a sequence, of which ESC is read, and answers what follows it.
    fn sequence<'t>(&mut self, text: &'t str) -> &'t str {
        let bytes = text.as_bytes();
        match bytes.first() {
            Some(b'[') => {
                let end = bytes[1..]
                    .iter()
                    .position(|byte| !(b' '..=b'?').contains(byte));
                let Some(end) = end.map(|end| end + 1) else {
                    return "";
                };
                match bytes[end] {
                    b'm' => self.style.select(&text[1..end]),
                    b'K' => {}
                    b'@'..=b'~' => {}
                    // No such sequence: what stopped it is text.
                    _ => return &text[end..],
                }
                &text[end + 1..]
            }
            // Titles, links and the like, to their end; none goes over a line.
            Some(b']' | b'P' | b'X' | b'^' | b'_') => {
                let end = text.find(['\u{7}', ESC, '\n']).unwrap_or(text.len());
                let rest = &text[end..];
                rest.strip_prefix("\u{1b}\\")
                    .or(rest.strip_prefix('\u{7}'))
                    .unwrap_or(rest)
            }
            Some(b' '..=b'/') => {
                let end = bytes.iter().position(|byte| !(b' '..=b'/').contains(byte));
                let rest = &text[end.unwrap_or(text.len())..];
                rest.strip_prefix(|c: char| ('0'..='~').contains(&c))
                    .unwrap_or(rest)
            }
            Some(b'0'..=b'~') => &text[1..],
            _ => text,
        }
    }
}

impl Style {
    /// Takes the parameters of one SGR sequence in.
    fn select(&mut self, parameters: &str) {
        let mut numbers = parameters.split([';', ':']).map(|number| {
            if number.is_empty() {
                Ok(0)
            } else {
                number.parse::<u16>()
            }
        });
        while let Some(number) = numbers.next() {
            let Ok(number) = number else { return };
            match number {
                0 => *self = Self::default(),
                30..=37 => self.fore = Some(low_byte(number - 30)),
                40..=47 => self.back = Some(low_byte(number - 40)),
                90..=97 => self.fore = Some(low_byte(number - 82)),
                100..=107 => self.back = Some(low_byte(number - 92)),
                38 => self.fore = colour(&mut numbers).or(self.fore),
                48 => self.back = colour(&mut numbers).or(self.back),
                39 => self.fore = None,
                49 => self.back = None,
                _ => {
                    let bits = |table: &[(u16, u8)]| {
                        table
                            .iter()
                            .find(|(n, _)| *n == number)
                            .map(|(_, bits)| *bits)
                    };
                    self.flags |= bits(&SET).unwrap_or(0);
                    self.flags &= !bits(&UNSET).unwrap_or(0);
                }
            }
        }
    }
}

fn low_byte(number: u16) -> u8 {
    number.to_le_bytes()[0]
}

/// The rest of an extended colour: `5;n`, or `2;r;g;b`, of which the palette's nearest is taken.
fn colour<E>(numbers: &mut impl Iterator<Item = Result<u16, E>>) -> Option<u8> {
    let mut next = || numbers.next()?.ok().map(|number| low_byte(number.min(255)));
    match next()? {
        5 => next(),
        2 => Some(nearest(next()?, next()?, next()?)),
        _ => None,
    }
}

/// Steps of the palette's cube of colours.
const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];

fn nearest(red: u8, green: u8, blue: u8) -> u8 {
    let step = |value: u8| -> u8 {
        let distance = |at: &u8| STEPS[usize::from(*at)].abs_diff(value);
        (0..6).min_by_key(distance).unwrap_or(0)
    };
    16 + 36 * step(red) + 6 * step(green) + step(blue)
}

/// Style rules for the colours of the palette that are the same everywhere; the first 16 belong to
/// the style sheet.
pub(super) fn palette() -> String {
    use std::fmt::Write;
    let mut css = String::new();
    for number in 16..=255_u8 {
        let (red, green, blue) = match number {
            232.. => {
                let grey = 8 + 10 * (number - 232);
                (grey, grey, grey)
            }
            _ => {
                let place = usize::from(number - 16);
                (STEPS[place / 36], STEPS[place / 6 % 6], STEPS[place % 6])
            }
        };
        let hex = format!("#{red:02x}{green:02x}{blue:02x}");
        let _ = write!(
            css,
            ".f{number}{{color:{hex}}}.b{number}{{background:{hex}}}"
        );
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut out = Html::default();
        write(&mut out, text);
        out.take()
    }

    #[test]
    fn colours_and_styles_are_classes() {
        assert_eq!(
            shown("\u{1b}[1;31merror\u{1b}[0m: \u{1b}[38;5;208mx\u{1b}[39;4my\u{1b}[24m <b>"),
            "<span class=\"f1 k \">error</span>: <span class=\"f208 \">x</span>\
             <span class=\"u \">y</span> &lt;b&gt;"
        );
        assert_eq!(
            shown("\u{1b}[38;2;255;0;0mx"),
            "<span class=\"f196 \">x</span>"
        );
        assert_eq!(
            shown("\u{1b}[97;104mx\u{1b}[mz"),
            "<span class=\"f15 b12 \">x</span>z"
        );
    }

    #[test]
    fn what_only_a_terminal_does_is_left_out() {
        assert_eq!(
            shown("\u{1b}]0;title\u{7}a\u{1b}[2Kb\u{1b}(Bc\u{1b}=d"),
            "abcd"
        );
        assert_eq!(
            shown("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\"),
            "link"
        );
        assert_eq!(shown("10%\r50%\r100%\r\nab\u{8}c"), "100%\nac");
        assert_eq!(shown("a\r"), "a");
    }

    #[test]
    fn broken_sequences_end_where_they_break() {
        for (text, wanted) in [
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
            ("\u{1b}[31", ""),
            ("\u{1b}[3é", "é"),
            ("\u{1b}é", "é"),
            ("\u{1b}[38;5m.", "."),
            ("\u{1b}[999999m.", "."),
            ("\u{1b}]never\nends", "\nends"),
            ("\u{1b}[31\u{1b}[1mx", "<span class=\"k \">x</span>"),
        ] {
            assert_eq!(shown(text), wanted, "{text:?}");
        }
    }
}

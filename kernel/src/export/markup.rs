//! A page as it grows. Markup is only what stands in this program's text; whatever a session holds
//! goes in as text or as the value of an attribute and can be nothing else. What a reader would not
//! see (control characters, what turns the direction of text, what has no width) is made visible.

use std::fmt::Write;

/// HTML that is being written.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Markup of our own.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// A text between tags.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.escaped(text, |out, c| {
            let _ = match c {
                // The picture of the character.
                '\0'..=' ' => write!(out, "{}", picture(c)),
                '\u{7f}' => write!(out, "␡"),
                _ => write!(out, "<span class=\"hid\">U+{:04X}</span>", u32::from(c)),
            };
        })
    }

    /// A text where no tags can be: in the page's title, or the value of an attribute.
    pub(super) fn flat(&mut self, text: &str) -> &mut Self {
        self.escaped(text, |out, _| out.push('\u{fffd}'))
    }

    /// An attribute, with a space before it.
    pub(super) fn attr(&mut self, name: &'static str, value: &str) -> &mut Self {
        self.raw(" ").raw(name).raw("=\"").flat(value).raw("\"")
    }

    /// A number.
    pub(super) fn number(&mut self, number: impl Into<u64>) -> &mut Self {
        let _ = write!(self.0, "{}", number.into());
        self
    }

    /// Characters that can do no harm anywhere, such as Base64: letters, digits and `+/=`. Others
    /// are left out.
    pub(super) fn letters(&mut self, text: &str) -> &mut Self {
        let harmless = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
        self.0.extend(text.chars().filter(harmless));
        self
    }

    /// What was written since the last time.
    #[cfg(test)]
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.0)
    }

    /// What was written; it is empty then, and keeps its room unless that was uncommonly much.
    pub(super) fn drain(
        &mut self,
        to: impl FnOnce(&str) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        const ROOM: usize = 1 << 20;
        let written = to(&self.0);
        self.0.clear();
        self.0.shrink_to(ROOM);
        written
    }

    fn escaped(&mut self, text: &str, unseen: impl Fn(&mut String, char)) -> &mut Self {
        let bytes = text.as_bytes();
        self.0.reserve(text.len());
        let (mut copied, mut at) = (0, 0);
        while let Some(found) = bytes[at..].iter().position(|byte| is_suspect(*byte)) {
            at += found;
            // A suspect byte begins a character.
            let Some(c) = text[at..].chars().next() else {
                break;
            };
            let end = at + c.len_utf8();
            let entity = match c {
                '&' => "&amp;",
                '<' => "&lt;",
                '>' => "&gt;",
                '"' => "&quot;",
                '\'' => "&#39;",
                // Browsers read both as a line feed.
                '\r' if bytes.get(end) == Some(&b'\n') => "",
                _ if is_unseen(c) => {
                    self.0.push_str(&text[copied..at]);
                    unseen(&mut self.0, c);
                    (copied, at) = (end, end);
                    continue;
                }
                _ => {
                    at = end;
                    continue;
                }
            };
            self.0.push_str(&text[copied..at]);
            self.0.push_str(entity);
            (copied, at) = (end, end);
        }
        self.0.push_str(&text[copied..]);
        self
    }
}

/// Whether a byte is a character that is not written as it is, or begins one that may be.
fn is_suspect(byte: u8) -> bool {
    match byte {
        b'\t' | b'\n' => false,
        0..b' ' | b'&' | b'<' | b'>' | b'"' | b'\'' | 0x7f => true,
        0xc2 | 0xd8 | 0xe1 | 0xe2 | 0xe3 | 0xef..=0xf4 => true,
        _ => false,
    }
}

/// Characters that do something, or hide something, where a reader sees nothing. Those that join
/// letters and emoji are no such ones.
pub(super) fn is_unseen(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}'
        | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
        || u32::from(c) & 0xfffe == 0xfffe
}

fn picture(c: char) -> char {
    char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> String {
        Html::default().text(text).take()
    }

    fn attr(value: &str) -> String {
        Html::default().attr("title", value).take()
    }

    #[test]
    fn what_means_something_in_markup_means_nothing_in_a_text() {
        assert_eq!(
            text("</script><img src=x onerror='a()'>&\""),
            "&lt;/script&gt;&lt;img src=x onerror=&#39;a()&#39;&gt;&amp;&quot;"
        );
        assert_eq!(
            attr("\" onclick=\"a()"),
            " title=\"&quot; onclick=&quot;a()\""
        );
    }

    #[test]
    fn what_cannot_be_seen_is_shown() {
        assert_eq!(text("a\0b\u{1b}[1m\u{7f}\tc\r\nd\re"), "a␀b␛[1m␡\tc\nd␍e");
        assert_eq!(
            text("x\u{202e}y\u{e0041}\u{9b}"),
            "x<span class=\"hid\">U+202E</span>y<span class=\"hid\">U+E0041</span>\
             <span class=\"hid\">U+009B</span>"
        );
        assert_eq!(attr("x\u{202e}\0"), " title=\"x\u{fffd}\u{fffd}\"");
        let seen = "é 漢字 🇩🇪 👨\u{200d}👩 ❤\u{fe0f} ‘’ 　";
        assert_eq!(text(seen), seen);
    }

    proptest! {
        #[test]
        fn no_text_makes_a_tag_or_leaves_its_attribute(any in any::<String>()) {
            let (inside, value) = (text(&any), attr(&any));
            let ours = inside.replace("<span class=\"hid\">", "").replace("</span>", "");
            prop_assert!(!ours.contains(['<', '>', '"', '\'', '\0', '\r', '\u{202e}']), "{inside}");
            let value = value.strip_prefix(" title=\"").and_then(|v| v.strip_suffix('"'));
            prop_assert!(!value.expect("it is quoted").contains(['<', '>', '"', '\0']));
        }
    }
}

//! The view in which text is found that differs from the file's only in what is hard to see: forms
//! of the same character (NFKC), spaces at the end of lines, curly quotes, kinds of dashes and of
//! spaces. Each place of the view has its place in the bytes, so that only what is replaced changes.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::char::{canonical_combining_class, decompose_compatible};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

use super::source::Source;

/// The normalised lines of a file.
#[derive(Debug)]
pub(crate) struct FuzzyView {
    /// Lines joined by line feeds.
    pub(crate) text: String,
    /// Where each line starts in `text`.
    starts: Vec<usize>,
}

/// A range of the file's bytes that stands for a range of the view. Where a border falls inside a
/// character of the file (`fi` of the ligature `ﬁ`), the rest of that character's normalised text
/// has to be put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) bytes: Range<usize>,
    pub(crate) before: String,
    pub(crate) after: String,
}

impl FuzzyView {
    pub(crate) fn new(source: &Source<'_>) -> Self {
        let mut text = String::with_capacity(source.view.len());
        let mut starts = Vec::with_capacity(source.lines.len());
        for index in 0..source.lines.len() {
            if index > 0 {
                text.push('\n');
            }
            starts.push(text.len());
            text.push_str(trimmed(&normal(&String::from_utf8_lossy(
                source.line(index),
            ))));
        }
        Self { text, starts }
    }

    /// Number, from 0, of the line that holds a place.
    pub(crate) fn line_at(&self, place: usize) -> usize {
        self.starts.partition_point(|start| *start <= place) - 1
    }

    /// The file's bytes for a match. Spaces that the text asked for ended in are part of the match
    /// if the file has them there.
    pub(crate) fn place(&self, source: &Source<'_>, found: Range<usize>, spaces: &str) -> Place {
        let first = Cut::new(self, source, found.start);
        let last = Cut::new(self, source, found.end);
        let end = last.column + last.spaces(spaces);
        let (start, before) = first.start();
        let (end, after) = last.end(end);
        Place {
            bytes: start..end.max(start),
            before,
            after,
        }
    }
}

/// A place in the view, in its line.
struct Cut {
    /// Offset of the line in the bytes.
    line_start: usize,
    line_end: usize,
    segments: Vec<Segment>,
    column: usize,
    /// Nothing of the line's text follows.
    at_line_end: bool,
}

impl Cut {
    fn new(view: &FuzzyView, source: &Source<'_>, place: usize) -> Self {
        let index = view.line_at(place);
        let line = source.lines[index];
        let segments = segments(source.line(index));
        let column = place - view.starts[index];
        let rest = view.text.get(place..).unwrap_or_default();
        Self {
            line_start: line.start,
            line_end: line.end,
            segments,
            column,
            at_line_end: rest.is_empty() || rest.starts_with('\n'),
        }
    }

    /// How many of these spaces follow in the line, if all do.
    fn spaces(&self, spaces: &str) -> usize {
        let text: String = self.segments.iter().map(|s| s.normal.as_str()).collect();
        let follows = text
            .get(self.column..)
            .is_some_and(|t| t.starts_with(spaces));
        if follows { spaces.len() } else { 0 }
    }

    /// Offset where a range begins. At the end of the line it begins at the break, after spaces
    /// that the view does not have.
    fn start(&self) -> (usize, String) {
        if self.at_line_end {
            return (self.line_end, String::new());
        }
        let (mut offset, mut column) = (self.line_start, 0);
        for segment in &self.segments {
            let next = column + segment.normal.len();
            if next > self.column {
                let before = segment.normal.get(..self.column - column);
                return (offset, before.unwrap_or_default().to_owned());
            }
            (offset, column) = (offset + segment.bytes, next);
        }
        (offset, String::new())
    }

    /// Offset where a range ends that ends at this column.
    fn end(&self, end: usize) -> (usize, String) {
        let (mut offset, mut column) = (self.line_start, 0);
        for segment in &self.segments {
            if column >= end {
                break;
            }
            offset += segment.bytes;
            column += segment.normal.len();
            if column > end {
                let kept = segment.normal.len() - (column - end);
                let after = segment.normal.get(kept..);
                return (offset, after.unwrap_or_default().to_owned());
            }
        }
        (offset, String::new())
    }
}

/// Bytes of a line that are normalised by themselves, and what they become.
#[derive(Debug, PartialEq, Eq)]
struct Segment {
    bytes: usize,
    normal: String,
}

/// Cuts a line where its characters do not act on each other.
fn segments(line: &[u8]) -> Vec<Segment> {
    let mut segments = Vec::new();
    for chunk in line.utf8_chunks() {
        let text = chunk.valid();
        let mut start = 0;
        let cuts = text
            .char_indices()
            .skip(1)
            .filter(|(_, c)| stands_alone(*c));
        for end in cuts.map(|(at, _)| at).chain([text.len()]) {
            if start < end {
                segments.push(Segment {
                    bytes: end - start,
                    normal: normal(&text[start..end]).into_owned(),
                });
            }
            start = end;
        }
        if !chunk.invalid().is_empty() {
            segments.push(Segment {
                bytes: chunk.invalid().len(),
                normal: char::REPLACEMENT_CHARACTER.to_string(),
            });
        }
    }
    segments
}

/// Whether a character never joins the one before it.
fn stands_alone(c: char) -> bool {
    if c.is_ascii() {
        return true;
    }
    let mut first = None;
    decompose_compatible(c, |part| {
        first.get_or_insert(part);
    });
    let first = first.unwrap_or(c);
    canonical_combining_class(first) == 0
        && is_nfkc_quick(std::iter::once(first)) == IsNormalized::Yes
}

/// Text of an argument as the view has it, and the spaces that its last line ended in.
pub(crate) fn normal_text(text: &str) -> (String, String) {
    let lines: Vec<_> = text.split('\n').map(normal).collect();
    let trimmed_lines: Vec<_> = lines.iter().map(|line| trimmed(line)).collect();
    let last = lines.last().map_or("", |line| &line[trimmed(line).len()..]);
    (trimmed_lines.join("\n"), last.to_owned())
}

/// A line, or a segment of one, in its normal form.
pub(crate) fn normal(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfkc().map(plain).collect())
    }
}

fn trimmed(line: &str) -> &str {
    line.trim_end_matches(|c: char| c.is_whitespace() || c == '\u{feff}')
}

fn plain(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(file: &str, find: &str) -> (String, String, String) {
        let source = Source::new(file.as_bytes());
        let view = FuzzyView::new(&source);
        let (needle, spaces) = normal_text(find);
        let at = view.text.find(&needle).unwrap();
        let place = view.place(&source, at..at + needle.len(), &spaces);
        let bytes = String::from_utf8(source.bytes[place.bytes].to_vec()).unwrap();
        (place.before, bytes, place.after)
    }

    fn found(file: &str, find: &str) -> String {
        let (before, bytes, after) = place(file, find);
        assert_eq!((before.as_str(), after.as_str()), ("", ""));
        bytes
    }

    #[test]
    fn what_is_hard_to_see_is_the_same() {
        for (file, same) in [
            ("a\u{a0}b\u{2003}c\u{202f}d\u{3000}e", "a b c d e"),
            (
                "\u{201c}x\u{201d} \u{2018}y\u{2019} \u{201e}\u{201a}",
                "\"x\" 'y' \"'",
            ),
            (
                "\u{2010}\u{2011}\u{2012}\u{2013}\u{2014}\u{2015}\u{2212}",
                "-------",
            ),
            ("ﬁn Ａ① …", "fin A1 ..."),
            ("e\u{301}", "é"),
        ] {
            assert_eq!(normal_text(file).0, same);
            assert_eq!(found(file, same), file);
        }
        assert_eq!(
            normal_text("a \t\nb\u{a0}\n c  "),
            ("a\nb\n c".to_owned(), "  ".to_owned())
        );
    }

    #[test]
    fn cutting_a_line_changes_nothing_of_its_normal_form() {
        let odd = "e\u{301}\u{327} ｶﾞ \u{1100}\u{1161}\u{11a8} 각 ﬁ① \u{1f1e9}\u{1f1ea} 👩‍👩‍👧 \u{fdfa} ½ ㎏ \u{212b}\u{30b}";
        let joined: String = segments(odd.as_bytes())
            .into_iter()
            .map(|s| s.normal)
            .collect();
        assert_eq!(joined, normal(odd));
        let bytes: usize = segments(odd.as_bytes()).iter().map(|s| s.bytes).sum();
        assert_eq!(bytes, odd.len());
        assert!(segments(odd.as_bytes()).len() > 20);
    }

    #[test]
    fn a_match_has_exactly_its_own_bytes() {
        assert_eq!(found("x = “a” // “b”  \n", "\"a\""), "“a”");
        assert_eq!(found("日本“語”。終わり", "\"語\""), "“語”");
        assert_eq!(found("a  \r\nb \r\nc", "a\nb\n"), "a  \r\nb \r\n");
        assert_eq!(found("a  \nb", "\nb"), "\nb");
        assert_eq!(found("a  \n\nb", "a\n\n"), "a  \n\n");
    }

    #[test]
    fn spaces_at_the_end_belong_to_the_match_where_the_file_has_them() {
        assert_eq!(found("let\u{a0}x = 5", "let x = "), "let\u{a0}x = ");
        assert_eq!(found("let\u{a0}x =", "let x = "), "let\u{a0}x =");
        assert_eq!(found("let\u{a0}x =  \ny", "let x = "), "let\u{a0}x = ");
        assert_eq!(found("let\u{a0}x =  \ny", "let x ="), "let\u{a0}x =");
    }

    #[test]
    fn a_border_inside_a_character_puts_the_rest_of_it_back() {
        assert_eq!(
            place("a ﬁx", "a f"),
            (String::new(), "a ﬁ".to_owned(), "i".to_owned())
        );
        assert_eq!(
            place("a ﬁx", "ix"),
            ("f".to_owned(), "ﬁx".to_owned(), String::new())
        );
    }

    #[test]
    fn bytes_that_are_no_text_do_not_move_a_match() {
        let source = Source::new(b"\xff\xc3 a\xa0 \xe2\x80\x9cx\xe2\x80\x9d");
        let view = FuzzyView::new(&source);
        let at = view.text.find("\"x\"").unwrap();
        let place = view.place(&source, at..at + 3, "");
        assert_eq!(&source.bytes[place.bytes], "“x”".as_bytes());
    }

    #[test]
    fn no_character_joins_across_a_cut() {
        let joining = [
            0x80..0x3400,
            0xa9a0..0xac40,
            0xf900..0x1_0000,
            0x1_1080..0x1_1a00,
        ];
        for c in joining.into_iter().flatten().filter_map(char::from_u32) {
            let odd =
                format!("a{c}\u{301}{c}\u{304b}{c}\u{1100}{c}\u{1161}{c}\u{ac00}{c}\u{9c7}{c}");
            let joined: String = segments(odd.as_bytes())
                .into_iter()
                .map(|s| s.normal)
                .collect();
            assert_eq!(joined, normal(&odd), "U+{:04X}", u32::from(c));
        }
    }

    #[test]
    fn replacing_a_place_is_replacing_its_text_in_the_view() {
        let alphabet = [
            "a", " ", "\u{a0}", "“", "\n", "\r\n", "e\u{301}", "ﬁ", "f", "…", "―", "\"",
        ];
        let mut state = 7_u32;
        let mut random = |below: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as usize % below
        };
        for _ in 0..5_000 {
            let len = random(14) + 1;
            let file: String = (0..len).map(|_| alphabet[random(alphabet.len())]).collect();
            let source = Source::new(file.as_bytes());
            let view = FuzzyView::new(&source);
            let cuts: Vec<_> = view.text.char_indices().map(|(at, _)| at).collect();
            let Some(from) = cuts.get(random(len)).copied() else {
                continue;
            };
            let to = cuts.get(random(len)).copied().unwrap_or(view.text.len());
            // A line's trimmed spaces stay before a match that begins at its break.
            if to <= from || view.text[from..].starts_with('\n') {
                continue;
            }
            let place = view.place(&source, from..to, "");
            let mut new = source.bytes[..place.bytes.start].to_vec();
            new.extend(format!("{}N{}", place.before, place.after).bytes());
            new.extend(&source.bytes[place.bytes.end..]);
            let expected = format!("{}N{}", &view.text[..from], &view.text[to..]);
            assert_eq!(
                FuzzyView::new(&Source::new(&new)).text,
                expected,
                "{file:?} {from}..{to}"
            );
        }
    }
}

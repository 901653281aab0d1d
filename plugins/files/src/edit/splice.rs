//! New bytes of a file from its old bytes and the pieces to put in.

use super::matching::Piece;
use super::source::Source;

/// Puts the pieces in. They are in the order of the file and do not overlap; what lies between them
/// keeps its bytes, and line breaks of a piece become those of the line where it is put.
pub(crate) fn apply(source: &Source<'_>, pieces: &[Piece]) -> Vec<u8> {
    let mut new = Vec::with_capacity(source.bytes.len());
    let mut done = 0;
    for piece in pieces {
        join(&mut new, &source.bytes[done..piece.bytes.start]);
        let line_break = source.line_break_at(piece.bytes.start);
        join(&mut new, piece.text.replace('\n', line_break).as_bytes());
        done = piece.bytes.end;
    }
    join(&mut new, &source.bytes[done..]);
    new
}

/// Appends bytes. A CR before and an LF after the seam are two line breaks and stay two.
fn join(new: &mut Vec<u8>, bytes: &[u8]) {
    if new.last() == Some(&b'\r') && bytes.first() == Some(&b'\n') {
        new.push(b'\r');
    }
    new.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::Replace;
    use crate::edit::matching::locate;
    use crate::edit::source::with_line_feeds;

    #[track_caller]
    fn check(file: &str, edits: &[(&str, &str)], expected: &str) {
        let source = Source::new(file.as_bytes());
        let edits: Vec<_> = edits
            .iter()
            .map(|(old, new)| Replace {
                old_text: (*old).to_owned(),
                new_text: (*new).to_owned(),
            })
            .collect();
        let new = apply(&source, &locate(&source, &edits).unwrap());
        assert_eq!(String::from_utf8(new).unwrap(), expected);
    }

    #[test]
    fn a_crlf_file_stays_crlf() {
        // T06
        check(
            "a\r\nb\r\nc\r\n",
            &[("b", "x\ny\nz")],
            "a\r\nx\r\ny\r\nz\r\nc\r\n",
        );
        check(
            "a\r\nb\r\nc\r\n",
            &[("b\n", "x\r\ny\r\n")],
            "a\r\nx\r\ny\r\nc\r\n",
        );
        check("a\r\nb", &[("b", "x\ny\n")], "a\r\nx\r\ny\r\n");
        check("\u{feff}a\r\n", &[("a", "b\nc")], "\u{feff}b\r\nc\r\n");
    }

    #[test]
    fn each_piece_takes_the_line_break_of_its_place_in_a_mixed_file() {
        check(
            "a\r\nb\nc\r\n",
            &[("a", "1\n2"), ("b", "3\n4")],
            "1\r\n2\r\n3\n4\nc\r\n",
        );
        check("a\r\nb\n", &[("a\nb", "1\n2\n3")], "1\r\n2\r\n3\n");
    }

    #[test]
    fn a_lone_cr_is_used_only_where_there_is_no_lf() {
        check("a\rb\r", &[("b", "x\ny")], "a\rx\ry\r");
        check("a\rb\n", &[("a", "x\ny")], "x\ny\rb\n");
    }

    #[test]
    fn a_seam_makes_no_crlf_of_two_line_breaks() {
        check("a\rX\nb", &[("X", "")], "a\r\r\nb");
        check("a\rX\nb", &[("X", "\ny")], "a\r\r\ny\nb");
        check("a\rX\rb", &[("X", "\ny")], "a\r\ry\rb");
    }

    #[test]
    fn what_is_not_replaced_keeps_its_bytes() {
        check(
            "a  \n“b”\t\nc\u{a0}d  \n",
            &[("c d", "x")],
            "a  \n“b”\t\nx  \n",
        );
        // T08: also on the line that is changed
        check(
            "f(“a”); // ﬁx\u{a0}me  \n",
            &[("f(\"a\");", "g();")],
            "g(); // ﬁx\u{a0}me  \n",
        );
    }

    #[test]
    fn a_character_cut_in_half_leaves_its_other_half() {
        check("a “ﬁx”", &[("\"f", "[F")], "a [Fix”");
    }

    #[test]
    fn whole_lines_are_replaced_with_the_spaces_at_their_ends() {
        check("a  \r\nb\t\r\nc\r\n", &[("a\nb\n", "x\n")], "x\r\nc\r\n");
    }

    #[test]
    fn an_edit_of_the_bytes_is_the_same_edit_of_the_view() {
        let mut state = 1_u32;
        let mut random = |below: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as usize % below
        };
        let mut text = |most: usize| -> String {
            let len = random(most);
            (0..len)
                .map(|_| ["a", "b", "\r", "\n", "\r\n"][random(5)])
                .collect()
        };
        let mut edited = 0;
        for _ in 0..20_000 {
            let (file, old, new) = (text(9), text(4), text(4));
            let source = Source::new(file.as_bytes());
            let edit = Replace {
                old_text: old.clone(),
                new_text: new.clone(),
            };
            let Ok(pieces) = locate(&source, &[edit]) else {
                continue;
            };
            let bytes = apply(&source, &pieces);
            let expected =
                source
                    .text()
                    .replacen(&*with_line_feeds(&old), &with_line_feeds(&new), 1);
            assert_eq!(
                Source::new(&bytes).text(),
                expected,
                "{file:?} {old:?} {new:?}"
            );
            edited += 1;
        }
        assert!(edited > 2000, "{edited}");
    }
}

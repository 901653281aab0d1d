//! The fast look at a line: who it is and whether it is whole, without reading its body. Only lines
//! as pi and pliant write them pass; any other is for the careful reader, see [`super::scan`].

use memchr::memchr2;

/// What a record's first fields say.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Skimmed<'a> {
    pub(super) kind: &'a str,
    pub(super) id: &'a str,
    pub(super) parent: Option<&'a str>,
    pub(super) timestamp: &'a str,
}

/// The head of a line that starts as records do; the rest of it may be torn.
pub(super) fn head(line: &[u8]) -> Option<Skimmed<'_>> {
    Some(head_and_rest(line)?.0)
}

/// The head of a line that is one whole record. Fields that the head has do not occur again in it,
/// nothing follows it, strings end and brackets match in number; that the body is JSON is not
/// checked.
pub(super) fn whole(line: &[u8]) -> Option<Skimmed<'_>> {
    let (head, rest) = head_and_rest(line)?;
    closes(rest).then_some(head)
}

/// The role of a message entry that says it first. The line may be cut off behind it.
pub(super) fn role(line: &[u8]) -> Option<&str> {
    let (_, rest) = head_and_rest(line)?;
    let (role, _) = string(rest.strip_prefix(b",\"message\":{\"role\":\"")?)?;
    Some(role)
}

fn head_and_rest(line: &[u8]) -> Option<(Skimmed<'_>, &[u8])> {
    let (kind, rest) = string(line.strip_prefix(b"{\"type\":\"")?)?;
    let (id, rest) = string(rest.strip_prefix(b",\"id\":\"")?)?;
    let rest = rest.strip_prefix(b",\"parentId\":")?;
    let (parent, rest) = match rest.strip_prefix(b"null") {
        Some(rest) => (None, rest),
        None => {
            let (parent, rest) = string(rest.strip_prefix(b"\"")?)?;
            (Some(parent), rest)
        }
    };
    let (timestamp, rest) = string(rest.strip_prefix(b",\"timestamp\":\"")?)?;
    let head = Skimmed {
        kind,
        id,
        parent,
        timestamp,
    };
    Some((head, rest))
}

/// The longest name or time that is worth the fast way.
const LONGEST: usize = 256;

/// A string without escapes up to its quote, and what follows it.
fn string(text: &[u8]) -> Option<(&str, &[u8])> {
    let near = &text[..text.len().min(LONGEST)];
    let end = near
        .iter()
        .position(|byte| matches!(byte, b'"' | b'\\') || *byte < b' ')?;
    if text[end] != b'"' {
        return None;
    }
    let string = std::str::from_utf8(&text[..end]).ok()?;
    Some((string, &text[end + 1..]))
}

/// Fields of the head. Where one occurs twice the last counts, so such a line is read carefully.
const HEAD: [&[u8]; 4] = [b"type", b"id", b"parentId", b"timestamp"];

/// Whether the record that `rest` is in closes at its last byte and nowhere before.
fn closes(rest: &[u8]) -> bool {
    let mut depth = 1_usize;
    let mut at = 0;
    while let Some(byte) = rest.get(at) {
        match byte {
            b'"' => {
                let start = at + 1;
                let Some(end) = string_end(rest, start) else {
                    return false;
                };
                at = end;
                let is_key = depth == 1 && rest.get(at + 1) == Some(&b':');
                if is_key && HEAD.contains(&&rest[start..end]) {
                    return false;
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1 == rest.len();
                }
            }
            // Whatever else may stand outside strings: a text there means that a quote is missing.
            b',' | b':' | b'0'..=b'9' | b'-' | b'+' | b'.' | b'E' | b' ' | b'\t' => {}
            b't' | b'r' | b'u' | b'e' | b'f' | b'a' | b'l' | b's' | b'n' => {}
            _ => return false,
        }
        at += 1;
    }
    false
}

/// The place of the quote that ends a string.
fn string_end(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"type":"message","id":"a","parentId":"b","timestamp":"t","message":{"role":"user","content":[{"type":"text","text":"x \" } \\"}],"n":-1.5e3,"ok":true}}"#;

    fn id(line: &str) -> Option<&str> {
        whole(line.as_bytes()).map(|head| head.id)
    }

    #[test]
    fn a_line_as_we_write_it_is_known_by_its_head() {
        let wanted = Skimmed {
            kind: "message",
            id: "a",
            parent: Some("b"),
            timestamp: "t",
        };
        assert_eq!(whole(LINE.as_bytes()), Some(wanted));
        assert_eq!(
            id(r#"{"type":"label","id":"é","parentId":null,"timestamp":"t"}"#),
            Some("é")
        );
    }

    #[test]
    fn a_line_cut_anywhere_is_not_whole() {
        for cut in 0..LINE.len() {
            assert_eq!(whole(&LINE.as_bytes()[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn half_a_record_before_a_whole_one_is_not_whole() {
        // reports S05
        for cut in 1..LINE.len() {
            let glued = format!("{}{LINE}", &LINE[..cut]);
            assert_eq!(id(&glued), None, "{cut}");
        }
        assert_eq!(id(&format!("{LINE}{LINE}")), None);
        assert_eq!(id(&format!("{LINE} x")), None);
    }

    #[test]
    fn what_is_written_another_way_is_left_to_the_careful_reader() {
        for line in [
            r#"{"type": "label","id":"a","parentId":null,"timestamp":"t"}"#,
            r#"{"id":"a","type":"label","parentId":null,"timestamp":"t"}"#,
            r#"{"type":"label","id":"a\n","parentId":null,"timestamp":"t"}"#,
            r#"{"type":"label","id":"a","parentId":null,"timestamp":5}"#,
            r#"{"type":"label","id":"a","parentId":null,"timestamp":"t","id":"b"}"#,
            r#"{"type":"label","id":"a","parentId":null,"timestamp":"t",oops}"#,
            "{\"type\":\"label\",\"id\":\"a\0\",\"parentId\":null,\"timestamp\":\"t\"}",
            "",
            "{",
        ] {
            assert_eq!(id(line), None, "{line}");
        }
        let nested =
            r#"{"type":"custom","id":"a","parentId":null,"timestamp":"t","data":{"id":"b"}}"#;
        assert_eq!(id(nested), Some("a"));
    }
}

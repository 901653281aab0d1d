//! Lines of a session file cut into records, without reading their bodies. Damaged pieces are told
//! apart from whole records, also when both stand on one line; nothing of a line is dropped.

use std::ops::Range;

use super::head::Head;

/// A stretch of a line.
pub(super) struct Piece<'a> {
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) range: Range<usize>,
    /// `None`: damaged.
    pub(super) head: Option<Head<'a>>,
}

/// The first readable record of a file, on this line, is not a session header (S15).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotAHeader {
    pub(super) line: usize,
}

/// Reads line after line of one file.
#[derive(Default)]
pub(super) struct Scanner {
    /// Of the file, once its header was found.
    pub(super) version: Option<f64>,
}

impl Scanner {
    /// The pieces of a line. `range` says where it is in `text`, as the ranges of pieces will.
    /// Before the header only damaged pieces come.
    pub(super) fn line<'a>(
        &mut self,
        text: &'a str,
        range: Range<usize>,
        number: usize,
    ) -> Result<Vec<Piece<'a>>, NotAHeader> {
        let range = trimmed(text, range, number == 1);
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let head = Head::parse(&text[range.clone()]);
        let whole = Piece {
            line: number,
            range: range.clone(),
            head,
        };
        match (&whole.head, self.version) {
            (Some(head), None) if head.is_header() => self.version = Some(head.file_version()),
            (Some(_), None) => return Err(NotAHeader { line: number }),
            (Some(_), Some(_)) => {}
            (None, version) => return Ok(self.parts(text, whole, version)),
        }
        Ok(vec![whole])
    }

    /// A damaged line.
    fn parts<'a>(
        &mut self,
        text: &'a str,
        whole: Piece<'a>,
        version: Option<f64>,
    ) -> Vec<Piece<'a>> {
        let parts = recover(text, whole.range.clone(), whole.line, version);
        let mut heads = parts.iter().filter_map(|part| part.head.as_ref());
        match (version, heads.find(|head| head.is_header())) {
            (None, None) => vec![whole],
            (None, Some(header)) => {
                self.version = Some(header.file_version());
                parts
            }
            (Some(_), _) => parts,
        }
    }
}

/// The pieces of a whole text; `None` when it is no session.
pub(super) fn scan(text: &str) -> Option<Vec<Piece<'_>>> {
    let mut scanner = Scanner::default();
    let mut pieces = Vec::new();
    let mut start = 0;
    for (number, line) in text.split('\n').enumerate() {
        let range = start..start + line.len();
        start = range.end + 1;
        pieces.extend(scanner.line(text, range, number + 1).ok()?);
    }
    scanner.version.map(|_| pieces)
}

/// Without white space at both ends, and without a byte order mark at the start of the file.
fn trimmed(text: &str, range: Range<usize>, is_first: bool) -> Range<usize> {
    let line = &text[range.clone()];
    let kept = if is_first {
        line.trim_start_matches('\u{feff}')
    } else {
        line
    };
    let kept = kept.trim_start();
    let start = range.end - kept.len();
    start..start + kept.trim_end().len()
}

/// Finds whole records on a damaged line: a record written half and then whole, or several records
/// without line ends between them. What lies between them is damaged.
fn recover(text: &str, line: Range<usize>, number: usize, version: Option<f64>) -> Vec<Piece<'_>> {
    const START: &str = "{\"type\":";
    let mut pieces = Vec::new();
    let piece = |range, head| Piece {
        line: number,
        range,
        head,
    };
    let (mut from, mut damaged_from) = (line.start, line.start);
    let mut version = version;
    // A line of nothing but record starts would otherwise be read once for each of them.
    let mut budget = line.len().saturating_mul(16).saturating_add(1 << 20);
    while let Some(start) = text[from..line.end].find(START).map(|at| from + at) {
        let mut stream =
            serde_json::Deserializer::from_str(&text[start..line.end]).into_iter::<Head<'_>>();
        match stream.next() {
            Some(Ok(head)) => {
                let end = start + stream.byte_offset();
                from = end;
                let sought = match version {
                    None => head.is_header(),
                    Some(version) => head.is_surely_record(version),
                };
                if sought {
                    version = version.or(Some(head.file_version()));
                    pieces.push(piece(trimmed(text, damaged_from..start, false), None));
                    pieces.push(piece(start..end, Some(head)));
                    damaged_from = end;
                }
            }
            Some(Err(error)) if budget > error.column() => {
                budget -= error.column();
                from = start + START.len();
            }
            _ => break,
        }
    }
    pieces.push(piece(trimmed(text, damaged_from..line.end, false), None));
    pieces.retain(|piece| !piece.range.is_empty());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/"}"#;
    const ENTRY: &str = r#"{"type":"custom","id":"a","parentId":null,"timestamp":"t","data":{"type":"text","id":"n"}}"#;

    /// The pieces as text: records by their id, damaged ones between angle brackets.
    fn pieces(text: &str) -> Option<Vec<String>> {
        let show = |piece: Piece<'_>| match piece.head {
            Some(head) => format!("{}:{}", piece.line, head.id.text().unwrap_or("?")),
            None => format!("{}:<{}>", piece.line, &text[piece.range]),
        };
        Some(scan(text)?.into_iter().map(show).collect())
    }

    #[test]
    fn a_record_written_half_and_then_whole_on_the_same_line_is_found() {
        // reports S05
        for cut in 1..ENTRY.len() {
            let half = &ENTRY[..cut];
            let text = format!("{HEADER}\n{half}{ENTRY}\n");
            assert_eq!(
                pieces(&text).unwrap(),
                ["1:s".into(), format!("2:<{half}>"), "2:a".into()]
            );
        }
        let glued = format!("{HEADER}{ENTRY}{ENTRY}");
        assert_eq!(pieces(&glued).unwrap(), ["1:s", "1:a", "1:a"]);
    }

    #[test]
    fn blocks_inside_a_torn_record_are_not_taken_for_records() {
        let torn = &ENTRY[..ENTRY.len() - 1];
        assert_eq!(
            pieces(&format!("{HEADER}\n{torn}")).unwrap(),
            ["1:s".into(), format!("2:<{torn}>")]
        );
    }

    #[test]
    fn junk_blank_lines_and_a_byte_order_mark_may_precede_the_header() {
        // 2.2, M18
        let text = format!(
            "\u{feff}{{torn\r\n\r\n{}{HEADER}\r\n{ENTRY}\r\n",
            &HEADER[..30]
        );
        let want = [
            "1:<{torn>".into(),
            format!("3:<{}>", &HEADER[..30]),
            "3:s".into(),
            "4:a".into(),
        ];
        assert_eq!(pieces(&text).unwrap(), want);
        assert_eq!(pieces(&format!("\u{feff}{HEADER}")).unwrap(), ["1:s"]);
    }

    #[test]
    fn a_file_whose_first_record_is_something_else_is_no_session() {
        // S15
        for text in [
            "",
            "\n",
            "junk",
            "3",
            "[]",
            "{\"a\":1}",
            &format!("{ENTRY}\n{HEADER}"),
            r#"{"type":"session","id":7}"#,
        ] {
            assert!(pieces(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_line_of_endless_record_starts_is_given_up_in_time() {
        let text = format!("{HEADER}\n{}", "{\"type\":".repeat(40_000));
        assert_eq!(scan(&text).unwrap().len(), 2);
    }
}

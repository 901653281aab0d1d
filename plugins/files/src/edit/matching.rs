//! Where the pieces are that shall be replaced. All are looked up in the file as it is, to the
//! letter; if one is not there to the letter, all are looked up in the fuzzy view.

use std::ops::Range;

use memchr::memmem::Finder;

use super::Replace;
use super::fuzzy::{FuzzyView, Place, normal_text};
use super::nearest::{self, Nearest};
use super::source::{Source, with_line_feeds};

/// Occurrences after which counting stops.
const MAX_COUNTED: usize = 100;
/// Line numbers that an error lists.
const MAX_LISTED: usize = 8;

/// New text for a range of the file's bytes; line breaks are line feeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) bytes: Range<usize>,
    pub(crate) text: String,
}

/// Why edits cannot be made. Edits are counted from 0, lines from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mistake {
    Empty {
        edit: usize,
    },
    NotFound {
        edit: usize,
        nearest: Option<Nearest>,
    },
    NotUnique {
        edit: usize,
        lines: Vec<usize>,
        to_the_letter: bool,
    },
    Blank {
        edit: usize,
    },
    Overlap {
        edits: [usize; 2],
    },
}

/// Finds every piece, in the order of the file.
pub(crate) fn locate(source: &Source<'_>, edits: &[Replace]) -> Result<Vec<Piece>, Mistake> {
    let wanted: Vec<_> = edits
        .iter()
        .map(|edit| with_line_feeds(&edit.old_text))
        .collect();
    if let Some(edit) = wanted.iter().position(|text| text.is_empty()) {
        return Err(Mistake::Empty { edit });
    }
    let view = FuzzyView::new(source);
    let exact: Vec<_> = wanted
        .iter()
        .map(|text| occurrences(&source.view, text))
        .collect();
    let all_exact = exact.iter().all(|places| !places.is_empty());

    let mut found = Vec::with_capacity(edits.len());
    for (edit, text) in wanted.iter().enumerate() {
        let unique = unique(edit, text, &exact[edit], source, &view)?;
        let place = match (all_exact, unique) {
            (true, _) => exact_place(source, exact[edit][0], text.len()),
            (false, Some(place)) => place,
            (false, None) => return Err(Mistake::Blank { edit }),
        };
        found.push((edit, place));
    }
    found.sort_by_key(|(_, place)| (place.bytes.start, place.bytes.end));
    for pair in found.windows(2) {
        if pair[1].1.bytes.start < pair[0].1.bytes.end {
            let mut edits = [pair[0].0, pair[1].0];
            edits.sort_unstable();
            return Err(Mistake::Overlap { edits });
        }
    }
    Ok(found
        .into_iter()
        .map(|(edit, place)| piece(place, &edits[edit].new_text))
        .collect())
}

fn piece(place: Place, new_text: &str) -> Piece {
    Piece {
        text: format!(
            "{}{}{}",
            place.before,
            with_line_feeds(new_text),
            place.after
        ),
        bytes: place.bytes,
    }
}

/// The one place of a text in the fuzzy view. Nothing if the text is only spaces there, which is
/// unique if it is so to the letter.
fn unique(
    edit: usize,
    text: &str,
    exact: &[usize],
    source: &Source<'_>,
    view: &FuzzyView,
) -> Result<Option<Place>, Mistake> {
    let not_unique = |lines: Vec<usize>| Mistake::NotUnique {
        edit,
        lines,
        to_the_letter: exact.len() > 1,
    };
    if exact.len() > 1 {
        return Err(not_unique(
            exact.iter().map(|at| source.line_at(*at) + 1).collect(),
        ));
    }
    let (needle, spaces) = normal_text(text);
    if needle.is_empty() {
        return match exact {
            [] => Err(not_found(edit, text, source)),
            _ => Ok(None),
        };
    }
    match occurrences(view.text.as_bytes(), &needle).as_slice() {
        [] => Err(not_found(edit, text, source)),
        [at] => Ok(Some(view.place(source, *at..at + needle.len(), &spaces))),
        several => Err(not_unique(
            several.iter().map(|at| view.line_at(*at) + 1).collect(),
        )),
    }
}

fn not_found(edit: usize, text: &str, source: &Source<'_>) -> Mistake {
    let nearest = nearest::find(&source.text(), text);
    Mistake::NotFound { edit, nearest }
}

fn exact_place(source: &Source<'_>, at: usize, len: usize) -> Place {
    Place {
        bytes: source.offset(at)..source.offset(at + len),
        before: String::new(),
        after: String::new(),
    }
}

/// Where a text occurs, overlapping occurrences too: they are as ambiguous as others.
fn occurrences(text: &[u8], needle: &str) -> Vec<usize> {
    let finder = Finder::new(needle);
    let mut places = Vec::new();
    let mut from = 0;
    while places.len() < MAX_COUNTED
        && let Some(at) = text.get(from..).and_then(|rest| finder.find(rest))
    {
        places.push(from + at);
        from += at + 1;
    }
    places
}

impl Mistake {
    /// A sentence for the model: what is wrong, where, and what to do.
    pub(crate) fn message(&self, path: &str, edits: usize) -> String {
        let old = |edit: &usize| match edits {
            1 => "oldText".to_owned(),
            _ => format!("edits[{edit}].oldText"),
        };
        match self {
            Self::Empty { edit } => format!(
                "{} is empty ({path}). Give the text to replace; to create or rewrite a file use write.",
                old(edit)
            ),
            Self::NotFound { edit, nearest } => {
                let help = nearest.as_ref().map_or_else(
                    || "Nothing like it is there; read the file again.".to_owned(),
                    Nearest::explain,
                );
                format!("{} is not in {path}. {help}", old(edit))
            }
            Self::NotUnique {
                edit,
                lines,
                to_the_letter,
            } => {
                let count = match lines.len() {
                    MAX_COUNTED.. => format!("at least {MAX_COUNTED}"),
                    count => count.to_string(),
                };
                let mut listed: Vec<_> = lines
                    .iter()
                    .take(MAX_LISTED)
                    .map(ToString::to_string)
                    .collect();
                if lines.len() > MAX_LISTED {
                    listed.push("…".to_owned());
                }
                let alike = if *to_the_letter {
                    ""
                } else {
                    ", counting what differs only in quotes, dashes or spaces"
                };
                format!(
                    "{} occurs {count} times in {path} (lines {}){alike}. Add neighbouring lines until \
                     it occurs once.",
                    old(edit),
                    listed.join(", ")
                )
            }
            Self::Blank { edit } => format!(
                "{} has only spaces, and another edit of {path} is not there to the letter. Add \
                 neighbouring text, or make this edit alone.",
                old(edit)
            ),
            Self::Overlap { edits: [a, b] } => format!(
                "edits[{a}] and edits[{b}] replace the same text of {path}. Make one edit of them."
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edits(pairs: &[(&str, &str)]) -> Vec<Replace> {
        let edit = |(old, new): &(&str, &str)| Replace {
            old_text: (*old).to_owned(),
            new_text: (*new).to_owned(),
        };
        pairs.iter().map(edit).collect()
    }

    fn mistake(file: &str, pairs: &[(&str, &str)]) -> Mistake {
        locate(&Source::new(file.as_bytes()), &edits(pairs)).unwrap_err()
    }

    fn message(file: &str, pairs: &[(&str, &str)]) -> String {
        mistake(file, pairs).message("f.txt", pairs.len())
    }

    fn ranges(file: &str, pairs: &[(&str, &str)]) -> Vec<(usize, usize)> {
        let found = locate(&Source::new(file.as_bytes()), &edits(pairs)).unwrap();
        found
            .into_iter()
            .map(|piece| (piece.bytes.start, piece.bytes.end))
            .collect()
    }

    #[test]
    fn pieces_are_in_the_order_of_the_file() {
        // extensions §8.4
        assert_eq!(
            ranges("one two three", &[("three", ""), ("one", "")]),
            [(0, 3), (8, 13)]
        );
    }

    #[test]
    fn every_edit_is_looked_up_in_the_file_as_it_was() {
        let Mistake::NotFound { edit: 1, .. } = mistake("one", &[("one", "two"), ("two", "x")])
        else {
            panic!("the second edit saw the first");
        };
    }

    #[test]
    fn adjacent_pieces_are_fine_and_overlapping_ones_are_not() {
        assert_eq!(ranges("abcd", &[("ab", ""), ("cd", "")]), [(0, 2), (2, 4)]);
        let overlap = Mistake::Overlap { edits: [0, 1] };
        assert_eq!(mistake("abcd", &[("bcd", ""), ("abc", "")]), overlap);
        assert_eq!(mistake("abcd", &[("abcd", ""), ("bc", "")]), overlap);
        assert_eq!(mistake("abcd", &[("bc", ""), ("bc", "")]), overlap);
        assert_eq!(
            message("abcd", &[("bc", ""), ("bc", "")]),
            "edits[0] and edits[1] replace the same text of f.txt. Make one edit of them."
        );
    }

    #[test]
    fn an_empty_old_text_is_a_mistake() {
        assert_eq!(
            message("a", &[("", "x")]),
            "oldText is empty (f.txt). Give the text to replace; to create or rewrite a file use write."
        );
        assert!(message("a", &[("a", "x"), ("", "x")]).starts_with("edits[1].oldText is empty"));
    }

    #[test]
    fn a_text_must_occur_once() {
        assert_eq!(
            message("a\nb\na\n", &[("a", "x")]),
            "oldText occurs 2 times in f.txt (lines 1, 3). Add neighbouring lines until it occurs once."
        );
        assert_eq!(ranges("a\nb\na\n", &[("b\na", "")]), [(2, 5)]);
        let many = message(&"a\n".repeat(500), &[("b", ""), ("a", "x")]);
        assert!(many.starts_with("edits[0].oldText is not in"), "{many}");
        let many = message(&"a\n".repeat(500), &[("a", "x")]);
        assert!(
            many.contains("at least 100 times") && many.contains("7, 8, …)"),
            "{many}"
        );
    }

    #[test]
    fn overlapping_occurrences_are_ambiguous() {
        let Mistake::NotUnique { lines, .. } = mistake("aaa", &[("aa", "x")]) else {
            panic!()
        };
        assert_eq!(lines, [1, 1]);
    }

    #[test]
    fn uniqueness_counts_what_only_looks_alike() {
        let message = message("x = 'a'\nx = ‘a’\n", &[("x = 'a'", "y")]);
        assert!(
            message.contains("2 times") && message.contains("counting what differs only"),
            "{message}"
        );
    }

    #[test]
    fn one_edit_that_needs_the_fuzzy_view_takes_all_there() {
        let file = "say “hi” \nplain\n";
        assert_eq!(
            ranges(file, &[("plain", ""), ("\"hi\"", "")]),
            [(4, 12), (14, 19)]
        );
        let blank = [("  ", " "), ("“x”", "")];
        assert_eq!(mistake("a  b \"x\"", &blank), Mistake::Blank { edit: 0 });
        assert_eq!(ranges("a  b", &[("  ", "")]), [(1, 3)]);
    }

    #[test]
    fn only_spaces_that_are_not_there_are_not_found() {
        assert!(message("a b", &[("   ", "x")]).starts_with("oldText is not in f.txt."));
    }

    #[test]
    fn line_breaks_of_any_kind_match_each_other() {
        // T06
        assert_eq!(ranges("a\r\nb\r\nc", &[("a\nb", "")]), [(0, 4)]);
        assert_eq!(ranges("a\nb", &[("a\r\nb", "")]), [(0, 3)]);
        assert_eq!(ranges("a\rb\r", &[("b\n", "")]), [(2, 4)]);
        assert_eq!(ranges("\u{feff}a\r\n", &[("a", "")]), [(3, 4)]);
    }
}

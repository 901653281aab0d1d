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

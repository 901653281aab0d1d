//! What is odd about a session file, line by line, and a mended copy of it (`kernel.md` §2.4). The
//! file itself is only read, also while somebody has it open.

mod examine;
mod mend;

use std::fmt;
use std::path::Path;

pub use mend::{CopyCwd, write_mended_copy};

use super::{Ids, TreeError, opening};

/// A kind of oddity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OddityKind {
    /// The file is empty.
    Empty,
    /// No line is a record.
    NoRecords,
    /// Entries without the header that belongs before them.
    NoHeader,
    /// The first readable record is something else.
    NotASession,
    /// Versions 1 and 2.
    OldVersion,
    /// The header does not say that it is of version 3, but the entries are.
    NoVersion,
    /// A version that this program does not know.
    NewVersion,
    /// Another header behind the first.
    SecondHeader,
    /// U+FEFF at the start.
    ByteOrderMark,
    /// CR before LF.
    CarriageReturns,
    /// Zero bytes, as a file system leaves them after a loss of power.
    ZeroBytes,
    /// Bytes that are not UTF-8.
    NotUtf8,
    /// A piece that is no whole record.
    Damaged,
    /// Several records, or parts of them, on one line.
    Glued,
    /// A record without an id or a type.
    Nameless,
    /// The last line has no end.
    NoLineEnd,
    /// Half surrogates, numbers or depths that strict readers refuse.
    Lenient,
    /// The record says who it is, but its body cannot be read.
    Unreadable,
    /// An earlier entry has the same id.
    DuplicateId,
    /// The parent is nowhere, but where it was is known.
    LostParent,
    /// The parent is nowhere in the file.
    MissingParent,
    /// The entry is its own ancestor.
    Cycle,
    /// A label, an edit or a compaction names an entry that is not there.
    MissingTarget,
    /// The time cannot be read.
    NoTime,
    /// A type this version does not know.
    UnknownType,
}

impl OddityKind {
    /// What it is.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Self::Empty => "the file is empty",
            Self::NoRecords => "nothing in the file is a record of a session",
            Self::NoHeader => "the session header before this entry is missing or damaged",
            Self::NotASession => "the first readable record is no session header",
            Self::OldVersion => "the file is of an older version",
            Self::NoVersion => {
                "the header does not say the version, and the entries are of version 3"
            }
            Self::NewVersion => "the file is of a later version than this program knows",
            Self::SecondHeader => "a second session header",
            Self::ByteOrderMark => "a byte order mark",
            Self::CarriageReturns => "a carriage return before the line end",
            Self::ZeroBytes => "zero bytes, as a loss of power leaves them",
            Self::NotUtf8 => "bytes that are no UTF-8 text",
            Self::Damaged => "not a whole record",
            Self::Glued => "more than one record on the line",
            Self::Nameless => "a record without an id or a type",
            Self::NoLineEnd => "the last line has no end",
            Self::Lenient => {
                "JSON that strict readers refuse: half a surrogate pair, a control character, a \
                 number or a depth out of range"
            }
            Self::Unreadable => "the entry has a name but its content cannot be read",
            Self::DuplicateId => "the id of an earlier entry again",
            Self::LostParent => "the entry's parent is a record that is gone or cannot be read",
            Self::MissingParent => "the entry's parent is not in the file",
            Self::Cycle => "the entry is its own ancestor",
            Self::MissingTarget => "names an entry that is not in the file",
            Self::NoTime => "the time cannot be read",
            Self::UnknownType => "a type of entry that this version does not know",
        }
    }

    /// Whether a mended copy is without it.
    #[must_use]
    pub fn is_mended(self) -> bool {
        !matches!(
            self,
            Self::Empty
                | Self::NoRecords
                | Self::NotASession
                | Self::NewVersion
                | Self::MissingTarget
                | Self::NoTime
                | Self::UnknownType
        )
    }

    /// What pliant makes of it when the session is opened, or a mended copy does.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Empty => "opening it begins a new session in it",
            Self::NoRecords | Self::NotASession => "nothing to mend: it is no session file",
            Self::NoHeader => "it cannot be opened; a copy gets a new header",
            Self::OldVersion => "opening it brings it to version 3; so does a copy",
            Self::NoVersion => "it is read as version 3; a copy says so",
            Self::NewVersion => "it is read as far as it is understood, and kept as it is",
            Self::SecondHeader | Self::Damaged | Self::Nameless => {
                "it is passed over; a copy leaves it out"
            }
            Self::ByteOrderMark | Self::CarriageReturns | Self::NoLineEnd | Self::Glued => {
                "it is read all the same; a copy is written without it"
            }
            Self::ZeroBytes | Self::NotUtf8 => "the rest is read; a copy leaves them out",
            Self::Lenient => "it is read with U+FFFD or null in their place; a copy is strict JSON",
            Self::Unreadable => "the model does not see it; a copy says that it was unreadable",
            Self::DuplicateId => "the later entry counts; a copy leaves the earlier one out",
            Self::LostParent => "the branch is led over it; a copy has an empty entry in its place",
            Self::MissingParent => {
                "the entry begins a branch of its own, and what was said before it is not sent; in a \
                 copy it follows the entry before it"
            }
            Self::Cycle => "the branch ends where it would repeat; a copy makes that entry a root",
            Self::MissingTarget => "it has no effect",
            Self::NoTime => "it counts as very old",
            Self::UnknownType => "it is kept as it is; the model does not see it",
        }
    }
}

/// Something odd about a session file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oddity {
    /// What it is.
    pub kind: OddityKind,
    /// Where: lines counted from 1.
    pub lines: Vec<usize>,
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        let shown: Vec<String> = self
            .lines
            .iter()
            .take(SHOWN)
            .map(ToString::to_string)
            .collect();
        match self.lines.len() {
            0 => {}
            1 => write!(f, "Line {}: ", shown[0])?,
            count if count > SHOWN => {
                write!(f, "Lines {} and {} more: ", shown.join(", "), count - SHOWN)?;
            }
            _ => write!(f, "Lines {}: ", shown.join(", "))?,
        }
        write!(f, "{}; {}.", self.kind.what(), self.kind.remedy())
    }
}

/// Reads a file and tells what is odd about it, in the order of the kinds.
///
/// # Errors
/// [`TreeError::Read`].
pub fn examine(path: &Path, ids: &Ids) -> Result<Vec<Oddity>, TreeError> {
    let bytes = opening::read_bytes(path)?;
    Ok(examine::examine(path, &bytes, ids))
}

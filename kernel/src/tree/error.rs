//! What can go wrong with a session tree, as sentences for the user.

use std::io;
use std::path::PathBuf;

use super::EntryId;

/// Why an operation on a session tree was refused or failed. The tree is then as it was before.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// S22, S25, S26
    #[error("There is no entry {id} in this session. List the tree to see the ids it has.")]
    UnknownEntry {
        /// The id that was asked for.
        id: EntryId,
    },
    /// S26
    #[error(
        "Entry {id} is not on the active branch, so editing it would have no effect. Navigate \
         to it first."
    )]
    NotOnBranch {
        /// The target.
        id: EntryId,
    },
    /// S26
    #[error(
        "Entry {id} cannot be edited because it is a {what}. Choose a user message, an answer, \
         a tool result or a custom message."
    )]
    NotEditable {
        /// The target.
        id: EntryId,
        /// Its kind or role.
        what: String,
    },
    /// S26
    #[error(
        "A context edit needs a replacement that is null, or an object whose content is a \
         string or a list of blocks."
    )]
    BadReplacement,
    /// M1, M5
    #[error("A {what} cannot be stored in a session. Store what it stands for instead.")]
    NotStorable {
        /// What was to be appended.
        what: String,
    },
    /// S10
    #[error("The entry cannot be written as JSON: {0}. Check the data that was to be stored.")]
    Unserialisable(#[from] serde_json::Error),
    /// S2
    #[error(
        "The session id {id:?} is not valid. Use letters, digits, '.', '_' and '-', with a \
         letter or digit at both ends."
    )]
    InvalidSessionId {
        /// What the caller gave.
        id: String,
    },
    /// S15
    #[error(
        "{} is not a session file: its first record is not a session header. It was left \
         untouched; choose another path.",
        path.display()
    )]
    NotASession {
        /// The file.
        path: PathBuf,
    },
    /// Reading failed.
    #[error(
        "The session file {} cannot be read: {source}. Check the path and its permissions.",
        path.display()
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// S12
    #[error(
        "The session file {} cannot be written: {source}. Nothing was recorded; free space or \
         fix permissions, then try again.",
        path.display()
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// S11
    #[error(
        "The session file {} exists already, so the new session was not written over it. Open \
         that session, or start one under another id.",
        path.display()
    )]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// S28
    #[error("This session is not on disk yet, so it cannot be forked. Send a message first.")]
    NotOnDisk,
    /// S28
    #[error(
        "Entry {id} is not a user message. Forking before an entry needs one; fork at the entry \
         instead."
    )]
    NotAUserMessage {
        /// The entry.
        id: EntryId,
    },
}

impl TreeError {
    pub(super) fn read(path: &std::path::Path, source: io::Error) -> Self {
        Self::Read {
            path: path.to_owned(),
            source,
        }
    }

    pub(super) fn write(path: &std::path::Path, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::AlreadyExists {
            return Self::Exists {
                path: path.to_owned(),
            };
        }
        Self::Write {
            path: path.to_owned(),
            source,
        }
    }
}

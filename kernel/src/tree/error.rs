//! What can go wrong with a session tree, as sentences for the user.

use std::io;
use std::path::PathBuf;

use super::EntryId;
use super::lease::LeaseHolder;

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
    #[error("{} is not a session file: {reason}. It was left untouched.", path.display())]
    NotASession {
        /// The file.
        path: PathBuf,
        /// What was found instead, and what helps.
        reason: String,
    },
    /// S18
    #[error(
        "The session {} is open in {}. Wait until it is closed there, or fork it.",
        path.display(), holder_name(holder.as_ref())
    )]
    Held {
        /// The file.
        path: PathBuf,
        /// Who has it, if that can be read.
        holder: Option<LeaseHolder>,
    },
    /// Another program made the file shorter.
    #[error(
        "The session file {} was cut from {from} to {to} bytes by another program, so nothing was \
         recorded. Open the session again to go on with what is left.",
        path.display()
    )]
    Cut {
        /// The file.
        path: PathBuf,
        /// Its size as it was known here.
        from: u64,
        /// Its size now.
        to: u64,
    },
    /// Another program wrote over it.
    #[error(
        "Another program wrote over the session file {} while it was open, so nothing was recorded. \
         Open the session again to go on with what is in it now.",
        path.display()
    )]
    Rewritten {
        /// The file.
        path: PathBuf,
    },
    /// The session was closed.
    #[error("The session {} is closed. Open it again to go on.", path.display())]
    Closed {
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

fn holder_name(holder: Option<&LeaseHolder>) -> String {
    holder.map_or_else(|| "another process".to_owned(), ToString::to_string)
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

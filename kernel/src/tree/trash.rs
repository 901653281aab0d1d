//! Deleting a session: its file goes to the user's trash, where it can be had back, and is never
//! unlinked.

use std::path::{Path, PathBuf};

use super::{Lease, LeaseError};

/// Why a session was not deleted. Its file is where it was.
#[derive(Debug, thiserror::Error)]
pub enum DiscardError {
    /// Somebody is writing it, or that cannot be excluded.
    #[error("The session {} was not deleted. {source}", path.display())]
    Lease {
        /// The file.
        path: PathBuf,
        /// Who has it, or why nobody knows.
        source: LeaseError,
    },
    /// It cannot be moved.
    #[error(
        "The session {} cannot be moved to the trash: {reason}. Delete the file yourself if you do \
         not want it back.",
        path.display()
    )]
    Trash {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: String,
    },
}

/// Moves a session file to the trash, unless somebody is writing it (S18). What a dead writer left
/// beside it goes as well.
///
/// # Errors
/// [`DiscardError`]; the file then stays.
pub fn discard(session_file: &Path) -> Result<(), DiscardError> {
    let path = session_file.to_owned();
    let _lease = match Lease::acquire(session_file) {
        Ok(lease) => lease,
        Err(source) => return Err(DiscardError::Lease { path, source }),
    };
    trash::delete(session_file).map_err(|error| DiscardError::Trash {
        path,
        reason: reason(error),
    })
}

/// What the system said; the crate wraps it into code.
fn reason(error: trash::Error) -> String {
    match error {
        trash::Error::Os { description, .. } | trash::Error::Unknown { description } => description,
        #[cfg(all(
            unix,
            not(any(target_os = "macos", target_os = "ios", target_os = "android"))
        ))]
        trash::Error::FileSystem { path, source } => format!("{}: {source}", path.display()),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_being_written_is_not_deleted() {
        // S18
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("a.jsonl");
        std::fs::write(&session, "x").unwrap();
        let _lease = Lease::acquire(&session).unwrap();
        let error = discard(&session).unwrap_err().to_string();
        assert!(
            error.contains("a.jsonl") && error.contains("this process"),
            "{error}"
        );
        assert_eq!(std::fs::read(&session).unwrap(), b"x");
    }
}

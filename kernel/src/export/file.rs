//! Writing an export to a file. At every moment what was there or the new file is whole; a session
//! that somebody is writing stays (`kernel.md` S18). Only the user can read a new file: it holds all
//! that was said.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use thiserror::Error as ThisError;

use crate::tree::{Lease, LeaseError, LeaseHolder, TreeError};

/// Why there is no export.
#[derive(Debug, ThisError)]
pub enum ExportError {
    /// There is no file to name the export after, and nothing that would be there tomorrow.
    #[error(
        "Cannot export an in-memory session: it has no file. Start one without --no-session, or ask \
         for its messages."
    )]
    InMemory,
    /// Nothing was said yet.
    #[error("There is nothing to export yet. Start a conversation first.")]
    Nothing,
    /// It was not finished.
    #[error("The export was stopped before it was done. Try it again.")]
    Stopped,
    /// The session cannot be read.
    #[error(transparent)]
    Session(#[from] TreeError),
    /// It would be lost.
    #[error(
        "{} is the file of the session itself, which has more than an export. Name another one.",
        .0.display()
    )]
    Itself(PathBuf),
    /// Something is there that is to stay.
    #[error("{} is there already. Name another file, or write over it with --force.", .0.display())]
    Exists(PathBuf),
    /// It is a session that somebody is writing.
    #[error("{} stays as it is: it is a session that is open in {}.", path.display(), holder.as_ref().map_or_else(|| "another process".to_owned(), ToString::to_string))]
    Held {
        /// The file.
        path: PathBuf,
        /// Who has it, if that can be read.
        holder: Option<LeaseHolder>,
    },
    /// Writing failed.
    #[error("{} cannot be written: {cause}. Name another file.", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        cause: io::Error,
    },
}

/// What becomes of a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and nothing is written.
    Keep,
    /// The new one takes its place. Its links and permissions stay.
    Replace,
}

/// Writes a file, which must not be the session's own. What `write` does not finish is not there.
///
/// # Errors
/// [`ExportError`]; what was there is then as it was.
pub fn write_file(
    file: &Path,
    session: Option<&Path>,
    existing: Existing,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), ExportError> {
    if session.is_some_and(|session| is_same_file(file, session)) {
        return Err(ExportError::Itself(file.to_owned()));
    }
    let unwritable = |cause| ExportError::Write {
        path: file.to_owned(),
        cause,
    };
    if existing == Existing::Keep {
        return match write_new(file, write) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(ExportError::Exists(file.to_owned()))
            }
            written => written.map_err(unwritable),
        };
    }
    // A pipe or a device has nothing that could be lost, and nothing can stand in its place.
    if fs::metadata(file).is_ok_and(|found| !found.is_file()) {
        let there = OpenOptions::new().write(true).open(file);
        return there
            .and_then(|there| buffered(&there, write))
            .map_err(unwritable);
    }
    let _lease = match Lease::acquire(file) {
        Err(LeaseError::Io(error)) => return Err(unwritable(error)),
        Err(LeaseError::Held(holder)) => {
            return Err(ExportError::Held {
                path: file.to_owned(),
                holder,
            });
        }
        Ok(lease) => lease,
    };
    let path = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    rewrite(&path, write).map_err(unwritable)
}

fn write_new(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let written = buffered(&create_new(path)?, write);
    if written.is_err() {
        // Half a file is none; the failure to report is the first one.
        let _ = fs::remove_file(path);
    }
    written
}

fn rewrite(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let (new, beside) = create_beside(path)?;
    let write = || {
        if let Ok(old) = fs::metadata(path) {
            new.set_permissions(old.permissions())?;
        }
        buffered(&new, write)?;
        // A disk may tell only now that it is full.
        new.sync_all()?;
        fs::rename(&beside, path)
    };
    let written = write();
    if written.is_err() {
        // The failure to report is the first one.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn buffered(file: &File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, file);
    write(&mut out)?;
    out.flush()
}

/// A file of a new name in the same folder. The name is short, however long the other one is.
fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    const TRIES: usize = 100;
    let mut created = Err(io::ErrorKind::AlreadyExists.into());
    for number in 0..TRIES {
        let name = format!(".pliant-{}-{number}.tmp", std::process::id());
        let beside = path.with_file_name(name);
        created = create_new(&beside).map(|file| (file, beside));
        match &created {
            // What a process that was killed left.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            _ => break,
        }
    }
    created
}

fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Whether two paths lead to one file, by whatever links.
#[must_use]
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let number = |path| fs::metadata(path).map(|file| (file.dev(), file.ino()));
        matches!((number(one), number(other)), (Ok(one), Ok(other)) if one == other)
    }
    #[cfg(not(unix))]
    {
        let path = |path| fs::canonicalize(path);
        matches!((path(one), path(other)), (Ok(one), Ok(other)) if one == other)
    }
}

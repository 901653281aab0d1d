//! Opening a session's file, or only reading it (`kernel.md` S15, S16, S18, S19).

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use super::lease::{Lease, LeaseError};
use super::load::{Contents, NoSession, load};
use super::source::{Source, text_of};
use super::storage::Storage;
use super::{Ids, Place, SessionTree, TreeError, log, migrate};

impl SessionTree {
    /// Opens a file for reading and appending. A path without a file becomes a new session bound to
    /// exactly that path, an empty file gets a header; `cwd` is for these two (S15). Older versions
    /// are rewritten once (S19). Nobody else can open it so until this tree is dropped or closed
    /// (S18).
    ///
    /// # Errors
    /// [`TreeError::Held`], [`TreeError::NotASession`], [`TreeError::Read`] or [`TreeError::Write`];
    /// the file is then untouched.
    pub fn open(path: &Path, cwd: &Path, ids: Ids) -> Result<Self, TreeError> {
        // Looked at first: what is no file needs no lease, and gets a better answer.
        match regular(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
                let place = Place::Pending(path.to_owned());
                return Ok(Self::starting(cwd, None, None, place, ids));
            }
            known => known.map_err(|error| TreeError::read(path, error))?,
        }
        let (lease, unguarded) = lease(path)?;
        let mut tree = Self::open_held(path, cwd, ids, lease)?;
        tree.notices.extend(unguarded);
        Ok(tree)
    }

    /// As [`SessionTree::open`], with a lease that the caller has waited for.
    ///
    /// # Errors
    /// As [`SessionTree::open`].
    pub fn open_held(
        path: &Path,
        cwd: &Path,
        ids: Ids,
        lease: Option<Lease>,
    ) -> Result<Self, TreeError> {
        let read_error = |error| TreeError::read(path, error);
        let write_error = |error| TreeError::write(path, error);
        regular(path).map_err(read_error)?;
        // Readable is what it has to be first: the sentence should name the right permission.
        fs::File::open(path).map_err(read_error)?;
        let mut storage = Storage::open(path, lease).map_err(write_error)?;
        let mut tree = if storage.end() == 0 {
            let tree = Self::in_memory(cwd, None, ids);
            storage.append(&tree.header.line()?).map_err(write_error)?;
            tree
        } else {
            let contents = contents(path, storage.source(), storage.end())?;
            match migrated(path, storage.source(), &contents, &ids)? {
                None => Self::with_contents(contents, ids),
                Some(text) => {
                    // A piece that only looked damaged may come first now, and be no header.
                    text_contents(path, text.clone())?;
                    keep_beside(path, storage.source()).map_err(write_error)?;
                    log::rewrite(path, &text).map_err(write_error)?;
                    storage = storage.reopened().map_err(write_error)?;
                    let contents = self::contents(path, storage.source(), storage.end())?;
                    Self::with_contents(contents, ids)
                }
            }
        };
        tree.place = Place::File(Box::new(storage));
        Ok(tree)
    }

    /// Reads a file into a tree of its own: nothing is written, later appends stay in memory, and
    /// whoever has the session open keeps it.
    ///
    /// # Errors
    /// [`TreeError::NotASession`] or [`TreeError::Read`].
    pub fn read(path: &Path, ids: Ids) -> Result<Self, TreeError> {
        let read_error = |error| TreeError::read(path, error);
        regular(path).map_err(read_error)?;
        let source = Arc::new(Source::File(fs::File::open(path).map_err(read_error)?));
        let size = source.size().map_err(read_error)?;
        let contents = contents(path, &source, size)?;
        let Some(text) = migrated(path, &source, &contents, &ids)? else {
            return Ok(Self::with_contents(contents, ids));
        };
        Ok(Self::with_contents(text_contents(path, text)?, ids))
    }

    /// Reads the bytes of a session file. `name` is only for errors.
    ///
    /// # Errors
    /// [`TreeError::NotASession`].
    pub fn from_bytes(name: &Path, bytes: Vec<u8>, ids: Ids) -> Result<Self, TreeError> {
        let size = bytes.len() as u64;
        let source = Arc::new(Source::Text(bytes));
        let contents = contents(name, &source, size)?;
        let Some(text) = migrated(name, &source, &contents, &ids)? else {
            return Ok(Self::with_contents(contents, ids));
        };
        Ok(Self::with_contents(text_contents(name, text)?, ids))
    }

    fn with_contents(contents: Contents, ids: Ids) -> Self {
        let mut tree = Self::with_entries(contents.header, contents.entries, Place::Memory, ids);
        tree.damage = contents.damage;
        tree.lines = contents.lines;
        if let Some(leaf) = contents.leaf {
            // It was just seen.
            let _ = tree.branch(&leaf);
        }
        tree
    }
}

/// A lease on the file; where none can be had, a sentence that says so.
pub(super) fn lease(path: &Path) -> Result<(Option<Lease>, Option<String>), TreeError> {
    match Lease::acquire(path) {
        Ok(lease) => Ok((Some(lease), None)),
        Err(LeaseError::Held(holder)) => Err(TreeError::Held {
            path: path.to_owned(),
            holder,
        }),
        Err(LeaseError::Io(error)) => {
            let notice = format!(
                "The session file {} cannot be reserved for this process: {error}. Take care that \
                 nobody else continues it meanwhile.",
                path.display()
            );
            Ok((None, Some(notice)))
        }
    }
}

/// A pipe or a device is no session, and reading it might never end.
fn regular(path: &Path) -> io::Result<()> {
    let kind = fs::metadata(path)?;
    if kind.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::IsADirectory,
            "it is a directory",
        ));
    }
    if !kind.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ));
    }
    Ok(())
}

/// What is held in memory at once, several times over.
const MOST_BYTES: u64 = 1 << 30;

/// All bytes of a file, for those who have to see them all.
pub(super) fn read_bytes(path: &Path) -> Result<Vec<u8>, TreeError> {
    let read = || {
        regular(path)?;
        if fs::metadata(path)?.len() > MOST_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "it has more than a gibibyte, which is too much to examine",
            ));
        }
        fs::read(path)
    };
    read().map_err(|error| TreeError::read(path, error))
}

fn contents(path: &Path, source: &Arc<Source>, size: u64) -> Result<Contents, TreeError> {
    let loaded = load(source, size).map_err(|error| TreeError::read(path, error))?;
    loaded.map_err(|reason| TreeError::NotASession {
        path: path.to_owned(),
        reason: match reason {
            NoSession::Nothing => "it holds no readable record".to_owned(),
            NoSession::NotAHeader { line } => {
                format!(
                    "line {line}, its first readable record, is not a session header. `pliant \
                     session doctor` tells whether anything in it can be saved"
                )
            }
            NoSession::HeaderLost { line } => format!(
                "line {line} is an entry, but the session header that belongs before it is \
                 missing or damaged. `pliant session doctor --write-copy` makes a copy with a new \
                 header"
            ),
        },
    })
}

/// The old file is kept beside the new one, which is another text. What is there already stays.
fn keep_beside(path: &Path, source: &Source) -> io::Result<()> {
    let bytes = source.read(0..source.size()?)?;
    let named = |end: &str| {
        let mut name = path.to_owned().into_os_string();
        name.push(end);
        name
    };
    let half = named(&format!(".{}.tmp", std::process::id()));
    let kept = (|| {
        let mut file = fs::File::create(&half)?;
        file.set_permissions(fs::metadata(path)?.permissions())?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        for number in 0..1000 {
            let name = match number {
                0 => named(".before-migration"),
                number => named(&format!(".before-migration-{number}")),
            };
            match fs::read(&name) {
                Ok(there) if there == bytes => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return fs::rename(&half, &name);
                }
                _ => {}
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    })();
    // Gone already where it got its name.
    let _ = fs::remove_file(&half);
    kept
}

fn text_contents(path: &Path, text: String) -> Result<Contents, TreeError> {
    let size = text.len() as u64;
    contents(path, &Arc::new(Source::Text(text.into_bytes())), size)
}

/// The text to put in the file's place if it is of an older version.
fn migrated(
    path: &Path,
    source: &Source,
    contents: &Contents,
    ids: &Ids,
) -> Result<Option<String>, TreeError> {
    if !contents.header.is_older_version() {
        return Ok(None);
    }
    let read_error = |error| TreeError::read(path, error);
    let size = source.size().map_err(read_error)?;
    let bytes = source.read(0..size).map_err(read_error)?;
    let text = text_of(bytes.into());
    Ok(Some(migrate::migrate(&text, |taken| ids.entry_id(taken))))
}

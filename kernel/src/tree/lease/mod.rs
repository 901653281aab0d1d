//! One writer per session file (`kernel.md` S18). A session file comes in, a lease goes out, or who
//! has it.
//!
//! The lease is the system's lock on a small file beside the session, so that the lease of a process
//! that died is free without anybody's doing. What the file says is for people, and the only thing
//! to go by on file systems without locks. What a refused process may do instead is not decided here.

mod holder;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

pub use holder::LeaseHolder;

use super::Ids;

/// Whoever looks who the holder is holds the lock for a moment, and an owner that lets go or begins
/// is between two steps for a moment: so often, and after such pauses, it is tried again.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(2);

/// How often somebody who waits looks again where the system does not wake him.
const POLL: Duration = Duration::from_millis(500);

/// As many symbolic links as Linux follows.
const LINKS: usize = 40;

/// Held while a session file is open for writing; released on drop.
#[derive(Debug)]
pub struct Lease {
    file: File,
    path: PathBuf,
    owner: LeaseHolder,
    proof: Proof,
}

/// What makes a lease its owner's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    Lock,
    /// What the sidecar says, on a file system that has no locks. Best effort.
    Word,
}

/// Why there is no lease.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Somebody else has it; who, if that is known.
    #[error("The session is open for writing in {}.", phrase(.0.as_ref()))]
    Held(Option<LeaseHolder>),
    /// There can be none here, whoever asks: a folder that is missing or not writable, or something
    /// else in the place of the sidecar.
    #[error("The session cannot be kept from other writers: {0}.")]
    Io(#[from] io::Error),
}

fn phrase(holder: Option<&LeaseHolder>) -> String {
    holder.map_or_else(|| "another process".to_owned(), ToString::to_string)
}

type TryLock = fn(&File) -> Result<(), TryLockError>;

impl Lease {
    /// Takes the lease of a session file, which need not be there yet, but its folder. It takes some
    /// milliseconds to be refused.
    ///
    /// # Errors
    /// [`LeaseError::Held`] by another process or by this one; [`LeaseError::Io`] if the sidecar
    /// cannot be opened.
    pub fn acquire(session_file: &Path) -> Result<Self, LeaseError> {
        Self::take(&sidecar(session_file)?, File::try_lock)
    }

    /// Takes the lease of a session file as soon as nobody else has it. Blocks until then.
    ///
    /// # Errors
    /// If the sidecar cannot be opened.
    pub fn wait(session_file: &Path) -> io::Result<Self> {
        Self::wait_at(&sidecar(session_file)?, lock)
    }

    /// Who has a session file at the moment, if that can be told.
    #[must_use]
    pub fn holder(session_file: &Path) -> Option<LeaseHolder> {
        holder_at(&sidecar(session_file).ok()?)
    }

    fn wait_at(path: &Path, lock: TryLock) -> io::Result<Self> {
        loop {
            match Self::take(path, lock) {
                Ok(lease) => return Ok(lease),
                Err(LeaseError::Held(_)) => thread::sleep(POLL),
                Err(LeaseError::Io(error)) => return Err(error),
            }
        }
    }

    fn take(path: &Path, lock: TryLock) -> Result<Self, LeaseError> {
        let mut told = None;
        for _ in 0..TRIES {
            let file = open(path, Access::Write).map_err(|error| match holder_at(path) {
                // Whoever may not write the sidecar of another user need not write his session.
                Some(holder) => LeaseError::Held(Some(holder)),
                None => LeaseError::Io(error),
            })?;
            match lock(&file) {
                Ok(()) if is_at(&file, path) => return Ok(Self::begin(file, path)),
                // Its owner removed it before it let go.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => told = LeaseHolder::read(&file),
                Err(TryLockError::Error(error)) if has_no_locks(&error) => {
                    return Self::claim(file, path);
                }
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
            thread::sleep(PAUSE);
        }
        Err(LeaseError::Held(told.filter(LeaseHolder::may_live)))
    }

    fn begin(file: File, path: &Path) -> Self {
        let owner = this_process();
        // The lock is what counts: on a full disk the owner is not named.
        let _ = owner.write(&file);
        Self {
            file,
            path: path.to_owned(),
            owner,
            proof: Proof::Lock,
        }
    }

    /// Takes the lease by saying so. Of two that do at once, the one whose word stands has it.
    fn claim(file: File, path: &Path) -> Result<Self, LeaseError> {
        let holder = LeaseHolder::read(&file).filter(LeaseHolder::may_live);
        if holder.is_some() {
            return Err(LeaseError::Held(holder));
        }
        let owner = this_process();
        owner.write(&file)?;
        thread::sleep(PAUSE);
        match word_at(path) {
            Some(holder) if holder == owner => Ok(Self {
                file,
                path: path.to_owned(),
                owner,
                proof: Proof::Word,
            }),
            holder => Err(LeaseError::Held(holder)),
        }
    }
}

impl Drop for Lease {
    /// Removes the sidecar before the lock goes, so that nobody's but our own is removed.
    fn drop(&mut self) {
        let ours = match self.proof {
            Proof::Lock => is_at(&self.file, &self.path),
            Proof::Word => word_at(&self.path).as_ref() == Some(&self.owner),
        };
        if ours {
            // What stays behind is taken over by the next one.
            let _ = fs::remove_file(&self.path);
        }
        // Closing would do, but for a child of another thread that is just being started: until it
        // runs its program, it has a copy of every open file.
        let _ = self.file.unlock();
    }
}

fn this_process() -> LeaseHolder {
    LeaseHolder::this_process(Ids::system().now_ms())
}

fn word_at(path: &Path) -> Option<LeaseHolder> {
    LeaseHolder::read(&open(path, Access::Read).ok()?)
}

fn holder_at(path: &Path) -> Option<LeaseHolder> {
    let file = open(path, Access::Read).ok()?;
    match file.try_lock_shared() {
        Ok(()) => {
            let _ = file.unlock();
            None
        }
        Err(TryLockError::Error(error)) if !has_no_locks(&error) => None,
        Err(_) => LeaseHolder::read(&file).filter(LeaseHolder::may_live),
    }
}

/// Locks as soon as nobody else does.
fn lock(file: &File) -> Result<(), TryLockError> {
    loop {
        match file.lock() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done.map_err(TryLockError::Error),
        }
    }
}

/// The file system, or the server behind it, knows no locks.
fn has_no_locks(error: &io::Error) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        let lacking = [Errno::NOLCK, Errno::NOSYS, Errno::OPNOTSUPP];
        if lacking
            .map(Errno::raw_os_error)
            .map(Some)
            .contains(&error.raw_os_error())
        {
            return true;
        }
    }
    error.kind() == io::ErrorKind::Unsupported
}

/// The file beside the session that stands for its lease. Its name has no ending of a session file,
/// so no program takes it for one. A session has one, whatever links lead to it.
fn sidecar(session_file: &Path) -> io::Result<PathBuf> {
    let session_file = without_links(session_file)?;
    let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "the path names no file");
    let mut name = OsString::from(session_file.file_name().ok_or_else(no_name)?);
    name.push(".lease");
    Ok(session_file.with_file_name(name))
}

/// The file that opening this path reaches or creates.
fn without_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = std::path::absolute(path)?;
    for _ in 0..LINKS {
        if let Ok(path) = fs::canonicalize(&path) {
            return Ok(path);
        }
        let folder = match path.parent() {
            Some(folder) => fs::canonicalize(folder)?,
            None => return Ok(path),
        };
        match fs::read_link(&path) {
            Ok(target) => path = folder.join(target),
            Err(_) => return Ok(folder.join(path.file_name().unwrap_or_default())),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "its symbolic links lead nowhere",
    ))
}

/// What a sidecar is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    /// It is created if it is not there.
    Write,
}

/// Opens a sidecar. Nothing but a regular file will do: a pipe or a link was not put there by an
/// owner. Files that the standard library opens are closed in children.
fn open(path: &Path, access: Access) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    if access == Access::Write {
        options.write(true).create(true).truncate(false);
    }
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    let other = |cause: &str| {
        let text = format!("{} is {cause}; move it away", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, text)
    };
    let file = match options.open(path) {
        Err(error) if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) => {
            return Err(other(&format!("not a regular file ({error})")));
        }
        opened => opened?,
    };
    if !file.metadata()?.is_file() {
        return Err(other("not a regular file"));
    }
    Ok(file)
}

/// The path still names this file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

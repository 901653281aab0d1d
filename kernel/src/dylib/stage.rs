//! Private copies of libraries. The loader hands back the old library for a path or inode it knows,
//! and a mapped file that somebody truncates kills the process; so every load maps a fresh file that
//! nobody else can name (`plugin-abi.md` §5).

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::manifest::LoadError;

/// The directory of one process for its copies, made when the first one is needed.
#[derive(Debug)]
pub struct Stage {
    parent: PathBuf,
    directory: Mutex<Option<PathBuf>>,
    next: AtomicU64,
}

impl Stage {
    /// Copies go to a private directory under `parent`, usually the temporary directory.
    #[must_use]
    pub fn new(parent: PathBuf) -> Self {
        Self {
            parent,
            directory: Mutex::new(None),
            next: AtomicU64::new(0),
        }
    }

    /// Makes a copy under a name that was never used before.
    ///
    /// # Errors
    /// When the library cannot be read any more, or the copy cannot be written.
    pub fn copy(&self, library: &Path) -> Result<StagedCopy, LoadError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let failed = |cause: std::io::Error| LoadError::NotStaged {
            path: library.display().to_string(),
            dir: self.parent.display().to_string(),
            cause: cause.to_string(),
        };
        let file = library.file_name().unwrap_or_default();
        let copy = self
            .directory()
            .map_err(failed)?
            .join(format!("{number}-{}", file.to_string_lossy()));
        // Made first, so that half a copy goes too.
        let copy = StagedCopy(copy);
        // Inside the system where it can be: shared blocks, or one call that copies.
        match std::fs::copy(library, copy.path()) {
            Ok(_) => Ok(copy),
            Err(cause) => Err(match File::open(library) {
                Ok(_) => failed(cause),
                Err(cause) => LoadError::Unreadable {
                    path: library.display().to_string(),
                    cause: cause.to_string(),
                },
            }),
        }
    }

    fn directory(&self) -> std::io::Result<PathBuf> {
        let mut directory = self
            .directory
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(directory) = &*directory {
            return Ok(directory.clone());
        }
        let made = make_private_directory(&self.parent)?;
        *directory = Some(made.clone());
        Ok(made)
    }
}

/// Readable by this user only, under a name nobody could have prepared: creation fails if it exists.
fn make_private_directory(parent: &Path) -> std::io::Result<PathBuf> {
    let mut last = None;
    for attempt in 0..100_u32 {
        let path = parent.join(format!("pliant-{}-{attempt}", std::process::id()));
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(|| std::io::Error::other("no free name")))
}

impl Drop for Stage {
    fn drop(&mut self) {
        let directory = self
            .directory
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(directory) = directory.take() {
            // Left over only if something else was put there; not worth a word at exit.
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}

/// A private copy. On Unix the name goes as soon as the library is mapped, so that a killed process
/// leaves nothing behind; elsewhere it goes with the [`Stage`].
#[derive(Debug)]
pub struct StagedCopy(PathBuf);

impl StagedCopy {
    /// The file to load.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for StagedCopy {
    fn drop(&mut self) {
        if cfg!(unix) {
            let _ = std::fs::remove_file(&self.0);
        }
    }
}

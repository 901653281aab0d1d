//! Copies of libraries that nobody else writes to. A mapped file that somebody truncates kills the
//! process, and the loader hands back the old library for a path or inode it knows; so what is mapped
//! is never the file that a build writes (`plugin-abi.md` §5).
//!
//! Copies are kept in a cache, named by what identifies the original's content on its disk, and are
//! never changed once they have their name. A changed library gets another name and so a fresh load;
//! an unchanged one costs no copy, which would otherwise be most of a short run's time. Where the
//! cache cannot be written, a copy for this process alone does.

use std::fs::{File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::manifest::LoadError;

/// Copies of one library that stay in the cache: other checkouts of the same plugin may use them.
const KEPT: usize = 4;

/// A file written less than this ago may be written to again without getting another time, so its
/// copy is for one load only: a half-written one must not stay in the cache under a whole one's name.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// A library larger than this is no plugin.
const LARGEST: u64 = 1 << 30;

/// Where copies are made.
#[derive(Debug)]
pub struct Stage {
    cache: PathBuf,
    parent: PathBuf,
    directory: Mutex<Option<PathBuf>>,
    next: AtomicU64,
}

impl Stage {
    /// Copies are kept in `cache`; where that does not work, private ones go under `parent`, usually
    /// the temporary directory.
    #[must_use]
    pub fn new(cache: PathBuf, parent: PathBuf) -> Self {
        Self {
            cache,
            parent,
            directory: Mutex::new(None),
            next: AtomicU64::new(0),
        }
    }

    /// Answers a copy of the library.
    ///
    /// # Errors
    /// When the library cannot be read any more, or the copy cannot be written.
    pub fn copy(&self, library: &Path) -> Result<StagedCopy, LoadError> {
        let unreadable = |cause: io::Error| LoadError::Unreadable {
            path: library.display().to_string(),
            cause: cause.to_string(),
        };
        let metadata = std::fs::metadata(library).map_err(unreadable)?;
        if metadata.len() > LARGEST {
            let cause = format!("it is larger than {} MB", LARGEST >> 20);
            return Err(unreadable(io::Error::new(
                io::ErrorKind::FileTooLarge,
                cause,
            )));
        }
        match self.cached(library, &metadata) {
            Ok(copy) => Ok(StagedCopy::Kept(copy)),
            Err(cause) => {
                tracing::debug!(target: "pliant::dylib", %cause, "no copy in the cache");
                self.private(library)
                    .map_err(|cause| match File::open(library) {
                        Ok(_) => LoadError::NotStaged {
                            path: library.display().to_string(),
                            dir: self.parent.display().to_string(),
                            cause: cause.to_string(),
                        },
                        Err(cause) => unreadable(cause),
                    })
            }
        }
    }

    fn cached(&self, library: &Path, metadata: &Metadata) -> io::Result<PathBuf> {
        let name = cache_name(library, metadata);
        let copy = self.cache.join(&name);
        // It got its name when it was whole, and nothing writes to it since.
        if std::fs::metadata(&copy).is_ok_and(|kept| kept.is_file() && kept.len() == metadata.len())
        {
            return Ok(copy);
        }
        // A time in the future is no age.
        let age = metadata.modified()?.elapsed().unwrap_or_default();
        if age < SETTLED_AFTER {
            return Err(io::Error::other("the library was written just now"));
        }
        private_directories(&self.cache)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let half = StagedCopy::Private(
            self.cache
                .join(format!(".{}-{number}-{name}", std::process::id())),
        );
        std::fs::copy(library, half.path())?;
        // The original may have been written to meanwhile; what was copied then has no name.
        if cache_name(library, &std::fs::metadata(library)?) != name {
            return Err(io::Error::other("the library changed while it was copied"));
        }
        std::fs::rename(half.path(), &copy)?;
        self.forget_old(library);
        Ok(copy)
    }

    /// Removes all but the latest copies of one library. Those still mapped stay so.
    fn forget_old(&self, library: &Path) {
        let prefix = format!("{}-", file_name(library));
        let is_copy = |name: &std::ffi::OsStr| {
            let name = name.to_string_lossy();
            name.starts_with(&prefix) && name.ends_with(std::env::consts::DLL_SUFFIX)
        };
        let entries = std::fs::read_dir(&self.cache)
            .into_iter()
            .flatten()
            .flatten();
        let mut copies: Vec<_> = entries
            .filter(|entry| is_copy(&entry.file_name()))
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        copies.sort_by(|a, b| b.cmp(a));
        for (_, path) in copies.into_iter().skip(KEPT) {
            let _ = std::fs::remove_file(proof(&path));
            let _ = std::fs::remove_file(path);
        }
    }

    fn private(&self, library: &Path) -> io::Result<StagedCopy> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let name = format!("{number}-{}", file_name(library));
        // Made first, so that half a copy goes too.
        let copy = StagedCopy::Private(self.directory()?.join(name));
        std::fs::copy(library, copy.path())?;
        Ok(copy)
    }

    fn directory(&self) -> io::Result<PathBuf> {
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

/// The note that a copy can be loaded. It lies beside it under its name, and goes with it.
fn proof(copy: &Path) -> PathBuf {
    let mut name = copy.as_os_str().to_owned();
    name.push(".proven");
    PathBuf::from(name)
}

fn file_name(library: &Path) -> String {
    library
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// The name of a copy: the library's own, and a number made from where it lies and when it was
/// written. Two files with the same number would have to share place, size and time of writing.
fn cache_name(library: &Path, metadata: &Metadata) -> String {
    let mut hasher = DefaultHasher::new();
    library.hash(&mut hasher);
    metadata.len().hash(&mut hasher);
    metadata.modified().ok().hash(&mut hasher);
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        (
            metadata.dev(),
            metadata.ino(),
            metadata.ctime(),
            metadata.ctime_nsec(),
        )
            .hash(&mut hasher);
    }
    format!(
        "{}-{:016x}{}",
        file_name(library),
        hasher.finish(),
        std::env::consts::DLL_SUFFIX
    )
}

/// The directory and those above it that are missing, for this user only.
fn private_directories(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
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

/// A copy to load.
#[derive(Debug)]
pub enum StagedCopy {
    /// One in the cache; it stays there.
    Kept(PathBuf),
    /// One for this load. On Unix its name goes as soon as the library is mapped, so that a killed
    /// process leaves nothing behind; elsewhere it goes with the [`Stage`].
    Private(PathBuf),
}

impl StagedCopy {
    /// Whether it was tried out and can be loaded.
    pub(super) fn is_proven(&self) -> bool {
        match self {
            Self::Kept(path) => proof(path).exists(),
            Self::Private(_) => false,
        }
    }

    /// Notes that it can be loaded, for whoever starts next. A copy for one load has no next time.
    pub(super) fn prove(&self) {
        if let Self::Kept(path) = self {
            // Without the note it is tried out again.
            let _ = File::create(proof(path));
        }
    }

    /// The file to load.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Kept(path) | Self::Private(path) => path,
        }
    }
}

impl Drop for StagedCopy {
    fn drop(&mut self) {
        if let Self::Private(path) = self
            && cfg!(unix)
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a library as if that long ago.
    fn write(library: &Path, content: &str, age: Duration) {
        std::fs::write(library, content).unwrap();
        let file = File::options().write(true).open(library).unwrap();
        file.set_modified(std::time::SystemTime::now() - age)
            .unwrap();
    }

    #[test]
    fn a_library_written_just_now_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let library = dir.path().join("libx.so");
        let stage = Stage::new(dir.path().join("cache"), dir.path().to_path_buf());
        write(&library, "half", Duration::ZERO);
        assert!(matches!(stage.copy(&library), Ok(StagedCopy::Private(_))));
        write(&library, "whole", 2 * SETTLED_AFTER);
        assert!(matches!(stage.copy(&library), Ok(StagedCopy::Kept(_))));
    }

    #[test]
    fn an_unchanged_library_is_copied_once_and_a_changed_one_anew() {
        let dir = tempfile::tempdir().unwrap();
        let library = dir.path().join("libx.so");
        write(&library, "one", 2 * SETTLED_AFTER);
        let stage = Stage::new(dir.path().join("cache/plugins"), dir.path().to_path_buf());
        let first = stage.copy(&library).unwrap().path().to_path_buf();
        assert_eq!(stage.copy(&library).unwrap().path(), first);
        std::fs::remove_file(&library).unwrap();
        write(&library, "two", 2 * SETTLED_AFTER);
        let second = stage.copy(&library).unwrap().path().to_path_buf();
        assert_ne!(first, second);
        assert_eq!(
            (
                std::fs::read_to_string(first).unwrap(),
                std::fs::read_to_string(second).unwrap()
            ),
            ("one".into(), "two".into())
        );
    }

    #[test]
    fn without_a_cache_the_copy_is_for_this_load_alone() {
        let dir = tempfile::tempdir().unwrap();
        let library = dir.path().join("libx.so");
        std::fs::write(&library, "one").unwrap();
        // A file stands where the directory should be.
        let stage = Stage::new(library.join("cache"), dir.path().to_path_buf());
        let copy = stage.copy(&library).unwrap();
        let path = copy.path().to_path_buf();
        assert!(path.exists());
        drop(copy);
        assert!(!path.exists());
        drop(stage);
        assert!(!path.parent().unwrap().exists());
    }

    #[test]
    fn only_the_latest_copies_of_a_library_stay() {
        let dir = tempfile::tempdir().unwrap();
        let library = dir.path().join("libx.so");
        let cache = dir.path().join("cache");
        let stage = Stage::new(cache.clone(), dir.path().to_path_buf());
        for number in 0..KEPT + 3 {
            write(&library, &"x".repeat(number), 2 * SETTLED_AFTER);
            stage.copy(&library).unwrap();
        }
        assert_eq!(std::fs::read_dir(cache).unwrap().count(), KEPT);
    }
}

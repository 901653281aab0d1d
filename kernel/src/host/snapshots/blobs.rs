//! Contents of files by their SHA-256. What is there is never written again, so readers and writers of
//! several processes do not meet.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::digest::Digest;

/// All of a folder's snapshots.
pub(super) struct Blobs(PathBuf);

impl Blobs {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    fn path(&self, hash: &str) -> PathBuf {
        self.0.join(hash.get(..2).unwrap_or("00")).join(hash)
    }

    /// Keeps a content.
    pub(super) fn keep(&self, hash: &str, content: &[u8]) -> io::Result<()> {
        let path = self.path(hash);
        if path.exists() {
            return Ok(());
        }
        write_new(&path, content).map(drop)
    }

    pub(super) fn has(&self, hash: &str) -> bool {
        self.path(hash).exists()
    }

    /// A content, if it is still what it was.
    pub(super) fn read(&self, hash: &str) -> io::Result<Vec<u8>> {
        let content = fs::read(self.path(hash))?;
        if Digest::of(&content).to_string() == hash {
            return Ok(content);
        }
        let message = "what was kept of it is damaged";
        Err(io::Error::new(io::ErrorKind::InvalidData, message))
    }

    /// Removes the others.
    pub(super) fn retain(&self, is_used: impl Fn(&str) -> bool) {
        let folders = fs::read_dir(&self.0).into_iter().flatten().flatten();
        for blob in folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten()) {
            let Ok(blob) = blob else { continue };
            if !blob.file_name().to_str().is_some_and(&is_used) {
                let _ = fs::remove_file(blob.path());
            }
        }
    }
}

/// Writes a file that is there whole or not at all; `false` when there is one of that name.
pub(super) fn write_new(path: &Path, content: &[u8]) -> io::Result<bool> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let begun = beside(path);
    let written = (|| {
        let mut file = File::create_new(&begun)?;
        file.write_all(content)?;
        drop(file);
        match fs::hard_link(&begun, path) {
            Ok(()) => Ok(true),
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            // A file system without such links.
            Err(_) => fs::rename(&begun, path).map(|()| true),
        }
    })();
    let _ = fs::remove_file(&begun);
    written
}

/// A name that nobody else uses, in the same folder.
pub(super) fn beside(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!(".pliant-{}-{count}.tmp", std::process::id());
    path.with_file_name(name)
}

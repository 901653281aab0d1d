//! Writing a result over a file that is there already. At every moment the old file or the new one is
//! whole; a session that somebody is writing stays (`kernel.md` S18).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use pliant_kernel::tree::{Lease, LeaseError};

/// Puts a text in the place of a file, which need not be there. Its links and permissions stay.
///
/// # Errors
/// What stopped it, as a sentence; the file is as it was.
pub(super) fn replace(file: &Path, text: &str) -> anyhow::Result<()> {
    let unwritable = || format!("{} cannot be written. Name another file.", file.display());
    // A pipe or a device has nothing that could be lost, and nothing can stand in its place.
    if fs::metadata(file).is_ok_and(|found| !found.is_file()) {
        let written = OpenOptions::new()
            .write(true)
            .open(file)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        return written.with_context(unwritable);
    }
    let _lease = match Lease::acquire(file) {
        Err(LeaseError::Io(error)) => Err(error).with_context(unwritable)?,
        Err(held) => bail!("{} stays as it is. {held}", file.display()),
        Ok(lease) => lease,
    };
    let path = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    rewrite(&path, text).with_context(unwritable)
}

fn rewrite(path: &Path, text: &str) -> io::Result<()> {
    let (mut new, beside) = create_beside(path)?;
    let mut write = || {
        if let Ok(old) = fs::metadata(path) {
            new.set_permissions(old.permissions())?;
        }
        new.write_all(text.as_bytes())?;
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

/// A file of a new name in the same folder. The name is short, however long the other one is.
fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    const TRIES: usize = 100;
    let mut created = Err(io::ErrorKind::AlreadyExists.into());
    for number in 0..TRIES {
        let name = format!(".pliant-{}-{number}.tmp", std::process::id());
        let beside = path.with_file_name(name);
        created = File::create_new(&beside).map(|file| (file, beside));
        match &created {
            // What a process that was killed left.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            _ => break,
        }
    }
    created
}

/// Whether two paths lead to one file, by whatever links.
pub(super) fn is_same_file(one: &Path, other: &Path) -> bool {
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

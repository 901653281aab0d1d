//! Changing a small JSON file that other programs may change too: it is locked, read again, changed and
//! exchanged in one step. What nobody here knows stays, and a file that cannot be read is left alone
//! (`resources.md` §10).

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use pliant_sdk::Error;
use serde_json::{Map, Value};

use crate::textfile;

/// How long another program may hold the file before that is said.
const PATIENCE: Duration = Duration::from_secs(10);

/// Who may read the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Those who may read it now; of a new one, whoever the system lets.
    AsBefore,
    /// The user alone.
    User,
}

/// Changes the object in a file; one that is not there is made. `what` names it in errors: "The settings
/// file".
///
/// # Errors
/// When the file cannot be read as an object, which is then left alone, or cannot be written; and what
/// `change` says.
pub fn change(
    path: &Path,
    what: &str,
    readers: Readers,
    change: impl FnOnce(&mut Map<String, Value>) -> Result<(), String>,
) -> Result<(), Error> {
    let failed = |cause: String| {
        Error::failed(format!(
            "{what} {} was not changed: {cause}",
            path.display()
        ))
    };
    let path = resolved(path);
    let _held = lock(&path).map_err(|error| failed(format!("{error}.")))?;
    let mut written = read(&path).map_err(failed)?;
    change(&mut written).map_err(failed)?;
    replace(&path, &written, readers).map_err(|error| failed(format!("{error}.")))
}

/// The object in a file; a missing one is empty.
///
/// # Errors
/// A sentence that goes on after the file's name, and quotes nothing of it.
pub fn read(path: &Path) -> Result<Map<String, Value>, String> {
    let text = match textfile::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => return Err(format!("{error}.")),
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(written)) => Ok(written),
        Ok(_) => Err("it is not a JSON object. Correct or remove it.".to_owned()),
        Err(error) => Err(format!("it cannot be read: {error}. Correct or remove it.")),
    }
}

/// Where a link leads: the file is exchanged, and a link to it stays.
fn resolved(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Held until it is dropped. The lock file stays: who removes one may remove another's.
fn lock(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let lock_path = path.with_added_extension("lock");
    // Opening a pipe in its place would wait for a reader.
    if fs::metadata(&lock_path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} is not a regular file", lock_path.display()),
        ));
    }
    let file = File::create(&lock_path)?;
    let give_up = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < give_up => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "another program holds it. Try again when that has ended",
                ));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Whoever reads finds the old file or the new one, whole.
fn replace(path: &Path, written: &Map<String, Value>, readers: Readers) -> io::Result<()> {
    let temporary = path.with_added_extension(format!("{}.tmp", std::process::id()));
    let put = || {
        let mut text = serde_json::to_vec_pretty(written)?;
        text.push(b'\n');
        // What a process of that id left behind when it was killed.
        drop(fs::remove_file(&temporary));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if readers == Readers::User {
            options.mode(0o600);
        }
        let mut file = options.open(&temporary)?;
        match (readers, fs::metadata(path)) {
            (Readers::User, _) => file.set_permissions(fs::Permissions::from_mode(0o600))?,
            (Readers::AsBefore, Ok(old)) => file.set_permissions(old.permissions())?,
            (Readers::AsBefore, Err(_)) => {}
        }
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    put().inspect_err(|_| drop(fs::remove_file(&temporary)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(path: &Path, readers: Readers) -> Result<(), Error> {
        change(path, "The file", readers, |written| {
            written.insert("a".into(), json!(1));
            Ok(())
        })
    }

    #[test]
    fn a_file_for_the_user_alone_is_so_from_its_first_byte_on() {
        // interfaces §3
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auth.json");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        set(&path, Readers::User).unwrap();
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        set(&path, Readers::AsBefore).unwrap();
        assert_eq!(mode(&path), 0o644);
        set(&path, Readers::User).unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn what_stands_in_the_place_of_the_file_or_its_lock_is_a_sentence() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        let pipe = |path: &Path| {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
        };
        pipe(&path);
        let error = set(&path, Readers::AsBefore).unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(set(&path, Readers::AsBefore).is_err());
        fs::remove_dir(&path).unwrap();
        fs::remove_file(dir.path().join("x.json.lock")).unwrap();
        pipe(&dir.path().join("x.json.lock"));
        let error = set(&path, Readers::AsBefore).unwrap_err().to_string();
        assert!(
            error.contains("x.json.lock is not a regular file"),
            "{error}"
        );
        assert!(!path.exists());
    }

    #[test]
    fn a_link_to_the_file_stays_one() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("real.json"), dir.path().join("link.json"));
        fs::write(&file, "\u{feff}{\"b\":\r\n2}").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        set(&link, Readers::AsBefore).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(Value::Object(read(&file).unwrap()), json!({"a": 1, "b": 2}));
    }
}

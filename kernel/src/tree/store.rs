//! Where session files are, and which one is meant (`kernel.md` S1, S4, S5, §2.6 import). Looking
//! around is best effort: a file that cannot be read is passed over.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::header::Header;
use super::load::load_header;
use super::source::Source;
use super::{Ids, SessionId, SessionTree, TreeError};

/// How far a header is looked for (S4).
const HEADER_WITHIN: u64 = 1 << 20;

/// A folder's name may have so many bytes on every usual file system.
const LONGEST_NAME: usize = 255;

/// The folder of the sessions of a working directory (S1). A path too long for a name keeps its end,
/// which tells directories apart, behind a number made from the whole.
#[must_use]
pub fn session_dir(agent_dir: &Path, cwd: &Path) -> PathBuf {
    let cwd = cwd.to_string_lossy();
    let cwd = cwd.strip_prefix(['/', '\\']).unwrap_or(&cwd);
    let mut name = format!("--{}--", cwd.replace(['/', '\\', ':'], "-"));
    if name.len() > LONGEST_NAME {
        let hash = pliant_sdk::history::short_hash(&name);
        let keep = LONGEST_NAME - hash.len() - 3;
        let start = (name.len() - keep..)
            .find(|at| name.is_char_boundary(*at))
            .unwrap_or(name.len());
        name = format!("--{hash}-{}", &name[start..]);
    }
    agent_dir.join("sessions").join(name)
}

/// The name of a new session's file (S1).
#[must_use]
pub fn file_name(header: &Header) -> String {
    format!(
        "{}_{}.jsonl",
        header.timestamp.replace([':', '.'], "-"),
        header.id
    )
}

/// The session files of a folder, the latest written first.
#[must_use]
pub fn session_files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    let mut files: Vec<(SystemTime, PathBuf)> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "jsonl")
        })
        .filter_map(|path| Some((written_at(&path)?, path)))
        .collect();
    files.sort_by(|a, b| b.cmp(a));
    files.into_iter().map(|(_, path)| path).collect()
}

fn written_at(path: &Path) -> Option<SystemTime> {
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(metadata.modified().unwrap_or(UNIX_EPOCH))
}

/// The header of a file, if it stands within the first mebibyte.
#[must_use]
pub fn peek(path: &Path) -> Option<Header> {
    // A pipe or a device is no session, and opening it might never end.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let source = Arc::new(Source::File(File::open(path).ok()?));
    let size = source.size().ok()?;
    let within = |bytes: u64| load_header(&source, bytes.min(size)).ok().flatten();
    within(4096).or_else(|| within(HEADER_WITHIN))
}

/// The session to continue: the latest written one, of this working directory if one is given (S4).
#[must_use]
pub fn most_recent(dir: &Path, cwd: Option<&Path>) -> Option<PathBuf> {
    let fits = |header: &Header| cwd.is_none_or(|cwd| same_directory(&header.cwd, cwd));
    session_files(dir)
        .into_iter()
        .find(|path| peek(path).as_ref().is_some_and(fits))
}

/// The id that a file's name says it is of (S1); for one whose header is damaged.
fn named_id(path: &Path) -> Option<String> {
    let stem = path.file_stem()?.to_str()?;
    let (_, id) = stem.split_once('_')?;
    SessionId::parse(id).ok().map(|id| id.to_string())
}

/// The session files of a folder whose header cannot be read, of those written after `than`, the
/// latest first.
#[must_use]
pub fn unreadable_since(dir: &Path, than: Option<&Path>) -> Vec<PathBuf> {
    let newer = session_files(dir).into_iter();
    newer
        .take_while(|path| than != Some(&**path))
        .filter(|path| peek(path).is_none())
        .collect()
}

/// Whether two paths are one directory to people. A header holds no bytes that are no text.
#[must_use]
pub fn same_directory(a: &Path, b: &Path) -> bool {
    a == b || a.to_string_lossy() == b.to_string_lossy()
}

/// What [`find`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// No session's id starts like that.
    None,
    /// Exactly one, or one whose whole id it is.
    One(PathBuf),
    /// More than one; ask for a longer beginning.
    Several(Vec<PathBuf>),
}

/// Finds sessions by the beginning of their id. One whose whole id it is goes before longer ones;
/// of two copies with the same id neither is meant more than the other.
pub fn find(files: impl IntoIterator<Item = PathBuf>, prefix: &str) -> Found {
    let (mut exact, mut longer) = (Vec::new(), Vec::new());
    for path in files {
        let Some(id) = peek(&path)
            .map(|header| header.id.to_string())
            .or_else(|| named_id(&path))
        else {
            continue;
        };
        if id == prefix {
            exact.push(path);
        } else if id.starts_with(prefix) {
            longer.push(path);
        }
    }
    let mut found = if exact.is_empty() { longer } else { exact };
    match found.len() {
        0 => Found::None,
        1 => Found::One(found.remove(0)),
        _ => Found::Several(found),
    }
}

/// Copies a session file into a folder, under its own name or one with `-1`, `-2` … (S30). A file
/// that is there already is not copied.
///
/// # Errors
/// [`TreeError::NotASession`], [`TreeError::Read`] or [`TreeError::Write`].
pub fn import(source: &Path, dir: &Path) -> Result<PathBuf, TreeError> {
    let read_error = |error| TreeError::read(source, error);
    SessionTree::read(source, Ids::system())?;
    let source = fs::canonicalize(source).map_err(read_error)?;
    let write_error = |error| TreeError::write(dir, error);
    fs::create_dir_all(dir).map_err(write_error)?;
    let is_listed = source.extension().is_some_and(|ending| ending == "jsonl");
    if is_listed && fs::canonicalize(dir).ok().as_deref() == source.parent() {
        return Ok(source);
    }
    let bytes = fs::read(&source).map_err(read_error)?;
    let stem = source
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    for number in 0..=10_000 {
        let suffix = if number == 0 {
            String::new()
        } else {
            format!("-{number}")
        };
        let path = dir.join(format!("{stem}{suffix}.jsonl"));
        match write_new(&path, &bytes) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            done => return done.map(|()| path).map_err(write_error),
        }
    }
    Err(TreeError::Exists {
        path: dir.join(format!("{stem}.jsonl")),
    })
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let written = file.write_all(bytes);
    if written.is_err() {
        // The failure to report is the first one.
        let _ = fs::remove_file(path);
    }
    written
}

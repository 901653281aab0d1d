//! The session file: its header, reading it whole, and appending to it so that nothing is ever
//! glued to a torn line or lost with one (`kernel.md` §2.1, §2.2, §2.4).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use super::body::EntryKind;
use super::entry::{Entry, Line};
use super::json::{fields, take_text};
use super::scan::{Damage, Head, Loose, scan};
use super::time::iso_from_ms;
use super::{EntryId, SessionId};

/// The version that is written.
pub(super) const VERSION: f64 = 3.0;

/// The first record of a file (2.2).
#[derive(Debug, Clone)]
pub struct Header {
    /// Name of the session.
    pub id: SessionId,
    /// When the session began, ISO 8601.
    pub timestamp: String,
    /// Where the session works; never changes (S3).
    pub cwd: PathBuf,
    /// The file this session was forked from.
    pub parent_session: Option<PathBuf>,
    /// Fields that this version does not know.
    extra: Map<String, Value>,
    version: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HeaderFields<'a> {
    r#type: &'a str,
    version: u8,
    id: &'a SessionId,
    timestamp: &'a str,
    cwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_session: Option<String>,
    #[serde(flatten)]
    extra: &'a Map<String, Value>,
}

impl Header {
    pub(super) fn new(id: SessionId, now_ms: i64, cwd: &Path, parent: Option<&Path>) -> Self {
        Self {
            id,
            timestamp: iso_from_ms(now_ms),
            cwd: cwd.to_owned(),
            parent_session: parent.map(Path::to_owned),
            extra: Map::new(),
            version: VERSION,
        }
    }

    fn read(text: &str, version: f64) -> Self {
        let mut f = fields(text).unwrap_or_default();
        let parent = take_text(&mut f, "parentSession");
        let mut header = Self {
            id: SessionId::stored(&take_text(&mut f, "id")),
            timestamp: take_text(&mut f, "timestamp"),
            cwd: take_text(&mut f, "cwd").into(),
            parent_session: (!parent.is_empty()).then(|| parent.into()),
            extra: f,
            version,
        };
        let known = ["type", "version", "id", "timestamp", "cwd", "parentSession"];
        header.extra.retain(|key, _| !known.contains(&&**key));
        header
    }

    /// Fields that this version does not know, as they were read.
    #[must_use]
    pub fn extra(&self) -> &Map<String, Value> {
        &self.extra
    }

    /// The line that starts a new file.
    pub fn line(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&HeaderFields {
            r#type: "session",
            version: 3,
            id: &self.id,
            timestamp: &self.timestamp,
            cwd: self.cwd.to_string_lossy().into_owned(),
            parent_session: self
                .parent_session
                .as_ref()
                .map(|p| p.to_string_lossy().into_owned()),
            extra: &self.extra,
        })
    }

    pub(super) fn is_older_version(&self) -> bool {
        self.version < VERSION
    }
}

/// What a file holds.
pub(super) struct Contents {
    pub(super) header: Header,
    pub(super) entries: Vec<Arc<Entry>>,
    pub(super) damage: Vec<Damage>,
}

/// The text of a file; bytes that are not UTF-8 read as U+FFFD, as JavaScript does.
pub(super) fn read_text(path: &Path) -> io::Result<String> {
    // A pipe or a device is no session, and reading it might never end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ));
    }
    let bytes = fs::read(path)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

/// Reads a session's text; `None` when it is no session (S15).
pub(super) fn parse(text: Arc<String>) -> Option<Contents> {
    let mut pieces = scan(&text)?.into_iter();
    let mut damage = Vec::new();
    let mut header = None;
    for piece in pieces.by_ref() {
        if let Some(head) = piece.head {
            header = Some(Header::read(&text[piece.range], head.file_version()));
            break;
        }
        damage.push(damaged(piece.line, piece.range.len()));
    }
    let mut entries: Vec<Arc<Entry>> = Vec::new();
    for piece in pieces {
        let bytes = piece.range.len();
        match piece
            .head
            .map(|head| entry(head, Line::of(&text, piece.range)))
        {
            Some(Ok(entry)) => entries.push(Arc::new(entry)),
            Some(Err(reason)) => damage.push(Damage {
                line: piece.line,
                bytes,
                reason,
            }),
            None => damage.push(damaged(piece.line, bytes)),
        }
    }
    Some(Contents {
        header: header?,
        entries,
        damage,
    })
}

fn damaged(line: usize, bytes: usize) -> Damage {
    Damage {
        line,
        bytes,
        reason: "not a whole JSON record",
    }
}

fn entry(head: Head<'_>, line: Line) -> Result<Entry, &'static str> {
    let Some(kind) = head.kind.text() else {
        return Err("a record without a type");
    };
    if kind == "session" {
        return Err("a second session header");
    }
    let Some(id) = head.id.text() else {
        return Err("a record without an id");
    };
    let timestamp = match &head.timestamp {
        Loose::Text(text) => text.clone().into_owned(),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the clock's range is checked later"
        )]
        Loose::Number(ms) => iso_from_ms(*ms as i64),
        _ => String::new(),
    };
    let parent = head.parent.text().map(EntryId::from);
    Ok(Entry::stored(
        id.into(),
        parent,
        timestamp,
        EntryKind::parse(kind),
        line,
    ))
}

/// What a log needs of the system; tests put failing ones in between.
pub(super) trait Disk: Send + Sync {
    fn size(&mut self) -> io::Result<u64>;
    /// One write call at the end of the file; may take only a part.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;
    fn truncate(&mut self, size: u64) -> io::Result<()>;
    fn byte_at(&mut self, at: u64) -> io::Result<u8>;
}

impl Disk for File {
    fn size(&mut self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    fn truncate(&mut self, size: u64) -> io::Result<()> {
        self.set_len(size)
    }

    fn byte_at(&mut self, at: u64) -> io::Result<u8> {
        // The file is in append mode, so the position means nothing to writes.
        self.seek(SeekFrom::Start(at))?;
        let mut byte = [0];
        self.read_exact(&mut byte)?;
        Ok(byte[0])
    }
}

/// A file that is open for appending.
pub(super) struct Log {
    disk: Box<dyn Disk>,
    /// Size after our last write; another size means that somebody else wrote.
    end: u64,
    /// The last line has no end, so the next write has to begin with one.
    torn: bool,
}

impl Log {
    /// Opens an existing file; its content is not touched.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).append(true).open(path)?;
        let end = file.size()?;
        let torn = is_torn(&mut file, end)?;
        Ok(Self {
            disk: Box::new(file),
            end,
            torn,
        })
    }

    /// Creates the file and its folder; fails if the file exists. Leaves no file when the text
    /// does not fit (S11, S12).
    pub(super) fn create(path: &Path, text: &str) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .open(path)?;
        let mut log = Self {
            disk: Box::new(file),
            end: 0,
            torn: false,
        };
        if let Err(error) = log.write(text.as_bytes()) {
            drop(log);
            // The failure to report is the first one.
            let _ = fs::remove_file(path);
            return Err(error);
        }
        Ok(log)
    }

    /// Ends the last line if it has no end (S16). A failure is left to the next append.
    pub(super) fn finish_line(&mut self) {
        if self.torn && self.write(b"\n").is_ok() {
            self.torn = false;
        }
    }

    /// Appends one line in one write call (S13). On failure the file is as before, or the next line
    /// will begin with a line end (S04).
    pub(super) fn append(&mut self, line: &str) -> io::Result<()> {
        let size = self.disk.size()?;
        if size != self.end {
            self.torn = is_torn(&mut *self.disk, size)?;
            self.end = size;
        }
        let start = if self.torn { "\n" } else { "" };
        self.write(format!("{start}{line}\n").as_bytes())?;
        self.torn = false;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = self.disk.append(bytes);
        let taken = *written.as_ref().unwrap_or(&0);
        if taken == bytes.len() {
            self.end += taken as u64;
            return Ok(());
        }
        self.take_back(taken as u64);
        Err(written.err().unwrap_or_else(|| {
            let message = format!(
                "no space left on device after {taken} of {} bytes",
                bytes.len()
            );
            io::Error::new(io::ErrorKind::StorageFull, message)
        }))
    }

    /// Removes a half written line, unless another process wrote behind it.
    fn take_back(&mut self, taken: u64) {
        if taken == 0 {
            return;
        }
        let ours = self.disk.size().is_ok_and(|size| size == self.end + taken);
        if !ours || self.disk.truncate(self.end).is_err() {
            self.end += taken;
            self.torn = true;
        }
    }
}

fn is_torn(disk: &mut dyn Disk, size: u64) -> io::Result<bool> {
    Ok(size > 0 && disk.byte_at(size - 1)? != b'\n')
}

/// Writes a file anew beside the old one and puts it in its place, so that at every moment one of
/// the two is whole (S19). Links and permissions stay.
pub(super) fn rewrite(path: &Path, text: &str) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let written = write_synced(&beside, text, &path).and_then(|()| fs::rename(&beside, &path));
    if written.is_err() {
        // The failure to report is the first one.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn write_synced(path: &Path, text: &str, model: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.set_permissions(fs::metadata(model)?.permissions())?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
pub(super) mod faults {
    //! A disk that fills up.

    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    pub(in super::super) struct Full {
        disk: Box<dyn Disk>,
        room: Arc<AtomicU64>,
        can_truncate: bool,
    }

    impl Log {
        /// Puts a limit on what the file takes from now on.
        pub(in super::super) fn limit(self, room: &Arc<AtomicU64>, can_truncate: bool) -> Self {
            let disk = Full {
                disk: self.disk,
                room: Arc::clone(room),
                can_truncate,
            };
            Self {
                disk: Box::new(disk),
                ..self
            }
        }
    }

    impl Disk for Full {
        fn size(&mut self) -> io::Result<u64> {
            self.disk.size()
        }

        fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = self.room.load(Ordering::Relaxed);
            let taken = bytes.len().min(usize::try_from(room).unwrap());
            if taken == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room.fetch_sub(taken as u64, Ordering::Relaxed);
            self.disk.append(&bytes[..taken])
        }

        fn truncate(&mut self, size: u64) -> io::Result<()> {
            if self.can_truncate {
                self.disk.truncate(size)
            } else {
                Err(io::ErrorKind::Other.into())
            }
        }

        fn byte_at(&mut self, at: u64) -> io::Result<u8> {
            self.disk.byte_at(at)
        }
    }
}

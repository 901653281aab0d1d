//! Appending to a session file, so that nothing is ever glued to a torn line or lost with one, and
//! noticing what other programs did to the file meanwhile (`kernel.md` §2.4).

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use memchr::memrchr;

/// What a log needs of the system; tests put failing ones in between.
pub(super) trait Disk: Send + Sync {
    fn size(&mut self) -> io::Result<u64>;
    /// One write call at the end of the file; may take only a part.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Where the last write ended, also when others write to the file.
    fn position(&mut self) -> io::Result<u64>;
    fn truncate(&mut self, size: u64) -> io::Result<()>;
    fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<()>;
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

    fn position(&mut self) -> io::Result<u64> {
        self.stream_position()
    }

    fn truncate(&mut self, size: u64) -> io::Result<()> {
        self.set_len(size)
    }

    fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        // The file is in append mode, so the position means nothing to writes.
        self.seek(SeekFrom::Start(at))?;
        self.read_exact(buffer)
    }
}

/// What has become of a file since the last write.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing.
    Same,
    /// Another program appended these bytes (S18).
    Grown(Range<u64>),
    /// Another program made it shorter: entries that were stored are gone.
    Cut { from: u64, to: u64 },
    /// Its name is gone; the open file still holds everything.
    Removed,
    /// Another file has its name; the open file still holds everything.
    Replaced,
    /// It holds something else than it did.
    Rewritten,
}

/// A file that is open for appending.
pub(super) struct Log {
    path: PathBuf,
    disk: Box<dyn Disk>,
    /// Size after our last write; another size means that somebody else wrote.
    end: u64,
    /// The last line has no end, so the next write has to begin with one.
    torn: bool,
    /// What others wrote between a look and the write after it.
    missed: Vec<Range<u64>>,
    /// The bytes before `end`, to know the file by.
    tail: Vec<u8>,
    identity: Option<Identity>,
}

impl Log {
    /// Opens an existing file; its content is not touched.
    pub(super) fn open(path: &Path) -> io::Result<(Self, File)> {
        let file = OpenOptions::new().read(true).append(true).open(path)?;
        Self::of(path, file)
    }

    /// Creates the file and its folder; fails if the file exists. Leaves no file when the content
    /// does not fit (S11, S12).
    pub(super) fn create(
        path: &Path,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<(Self, File)> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .open(path)?;
        let mut out = BufWriter::with_capacity(1 << 16, &mut file);
        let written = content(&mut out).and_then(|()| out.flush());
        // Its own attempt to write what is left would be a second one.
        let _ = out.into_parts();
        let created = written.and_then(|()| Self::of(path, file));
        if created.is_err() {
            // The failure to report is the first one.
            let _ = fs::remove_file(path);
        }
        created
    }

    /// The log, and the file to read from.
    fn of(path: &Path, mut file: File) -> io::Result<(Self, File)> {
        let reader = file.try_clone()?;
        let end = file.size()?;
        let tail = tail_of(&mut file, end)?;
        let log = Self {
            path: path.to_owned(),
            identity: Identity::of(&file.metadata()?),
            disk: Box::new(file),
            end,
            torn: is_torn(&tail),
            missed: Vec::new(),
            tail,
        };
        Ok((log, reader))
    }

    /// Size of the file as far as it is known here.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Looks at what other programs did. Growth is told once, and before the rest.
    pub(super) fn look(&mut self) -> io::Result<Fate> {
        let (from, to) = (self.end, self.disk.size()?);
        if to < from {
            return Ok(Fate::Cut { from, to });
        }
        let mut tail = vec![0; self.tail.len()];
        self.disk.read_at(from - tail.len() as u64, &mut tail)?;
        if tail != self.tail {
            return Ok(Fate::Rewritten);
        }
        if let Some(range) = self.missed.pop() {
            return Ok(Fate::Grown(range));
        }
        if to > from {
            // A line that is still being written is for the next look.
            let whole = self.last_line_end(from, to)?;
            self.torn = whole < to;
            if whole > from {
                self.end = whole;
                self.tail = tail_of(&mut *self.disk, whole)?;
                return Ok(Fate::Grown(from..whole));
            }
        }
        match fs::metadata(&self.path) {
            Ok(named) if Identity::of(&named) != self.identity => Ok(Fate::Replaced),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Fate::Removed),
            // A folder that may not be searched any more says nothing of the open file.
            _ => Ok(Fate::Same),
        }
    }

    /// Appends one line in one write call (S13), and answers where it begins. On failure the file is
    /// as before, or the next line will begin with a line end (S04).
    pub(super) fn append(&mut self, line: &str) -> io::Result<u64> {
        let start = if self.torn { "\n" } else { "" };
        let text = format!("{start}{line}\n");
        match self.write(text.as_bytes()) {
            Ok(at) => {
                self.torn = false;
                self.tail = text.as_bytes()[text.len().saturating_sub(TAIL)..].to_vec();
                Ok(at + start.len() as u64)
            }
            Err((error, half)) => {
                if let Some(at) = half {
                    self.take_back(at);
                }
                // Without it the file is not known, and nothing more is written to it.
                if let Ok(tail) = tail_of(&mut *self.disk, self.end) {
                    self.torn = is_torn(&tail);
                    self.tail = tail;
                }
                Err(error)
            }
        }
    }

    /// Writes all bytes, and answers where they begin; on failure, where the half line begins if it
    /// stands in one piece. A system that takes a part is asked once more: it then takes the rest, or
    /// says what is wrong.
    fn write(&mut self, bytes: &[u8]) -> Result<u64, (io::Error, Option<u64>)> {
        let first = self.disk.append(bytes).map_err(|error| (error, None))?;
        let at = self.written(first as u64);
        if first == bytes.len() {
            return Ok(at);
        }
        let rest = self.disk.append(&bytes[first..]);
        let more = rest.map_err(|error| (error, Some(at)))?;
        let joined = self.written(more as u64) == at + first as u64;
        if joined && first + more == bytes.len() {
            return Ok(at);
        }
        let part = io::Error::new(io::ErrorKind::StorageFull, "only a part of it was taken");
        // What another program wrote in between stays, and what is around it with it.
        Err((part, joined.then_some(at)))
    }

    /// Where the last line that ends in a stretch ends; its beginning if none does.
    fn last_line_end(&mut self, from: u64, to: u64) -> io::Result<u64> {
        const STEP: u64 = 64 << 10;
        let mut end = to;
        while end > from {
            let start = end.saturating_sub(STEP).max(from);
            let mut block = vec![0; usize::try_from(end - start).unwrap_or(0)];
            self.disk.read_at(start, &mut block)?;
            if let Some(found) = memrchr(b'\n', &block) {
                return Ok(start + found as u64 + 1);
            }
            end = start;
        }
        Ok(from)
    }

    /// So many bytes were written; answers where they begin.
    fn written(&mut self, taken: u64) -> u64 {
        if taken == 0 {
            return self.end;
        }
        let end = self.disk.position().unwrap_or(self.end + taken);
        let at = end.saturating_sub(taken).max(self.end);
        if at > self.end {
            self.missed.push(self.end..at);
        }
        self.end = at + taken;
        at
    }

    /// Removes a half written line, unless another process wrote behind it.
    fn take_back(&mut self, at: u64) {
        let last = self.disk.size().is_ok_and(|size| size == self.end);
        if last && self.disk.truncate(at).is_ok() {
            self.end = at;
        }
    }
}

/// So many bytes before its end a file is known by; an entry's id is not far.
const TAIL: usize = 256;

fn tail_of(disk: &mut dyn Disk, end: u64) -> io::Result<Vec<u8>> {
    let len = usize::try_from(end).map_or(TAIL, |end| end.min(TAIL));
    let mut tail = vec![0; len];
    disk.read_at(end - len as u64, &mut tail)?;
    Ok(tail)
}

fn is_torn(tail: &[u8]) -> bool {
    tail.last().is_some_and(|last| *last != b'\n')
}

/// Which file it is, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    number: u64,
}

impl Identity {
    #[cfg(unix)]
    fn of(file: &fs::Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        Some(Self {
            device: file.dev(),
            number: file.ino(),
        })
    }

    #[cfg(not(unix))]
    fn of(_: &fs::Metadata) -> Option<Self> {
        None
    }
}

/// Makes the name of a new file as lasting as its content, and that of its folder, which may be new
/// as well.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    for folder in path.ancestors().skip(1).take(2) {
        if !folder.as_os_str().is_empty() {
            File::open(folder)?.sync_all()?;
        }
    }
    Ok(())
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

/// Only the system's administrator can, and only he needs it.
fn keep_owner(file: &File, model: &fs::Metadata) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let _ = std::os::unix::fs::fchown(file, Some(model.uid()), Some(model.gid()));
    }
}

fn write_synced(path: &Path, text: &str, model: &Path) -> io::Result<()> {
    let mut file = File::create(path)?;
    let model = fs::metadata(model)?;
    file.set_permissions(model.permissions())?;
    keep_owner(&file, &model);
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
pub(super) mod faults {
    //! A disk that fills up.

    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    pub(in super::super) struct Full {
        disk: Box<dyn Disk>,
        room: Arc<AtomicU64>,
        can_truncate: bool,
    }

    /// A disk that takes a part of each write, after another program has written.
    pub(in super::super) struct Busy {
        pub(in super::super) disk: Box<dyn Disk>,
        pub(in super::super) path: PathBuf,
        /// Of each write: the bytes it takes, and what another program writes before it.
        pub(in super::super) plan: Vec<(usize, &'static str)>,
    }

    impl Disk for Busy {
        fn size(&mut self) -> io::Result<u64> {
            self.disk.size()
        }

        fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.plan.is_empty() {
                return self.disk.append(bytes);
            }
            let (taken, theirs) = self.plan.remove(0);
            let mut other = OpenOptions::new().append(true).open(&self.path)?;
            other.write_all(theirs.as_bytes())?;
            match taken {
                0 => Err(io::ErrorKind::StorageFull.into()),
                taken => self.disk.append(&bytes[..taken.min(bytes.len())]),
            }
        }

        fn position(&mut self) -> io::Result<u64> {
            self.disk.position()
        }

        fn truncate(&mut self, size: u64) -> io::Result<()> {
            self.disk.truncate(size)
        }

        fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
            self.disk.read_at(at, buffer)
        }
    }

    impl Log {
        /// Lets other programs write in between.
        pub(in super::super) fn busy(self, plan: Vec<(usize, &'static str)>) -> Self {
            let (disk, path) = (self.disk, self.path.clone());
            let disk = Box::new(Busy { disk, path, plan });
            Self { disk, ..self }
        }

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

        fn position(&mut self) -> io::Result<u64> {
            self.disk.position()
        }

        fn truncate(&mut self, size: u64) -> io::Result<()> {
            if self.can_truncate {
                self.disk.truncate(size)
            } else {
                Err(io::ErrorKind::Other.into())
            }
        }

        fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
            self.disk.read_at(at, buffer)
        }
    }
}

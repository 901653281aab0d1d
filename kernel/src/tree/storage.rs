//! A session's file while it is open: who may write it, appending to it, reading it, and making it
//! last (`kernel.md` §2.4, S18).

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::lease::{Lease, LeaseError};
use super::log::{Fate, Log, sync_folder};
use super::source::{Line, Source};

/// When a session's file is forced to the disk (setting `session.sync`). Whatever it is, an entry
/// survives the end of the process as soon as it was appended; this is about power and kernels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// At the boundaries of a run.
    #[default]
    Run,
    /// After every entry.
    Entry,
    /// Never.
    Off,
}

impl SyncPolicy {
    /// Reads `run`, `entry` or `off`.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "run" => Some(Self::Run),
            "entry" => Some(Self::Entry),
            "off" => Some(Self::Off),
            _ => None,
        }
    }
}

/// Forces what was written so far to the disk. Slow: not for a thread that others wait for.
pub struct Syncer {
    source: Arc<Source>,
    /// A new file, whose name has to last as well.
    new: Option<PathBuf>,
}

impl std::fmt::Debug for Syncer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Syncer")
    }
}

impl Syncer {
    /// Returns when the disk has it.
    ///
    /// # Errors
    /// The system's; what was written may then not survive a loss of power.
    pub fn sync(self) -> io::Result<()> {
        if let Source::File(file) = &*self.source {
            file.sync_data()?;
        }
        self.new.map_or(Ok(()), |path| sync_folder(&path))
    }
}

/// The open file of a session.
pub(super) struct Storage {
    path: PathBuf,
    /// The same without links.
    real: PathBuf,
    log: Log,
    source: Arc<Source>,
    /// Created here and not synced yet.
    new: bool,
    /// Written since the last sync.
    unsynced: bool,
    /// `None` where no lease can be taken.
    _lease: Option<Lease>,
}

impl Storage {
    pub(super) fn open(path: &Path, lease: Option<Lease>) -> io::Result<Self> {
        Ok(Self::of(path, Log::open(path)?, lease, false))
    }

    pub(super) fn create(
        path: &Path,
        lease: Option<Lease>,
        content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<Self> {
        Ok(Self::of(path, Log::create(path, content)?, lease, true))
    }

    /// The file that has the name now, under the same lease.
    pub(super) fn reopened(self) -> io::Result<Self> {
        let (log, file) = Log::open(&self.path)?;
        Ok(Self {
            log,
            source: Arc::new(Source::File(file)),
            new: true,
            unsynced: true,
            ..self
        })
    }

    fn of(path: &Path, (log, file): (Log, File), lease: Option<Lease>, new: bool) -> Self {
        Self {
            path: path.to_owned(),
            real: std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
            log,
            source: Arc::new(Source::File(file)),
            new,
            unsynced: new,
            _lease: lease,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// To read from.
    pub(super) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Size of the file as far as it is known here.
    pub(super) fn end(&self) -> u64 {
        self.log.end()
    }

    /// What other programs did to the file since the last look.
    pub(super) fn look(&mut self) -> io::Result<Fate> {
        self.log.look()
    }

    /// Appends a record, and answers where it is read from now on.
    pub(super) fn append(&mut self, record: &str) -> io::Result<Line> {
        let at = self.log.append(record)?;
        self.unsynced = true;
        Ok(Line::Stored {
            source: Arc::clone(&self.source),
            range: at..at + record.len() as u64,
        })
    }

    /// Writes the file again under its name, which was removed, from what is still open.
    /// Answers where the bytes are that were not taken in yet.
    pub(super) fn restore(&mut self) -> io::Result<Range<u64>> {
        let path = self.real.clone();
        self.write_again(&path)
    }

    /// Goes on under a name of its own, for the old one is another file's.
    pub(super) fn move_aside(&mut self) -> io::Result<Range<u64>> {
        let stem = self.path.file_stem().unwrap_or_default().to_owned();
        for number in 1..=10_000 {
            let mut name = stem.clone();
            name.push(format!("-{number}.jsonl"));
            let path = self.path.with_file_name(name);
            let written = self.write_again(&path);
            if written.is_ok() {
                path.clone_into(&mut self.path);
            }
            match written {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                done => return done,
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn write_again(&mut self, path: &Path) -> io::Result<Range<u64>> {
        const STEP: u64 = 1 << 20;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        // Where the lease went with its folder, or the name is another one; else it is held here.
        let lease = match Lease::acquire(path) {
            Ok(lease) => Some(lease),
            Err(LeaseError::Held(Some(holder))) if holder.pid == std::process::id() => None,
            Err(LeaseError::Held(_)) => return Err(io::Error::other("another process has it")),
            Err(LeaseError::Io(_)) => None,
        };
        let (known, end) = (self.log.end(), self.source.size()?);
        let (log, file) = Log::create(path, |out| {
            let mut at = 0;
            while at < end {
                let stop = (at + STEP).min(end);
                let block = self.source.read(at..stop)?;
                if (block.len() as u64) < stop - at {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                out.write_all(&block)?;
                at = stop;
            }
            Ok(())
        })?;
        if let Source::File(old) = &*self.source {
            file.set_permissions(old.metadata()?.permissions())?;
        }
        self.log = log;
        path.clone_into(&mut self.real);
        if lease.is_some() {
            self._lease = lease;
        }
        self.source = Arc::new(Source::File(file));
        (self.new, self.unsynced) = (true, true);
        Ok(known..end)
    }

    /// What has to reach the disk; `None` when everything did.
    pub(super) fn syncer(&mut self) -> Option<Syncer> {
        let new = std::mem::take(&mut self.new).then(|| self.path.clone());
        std::mem::take(&mut self.unsynced).then(|| Syncer {
            source: Arc::clone(&self.source),
            new,
        })
    }

    /// A sync has failed: nothing of it counts.
    pub(super) fn set_unsynced(&mut self) {
        (self.new, self.unsynced) = (true, true);
    }

    #[cfg(test)]
    pub(super) fn with_log(self, change: impl FnOnce(Log) -> Log) -> Self {
        Self {
            log: change(self.log),
            ..self
        }
    }
}

//! Putting entries into the session's file, and taking in what other programs did to it (`kernel.md`
//! §2.4). What fails leaves the tree as it was (S12).

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use super::branch::Branch;
use super::damage::tell_damage;
use super::log::Fate;
use super::source::{Line, Source};
use super::storage::Storage;
use super::{Adopted, Entry, Place, SessionTree, SyncPolicy, Syncer, TreeError, load, opening};

impl SessionTree {
    /// Gives the entry its place in the file.
    pub(super) fn write(&mut self, entry: &mut Entry) -> Result<(), TreeError> {
        match &self.place {
            Place::Memory => Ok(()),
            Place::Pending(_) if entry.is_conversation() => self.begin_file(Some(entry)),
            Place::Pending(_) => Ok(()),
            Place::Closed(path) => Err(TreeError::Closed { path: path.clone() }),
            Place::File(_) => {
                self.catch_up()?;
                let Place::File(storage) = &mut self.place else {
                    return Ok(());
                };
                match storage.append(&entry.raw()) {
                    Ok(line) => entry.line = line,
                    Err(error) => return Err(TreeError::write(storage.path(), error)),
                }
                self.lines += 1;
                entry.at_line = u32::try_from(self.lines).unwrap_or(0);
                if self.sync == SyncPolicy::Entry {
                    self.sync_now();
                }
                Ok(())
            }
        }
    }

    /// Writes the header and all entries so far into a new file (S11).
    pub(super) fn begin_file(&mut self, last: Option<&Entry>) -> Result<(), TreeError> {
        let Place::Pending(path) = &self.place else {
            return Ok(());
        };
        let path = path.clone();
        let header = self.header.line()?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| TreeError::write(&path, error))?;
        }
        let (lease, unguarded) = opening::lease(&path)?;
        let entries = self.entries.iter().map(|entry| &**entry).chain(last);
        let mut places = Vec::new();
        let storage = Storage::create(&path, lease, |out| {
            places = write_lines(out, &header, entries)?;
            Ok(())
        });
        let storage = storage.map_err(|error| TreeError::write(&path, error))?;
        self.lines = places.len() + 1;
        self.move_lines(storage.source(), places);
        self.place = Place::File(Box::new(storage));
        self.notices.extend(unguarded);
        if self.sync == SyncPolicy::Entry {
            self.sync_now();
        }
        Ok(())
    }

    /// Entries that are read from another file are read from this one from now on: that one may go
    /// its own ways.
    fn move_lines(&mut self, source: &Arc<Source>, places: Vec<Range<u64>>) {
        let mut moved = false;
        for (entry, range) in self.entries.iter_mut().zip(places) {
            if let Line::Stored { .. } = entry.line {
                let source = Arc::clone(source);
                *entry = Arc::new(entry.with_line(Line::Stored { source, range }));
                moved = true;
            }
        }
        if moved {
            self.branch = Branch::default();
        }
    }

    /// Takes in what other programs did to the file since the last write (S18).
    fn catch_up(&mut self) -> Result<(), TreeError> {
        // Each look tells one thing; somebody who writes without end is left for the next time.
        for _ in 0..16 {
            let Place::File(storage) = &mut self.place else {
                return Ok(());
            };
            let path = storage.path().to_owned();
            let read_error = |error| TreeError::read(&path, error);
            match storage.look().map_err(read_error)? {
                Fate::Same => return Ok(()),
                Fate::Cut { from, to } => return Err(TreeError::Cut { path, from, to }),
                Fate::Rewritten => return Err(TreeError::Rewritten { path }),
                Fate::Replaced => {
                    let rest = storage
                        .move_aside()
                        .map_err(|error| TreeError::write(&path, error))?;
                    self.notices.push(format!(
                        "Another file took the name {} while the session was open. This \
                         conversation goes on in {}, with everything that was in it.",
                        path.display(),
                        storage.path().display()
                    ));
                    self.take_in(rest).map_err(read_error)?;
                }
                Fate::Removed => {
                    let rest = storage
                        .restore()
                        .map_err(|error| TreeError::write(&path, error))?;
                    self.notices.push(format!(
                        "The session file {} was removed while the session was open. It was \
                         written again, with everything that was in it.",
                        path.display()
                    ));
                    self.take_in(rest).map_err(read_error)?;
                }
                Fate::Grown(range) => self.take_in(range).map_err(read_error)?,
            }
        }
        Ok(())
    }

    /// Takes in what another program wrote here.
    fn take_in(&mut self, range: Range<u64>) -> io::Result<()> {
        let Place::File(storage) = &self.place else {
            return Ok(());
        };
        let added = load::load_more(storage.source(), range, self.lines)?;
        // It may go on doing so with every turn.
        if !added.entries.is_empty() && !std::mem::replace(&mut self.others_write, true) {
            self.notices.push(format!(
                "Another program wrote {} to the session file {}. What it writes is kept on a branch \
                 of its own; this conversation goes on where it was.",
                counted(added.entries.len(), "entry", "entries"),
                storage.path().display()
            ));
        }
        for entry in added.entries {
            self.adopt(entry, Adopted::Beside);
        }
        self.lines += added.lines;
        self.notices.extend(tell_damage(&added.damage));
        self.damage.extend(added.damage);
        Ok(())
    }

    fn sync_now(&mut self) {
        if let Some(Err(error)) = self.syncer().map(Syncer::sync) {
            self.notice_unsynced(&error);
        }
    }

    /// What was written is not known to be on the disk; it is tried again at the next occasion.
    pub(crate) fn notice_unsynced(&mut self, error: &io::Error) {
        if let Place::File(storage) = &mut self.place {
            storage.set_unsynced();
        }
        self.notices.push(format!(
            "The session file could not be forced to the disk: {error}. What was said last may be \
             lost if the power fails; check the disk."
        ));
    }
}

/// Writes a header and entries, each on its line, and answers where the entries are.
pub(super) fn write_lines<'a>(
    out: &mut dyn Write,
    header: &str,
    entries: impl Iterator<Item = &'a Entry>,
) -> io::Result<Vec<Range<u64>>> {
    out.write_all(header.as_bytes())?;
    out.write_all(b"\n")?;
    let mut at = header.len() as u64 + 1;
    let mut places = Vec::new();
    for entry in entries {
        let line = entry.line.bytes()?;
        out.write_all(&line)?;
        out.write_all(b"\n")?;
        let end = at + line.len() as u64;
        places.push(at..end);
        at = end + 1;
    }
    Ok(places)
}

fn counted(count: usize, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}

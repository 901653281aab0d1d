//! Reading a session file into entries: one pass over its bytes that keeps who each record is and
//! where it stands. Large files are read by several threads. Nothing is written.

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::thread;

use memchr::memchr;

use super::EntryId;
use super::body::EntryKind;
use super::bridge::{Gap, Lost, bridge};
use super::damage::Damage;
use super::entry::Entry;
use super::head::{Head, Loose};
use super::header::Header;
use super::scan::{NotAHeader, Piece, Scanner};
use super::skim::{self, Skimmed};
use super::source::{Line, Lines, Row, Source, text_of};
use super::time::iso_from_ms;

/// What a file holds.
pub(super) struct Contents {
    pub(super) header: Header,
    pub(super) entries: Vec<Arc<Entry>>,
    pub(super) damage: Vec<Damage>,
    /// Lines that were read.
    pub(super) lines: usize,
    /// Where the session was when the process that wrote it ended, if that is not the last entry.
    pub(super) leaf: Option<EntryId>,
}

/// Why a file is no session (S15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoSession {
    /// Not one readable record.
    Nothing,
    /// The first readable record is no header.
    NotAHeader { line: usize },
    /// The same, but it is an entry: the header was there once.
    HeaderLost { line: usize },
}

/// A longer line is no record that anybody wrote.
const LONGEST_LINE: usize = 256 << 20;

/// Nor is one before the header.
const LONGEST_BEFORE_HEADER: usize = 16 << 20;

/// From so many bytes on, a second thread is worth its start.
const WORTH_A_THREAD: u64 = 2 << 20;

/// More threads would only wait for memory.
const MAX_THREADS: u64 = 4;

/// Reads the records of a source up to `end`.
pub(super) fn load(source: &Arc<Source>, end: u64) -> io::Result<Result<Contents, NoSession>> {
    let (header, mut first, rest) = match header(source, end)? {
        Ok(found) => found,
        Err(no_session) => return Ok(Err(no_session)),
    };
    for part in parts(source, rest..end)? {
        first.join(part);
    }
    // Version 1 knew no ids: entries that have them are of a file whose header lost its version, and
    // giving them others would merge its branches.
    let header = if header.version() < 2.0 && !first.entries.is_empty() {
        header.without_version()
    } else {
        header
    };
    let leaf = first.torn_from();
    let missing = bridge(&mut first.entries, &mut first.gaps);
    let mut damage: Vec<Damage> = first.gaps.into_iter().map(|gap| gap.damage).collect();
    damage.extend(missing);
    damage.sort_by_key(|damage| damage.line);
    damage.extend(first.untold);
    Ok(Ok(Contents {
        header,
        leaf,
        entries: first.entries.into_iter().map(Arc::new).collect(),
        damage,
        lines: first.lines,
    }))
}

/// Entries that another program added to an open file.
pub(super) struct Added {
    pub(super) entries: Vec<Arc<Entry>>,
    pub(super) damage: Vec<Damage>,
    pub(super) lines: usize,
}

/// Reads what another program added to an open file, behind so many lines.
pub(super) fn load_more(
    source: &Arc<Source>,
    range: Range<u64>,
    lines: usize,
) -> io::Result<Added> {
    let mut all = Part {
        lines,
        ..Part::default()
    };
    all.join(Part::read(source, range)?);
    Ok(Added {
        entries: all.entries.into_iter().map(Arc::new).collect(),
        damage: all.gaps.into_iter().map(|gap| gap.damage).collect(),
        lines: all.lines - lines,
    })
}

/// The header alone, if it stands within so many bytes.
pub(super) fn load_header(source: &Arc<Source>, within: u64) -> io::Result<Option<Header>> {
    Ok(header(source, within)?.ok().map(|(header, ..)| header))
}

/// The header, what stood in the lines up to it, and where the other lines begin.
type HeaderFound = (Header, Part, u64);

fn header(source: &Arc<Source>, end: u64) -> io::Result<Result<HeaderFound, NoSession>> {
    let mut lines = Lines::of(source, 0..end, LONGEST_BEFORE_HEADER);
    let mut scanner = Scanner::default();
    let mut part = Part::default();
    let mut header = None;
    while let Some(row) = lines.next()? {
        part.lines += 1;
        if row.is_cut() {
            part.take_endless(&row);
            continue;
        }
        let (at, text) = (row.at, text_of(Cow::Borrowed(row.bytes)));
        let next = at + row.len + 1;
        let pieces = match scanner.line(&text, 0..text.len(), part.lines) {
            Ok(pieces) => pieces,
            Err(NotAHeader { line }) => return Ok(Err(not_a_header(&text, line))),
        };
        for piece in pieces {
            match (&header, &piece.head) {
                (None, Some(head)) => {
                    header = Some(Header::read(&text[piece.range], head.file_version()));
                }
                _ => part.take(piece, &Place::of(source, at, &text, is_utf8(&text))),
            }
        }
        if let Some(header) = header.take() {
            return Ok(Ok((header, part, next.min(end))));
        }
    }
    Ok(Err(NoSession::Nothing))
}

fn not_a_header(text: &str, line: usize) -> NoSession {
    let is_entry = Head::parse(text.trim_start_matches('\u{feff}').trim())
        .is_some_and(|head| head.is_surely_record(3.0));
    if is_entry {
        NoSession::HeaderLost { line }
    } else {
        NoSession::NotAHeader { line }
    }
}

fn parts(source: &Arc<Source>, range: Range<u64>) -> io::Result<Vec<Part>> {
    let processors = thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let len = range.end.saturating_sub(range.start);
    let threads = (len / WORTH_A_THREAD).clamp(1, processors.min(MAX_THREADS));
    if threads == 1 {
        return Ok(vec![Part::read(source, range)?]);
    }
    let mut cuts = vec![range.start];
    for number in 1..threads {
        let from = (range.start + len / threads * number).max(cuts[cuts.len() - 1]);
        cuts.push(line_start(source, from, range.end)?);
    }
    cuts.push(range.end);
    thread::scope(|scope| {
        let rest: Vec<_> = cuts[1..]
            .windows(2)
            .map(|cut| (cut[0], cut[1]))
            .map(|(from, to)| scope.spawn(move || Part::read(source, from..to)))
            .collect();
        let mut parts = vec![Part::read(source, cuts[0]..cuts[1])?];
        for thread in rest {
            let part = thread
                .join()
                .map_err(|_| io::Error::other("a reader ended early"))?;
            parts.push(part?);
        }
        Ok(parts)
    })
}

/// Where the first line after `from` begins.
fn line_start(source: &Source, from: u64, end: u64) -> io::Result<u64> {
    const STEP: u64 = 64 << 10;
    let mut at = from;
    while at < end {
        let block = source.read(at..(at + STEP).min(end))?;
        match memchr(b'\n', &block) {
            Some(found) => return Ok(at + found as u64 + 1),
            None if block.is_empty() => break,
            None => at += block.len() as u64,
        }
    }
    Ok(end)
}

/// What some lines of a file hold.
#[derive(Default)]
struct Part {
    entries: Vec<Entry>,
    gaps: Vec<Gap>,
    /// All damage behind the first so many places.
    untold: Option<Damage>,
    /// Lines that were read.
    lines: usize,
}

/// So many damaged places are told apart. A file may hold nothing else.
const MOST_GAPS: usize = 50_000;

/// Where the line of a piece is.
struct Place<'a> {
    source: &'a Arc<Source>,
    at: u64,
    text: &'a str,
    /// Places in the text are places in the bytes.
    exact: bool,
}

impl<'a> Place<'a> {
    fn of(source: &'a Arc<Source>, at: u64, text: &'a str, exact: bool) -> Self {
        Self {
            source,
            at,
            text,
            exact,
        }
    }

    fn line(&self, range: Range<usize>) -> Line {
        if !self.exact {
            return Line::own(self.text[range].to_owned());
        }
        stored(self.source, self.at, range)
    }
}

fn stored(source: &Arc<Source>, at: u64, range: Range<usize>) -> Line {
    Line::Stored {
        source: Arc::clone(source),
        range: at + range.start as u64..at + range.end as u64,
    }
}

impl Part {
    fn read(source: &Arc<Source>, range: Range<u64>) -> io::Result<Self> {
        let mut lines = Lines::of(source, range, LONGEST_LINE);
        let mut part = Self::default();
        let mut scanner = Scanner { version: Some(3.0) };
        let mut ids = Shared::default();
        while let Some(row) = lines.next()? {
            part.lines += 1;
            let (at, line) = (row.at, row.bytes);
            let range = trimmed(line);
            if row.is_cut() {
                part.take_endless(&row);
                continue;
            }
            if range.is_empty() {
                continue;
            }
            match skim::whole(&line[range.clone()]).filter(|head| head.kind != "session") {
                Some(head) => {
                    let entry = skimmed(&head, stored(source, at, range), &mut ids);
                    part.push(entry);
                }
                None => part.read_carefully(&mut scanner, source, at, line),
            }
        }
        Ok(part)
    }

    fn push(&mut self, mut entry: Entry) {
        // Only for people; no file has so many lines.
        entry.at_line = u32::try_from(self.lines).unwrap_or(0);
        self.entries.push(entry);
    }

    fn take_endless(&mut self, row: &Row<'_>) {
        self.take_gap(Gap {
            damage: Damage {
                line: self.lines,
                bytes: usize::try_from(row.len).unwrap_or(usize::MAX),
                reason: "more than any record has",
                behind: None,
            },
            before: self.entries.len(),
            torn: true,
            was: None,
        });
    }

    fn take_gap(&mut self, gap: Gap) {
        if self.gaps.len() < MOST_GAPS {
            self.gaps.push(gap);
            return;
        }
        let untold = self.untold.get_or_insert(Damage {
            line: gap.damage.line,
            bytes: 0,
            reason: "no more records, and so in many lines after it",
            behind: None,
        });
        untold.bytes = untold.bytes.saturating_add(gap.damage.bytes);
    }

    /// The entry that a torn last record was to follow. Whoever wrote it may just have gone back to
    /// another branch.
    fn torn_from(&self) -> Option<EntryId> {
        let last = self
            .gaps
            .last()
            .filter(|gap| gap.before == self.entries.len())?;
        let was = last.was.as_ref()?;
        let parent = was.parent.as_ref()?;
        let exists = self.entries.iter().any(|entry| entry.id() == parent);
        // One that has a child was whole once.
        let is_new = !self
            .entries
            .iter()
            .any(|entry| entry.parent() == Some(&was.id));
        (exists && is_new).then(|| parent.clone())
    }

    fn read_carefully(
        &mut self,
        scanner: &mut Scanner,
        source: &Arc<Source>,
        at: u64,
        line: &[u8],
    ) {
        let text = text_of(Cow::Borrowed(line));
        // The number tells a first line, which may begin with a byte order mark; none of these is.
        let number = self.lines + 1;
        let place = Place::of(source, at, &text, is_utf8(&text));
        for piece in scanner
            .line(&text, 0..text.len(), number)
            .unwrap_or_default()
        {
            let line = self.lines;
            self.take(Piece { line, ..piece }, &place);
        }
    }

    /// Takes a piece that is no header.
    fn take(&mut self, piece: Piece<'_>, place: &Place<'_>) {
        let (bytes, torn) = (piece.range.len(), piece.head.is_none());
        let head = skim::head(place.text[piece.range.clone()].as_bytes());
        let was = head.filter(|_| torn).map(|head| Lost {
            id: head.id.into(),
            parent: head.parent.map(EntryId::from),
            timestamp: head.timestamp.into(),
        });
        let read = match piece.head {
            Some(head) => read_carefully(head, place.line(piece.range)),
            None => Err("not a whole JSON record"),
        };
        match read {
            Ok(entry) => self.push(entry),
            Err(reason) => self.take_gap(Gap {
                damage: Damage {
                    line: piece.line,
                    bytes,
                    reason,
                    behind: None,
                },
                before: self.entries.len(),
                torn,
                was,
            }),
        }
    }

    fn join(&mut self, next: Self) {
        for mut gap in next.gaps {
            gap.damage.line += self.lines;
            gap.before += self.entries.len();
            self.take_gap(gap);
        }
        if let Some(mut more) = next.untold {
            more.line += self.lines;
            let all = self.untold.get_or_insert(Damage {
                bytes: 0,
                ..more.clone()
            });
            all.bytes = all.bytes.saturating_add(more.bytes);
        }
        let before = u32::try_from(self.lines).unwrap_or(0);
        self.entries
            .extend(next.entries.into_iter().map(|mut entry| {
                entry.at_line = entry.at_line.saturating_add(before);
                entry
            }));
        self.lines += next.lines;
    }
}

/// Whether the text is the bytes that were read.
#[expect(clippy::ptr_arg, reason = "it is the kind of `Cow` that tells")]
fn is_utf8(text: &Cow<'_, str>) -> bool {
    matches!(text, Cow::Borrowed(_))
}

/// Without white space at both ends.
fn trimmed(line: &[u8]) -> Range<usize> {
    let start = line.len() - line.trim_ascii_start().len();
    start..start.max(line.trim_ascii_end().len())
}

/// Ids that were made last: most parents are the entry before.
#[derive(Default)]
struct Shared {
    last: Option<EntryId>,
}

fn skimmed(head: &Skimmed<'_>, line: Line, ids: &mut Shared) -> Entry {
    let parent = head.parent.map(|parent| match &ids.last {
        Some(last) if last.as_str() == parent => last.clone(),
        _ => EntryId::from(parent),
    });
    let id = EntryId::from(head.id);
    ids.last = Some(id.clone());
    Entry::stored(
        id,
        parent,
        head.timestamp,
        EntryKind::parse(head.kind),
        line,
    )
}

fn read_carefully(head: Head<'_>, line: Line) -> Result<Entry, &'static str> {
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
        Loose::Text(text) => Cow::Borrowed(&**text),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the clock's range is checked later"
        )]
        Loose::Number(ms) => Cow::Owned(iso_from_ms(*ms as i64)),
        _ => Cow::Borrowed(""),
    };
    let parent = head.parent.text().map(EntryId::from);
    let kind = EntryKind::parse(kind);
    Ok(Entry::stored(id.into(), parent, &timestamp, kind, line))
}

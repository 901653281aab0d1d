//! Where the lines of a session are read from: its open file, one piece at a time and only when
//! somebody asks, or a text in memory. Nothing here knows what a line says.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use memchr::memchr;

/// The bytes of a session. An open file stays readable when its name is gone.
pub(super) enum Source {
    File(File),
    Text(Vec<u8>),
}

impl Source {
    /// Reads into `buffer` from `offset`; 0 at the end, maybe less than fits.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => loop {
                match read_file_at(file, buffer, offset) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    done => return done,
                }
            },
            Self::Text(text) => {
                let from = usize::try_from(offset).map_or(text.len(), |at| at.min(text.len()));
                let len = buffer.len().min(text.len() - from);
                buffer[..len].copy_from_slice(&text[from..from + len]);
                Ok(len)
            }
        }
    }

    /// The bytes of a range; fewer if the source has become shorter.
    pub(super) fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        #[cfg(test)]
        READS.with(|reads| reads.set(reads.get() + 1));
        let len = usize::try_from(range.end - range.start).map_err(io::Error::other)?;
        let mut bytes = vec![0; len];
        let mut filled = 0;
        while filled < len {
            match self.read_at(range.start + filled as u64, &mut bytes[filled..])? {
                0 => break,
                more => filled += more,
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    pub(super) fn size(&self) -> io::Result<u64> {
        match self {
            Self::File(file) => Ok(file.metadata()?.len()),
            Self::Text(text) => Ok(text.len() as u64),
        }
    }
}

#[cfg(test)]
thread_local! {
    /// How often this thread read a piece.
    pub(super) static READS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(unix)]
fn read_file_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_file_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

/// Bytes as text; what is not UTF-8 reads as U+FFFD, as JavaScript does.
pub(super) fn text_of(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(
            String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        ),
    }
}

/// One record's text: its own, or a place in a source.
#[derive(Clone)]
pub(super) enum Line {
    Own(Arc<str>),
    Stored {
        source: Arc<Source>,
        range: Range<u64>,
    },
}

impl Line {
    pub(super) fn own(text: String) -> Self {
        Self::Own(text.into())
    }

    /// As stored.
    pub(super) fn bytes(&self) -> io::Result<Cow<'_, [u8]>> {
        match self {
            Self::Own(text) => Ok(Cow::Borrowed(text.as_bytes())),
            Self::Stored { source, range } => {
                let bytes = source.read(range.clone())?;
                if (bytes.len() as u64) < range.end - range.start {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Ok(Cow::Owned(bytes))
            }
        }
    }

    /// No more than the first bytes, as stored.
    pub(super) fn beginning(&self, limit: u64) -> io::Result<Cow<'_, [u8]>> {
        match self {
            Self::Own(_) => self.bytes(),
            Self::Stored { source, range } => {
                let end = range.end.min(range.start + limit);
                Ok(Cow::Owned(source.read(range.start..end)?))
            }
        }
    }
}

/// How much is read at once: what a processor's nearer cache holds.
const BLOCK: usize = 64 << 10;

/// A line without its end.
pub(super) struct Row<'a> {
    /// Where it starts in the source.
    pub(super) at: u64,
    /// Its beginning, if it is longer than the limit, else all of it.
    pub(super) bytes: &'a [u8],
    pub(super) len: u64,
}

impl Row<'_> {
    /// It is longer than the limit.
    pub(super) fn is_cut(&self) -> bool {
        self.len > self.bytes.len() as u64
    }
}

/// The lines of a stretch of a source in order. Holds one block, or the longest line up to a limit.
pub(super) struct Lines<'a> {
    source: &'a Source,
    end: u64,
    limit: usize,
    /// Place of the buffer's first byte in the source.
    base: u64,
    buffer: Vec<u8>,
    filled: usize,
    /// Where the next line starts in the buffer, and how much of it holds no line end.
    start: usize,
    searched: usize,
}

impl<'a> Lines<'a> {
    /// `limit`: bytes of a line that are held.
    pub(super) fn of(source: &'a Source, range: Range<u64>, limit: usize) -> Self {
        let len = usize::try_from(range.end - range.start).unwrap_or(BLOCK);
        Self {
            source,
            end: range.end,
            limit,
            base: range.start,
            buffer: vec![0; len.clamp(1, BLOCK)],
            filled: 0,
            start: 0,
            searched: 0,
        }
    }

    /// The next line.
    pub(super) fn next(&mut self) -> io::Result<Option<Row<'_>>> {
        let len = loop {
            let rest = &self.buffer[self.start..self.filled];
            if let Some(at) = memchr(b'\n', &rest[self.searched..]) {
                break self.searched + at;
            }
            self.searched = rest.len();
            if self.searched >= self.limit {
                return Ok(Some(self.cut_row()?));
            }
            if self.fill()? == 0 {
                if self.searched == 0 {
                    return Ok(None);
                }
                break self.searched;
            }
        };
        let from = self.start;
        self.start = (from + len + 1).min(self.filled);
        self.searched = 0;
        Ok(Some(Row {
            at: self.base + from as u64,
            bytes: &self.buffer[from..from + len],
            len: len as u64,
        }))
    }

    /// A line of which no more is held than there is.
    fn cut_row(&mut self) -> io::Result<Row<'_>> {
        let at = self.base + self.start as u64;
        let held = self.start..self.start + self.limit;
        let mut end = self.base + self.filled as u64;
        let mut block = vec![0; BLOCK];
        while end < self.end {
            let wanted = usize::try_from(self.end - end).map_or(BLOCK, |rest| rest.min(BLOCK));
            let read = self.source.read_at(end, &mut block[..wanted])?;
            if let Some(found) = memchr(b'\n', &block[..read]) {
                end += found as u64;
                break;
            }
            if read == 0 {
                break;
            }
            end += read as u64;
        }
        (self.base, self.start, self.filled, self.searched) = (end + 1, 0, 0, 0);
        Ok(Row {
            at,
            bytes: &self.buffer[held],
            len: end - at,
        })
    }

    /// Reads on behind what is there; 0 at the end.
    fn fill(&mut self) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.filled, 0);
            self.base += self.start as u64;
            self.filled -= self.start;
            self.start = 0;
        }
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let at = self.base + self.filled as u64;
        let wanted = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX);
        let room = &mut self.buffer[self.filled..];
        let room_len = room.len().min(wanted);
        let read = self.source.read_at(at, &mut room[..room_len])?;
        self.filled += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, range: Range<u64>) -> Vec<(u64, String)> {
        let source = Source::Text(text.as_bytes().to_vec());
        let mut lines = Lines::of(&source, range, usize::MAX);
        let mut found = Vec::new();
        while let Some(row) = lines.next().unwrap() {
            assert!(!row.is_cut());
            found.push((row.at, String::from_utf8_lossy(row.bytes).into_owned()));
        }
        found
    }

    #[test]
    fn no_more_of_a_line_is_held_than_the_limit() {
        let text = format!(
            "ab\n{}\ncd\n{}",
            "x".repeat(3 * BLOCK),
            "y".repeat(2 * BLOCK)
        );
        let source = Source::Text(text.clone().into_bytes());
        let mut lines = Lines::of(&source, 0..text.len() as u64, 10);
        let mut found = Vec::new();
        while let Some(row) = lines.next().unwrap() {
            found.push((row.at, row.bytes.len(), row.len));
        }
        let (long, longer) = (3 * BLOCK as u64, 2 * BLOCK as u64);
        assert_eq!(
            found,
            [
                (0, 2, 2),
                (3, 10, long),
                (4 + long, 2, 2),
                (7 + long, 10, longer)
            ]
        );
    }

    #[test]
    fn lines_come_with_their_places_whatever_their_length() {
        let long = "x".repeat(3 * BLOCK + 7);
        let text = format!("a\n\n{long}\nb");
        let wanted = [
            (0, "a".to_owned()),
            (2, String::new()),
            (3, long.clone()),
            (4 + long.len() as u64, "b".to_owned()),
        ];
        assert_eq!(lines(&text, 0..text.len() as u64), wanted);
        assert_eq!(lines("a\nb\n", 2..4), [(2, "b".to_owned())]);
        assert!(lines("", 0..0).is_empty());
    }

    #[test]
    fn a_source_that_became_shorter_ends_early() {
        assert_eq!(lines("ab", 0..100), [(0, "ab".to_owned())]);
        let source = Source::Text(b"abc".to_vec());
        assert_eq!(source.read(1..9).unwrap(), b"bc");
    }
}

//! The sessions of a folder as a list (`kernel.md` S5). Every file is skimmed whole, but only the
//! lines that are shown are read. Best effort: a file that is no session is passed over.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::UNIX_EPOCH;

use memchr::memmem;
use pliant_sdk::message::Message;

use super::body::{EntryBody, EntryKind};
use super::head::Head;
use super::header::Header;
use super::scan::Scanner;
use super::skim;
use super::source::{Lines, Source, text_of};
use super::store::{peek, session_files};
use super::time::ms_from_iso;

/// A session in a list (S5).
#[derive(Debug, Clone)]
pub struct Listed {
    /// The file.
    pub path: PathBuf,
    /// Its first record.
    pub header: Header,
    /// The latest name, if it was not cleared.
    pub name: Option<String>,
    /// The first text of the user.
    pub first_message: Option<String>,
    /// `message` entries of any role.
    pub message_count: usize,
    /// Time of the last user or assistant message, else of the header, else of the file. Unix
    /// milliseconds.
    pub modified_ms: i64,
}

/// The sessions of a folder, the latest first (S5).
#[must_use]
pub fn list(dir: &Path) -> Vec<Listed> {
    list_files(&session_files(dir))
}

/// The sessions among these files, the latest first.
#[must_use]
pub fn list_files(files: &[PathBuf]) -> Vec<Listed> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            found.extend(listed(path));
        }
        found
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut listed = thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(files.len()).min(4))
            .map(|_| scope.spawn(work))
            .collect();
        let mut all = work();
        // A thread that failed leaves its sessions out.
        all.extend(
            others
                .into_iter()
                .filter_map(|thread| thread.join().ok())
                .flatten(),
        );
        all
    });
    // The path decides between equal times, so that a list stays the same from look to look.
    listed.sort_by(|a, b| (b.modified_ms, &b.path).cmp(&(a.modified_ms, &a.path)));
    listed
}

/// What a pass over the lines finds.
#[derive(Default)]
struct Found {
    name: Option<Range<u64>>,
    first_message: Option<String>,
    message_count: usize,
    /// The last messages, the latest last.
    last: VecDeque<Range<u64>>,
}

/// So many of the last messages are looked into for the time of the conversation, of those that do
/// not say at their beginning that they are something else.
const LAST: usize = 16;

/// A line of which more would be held is counted, but not looked into.
const LONGEST: usize = 8 << 20;

/// So many of the first messages are looked into for the words of the user.
const FIRST: usize = 64;

fn listed(path: &Path) -> Option<Listed> {
    let header = peek(path)?;
    let source = Source::File(File::open(path).ok()?);
    let found = pass(&source, header.version())?;
    let name = found.name.and_then(
        |range| match body(&source, EntryKind::SessionInfo, range)? {
            EntryBody::SessionInfo(info) => Some(info.name).filter(|name| !name.is_empty()),
            _ => None,
        },
    );
    let said = found.last.into_iter().rev().find_map(|range| {
        let EntryBody::Message(message) = body(&source, EntryKind::Message, range)? else {
            return None;
        };
        match &*message {
            Message::User(user) => Some(user.timestamp),
            Message::Assistant(answer) => Some(answer.timestamp),
            _ => None,
        }
    });
    let modified_ms = said
        .filter(|time| *time != 0)
        .or_else(|| ms_from_iso(&header.timestamp))
        .or_else(|| written_ms(path))
        .unwrap_or(0);
    Some(Listed {
        path: path.to_owned(),
        name,
        first_message: found.first_message,
        message_count: found.message_count,
        modified_ms,
        header,
    })
}

fn pass(source: &Source, version: f64) -> Option<Found> {
    let mut lines = Lines::of(source, 0..source.size().ok()?, LONGEST);
    let mut scanner = Scanner {
        version: Some(version),
    };
    let mut found = Found::default();
    while let Some(row) = lines.next().ok()? {
        let (at, line) = (row.at, row.bytes.trim_ascii_end());
        match skim::head(line) {
            Some(head) if row.is_cut() => {
                found.message_count += usize::from(head.kind == "message")
            }
            // Whether its brackets match does not matter here.
            Some(head) if line.ends_with(b"}") => found.take(head.kind, at, line),
            _ if row.is_cut() => {}
            _ => {
                let text = text_of(Cow::Borrowed(line));
                let pieces = scanner.line(&text, 0..text.len(), 1).unwrap_or_default();
                for piece in pieces {
                    let named = |head: &Head<'_>| version < 2.0 || head.id.text().is_some();
                    let Some(head) = piece.head.filter(named) else {
                        continue;
                    };
                    let at = at + piece.range.start as u64;
                    let kind = head.kind.text().unwrap_or_default();
                    found.take(kind, at, text[piece.range].as_bytes());
                }
            }
        }
    }
    Some(found)
}

impl Found {
    fn take(&mut self, kind: &str, at: u64, line: &[u8]) {
        let range = at..at + line.len() as u64;
        match kind {
            "session_info" => self.name = Some(range),
            "message" => {
                self.message_count += 1;
                if self.first_message.is_none() && self.message_count <= FIRST {
                    self.first_message = user_text(&text_of(Cow::Borrowed(line)));
                }
                if may_be_said(line) {
                    if self.last.len() == LAST {
                        self.last.pop_front();
                    }
                    self.last.push_back(range);
                }
            }
            _ => {}
        }
    }
}

/// Whether it may be of the user or the assistant. The role stands first where pi and pliant write
/// it; any other place is for the reader of the message.
fn may_be_said(line: &[u8]) -> bool {
    const ROLE: &[u8] = b"\"message\":{\"role\":\"";
    let start = &line[..line.len().min(512)];
    match memmem::find(start, ROLE) {
        Some(at) => {
            let role = &start[at + ROLE.len()..];
            role.starts_with(b"user\"") || role.starts_with(b"assistant\"")
        }
        None => true,
    }
}

fn user_text(line: &str) -> Option<String> {
    let EntryBody::Message(message) = EntryBody::read(EntryKind::Message, line) else {
        return None;
    };
    match &*message {
        Message::User(user) => Some(user.content.joined_text(" ")).filter(|text| !text.is_empty()),
        _ => None,
    }
}

fn body(source: &Source, kind: EntryKind, range: Range<u64>) -> Option<EntryBody> {
    let bytes = source.read(range).ok()?;
    Some(EntryBody::read(kind, &text_of(bytes.into())))
}

fn written_ms(path: &Path) -> Option<i64> {
    let written = fs::metadata(path).ok()?.modified().ok()?;
    let since = written.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

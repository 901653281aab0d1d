//! Looking at every line of a file with care, and then at the tree that they make.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::str;
use std::sync::Arc;

use super::{Oddity, OddityKind};
use crate::tree::body::EntryKind;
use crate::tree::head::Head;
use crate::tree::scan::Scanner;
use crate::tree::skim;
use crate::tree::source::text_of;
use crate::tree::{Entry, EntryBody, EntryId, Ids, SessionTree, json};

/// What was found, by kind.
#[derive(Default)]
struct Findings {
    lines: BTreeMap<OddityKind, Vec<usize>>,
    /// Version 1, whose entries have no ids.
    old: bool,
    /// An entry has one.
    named: bool,
}

/// So many lines of a kind are told.
const MOST_LINES: usize = 100_000;

impl Findings {
    fn add(&mut self, kind: OddityKind, line: usize) {
        let lines = self.lines.entry(kind).or_default();
        if lines.last() != Some(&line) && lines.len() < MOST_LINES {
            lines.push(line);
        }
    }

    fn add_whole(&mut self, kind: OddityKind) {
        self.lines.entry(kind).or_default();
    }
}

pub(super) fn examine(path: &Path, bytes: &[u8], ids: &Ids) -> Vec<Oddity> {
    let mut found = Findings::default();
    if look_at_lines(bytes, &mut found)
        && let Ok(tree) = SessionTree::from_bytes(path, bytes.to_vec(), ids.clone())
    {
        if found.old && found.named {
            let line = found.lines.remove(&OddityKind::OldVersion);
            found
                .lines
                .extend(line.map(|line| (OddityKind::NoVersion, line)));
        }
        // Migration gives entries names and parents, so an old file has no other troubles here.
        if !found.lines.contains_key(&OddityKind::OldVersion) {
            look_at_tree(&tree, &mut found);
        }
    }
    let mut oddities: Vec<Oddity> = found
        .lines
        .into_iter()
        .map(|(kind, lines)| Oddity { kind, lines })
        .collect();
    oddities
        .iter_mut()
        .for_each(|oddity| oddity.lines.sort_unstable());
    oddities
}

/// Whether it is a session.
fn look_at_lines(bytes: &[u8], found: &mut Findings) -> bool {
    use OddityKind as Kind;
    if bytes.is_empty() {
        found.add_whole(Kind::Empty);
        return false;
    }
    if bytes.starts_with("\u{feff}".as_bytes()) {
        found.add(Kind::ByteOrderMark, 1);
    }
    let mut scanner = Scanner::default();
    let mut last = 0;
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let number = at + 1;
        if line.is_empty() {
            continue;
        }
        last = number;
        if line.ends_with(b"\r") {
            found.add(Kind::CarriageReturns, number);
        }
        if line.contains(&0) {
            found.add(Kind::ZeroBytes, number);
        }
        if str::from_utf8(line).is_err() {
            found.add(Kind::NotUtf8, number);
        }
        let text = text_of(line.into());
        let headless = scanner.version.is_none();
        let mut pieces = scanner.line(&text, 0..text.len(), number);
        if pieces.is_err() {
            // Looked at all the same: a copy can save entries without a header.
            found.add(Kind::NoHeader, number);
            scanner.version = Some(3.0);
            pieces = scanner.line(&text, 0..text.len(), number);
        }
        let pieces = pieces.unwrap_or_default();
        if pieces.iter().filter(|piece| piece.head.is_some()).count() > 1 {
            found.add(Kind::Glued, number);
        }
        let mut is_header = headless;
        for piece in pieces {
            let Some(head) = &piece.head else {
                // An entry all the same, if it is whole but for its body; see the tree.
                if headless || skim::whole(text[piece.range].as_bytes()).is_none() {
                    found.add(Kind::Damaged, number);
                }
                continue;
            };
            let header = std::mem::take(&mut is_header) && head.is_header();
            if header {
                look_at_version(head, number, found);
            } else {
                look_at_record(head, number, found);
            }
            if serde_json::from_str::<serde_json::Value>(&text[piece.range.clone()]).is_err() {
                found.add(Kind::Lenient, number);
            }
        }
    }
    if bytes.last() != Some(&b'\n') {
        found.add(Kind::NoLineEnd, last);
    }
    if scanner.version.is_none() {
        found.add_whole(Kind::NoRecords);
    }
    match found.lines.remove(&Kind::NoHeader) {
        None => scanner.version.is_some(),
        Some(line) => {
            let kind = if found.named {
                Kind::NoHeader
            } else {
                Kind::NotASession
            };
            if kind == Kind::NotASession {
                found.lines.clear();
            }
            found.lines.insert(kind, line);
            false
        }
    }
}

fn look_at_version(head: &Head<'_>, line: usize, found: &mut Findings) {
    if head.file_version() < 3.0 {
        found.add(OddityKind::OldVersion, line);
        found.old = head.file_version() < 2.0;
    } else if head.file_version() > 3.0 {
        found.add(OddityKind::NewVersion, line);
    }
}

fn look_at_record(head: &Head<'_>, line: usize, found: &mut Findings) {
    match (head.kind.text(), head.id.text()) {
        (Some("session"), _) => found.add(OddityKind::SecondHeader, line),
        (Some(_), Some(_)) => found.named = true,
        (Some(_), None) if found.old => {}
        _ => found.add(OddityKind::Nameless, line),
    }
}

fn look_at_tree(tree: &SessionTree, found: &mut Findings) {
    use OddityKind as Kind;
    // Entries that stand for unreadable ones have no line of their own.
    let is_bridge = |entry: &&Arc<Entry>| entry.is_bridge();
    let bridges: HashSet<&EntryId> = tree
        .entries()
        .iter()
        .filter(is_bridge)
        .map(|entry| entry.id())
        .collect();
    let with_lines = tree.entries().iter().filter(|entry| !is_bridge(entry));
    let with_lines: Vec<(usize, &Entry)> = with_lines
        .map(|entry| (entry.at_line as usize, &**entry))
        .collect();
    let mut seen: HashMap<&EntryId, usize> = HashMap::new();
    for (line, entry) in &with_lines {
        if seen.insert(entry.id(), *line).is_some() {
            found.add(Kind::DuplicateId, *line);
        }
        match entry.parent() {
            Some(parent) if bridges.contains(parent) => found.add(Kind::LostParent, *line),
            Some(parent) if tree.entry(parent).is_none() => found.add(Kind::MissingParent, *line),
            _ => {}
        }
        if entry.kind() == EntryKind::Other {
            if entry.is_gone() {
                continue;
            }
            found.add(Kind::UnknownType, *line);
        } else if entry.is_unreadable() || json::fields(&entry.raw()).is_none() {
            found.add(Kind::Unreadable, *line);
        }
        if entry.timestamp_ms() == 0 {
            found.add(Kind::NoTime, *line);
        }
        if target(entry).is_some_and(|target| tree.entry(&target).is_none()) {
            found.add(Kind::MissingTarget, *line);
        }
    }
    let nodes = tree.nodes();
    for root in &nodes.roots {
        let entry = &nodes.all[*root].entry;
        let cut = entry
            .parent()
            .is_some_and(|parent| tree.entry(parent).is_some());
        if cut && let Some(line) = seen.get(entry.id()) {
            found.add(Kind::Cycle, *line);
        }
    }
}

/// The entry that this one is about.
fn target(entry: &Entry) -> Option<EntryId> {
    match entry.kind() {
        EntryKind::Label | EntryKind::ContextEdit | EntryKind::Compaction => {}
        _ => return None,
    }
    match entry.body() {
        EntryBody::Label(change) => Some(change.target_id.clone()),
        EntryBody::ContextEdit(edit) => Some(edit.target_id.clone()),
        EntryBody::Compaction(compaction) => compaction.first_kept_entry_id.clone(),
        _ => None,
    }
}

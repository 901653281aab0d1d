//! A copy of a session file in which nothing is odd that can be mended. It is a session of its own,
//! which names the damaged one as its parent.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::header::Header;
use super::super::scan::Scanner;
use super::super::source::{Line, text_of};
use super::super::{
    Entry, EntryId, Ids, Nodes, Place, SessionTree, TreeError, json, opening, store,
};

/// The working directory of a copy.
#[derive(Debug, Clone)]
pub enum CopyCwd {
    /// That of the session, or this one if its header is lost or names none.
    IfLost(PathBuf),
    /// This one.
    Always(PathBuf),
}

impl CopyCwd {
    fn own(&self) -> &Path {
        match self {
            Self::IfLost(cwd) | Self::Always(cwd) => cwd,
        }
    }

    fn of<'a>(&'a self, said: &'a Path) -> &'a Path {
        match self {
            Self::IfLost(_) if !said.as_os_str().is_empty() => said,
            Self::IfLost(cwd) | Self::Always(cwd) => cwd,
        }
    }
}

/// Writes a mended copy beside the file and answers where it is.
///
/// # Errors
/// [`TreeError::Read`], [`TreeError::NotASession`] when nothing can be saved, or a failed write.
pub fn write_mended_copy(path: &Path, cwd: &CopyCwd, ids: &Ids) -> Result<PathBuf, TreeError> {
    let bytes = opening::read_bytes(path)?;
    let bytes = named(&bytes, ids).unwrap_or(bytes);
    let source = match SessionTree::from_bytes(path, bytes.clone(), ids.clone()) {
        Err(TreeError::NotASession { .. }) => headed(path, cwd.own(), bytes, ids)?,
        read => read?,
    };
    let old = source.header();
    let header = old.successor(ids.session_id(), ids.now_ms(), cwd.of(&old.cwd), Some(path));
    let place = Place::Pending(path.with_file_name(store::file_name(&header)));
    let mut entries = mended(&source);
    entries.extend(source.standing());
    let mut copy = SessionTree::with_entries(header, entries, place, ids.clone());
    copy.begin_file(None)?;
    Ok(copy.path().map(Path::to_owned).unwrap_or_default())
}

/// The file with ids for the entries that have none, or none that is text: each follows the entry
/// before it. `None` where there is nothing to name, as in version 1, which is migrated.
fn named(bytes: &[u8], ids: &Ids) -> Option<Vec<u8>> {
    let mut scanner = Scanner::default();
    let (mut out, mut changed) = (Vec::with_capacity(bytes.len()), false);
    let (mut is_old, mut any_named) = (false, false);
    let mut last: Option<EntryId> = None;
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let text = text_of(line.into());
        let pieces = scanner.line(&text, 0..text.len(), at + 1).ok()?;
        is_old = scanner.version.is_some_and(|version| version < 2.0);
        let only = match &pieces[..] {
            [only] => only.head.as_ref().filter(|head| !head.is_header()),
            _ => None,
        };
        let named = only
            .and_then(|head| head.id.text())
            .filter(|id| !id.is_empty());
        if let Some(id) = named {
            (last, any_named) = (Some(id.into()), true);
        } else if only.is_some_and(|head| head.kind.text().is_some())
            && let Some(mut object) = json::RawObject::parse(&text)
        {
            // Of so many bits that no two are the same.
            let id = EntryId::from(ids.session_id().as_str());
            object.set("id", &id, "type");
            object.set("parentId", last.as_ref(), "id");
            out.extend(object.to_line().into_bytes());
            out.push(b'\n');
            (last, changed) = (Some(id), true);
            continue;
        }
        out.extend(line);
        out.push(b'\n');
    }
    // Version 1 knew no ids.
    (changed && (any_named || !is_old)).then_some(out)
}

/// The file read with a header of our own before it.
fn headed(path: &Path, cwd: &Path, bytes: Vec<u8>, ids: &Ids) -> Result<SessionTree, TreeError> {
    let header = Header::new(ids.session_id(), ids.now_ms(), cwd, None);
    let mut text = header.line()?.into_bytes();
    text.push(b'\n');
    text.extend(bytes);
    let tree = SessionTree::from_bytes(path, text, ids.clone())?;
    if tree.entries().is_empty() {
        return Err(TreeError::NotASession {
            path: path.to_owned(),
            reason: "it holds no entry that a copy could save".to_owned(),
        });
    }
    Ok(tree)
}

/// Whether every parent that exists stands before its children, of the entries that count.
fn parents_come_first(source: &SessionTree, nodes: &Nodes) -> bool {
    let mut seen = HashSet::new();
    nodes.all.iter().all(|node| {
        seen.insert(node.entry.id());
        let parent = node.entry.parent();
        parent.is_none_or(|parent| seen.contains(parent) || source.entry(parent).is_none())
    })
}

/// The entries that count, each with a strict line, under parents that exist.
fn mended(source: &SessionTree) -> Vec<Arc<Entry>> {
    let nodes = source.nodes();
    let roots: HashSet<&EntryId> = nodes
        .roots
        .iter()
        .map(|root| nodes.all[*root].entry.id())
        .collect();
    let backwards = parents_come_first(source, &nodes);
    let mut entries: Vec<Arc<Entry>> = Vec::with_capacity(nodes.all.len());
    for node in &nodes.all {
        let entry = &node.entry;
        let parent = match entry.parent() {
            // Only backwards, or the copy could go in circles.
            Some(parent) if source.entry(parent).is_none() => entries
                .last()
                .filter(|_| backwards)
                .map(|before| before.id().clone()),
            parent => parent.filter(|_| !roots.contains(entry.id())).cloned(),
        };
        let parent = parent.as_ref();
        // What cannot be read is said to be so, also where it is JSON.
        let readable = Some(entry).filter(|entry| !entry.is_unreadable());
        let strict = readable.and_then(|entry| json::strict(&entry.raw()));
        entries.push(match strict {
            None => Arc::new(Entry::gone(
                entry.id().clone(),
                parent.cloned(),
                entry.timestamp(),
            )),
            // The bytes are compared: what is no text reads as another text.
            Some(line)
                if parent == entry.parent()
                    && entry
                        .line
                        .bytes()
                        .is_ok_and(|bytes| *bytes == *line.as_bytes()) =>
            {
                Arc::clone(entry)
            }
            Some(line) => {
                let strict = entry.with_line(Line::own(line));
                Arc::new(strict.rechained(parent, None).unwrap_or(strict))
            }
        });
    }
    entries
}

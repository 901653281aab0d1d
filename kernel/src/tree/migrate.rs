//! Files of versions 1 and 2 brought to version 3 (`kernel.md` S19), as a function from text to
//! text. What could not be read stays in place, fields that are not touched stay byte for byte.

use std::collections::HashSet;

use serde_json::Value;

use super::EntryId;
use super::json::{RawObject, raw_text};
use super::scan::{Piece, scan};

/// The text of a version 3 file with the same content. `new_id` is told which ids are taken.
pub(super) fn migrate(text: &str, new_id: impl Fn(&dyn Fn(&str) -> bool) -> EntryId) -> String {
    let mut pieces = scan(text).unwrap_or_default();
    let header = pieces.iter().position(|piece| piece.head.is_some());
    let version = header
        .and_then(|at| pieces[at].head.as_ref())
        .map_or(3.0, |head| head.file_version());
    // On a line of its own, what stood before the header could be taken for a first record.
    if let Some(at) = header {
        pieces[..=at].rotate_right(1);
    }
    let mut taken: HashSet<EntryId> = HashSet::new();
    // The position in this list is what version 1 stores as an index; the header is number 0.
    let mut ids: Vec<Option<EntryId>> = Vec::new();
    for piece in &pieces {
        let Some(head) = &piece.head else { continue };
        ids.push((head.kind.text() != Some("session")).then(|| {
            let id = new_id(&|id| taken.contains(id));
            taken.insert(id.clone());
            id
        }));
    }
    let mut out = String::with_capacity(text.len() + pieces.len() * 64);
    let (mut at, mut previous) = (0, None);
    for piece in &pieces {
        let line = &text[piece.range.clone()];
        match migrated(piece, line, version, at, &ids, previous) {
            Some(line) => out.push_str(&line),
            None => out.push_str(line),
        }
        out.push('\n');
        if piece.head.is_some() {
            previous = ids.get(at).and_then(Option::as_ref).or(previous);
            at += 1;
        }
    }
    out
}

/// One record; `None` when it stays as it is.
fn migrated(
    piece: &Piece<'_>,
    line: &str,
    version: f64,
    at: usize,
    ids: &[Option<EntryId>],
    previous: Option<&EntryId>,
) -> Option<String> {
    let head = piece.head.as_ref()?;
    let mut object = RawObject::parse(line)?;
    let kind = head.kind.text()?;
    if kind == "session" {
        object.set("version", 3, "type");
        return Some(object.to_line());
    }
    if version < 2.0 {
        object.set("id", ids.get(at)?.as_ref(), "type");
        object.set("parentId", previous, "id");
        if let Some(index) = object
            .get("firstKeptEntryIndex")
            .and_then(|raw| raw.get().parse::<usize>().ok())
            && let Some(kept) = ids.get(index).and_then(Option::as_ref)
        {
            object.set("firstKeptEntryId", kept, "firstKeptEntryIndex");
        }
        object.remove("firstKeptEntryIndex");
    }
    if kind == "message"
        && let Some(message) = object
            .get("message")
            .and_then(|raw| hook_message_as_custom(raw.get()))
    {
        object.set(
            "message",
            serde_json::value::RawValue::from_string(message).ok()?,
            "timestamp",
        );
    }
    Some(object.to_line())
}

/// Version 2 called the messages of extensions after the hooks that sent them.
fn hook_message_as_custom(message: &str) -> Option<String> {
    let mut message = RawObject::parse(message)?;
    if raw_text(message.get("role")?)? != "hookMessage" {
        return None;
    }
    message.set("role", Value::from("custom"), "");
    Some(message.to_line())
}

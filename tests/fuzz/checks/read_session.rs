//! What holds for any bytes that somebody calls a session file (`kernel.md` S13–S17, S20–S24, S30,
//! invariants 1, 4, 6, 7, 8 and 12). Used by the fuzz target, by the test of its corpus and by
//! property tests.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use pliant_kernel::tree::{self, CopyCwd, EntryId, Ids, Oddity, OddityKind, SessionTree};
use pliant_sdk::message::Message;
use serde_json::Value;

/// Opens the bytes as a session in this folder, looks at everything, appends, and opens it again.
///
/// # Panics
/// When one of the rules is broken.
pub fn check(bytes: &[u8], folder: &Path) {
    let path = folder.join("session.jsonl");
    fs::write(&path, bytes).expect("the folder is writable");
    check_doctor(bytes, &path);
    match open(&path) {
        Some(tree) => check_open(tree, bytes, &path, folder),
        None => assert_eq!(read(&path), bytes, "a refused file was changed"),
    }
}

fn check_open(mut tree: SessionTree, bytes: &[u8], path: &Path, folder: &Path) {
    let opened = read(path);
    if is_current_version(bytes) {
        assert_eq!(opened, bytes, "opening changed something");
    }
    check_entries(&tree);
    check_nodes(&tree);
    check_context(&tree);
    check_export(&tree, folder);

    let (leaf, count, damage) = (
        tree.leaf().cloned(),
        tree.entries().len(),
        tree.damage().to_vec(),
    );
    let message = Arc::new(Message::user("and \"then\"?\n", 1));
    let entry = tree.append_message(message).expect("a message fits");
    let entry = Arc::clone(entry);
    assert!(entry.parent() == leaf.as_ref());
    let appended = read(path);
    let line = appended.strip_prefix(&*opened).expect("bytes were changed");
    // A last line without its end gets it together with the next one.
    let end = if opened.ends_with(b"\n") { "" } else { "\n" };
    assert_eq!(line, format!("{end}{}\n", entry.raw()).as_bytes());

    let context = tree.context().to_vec();
    drop(tree);
    let again = open(path).expect("it was opened before");
    assert_eq!(read(path), appended, "opening again changed something");
    assert_eq!(again.leaf(), Some(entry.id()));
    assert_eq!(again.entries().len(), count + 1);
    assert_eq!(again.damage(), damage);
    let read = again.entry(entry.id()).expect("it was appended");
    assert_eq!((read.body(), read.parent()), (entry.body(), leaf.as_ref()));
    assert_eq!(again.context(), context);
}

/// A doctor only reads, and what it mended is whole.
fn check_doctor(bytes: &[u8], path: &Path) {
    let (cwd, ids) = (CopyCwd::IfLost("/work/demo".into()), Ids::system());
    let _ = tree::examine(path, &ids);
    if let Ok(copy) = tree::write_mended_copy(path, &cwd, &ids) {
        let left = tree::examine(&copy, &ids).expect("the copy was written");
        // No copy can know what was meant.
        let stays = |odd: &Oddity| {
            use OddityKind::{MissingTarget, NewVersion, NoTime, UnknownType, Unreadable};
            matches!(
                odd.kind,
                MissingTarget | NewVersion | NoTime | UnknownType | Unreadable
            )
        };
        assert!(left.iter().all(stays), "the copy has {left:?}");
        let tree = SessionTree::read(&copy, ids).expect("a copy is a session");
        assert!(tree.damage().is_empty());
        fs::remove_file(copy).expect("the copy was written");
    }
    assert_eq!(read(path), bytes, "the doctor changed the file");
}

/// Ids resolve, paths end.
fn check_entries(tree: &SessionTree) {
    let entries = tree.entries();
    // A torn last record says where its writer was.
    let last = entries.last().map(|entry| entry.id());
    assert!(tree.leaf() == last || !tree.damage().is_empty());
    for entry in entries {
        let current = tree.entry(entry.id()).expect("every id is known");
        assert_eq!(current.id(), entry.id());
        assert!(!entry.raw().contains('\n'));
        let _ = (entry.body(), entry.timestamp());
    }
    // Every path of a deep session would take forever; some do as well.
    let step = entries.len() / 20 + 1;
    for entry in entries.iter().step_by(step) {
        let path = tree.get_branch(entry.id());
        let ids: HashSet<&EntryId> = path.iter().map(|entry| entry.id()).collect();
        assert_eq!(ids.len(), path.len(), "a path comes by an entry twice");
        assert_eq!(path.last().map(|entry| entry.id()), Some(entry.id()));
        for pair in path.windows(2) {
            assert_eq!(pair[1].parent(), Some(pair[0].id()));
        }
    }
    let _ = (tree.usage_totals(), tree.settings(), tree.name());
}

/// Every id stands exactly once in the forest.
fn check_nodes(tree: &SessionTree) {
    let ids: HashSet<&EntryId> = tree.entries().iter().map(|entry| entry.id()).collect();
    let nodes = tree.nodes();
    assert_eq!(nodes.all.len(), ids.len());
    let mut seen = vec![false; nodes.all.len()];
    let mut next: Vec<usize> = nodes.roots.clone();
    while let Some(number) = next.pop() {
        assert!(!std::mem::replace(&mut seen[number], true), "met twice");
        next.extend(&nodes.all[number].children);
    }
    assert!(seen.iter().all(|seen| *seen), "a node is not in the forest");
}

fn check_context(tree: &SessionTree) {
    let projection = tree.projection();
    let mut end = 0;
    for selected in projection.sources() {
        assert_eq!(selected.range.start, end);
        end = selected.range.end;
    }
    assert_eq!(end, tree.context().len());
    assert_eq!(tree.projection_at(tree.leaf()).messages(), tree.context());
    let is_summary = |message: &&Arc<Message>| matches!(***message, Message::CompactionSummary(_));
    let before = tree.context().iter().take_while(|m| !is_summary(m));
    let before: Vec<&str> = before.map(|message| message.role()).collect();
    match tree.context().iter().filter(is_summary).count() {
        0 => {}
        1 => assert!(matches!(before[..], [] | ["system"]), "{before:?}"),
        count => panic!("{count} summaries"),
    }
}

/// The branch alone is a session with the same context, and its lines are the same but for their
/// parents.
fn check_export(tree: &SessionTree, folder: &Path) {
    let text = tree.export_jsonl().expect("it was read from JSON");
    let path = folder.join("export.jsonl");
    fs::write(&path, &text).expect("the folder is writable");
    let exported = SessionTree::read(&path, Ids::system()).expect("an export is a session");
    assert_eq!(exported.entries().len(), tree.path_to_leaf().len());
    for (exported, entry) in exported.entries().iter().zip(tree.path_to_leaf()) {
        assert_eq!(exported.id(), entry.id());
        assert_eq!(exported.body(), entry.body());
    }
    assert_eq!(exported.context(), tree.context());
    let again = exported.export_jsonl().expect("it was exported before");
    assert_eq!(again, text, "an export of an export is another");
}

/// Older versions are written anew on opening, and an empty file gets a header (S15, S19). `false`
/// where it takes more than a glance to see which record is the header.
fn is_current_version(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let header = text.lines().find(|line| line.contains("session"));
    let header = header.and_then(|line| serde_json::from_str::<Value>(line).ok());
    header.is_some_and(|header| {
        header["type"] == "session" && header["version"].as_f64().is_some_and(|v| v >= 3.0)
    })
}

fn open(path: &Path) -> Option<SessionTree> {
    SessionTree::open(path, Path::new("/work/demo"), Ids::system()).ok()
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).expect("the file was written")
}

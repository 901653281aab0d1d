//! Sessions made from a session; the old one stays as it is (S27–S29).

use std::fs;
use std::sync::Arc;

use pliant_kernel::tree::{Entry, EntryBody, EntryId, EntryKind, Position, SessionTree, TreeError};
use pliant_sdk::message::Message;
use proptest::sample::Index;
use serde_json::Value;

use crate::session::{Session, is_conversation, line};
use crate::{cwd, ids};

/// S28, `before`
pub fn before(session: &mut Session, at: Index) {
    let Some(entry) = session.pick(at) else {
        return;
    };
    let look = session.look();
    let fork = session.tree.fork(entry.id(), Position::Before);
    if !session.is_on_disk() {
        assert!(matches!(fork, Err(TreeError::NotOnDisk)));
        return;
    }
    let Some(Message::User(user)) = entry.message().map(|message| &**message) else {
        assert!(fork.is_err());
        assert_eq!(session.look(), look);
        return;
    };
    let fork = fork.unwrap();
    assert_eq!(fork.editor_text, Some(user.content.joined_text("")));
    match entry.parent() {
        Some(parent) => check_branched(session, &fork.tree, parent),
        None => {
            assert!(fork.tree.entries().is_empty());
            check_header(session, &fork.tree);
        }
    }
    assert_eq!(session.look(), look);
    remove(fork.tree);
}

/// S28, `at`
pub fn at(session: &mut Session, at: Index) {
    let Some(entry) = session.pick(at) else {
        return;
    };
    let look = session.look();
    match session.tree.fork(entry.id(), Position::At) {
        Ok(fork) => {
            check_branched(session, &fork.tree, entry.id());
            remove(fork.tree);
        }
        Err(error) => {
            assert!(matches!(error, TreeError::NotOnDisk) && !session.is_on_disk());
        }
    }
    assert_eq!(session.look(), look);
}

/// S29
pub fn copy_into(session: &mut Session) {
    if !session.is_on_disk() {
        return;
    }
    let look = session.look();
    let folder = session.folder.path().join("elsewhere");
    let copy = SessionTree::copy_into(&session.path, &folder, cwd(), None, ids(99)).unwrap();
    let lines = |tree: &SessionTree| tree.entries().iter().map(line).collect::<Vec<_>>();
    assert_eq!(lines(&copy), lines(&session.tree));
    check_header(session, &copy);
    check_file(&copy);
    assert_eq!(session.look(), look);
    remove(copy);
}

/// S27
fn check_branched(session: &Session, fork: &SessionTree, leaf: &EntryId) {
    check_header(session, fork);
    let path = session.path_to(Some(leaf));
    let kept: Vec<&Arc<Entry>> = path
        .iter()
        .filter(|e| e.kind() != EntryKind::Label)
        .collect();
    let labelled = kept
        .iter()
        .filter_map(|e| Some((e.id(), session.tree.label(e.id())?)));
    let (copied, labels) = fork.entries().split_at(kept.len());

    let mut parent = None;
    for (copy, entry) in copied.iter().zip(&kept) {
        assert_eq!((copy.id(), copy.parent()), (entry.id(), parent));
        assert_eq!(copy.timestamp(), entry.timestamp());
        assert_eq!(fields(copy), fields(entry));
        if let EntryBody::Compaction(compaction) = entry.body() {
            let first_kept = compaction.first_kept_entry_id.as_ref().unwrap();
            assert_eq!(first_kept_of(copy), follower(&path, first_kept));
        }
        parent = Some(copy.id());
    }
    let mut found = Vec::new();
    for label in labels {
        let EntryBody::Label(change) = label.body() else {
            panic!("{label:?}");
        };
        assert_eq!(label.parent(), parent);
        parent = Some(label.id());
        let text = change.label.clone().unwrap();
        found.push((change.target_id.clone(), text, label.timestamp().to_owned()));
    }
    let wanted = labelled.map(|(id, l)| (id.clone(), l.text.clone(), l.timestamp.clone()));
    assert_eq!(found, wanted.collect::<Vec<_>>());

    assert_eq!(fork.leaf(), fork.entries().last().map(|entry| entry.id()));
    let there = session.tree.projection_at(Some(leaf));
    assert_eq!(fork.context(), there.messages());
    assert_eq!(
        fork.is_on_disk(),
        copied.iter().any(|entry| is_conversation(entry))
    );
    check_file(fork);
}

fn check_header(session: &Session, fork: &SessionTree) {
    assert_ne!(fork.id(), session.tree.id());
    assert_eq!(fork.header().cwd, cwd());
    assert_eq!(fork.header().parent_session.as_ref(), Some(&session.path));
}

/// The file holds what memory holds.
fn check_file(tree: &SessionTree) {
    let path = tree.path().unwrap();
    assert_eq!(path.exists(), tree.is_on_disk());
    if tree.is_on_disk() {
        let again = SessionTree::read(path, ids(98)).unwrap();
        assert!(
            again
                .entries()
                .iter()
                .map(line)
                .eq(tree.entries().iter().map(line))
        );
        assert_eq!(again.context(), tree.context());
        assert_eq!(again.leaf(), tree.leaf());
    }
}

/// Without what a fork may change.
fn fields(entry: &Entry) -> Value {
    let mut fields: Value = serde_json::from_slice(entry.raw().as_bytes()).unwrap();
    fields["parentId"] = Value::Null;
    if entry.kind() == EntryKind::Compaction {
        fields["firstKeptEntryId"] = Value::Null;
    }
    fields
}

fn first_kept_of(entry: &Entry) -> Option<EntryId> {
    match entry.body() {
        EntryBody::Compaction(compaction) => compaction.first_kept_entry_id.clone(),
        _ => None,
    }
}

/// The entry itself, or what followed it if it is a label.
fn follower(path: &[Arc<Entry>], id: &EntryId) -> Option<EntryId> {
    let Some(at) = path.iter().position(|entry| entry.id() == id) else {
        return Some(id.clone());
    };
    let follower = path[at..].iter().find(|e| e.kind() != EntryKind::Label);
    follower.map(|entry| entry.id().clone())
}

fn remove(tree: SessionTree) {
    let path = tree.path().unwrap().to_owned();
    let written = tree.is_on_disk();
    drop(tree);
    if written {
        fs::remove_file(path).unwrap();
    }
}

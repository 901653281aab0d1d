//! Any sequence of operations keeps the invariants, after every single one of them.

use std::fs;
use std::sync::Arc;

use pliant_kernel::tree::{
    BranchSummary, Compaction, ContextEdit, EntryBody, EntryId, EntryKind, LabelChange, OtherEntry,
    Replacement, SessionInfoEntry, TreeError,
};
use pliant_sdk::message::{AssistantMessage, CompactionSummaryMessage, Message, StopReason};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Map;

use crate::operation::{Operation, Refusal, operations};
use crate::session::Session;
use crate::{cases, forks, read_session};

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn every_operation_keeps_the_invariants(operations in operations()) {
        // invariants 1-6, 8, 12, 13, 34-36
        let mut session = Session::new();
        for operation in operations {
            apply(&mut session, operation);
            session.check();
        }
        session.reopen();
        session.check();
        if session.is_on_disk() {
            // A second look, as at a file of somebody else.
            let bytes = fs::read(&session.path).unwrap();
            read_session::check(&bytes, session.folder.path());
        }
    }
}

fn apply(session: &mut Session, operation: Operation) {
    match operation {
        Operation::Append(body) => session.append(*body),
        Operation::Compact(summary, keep) => compact(session, summary, keep),
        Operation::Branch(to) => {
            if let Some(entry) = session.pick(to) {
                session.go_to(Some(entry.id()));
            }
        }
        Operation::ResetLeaf => session.go_to(None),
        Operation::BranchWithSummary(to, summary) => branch_with_summary(session, to, summary),
        Operation::Label(target, label) => {
            if let Some(target) = session.pick(target) {
                let body = EntryBody::Label(LabelChange {
                    target_id: target.id().clone(),
                    label: Some(label.clone()),
                });
                session.with_append(body, |tree| {
                    tree.set_label(target.id(), Some(&label)).cloned()
                });
            }
        }
        Operation::Name(name) => {
            let body = EntryBody::SessionInfo(SessionInfoEntry { name: name.clone() });
            session.with_append(body, |tree| tree.set_name(&name).cloned());
        }
        Operation::Edit(target, replacement) => edit(session, target, replacement),
        Operation::Refused(refusal) => refuse(session, &refusal),
        Operation::Reopen => session.reopen(),
        Operation::ForkBefore(at) => forks::before(session, at),
        Operation::ForkAt(at) => forks::at(session, at),
        Operation::CopyInto => forks::copy_into(session),
    }
}

/// What stays after a compaction are the last messages of before (invariant 34).
fn compact(session: &mut Session, summary: String, keep: Index) {
    let sources = session.tree.projection().sources();
    let kept: Vec<EntryId> = sources
        .iter()
        .filter(|selected| selected.entry.kind() != EntryKind::Compaction)
        .map(|selected| selected.entry.id().clone())
        .collect();
    let kept = (!kept.is_empty()).then(|| kept[keep.index(kept.len())].clone());
    let conversation = |session: &Session| -> Vec<Arc<Message>> {
        let messages = session.tree.context().iter();
        let parts = |message: &&Arc<Message>| {
            !matches!(
                ***message,
                Message::System(_) | Message::CompactionSummary(_)
            )
        };
        messages.filter(parts).cloned().collect()
    };
    let before = conversation(session);
    session.append(EntryBody::Compaction(Compaction {
        summary,
        first_kept_entry_id: kept,
        ..Compaction::default()
    }));
    let after = conversation(session);
    assert!(before.ends_with(&after), "{before:?}\n{after:?}");
}

/// S23
fn branch_with_summary(session: &mut Session, to: Option<Index>, summary: String) {
    let to = to.and_then(|to| session.pick(to)).map(|e| e.id().clone());
    let left = session.tree.leaf().cloned();
    session.expect_under(to.as_ref());
    let summary = BranchSummary {
        summary,
        ..BranchSummary::default()
    };
    let body = EntryBody::BranchSummary(BranchSummary {
        from_id: left.map_or("root".to_owned(), |left| left.to_string()),
        ..summary.clone()
    });
    session.with_append(body, |tree| {
        tree.branch_with_summary(to.as_ref(), summary).cloned()
    });
}

/// An edit is seen below itself and nowhere else (S26, invariant 13).
fn edit(session: &mut Session, target: Index, replacement: Replacement) {
    let Some(target) = session.pick(target) else {
        return;
    };
    let edited = |session: &mut Session| {
        session
            .tree
            .edit_context(target.id(), replacement.clone())
            .cloned()
    };
    let on_branch = session
        .tree
        .path_to_leaf()
        .iter()
        .any(|entry| entry.id() == target.id());
    let role = target.message().map(|message| message.role().to_owned());
    let editable = target.kind() == EntryKind::CustomMessage
        || matches!(role.as_deref(), Some("user" | "assistant" | "toolResult"));
    if !on_branch || !editable {
        let before = session.look();
        let error = edited(session).unwrap_err();
        assert_eq!(matches!(error, TreeError::NotOnBranch { .. }), !on_branch);
        assert_eq!(session.look(), before);
        return;
    }
    let before = session.tree.context().to_vec();
    let body = EntryBody::ContextEdit(ContextEdit {
        target_id: target.id().clone(),
        replacement: replacement.clone(),
    });
    session.with_append(body, |tree| {
        tree.edit_context(target.id(), replacement.clone()).cloned()
    });
    session.check();
    let leaf = session.tree.leaf().cloned().unwrap();
    let above = session.tree.entry(&leaf).unwrap().parent().cloned();
    session.go_to(above.as_ref());
    assert_eq!(session.tree.context(), before);
    session.go_to(Some(&leaf));
}

fn refuse(session: &mut Session, refusal: &Refusal) {
    let unknown = EntryId::from("nowhere");
    let message = |message| EntryBody::Message(Arc::new(message));
    match refusal {
        Refusal::BranchToUnknown => session.refuses(|tree| tree.branch(&unknown)),
        Refusal::SummaryAtUnknown => session.refuses(|tree| {
            tree.branch_with_summary(Some(&unknown), BranchSummary::default())
                .map(drop)
        }),
        Refusal::LabelOfUnknown => {
            session.refuses(|tree| tree.set_label(&unknown, Some("x")).map(drop));
        }
        Refusal::EditOfUnknown => {
            session.refuses(|tree| tree.edit_context(&unknown, Replacement::Omit).map(drop));
        }
        Refusal::SummaryMessage => {
            let summary = Message::CompactionSummary(CompactionSummaryMessage::default());
            session.refuses(|tree| tree.append(message(summary)).map(drop));
        }
        Refusal::PendingAnswer => {
            let answer = Message::Assistant(AssistantMessage {
                stop_reason: StopReason::Pending,
                ..AssistantMessage::default()
            });
            session.refuses(|tree| tree.append(message(answer)).map(drop));
        }
        Refusal::KnownTypeWithoutFields => {
            let other = EntryBody::Other(OtherEntry {
                type_name: "message".into(),
                fields: Map::new(),
            });
            session.refuses(|tree| tree.append(other).map(drop));
        }
        Refusal::NameTaken => {
            if !session.is_on_disk() {
                fs::write(&session.path, "somebody else's").unwrap();
                let user = message(Message::user("x", 1));
                session.refuses(|tree| tree.append(user).map(drop));
                fs::remove_file(&session.path).unwrap();
            }
        }
    }
}

//! The projection of a path, worked out the slow way from the words of `kernel.md` §2.7.

use std::sync::Arc;

use pliant_kernel::tree::{Entry, EntryBody, EntryKind, Replacement, ms_from_iso};
use pliant_sdk::message::{BranchSummaryMessage, CompactionSummaryMessage, CustomMessage, Message};

/// The context of a request.
pub fn context(path: &[Arc<Entry>]) -> Vec<Message> {
    let selected = selected(path);
    let compacted = path
        .iter()
        .any(|entry| entry.kind() == EntryKind::Compaction);
    let mut messages = Vec::new();
    for (at, entry) in selected.iter().enumerate() {
        let edit = selected.iter().rev().find_map(|other| match other.body() {
            EntryBody::ContextEdit(edit) if edit.target_id == *entry.id() => {
                Some(&edit.replacement)
            }
            _ => None,
        });
        let leads = compacted && at == 0;
        messages.extend(
            messages_of(entry, leads)
                .into_iter()
                .filter_map(|message| edited(message, edit)),
        );
    }
    messages
}

/// Step 2.
fn selected(path: &[Arc<Entry>]) -> Vec<&Arc<Entry>> {
    let Some(at) = path
        .iter()
        .rposition(|entry| entry.kind() == EntryKind::Compaction)
    else {
        return path.iter().collect();
    };
    let EntryBody::Compaction(compaction) = path[at].body() else {
        panic!("{:?}", path[at]);
    };
    let mut selected = vec![&path[at]];
    let mut kept = false;
    for entry in &path[..at] {
        kept |= Some(entry.id()) == compaction.first_kept_entry_id.as_ref();
        let system = entry
            .message()
            .is_some_and(|message| message.role() == "system");
        if kept && !system {
            selected.push(entry);
        }
    }
    selected.extend(&path[at + 1..]);
    selected
}

/// Step 4.
fn messages_of(entry: &Entry, leads: bool) -> Vec<Message> {
    let timestamp = ms_from_iso(entry.timestamp()).unwrap();
    match entry.body() {
        EntryBody::Message(message) => vec![Message::clone(message)],
        EntryBody::CustomMessage(custom) => vec![Message::Custom(CustomMessage {
            custom_type: custom.custom_type.clone(),
            content: custom.content.clone(),
            display: custom.display,
            details: custom.details.clone(),
            timestamp,
            ..CustomMessage::default()
        })],
        EntryBody::BranchSummary(branch) if !branch.summary.is_empty() => {
            vec![Message::BranchSummary(BranchSummaryMessage {
                summary: branch.summary.clone(),
                from_id: branch.from_id.clone(),
                timestamp,
                ..BranchSummaryMessage::default()
            })]
        }
        EntryBody::Compaction(compaction) if leads => {
            let system = compaction.system_message.iter();
            let summary = Message::CompactionSummary(CompactionSummaryMessage {
                summary: compaction.summary.clone(),
                tokens_before: compaction.tokens_before,
                timestamp,
                ..CompactionSummaryMessage::default()
            });
            system
                .map(|message| Message::clone(message))
                .chain([summary])
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Step 5.
fn edited(mut message: Message, edit: Option<&Replacement>) -> Option<Message> {
    let content = match edit {
        None => return Some(message),
        Some(Replacement::Omit) => return None,
        Some(Replacement::Content(content)) => content.clone(),
    };
    match &mut message {
        Message::User(user) => user.content = content,
        Message::Custom(custom) => custom.content = content,
        Message::Assistant(answer) => answer.content = content.to_blocks(),
        Message::ToolResult(result) => result.content = content.to_blocks(),
        other => panic!("{other:?} was edited"),
    }
    Some(message)
}

/// The path is given to the last change of the level and to the last word on the model.
pub fn thinking_level_and_model(path: &[Arc<Entry>]) -> (Option<String>, Option<(String, String)>) {
    let known = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];
    let (mut level, mut model) = (None, None);
    for entry in path {
        match entry.body() {
            EntryBody::ThinkingLevelChange(change) if known.contains(&&*change.thinking_level) => {
                level = Some(change.thinking_level.clone());
            }
            EntryBody::ModelChange(change) => {
                model = Some((change.provider.clone(), change.model_id.clone()));
            }
            EntryBody::Message(message) => {
                if let Some(answer) = message.as_assistant() {
                    model = Some((answer.provider.clone(), answer.model.clone()));
                }
            }
            _ => {}
        }
    }
    (level, model)
}

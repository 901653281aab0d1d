//! The file and the tree in it.

use std::collections::HashSet;
use std::sync::Arc;

use pliant_kernel::tree::{Entry, EntryBody, EntryKind, Ids, SessionTree};
use pliant_sdk::{Event, Message};
use serde_json::Value;

use super::{Broken, require};
use crate::record::Record;
use crate::script::Script;

/// Invariants 1 to 5, 8, 11, 15 and 34.
pub fn check(script: &Script, record: &Record) -> Broken {
    let file = record.file.as_ref().filter(|file| file.exists());
    require(
        file.is_some() == script.setting.on_disk,
        "there is a file exactly if the session is stored",
    )?;
    let Some(path) = file else {
        return Ok(());
    };
    let bytes = std::fs::read(path).unwrap();
    grows(record, &bytes)?;
    lines(&String::from_utf8(bytes).unwrap())?;
    let tree = SessionTree::read(path, Ids::system()).map_err(|error| error.to_string())?;
    require(tree.damage().is_empty(), "the file is damaged")?;
    require(
        tree.context() == record.messages,
        "the file and the memory have different projections",
    )?;
    pairs(tree.path_to_leaf())?;
    compactions(&tree)?;
    commands(record, &tree)?;
    messages(record, &tree)
}

/// Nothing that was written is changed.
fn grows(record: &Record, bytes: &[u8]) -> Broken {
    let mut before: &[u8] = &[];
    for after in record.files.iter().map(Vec::as_slice).chain([bytes]) {
        require(
            after.starts_with(before),
            "what was written before is not what is there now",
        )?;
        before = after;
    }
    Ok(())
}

/// Ids are unique, parents come first, the header alone has none.
fn lines(text: &str) -> Broken {
    let mut seen = HashSet::new();
    for (number, line) in text.lines().enumerate() {
        let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let parent = line.get("parentId");
        require(
            parent.is_none() == (number == 0),
            "the header, and nothing else, has no parent",
        )?;
        let Some(parent) = parent else { continue };
        let known = parent.as_str().is_none_or(|parent| seen.contains(parent));
        require(
            known,
            format!("line {number} has a parent that is not before it"),
        )?;
        let id = line["id"].as_str().unwrap_or_default().to_owned();
        require(
            seen.insert(id),
            format!("line {number} has an id of another"),
        )?;
    }
    Ok(())
}

/// Between an answer and the results of its calls stands nothing that is sent (invariant 11). Who goes
/// to an answer leaves its results behind.
fn pairs(branch: &[Arc<Entry>]) -> Broken {
    let mut calls: Vec<&str> = Vec::new();
    for entry in branch {
        match entry.message().map(|message| &**message) {
            Some(Message::Assistant(answer)) if !answer.stop_reason.is_failure() => {
                calls = answer.tool_calls().map(|call| &*call.id).collect();
            }
            Some(Message::ToolResult(result)) => {
                let call = calls.iter().position(|id| *id == result.tool_call_id);
                let call = call.ok_or("something stands between a call and its result")?;
                calls.remove(call);
            }
            Some(_) => calls.clear(),
            None if matches!(
                entry.kind(),
                EntryKind::CustomMessage | EntryKind::BranchSummary
            ) =>
            {
                calls.clear();
            }
            None => {}
        }
    }
    Ok(())
}

/// What stays after a compaction are the last messages of before, and no result comes first
/// (invariant 34).
fn compactions(tree: &SessionTree) -> Broken {
    for entry in tree.entries() {
        if !matches!(entry.body(), EntryBody::Compaction(_)) {
            continue;
        }
        let conversation = |id| -> Vec<Arc<Message>> {
            let projection = tree.projection_at(id);
            let aside =
                |message: &&Arc<Message>| !matches!(message.role(), "system" | "compactionSummary");
            projection
                .messages()
                .iter()
                .filter(aside)
                .cloned()
                .collect()
        };
        let before = conversation(entry.parent());
        let after = conversation(Some(entry.id()));
        require(
            before.ends_with(&after),
            "a compaction keeps what was not last",
        )?;
        let first = after.first().map(|first| first.role());
        require(
            first != Some("toolResult"),
            "a compaction keeps a result without its call",
        )?;
    }
    Ok(())
}

/// What was held back is stored once, in the order it was recorded (invariant 37).
fn commands(record: &Record, tree: &SessionTree) -> Broken {
    let stored = tree
        .entries()
        .iter()
        .filter_map(|entry| match entry.message().map(|m| &**m) {
            Some(Message::BashExecution(ended)) => Some(ended.command.clone()),
            _ => None,
        });
    let stored: Vec<String> = stored.collect();
    require(
        stored == record.commands,
        format!("{:?} ended and {stored:?} are stored", record.commands),
    )
}

/// As many entries as messages ended, and boundaries added (invariant 15).
fn messages(record: &Record, tree: &SessionTree) -> Broken {
    let says = |event: &&Arc<Event>| match &***event {
        Event::MessageEnd { .. } => true,
        Event::EntryAppended { entry } => entry["type"] == "custom_message",
        _ => false,
    };
    let told = record.events.iter().filter(says).count();
    let is_message = |entry: &&Arc<Entry>| match entry.message() {
        Some(message) => message.role() != "bashExecution",
        None => entry.kind() == EntryKind::CustomMessage,
    };
    let stored = tree.entries().iter().filter(is_message).count();
    require(
        told == stored,
        format!("{told} messages were told of and {stored} are stored"),
    )
}

//! How full the context is: what the last answer reported, and an estimate of what came after it
//! (R16, R17).

use std::sync::Arc;

use pliant_sdk::history::{message_chars, replay};
use pliant_sdk::message::{Message, StopReason};

use crate::tree::{Entry, EntryKind, SessionTree};

/// No context holds more; a usage that says so is damaged.
const MOST_TOKENS: u64 = 1_000_000_000;

/// Tokens of one message, by its length.
pub(super) fn message_tokens(message: &Message) -> u64 {
    message_chars(message).div_ceil(4)
}

/// Tokens of the next request of this branch (R16).
#[must_use]
pub fn context_tokens(tree: &SessionTree) -> u64 {
    since_last_answer(tree).unwrap_or_else(|| all(tree))
}

/// The same, unless the branch was compacted and no answer has said since how full it is (V15).
#[must_use]
pub fn known_tokens(tree: &SessionTree) -> Option<u64> {
    let mut latest = tree.path_to_leaf().iter().rev();
    let told = |entry: &&Arc<Entry>| {
        entry.kind() == EntryKind::Compaction
            || entry
                .message()
                .is_some_and(|message| reported(message).is_some())
    };
    let compacted = latest
        .find(told)
        .is_some_and(|entry| entry.kind() == EntryKind::Compaction);
    (!compacted).then(|| context_tokens(tree))
}

/// `None` when the last usage is from before an edit or a compaction: it counted something else.
fn since_last_answer(tree: &SessionTree) -> Option<u64> {
    let projection = tree.projection();
    let sources = projection.sources().iter().rev();
    let mut after = 0;
    // Behind the last compaction every entry of the path is selected.
    for (entry, selected) in tree.path_to_leaf().iter().rev().zip(sources) {
        if matches!(entry.kind(), EntryKind::Compaction | EntryKind::ContextEdit) {
            return None;
        }
        for message in projection.messages_of(selected) {
            if let Some(reported) = reported(message) {
                return Some(reported + after);
            }
            after += message_tokens(message);
        }
    }
    None
}

fn all(tree: &SessionTree) -> u64 {
    let mut systems = Vec::new();
    let mut tokens = 0;
    for message in tree.context() {
        match &**message {
            Message::System(system) => systems.push(system),
            other => tokens += message_tokens(other),
        }
    }
    let prompt = replay(systems).map(Message::System);
    tokens + prompt.as_ref().map_or(0, message_tokens)
}

/// What an answer that is worth believing says of its context.
fn reported(message: &Message) -> Option<u64> {
    let answer = message.as_assistant()?;
    if answer.stop_reason.is_failure() || answer.stop_reason == StopReason::Pending {
        return None;
    }
    Some(answer.usage.context_tokens()).filter(|tokens| (1..=MOST_TOKENS).contains(tokens))
}

//! What a compaction leaves as it is and what it summarises (R28–R31).

use std::sync::Arc;

use pliant_sdk::message::Message;

use super::estimate::{context_tokens, message_tokens};
use super::{CompactionError, FileOps};
use crate::tree::{
    Compaction, EntryBody, EntryId, EntryKind, Projection, Replacement, Selected, SessionTree,
};

/// A compaction before its summary is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Preparation {
    /// The summary that stands for what came before; the new one takes it in.
    pub previous_summary: Option<String>,
    /// To be summarised.
    pub history: Vec<Arc<Message>>,
    /// The beginning of a turn whose end stays; summarised apart.
    pub turn_prefix: Vec<Arc<Message>>,
    /// First entry that stays; `None` keeps nothing.
    pub first_kept: Option<EntryId>,
    /// Tokens of the context before.
    pub tokens_before: u64,
    /// Files that the summarised part was about.
    pub files: FileOps,
}

/// Divides the branch so that about the last `keep_recent_tokens` stay.
///
/// # Errors
/// [`CompactionError::Compacted`] or [`CompactionError::Nothing`].
pub fn prepare(
    tree: &SessionTree,
    keep_recent_tokens: u64,
) -> Result<Preparation, CompactionError> {
    let last = tree.path_to_leaf().last();
    if last.is_some_and(|entry| entry.kind() == EntryKind::Compaction) {
        return Err(CompactionError::Compacted);
    }
    let projection = tree.projection();
    let previous = projection
        .sources()
        .first()
        .and_then(|first| match first.entry.body() {
            EntryBody::Compaction(compaction) => Some(compaction),
            _ => None,
        });
    let range = Range {
        projection,
        entries: &projection.sources()[usize::from(previous.is_some())..],
    };
    let cut = range
        .cut(keep_recent_tokens)
        .ok_or(CompactionError::Nothing)?;
    let history = range.messages(0, cut.turn_start);
    let turn_prefix = range.messages(cut.turn_start, cut.kept_from);
    if history.is_empty() && turn_prefix.is_empty() {
        return Err(CompactionError::Nothing);
    }
    let mut files = FileOps::of(history.iter().chain(&turn_prefix));
    if let Some(noted) = previous.and_then(own_details) {
        files.take_noted(noted);
    }
    Ok(Preparation {
        previous_summary: previous.map(|compaction| compaction.summary.clone()),
        files,
        first_kept: range
            .entries
            .get(cut.kept_from)
            .map(|kept| kept.entry.id().clone()),
        tokens_before: context_tokens(tree),
        history,
        turn_prefix,
    })
}

/// What a compaction of ours noted; a plugin's details have their own form.
fn own_details(compaction: &Compaction) -> Option<&serde_json::Value> {
    let ours = compaction.from_hook != Some(true);
    compaction.details.as_ref().filter(|_| ours)
}

/// A place between entries.
struct Cut {
    /// Entries before it are summarised together.
    turn_start: usize,
    /// Entries from here on stay.
    kept_from: usize,
}

/// The selected entries that are not summarised yet.
struct Range<'a> {
    projection: &'a Projection,
    entries: &'a [Selected],
}

impl Range<'_> {
    fn cut(&self, keep_recent_tokens: u64) -> Option<Cut> {
        let exceeded_at = self.exceeded_at(keep_recent_tokens);
        let point = match exceeded_at {
            Some(at) => (at..self.entries.len())
                .find(|at| self.is_point(*at))
                // The results that are too long keep their call.
                .or_else(|| (0..at).rev().find(|at| self.is_point(*at))),
            None => (0..self.entries.len()).find(|at| self.is_point(*at)),
        }?;
        if exceeded_at.is_some() && self.only_failed_after(point) {
            return Some(self.with_turn_start(point + 1, point + 1));
        }
        let mut kept_from = point;
        while kept_from > 0 && self.is_silent(kept_from - 1) {
            kept_from -= 1;
        }
        Some(self.with_turn_start(point, kept_from))
    }

    /// The entry from which on the messages reach that many tokens.
    fn exceeded_at(&self, tokens: u64) -> Option<usize> {
        let mut sum = 0;
        (0..self.entries.len()).rev().find(|at| {
            sum += self
                .said(*at)
                .iter()
                .map(|m| message_tokens(m))
                .sum::<u64>();
            sum >= tokens
        })
    }

    /// A turn that begins before the first kept entry is divided, unless its beginning is gone.
    fn with_turn_start(&self, point: usize, kept_from: usize) -> Cut {
        let starts_itself = point < self.entries.len() && self.starts_turn(point);
        let start = (0..point)
            .rev()
            .find(|at| self.starts_turn(*at))
            .filter(|_| !starts_itself);
        Cut {
            turn_start: start.unwrap_or(kept_from),
            kept_from,
        }
    }

    /// After that entry there is nothing but attempts that failed and were left out: what they failed
    /// at is the entry itself, so it is summarised too (R30).
    fn only_failed_after(&self, point: usize) -> bool {
        let after = &self.entries[point + 1..];
        let edits_others = after.iter().any(|selected| match selected.entry.body() {
            EntryBody::ContextEdit(edit) => {
                edit.replacement != Replacement::Omit
                    && !after.iter().any(|s| *s.entry.id() == edit.target_id)
            }
            _ => false,
        });
        let failed = |selected: &Selected| {
            let message = selected.entry.message();
            message.is_some_and(|message| message.as_assistant().is_some())
        };
        after.iter().all(|selected| selected.range.is_empty())
            && after.iter().any(failed)
            && !edits_others
    }

    /// What a summary can tell of. The prompt is no part of it: the compaction keeps it (S33).
    fn messages(&self, from: usize, to: usize) -> Vec<Arc<Message>> {
        let told =
            |message: &&Arc<Message>| !matches!(***message, Message::System(_) | Message::Other(_));
        let said = (from..to).flat_map(|at| self.said(at));
        said.filter(told).cloned().collect()
    }

    fn said(&self, at: usize) -> &[Arc<Message>] {
        self.projection.messages_of(&self.entries[at])
    }

    /// Whether a context may begin with that entry: never with the result of a call.
    fn is_point(&self, at: usize) -> bool {
        let may = |message: &Arc<Message>| starts_turn(message) || message.as_assistant().is_some();
        self.said(at).iter().any(may)
    }

    fn starts_turn(&self, at: usize) -> bool {
        self.said(at).iter().any(starts_turn)
    }

    /// Adds nothing to the context, and may as well stay with what follows.
    fn is_silent(&self, at: usize) -> bool {
        self.said(at).is_empty() && self.entries[at].entry.kind() != EntryKind::Compaction
    }
}

fn starts_turn(message: &Arc<Message>) -> bool {
    matches!(
        **message,
        Message::User(_)
            | Message::BashExecution(_)
            | Message::Custom(_)
            | Message::BranchSummary(_)
    )
}

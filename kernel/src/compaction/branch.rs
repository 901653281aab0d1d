//! What is told of a branch that is left: which entries, how much of them, and what a model is asked
//! (R39, R41).

use std::collections::HashSet;
use std::sync::Arc;

use pliant_sdk::message::Message;

use super::FileOps;
use super::estimate::message_tokens;
use super::summarize::{CONCISE, HEADINGS, focused, tagged};
use crate::tree::{Entry, EntryBody, EntryId, EntryKind, Projection, SessionTree};

/// Of a model that does not say how large its window is.
const USUAL_WINDOW: u64 = 128_000;

const RESERVE_TOKENS: u64 = 16_384;

/// Stands before the summary, so that whoever reads it knows what it is of.
const PREAMBLE: &str =
    "The user tried another way from here, left it, and came back. What happened on it:\n\n";

const TASK: &str = "Above is a branch of a conversation that the user has left. He goes on from an \
earlier point. Write down what was tried on this branch and what came of it, so that the work can \
draw on it without having seen it.";

/// The part of a branch that is left when the session goes elsewhere.
#[derive(Debug, Clone, Default)]
pub struct LeftBranch {
    /// The last entry that both branches have.
    pub common_ancestor: Option<EntryId>,
    /// What follows it up to the leaf, oldest first.
    pub entries: Vec<Arc<Entry>>,
}

impl LeftBranch {
    /// What is left when the session goes to `target`. No compaction ends it.
    #[must_use]
    pub fn of(tree: &SessionTree, target: &EntryId) -> Self {
        let kept = tree.get_branch(target);
        let kept: HashSet<&EntryId> = kept.iter().map(|entry| entry.id()).collect();
        let path = tree.path_to_leaf();
        let left_at = path
            .iter()
            .rposition(|entry| kept.contains(entry.id()))
            .map_or(0, |last_kept| last_kept + 1);
        let (common, left) = path.split_at(left_at);
        Self {
            common_ancestor: common.last().map(|entry| entry.id().clone()),
            entries: left.to_vec(),
        }
    }

    /// The newest messages of it that fit into so many tokens, oldest first. Results of tools are left
    /// out; a summary is worth going over the budget for, while there is some of it left.
    #[must_use]
    pub fn told(&self, budget: u64) -> Told {
        let projection = Projection::uncompacted(&self.entries);
        let (mut parts, mut tokens, mut complete) = (Vec::new(), 0_u64, true);
        for selected in projection.sources().iter().rev() {
            let said = projection.messages_of(selected).iter().filter(is_told);
            let said: Vec<Arc<Message>> = said.cloned().collect();
            let more: u64 = said.iter().map(|message| message_tokens(message)).sum();
            let fits = tokens.saturating_add(more) <= budget;
            let stands_for_much = matches!(
                selected.entry.kind(),
                EntryKind::Compaction | EntryKind::BranchSummary
            );
            if fits || stands_for_much && tokens.saturating_mul(10) < budget.saturating_mul(9) {
                tokens = tokens.saturating_add(more);
                parts.push(said);
            }
            if !fits {
                complete = false;
                break;
            }
        }
        let messages = parts.into_iter().rev().flatten().collect();
        Told { messages, complete }
    }

    /// Files that the branch was about, with those that earlier summaries of ours noted on it.
    #[must_use]
    pub fn files(&self) -> FileOps {
        let mut files = FileOps::of(self.entries.iter().filter_map(|entry| entry.message()));
        for entry in &self.entries {
            if let EntryBody::BranchSummary(summary) = entry.body()
                && summary.from_hook != Some(true)
                && let Some(noted) = &summary.details
            {
                files.take_noted(noted);
            }
        }
        files
    }
}

/// What a summary can be made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// Oldest first.
    pub messages: Vec<Arc<Message>>,
    /// Nothing was too much.
    pub complete: bool,
}

fn is_told(message: &&Arc<Message>) -> bool {
    !matches!(
        ***message,
        Message::System(_) | Message::ToolResult(_) | Message::Other(_)
    )
}

/// Tokens of conversation that a request for a summary may hold. `reserve`: the setting
/// `branchSummary.reserveTokens`; its default shrinks with a small window.
#[must_use]
pub fn budget(window: u64, reserve: Option<u64>) -> u64 {
    let window = if window == 0 { USUAL_WINDOW } else { window };
    window.saturating_sub(reserve.unwrap_or_else(|| RESERVE_TOKENS.min(window / 2)))
}

/// Asks for the summary. Instructions are an additional focus, or `replace` what is asked otherwise.
#[must_use]
pub fn request(conversation: &str, instructions: Option<&str>, replace: bool) -> String {
    let conversation = tagged("conversation", conversation);
    match instructions.map(str::trim).filter(|text| !text.is_empty()) {
        Some(instructions) if replace => format!("{conversation}\n\n{instructions}"),
        focus => format!(
            "{conversation}\n\n{TASK}\n\n{HEADINGS}\n\n{CONCISE}{}",
            focused(focus)
        ),
    }
}

/// The summary as it is stored.
#[must_use]
pub fn summary(answer: &str, files: &FileOps) -> String {
    format!("{PREAMBLE}{answer}{}", files.lists().appendix())
}

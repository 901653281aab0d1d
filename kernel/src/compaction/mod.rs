//! When a conversation has to become shorter (`kernel.md` §6.5). Pure functions of the tree, the
//! settings and the model; asking a model for the summary and storing it is the run's.
//!
//! [`cut`](self::prepare) says what stays, `summarize` what a model is asked and what its answer is
//! worth, `files` which files the summarised part was about, `estimate` how full the context is, and
//! `branch` what is told of a branch that is left (§6.7).

pub mod branch;
mod cut;
mod estimate;
mod files;
mod settings;
pub mod summarize;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use pliant_sdk::Model;
use pliant_sdk::message::{AssistantMessage, Message, StopReason};
use thiserror::Error;

use crate::tree::{EntryKind, SessionTree};

pub use cut::{Preparation, prepare};
pub use estimate::context_tokens;
pub use files::{FileLists, FileOps};
pub use settings::CompactionSettings;

/// Why there is no compaction.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CompactionError {
    /// Nobody could write the summary.
    #[error("No model is selected, so nobody can write the summary. Choose a model first.")]
    NoModel,
    /// The branch ends with a compaction.
    #[error("The conversation was compacted a moment ago, and nothing has been said since.")]
    Compacted,
    /// What would be summarised is nothing.
    #[error(
        "There is nothing to compact: everything that was said is recent enough to stay as it is."
    )]
    Nothing,
    /// The user gave up.
    #[error("The compaction was stopped. The conversation is as before.")]
    Aborted,
    /// There is no summary, or it could not be stored.
    #[error("The conversation was not compacted: {0}")]
    Failed(String),
}

/// Why a branch should be compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The model could not take the request, or had no room for its answer.
    Overflow {
        /// There is an answer all the same, and nothing to ask for again.
        finished: bool,
    },
    /// The context leaves less room than the settings want.
    Threshold,
}

/// What an answer that has just ended says of the context (R18–R24). `refused_for_size`: its error
/// is one about the size of the request.
#[must_use]
pub fn need(
    tree: &SessionTree,
    answer: &Arc<Message>,
    model: &Model,
    settings: &CompactionSettings,
    refused_for_size: bool,
) -> Option<Need> {
    if !settings.enabled {
        return None;
    }
    let standing = Standing::of(tree, answer)?;
    let said = answer.as_assistant()?;
    // Another model has other limits (R19).
    let same = said.provider == model.provider && said.model == model.id;
    overflow(said, &standing, model, refused_for_size)
        .filter(|_| same)
        .or_else(|| exceeds(tree, model, settings).then_some(Need::Threshold))
}

/// Whether the context is over the threshold (R15). Never when the window is unknown.
#[must_use]
pub fn exceeds(tree: &SessionTree, model: &Model, settings: &CompactionSettings) -> bool {
    let window = model.context_window;
    settings.enabled
        && window > 0
        && context_tokens(tree) > window.saturating_sub(settings.reserve_tokens)
}

/// R20, R21.
fn overflow(
    said: &AssistantMessage,
    standing: &Standing,
    model: &Model,
    refused_for_size: bool,
) -> Option<Need> {
    let window = model.context_window;
    let input = said.usage.input + said.usage.cache_read;
    let counted = standing.projected && !standing.edited_since && window > 0;
    let no_room = counted && said.usage.output == 0 && input.saturating_mul(100) >= window * 99;
    let cut_short = standing.projected && said.usage.output < model.max_tokens;
    match said.stop_reason {
        StopReason::Error if refused_for_size && standing.projected => {
            Some(Need::Overflow { finished: false })
        }
        StopReason::Stop if counted && input > window => Some(Need::Overflow { finished: true }),
        StopReason::Length if no_room || cut_short => Some(Need::Overflow { finished: false }),
        _ => None,
    }
}

/// What has become of an answer on its branch.
struct Standing {
    projected: bool,
    edited_since: bool,
}

impl Standing {
    /// `None` when the answer is not on the branch, or was compacted since. The place on the branch
    /// decides and no clock does: a fast service answers within the millisecond of a compaction.
    fn of(tree: &SessionTree, answer: &Arc<Message>) -> Option<Self> {
        let mut edited_since = false;
        let sources = tree.projection().sources().iter().rev();
        // Behind the last compaction every entry of the path is selected.
        for (entry, selected) in tree.path_to_leaf().iter().rev().zip(sources) {
            match entry.kind() {
                EntryKind::Compaction => return None,
                EntryKind::ContextEdit => edited_since = true,
                _ => {}
            }
            if entry
                .message()
                .is_some_and(|stored| Arc::ptr_eq(stored, answer))
            {
                return Some(Self {
                    projected: !selected.range.is_empty(),
                    edited_since,
                });
            }
        }
        None
    }
}

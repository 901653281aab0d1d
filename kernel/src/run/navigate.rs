//! Going to another place of the tree (`kernel.md` §6.7): what is left behind is summarised if that is
//! wanted, and only then the session moves. Whatever fails or is stopped before changes nothing.

use std::sync::Arc;

use serde_json::{Value, json};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use super::RunHost;
use super::convert::convert;
use super::hooks;
use super::summary::{NoSummary, Purpose, Summarizer};
use crate::compaction::branch::{self, LeftBranch};
use crate::compaction::summarize;
use crate::tree::{BranchSummary, Entry, EntryId, SessionTree, TreeError};

/// How the session goes to another place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NavigateOptions {
    /// What happened on the branch that is left is told at the new place.
    pub summarize: bool,
    /// What the summary should keep in mind.
    pub instructions: Option<String>,
    /// The instructions replace what a model is asked otherwise.
    pub replace_instructions: bool,
    /// Names the place.
    pub label: Option<String>,
}

/// Why the session stays where it is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NavigateError {
    /// Somebody is at work in it.
    #[error(
        "The session answers, compacts or moves at the moment. Go to another place when it is idle."
    )]
    Busy,
    /// Nobody could write the summary.
    #[error("No model is selected, so nobody can write the summary. Choose one, or go without it.")]
    NoModel,
    /// There is no such place.
    #[error("{0}")]
    Unknown(String),
    /// A plugin did not want it.
    #[error("An extension kept the session where it is.")]
    Cancelled,
    /// The user gave up.
    #[error("Going to another place was stopped. The session is where it was.")]
    Aborted,
    /// There is no summary, or the place could not be stored.
    #[error("The session stays where it is: {0}")]
    Failed(String),
}

/// Where the session is now.
#[derive(Debug, Clone, Default)]
pub struct Arrival {
    /// What the user said there, to be said better.
    pub editor_text: Option<String>,
    /// What tells of the branch that was left.
    pub summary: Option<Arc<Entry>>,
    moved: Option<Moved>,
}

#[derive(Debug, Clone)]
struct Moved {
    old_leaf: Option<EntryId>,
    new_leaf: Option<EntryId>,
    from_extension: Option<bool>,
}

/// What is about to happen, as handlers see it and may change it.
pub(super) struct Plan {
    pub(super) target: EntryId,
    pub(super) old_leaf: Option<EntryId>,
    pub(super) left: LeftBranch,
    pub(super) options: NavigateOptions,
}

/// Goes to an entry. That it has is still to be told.
///
/// # Errors
/// Why the session is where it was.
pub async fn navigate<H: RunHost>(
    host: &H,
    target: EntryId,
    options: NavigateOptions,
    cancel: &CancellationToken,
) -> Result<Arrival, NavigateError> {
    let (old_leaf, left) = host.look(|tree| (tree.leaf().cloned(), LeftBranch::of(tree, &target)));
    if old_leaf.as_ref() == Some(&target) {
        return Ok(Arrival::default());
    }
    if options.summarize && host.selection().model.id.is_empty() {
        return Err(NavigateError::NoModel);
    }
    host.look(|tree| tree.destination(&target))
        .map_err(|error| NavigateError::Unknown(error.to_string()))?;
    // Made before the handlers run: they may choose another model.
    let mut summarizer = Summarizer::new(host, cancel, Purpose::BranchSummary);
    let plan = Plan {
        target,
        old_leaf,
        left,
        options,
    };
    let (plan, supplied) = hooks::before_tree(host, cancel, plan).await?;
    let summary = match supplied {
        _ if !plan.options.summarize => None,
        Some(supplied) => Some(supplied),
        None => match written(host, &mut summarizer, &plan).await {
            Ok(summary) => summary,
            Err(NoSummary::Aborted) => return Err(NavigateError::Aborted),
            Err(NoSummary::Failed(reason)) => {
                summarizer.store_loss().await;
                return Err(NavigateError::Failed(reason));
            }
        },
    };
    if cancel.is_cancelled() {
        return Err(NavigateError::Aborted);
    }
    let arrived = host.change(|tree| arrive(tree, &plan, summary));
    arrived.map_err(|error| NavigateError::Failed(error.to_string()))
}

/// The summary of what is left; `None` when nothing was said there.
async fn written<H: RunHost>(
    host: &H,
    summarizer: &mut Summarizer<'_, H>,
    plan: &Plan,
) -> Result<Option<BranchSummary>, NoSummary> {
    let window = summarizer.model().context_window;
    let budget = branch::budget(window, host.branch_summary_reserve());
    let told = plan.left.told(budget);
    if told.messages.is_empty() {
        return match told.complete {
            true => Ok(None),
            false => Err(NoSummary::Failed(TOO_LONG.to_owned())),
        };
    }
    let sent: Vec<_> = told.messages.iter().filter_map(convert).collect();
    let conversation = summarize::conversation(&sent, usize::MAX);
    let NavigateOptions {
        instructions,
        replace_instructions,
        ..
    } = &plan.options;
    let text = branch::request(
        &conversation,
        instructions.as_deref(),
        *replace_instructions,
    );
    let answer = summarizer.ask(&text).await?;
    let files = plan.left.files();
    Ok(Some(BranchSummary {
        summary: branch::summary(&answer, &files),
        details: serde_json::to_value(files.lists()).ok(),
        usage: Some(summarizer.spent().cloned().unwrap_or_default()),
        ..BranchSummary::default()
    }))
}

const TOO_LONG: &str = "the last thing that was said on the branch is too long for the model to \
summarise. Go without a summary, or take a model with a larger context window.";

/// Moves the leaf and stores what belongs to the new place (R40); all of it, or the leaf stays.
fn arrive(
    tree: &mut SessionTree,
    plan: &Plan,
    summary: Option<BranchSummary>,
) -> Result<Arrival, TreeError> {
    let goal = tree.destination(&plan.target)?;
    let from_extension = summary.as_ref().map(|s| s.from_hook == Some(true));
    let arrived = settle_in(tree, plan, goal.leaf.as_ref(), summary);
    if arrived.is_err() {
        stand_at(tree, plan.old_leaf.as_ref())?;
    }
    Ok(Arrival {
        editor_text: goal.editor_text,
        summary: arrived?,
        moved: Some(Moved {
            old_leaf: plan.old_leaf.clone(),
            new_leaf: tree.leaf().cloned(),
            from_extension,
        }),
    })
}

fn settle_in(
    tree: &mut SessionTree,
    plan: &Plan,
    leaf: Option<&EntryId>,
    summary: Option<BranchSummary>,
) -> Result<Option<Arc<Entry>>, TreeError> {
    let entry = match summary {
        Some(summary) => Some(Arc::clone(tree.branch_with_summary(leaf, summary)?)),
        None => {
            stand_at(tree, leaf)?;
            None
        }
    };
    if let Some(label) = plan.options.label.as_deref().filter(|l| !l.is_empty()) {
        let named = entry.as_ref().map_or(&plan.target, |entry| entry.id());
        tree.set_label(named, Some(label))?;
    }
    Ok(entry)
}

fn stand_at(tree: &mut SessionTree, leaf: Option<&EntryId>) -> Result<(), TreeError> {
    match leaf {
        Some(leaf) => tree.branch(leaf),
        None => {
            tree.reset_leaf();
            Ok(())
        }
    }
}

impl Arrival {
    /// Tells handlers that the session is elsewhere, if it is.
    pub async fn tell<H: RunHost>(&self, host: &H, cancel: &CancellationToken) {
        if let Some(event) = self.event() {
            hooks::moved(host, cancel, &event).await;
            host.publish_reports().await;
        }
    }

    fn event(&self) -> Option<Value> {
        let moved = self.moved.as_ref()?;
        let mut event = json!({
            "type": "session_tree", "newLeafId": moved.new_leaf, "oldLeafId": moved.old_leaf,
        });
        if let Some(entry) = &self.summary {
            event["summaryEntry"] = json!(entry);
            event["fromExtension"] = json!(moved.from_extension);
        }
        Some(event)
    }
}

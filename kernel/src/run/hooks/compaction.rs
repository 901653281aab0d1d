//! Around a compaction: handlers may refuse it or write the summary themselves, and hear what became
//! of it (R26, `extensions.md` §3.1).

use std::ops::ControlFlow;

use pliant_sdk::Error;
use pliant_sdk::hook::{CompactAnswer, SuppliedCompaction};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::with_handlers;
use crate::compaction::{CompactionError, CompactionSettings, Preparation};
use crate::registry::HookPoint;
use crate::run::RunHost;
use crate::run::compact::{Ending, Plan};
use crate::tree::{Compaction, Entry, EntryId};

/// What handlers made of a compaction that is about to begin.
pub(in crate::run) enum Supplied {
    /// Nothing: a model is asked.
    Nothing,
    /// There is to be none.
    Cancel,
    /// All of it.
    Compaction(Box<Compaction>),
}

/// `session_before_compact`: the last result counts, the first cancel ends the dispatch.
pub(in crate::run) async fn before_compact<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
    plan: &Plan<'_>,
) -> Supplied {
    let point = HookPoint::SessionBeforeCompact;
    with_handlers(host, cancel, point, Supplied::Nothing, async |dispatcher, mut supplied| {
        let branch = host.look(|tree| tree.path_to_leaf().to_vec());
        let event = json!({
            "type": point.name(),
            "preparation": preparation(&plan.prepared, &plan.settings),
            "branchEntries": branch.iter().map(|entry| entry.to_json()).collect::<Value>(),
            "customInstructions": plan.instructions,
            "reason": plan.reason,
            "willRetry": plan.will_retry,
        });
        let take = |supplied: &mut Supplied, answer: Value| {
            let answer: CompactAnswer = serde_json::from_value(answer).map_err(|error| {
                Error::invalid(format!("its answer is neither a cancel nor a compaction: {error}"))
            })?;
            if answer.cancel {
                *supplied = Supplied::Cancel;
                return Ok(ControlFlow::Break(()));
            }
            if let Some(given) = answer.compaction {
                if given.summary.trim().is_empty() {
                    return Err(Error::invalid(
                        "its compaction has an empty summary, so all that was said would be lost",
                    ));
                }
                let on_branch = |id: &&String| branch.iter().any(|entry| entry.id().as_str() == *id);
                let kept = given.first_kept_entry_id.as_ref();
                if let Some(kept) = kept.filter(|id| !on_branch(id)) {
                    return Err(Error::invalid(format!(
                        "its compaction keeps the branch from entry {kept} on, which is not on it"
                    )));
                }
                *supplied = Supplied::Compaction(Box::new(over(given, &plan.prepared)));
            }
            Ok(ControlFlow::Continue(()))
        };
        // The point does not fail closed, so the dispatch has no failure of its own.
        let _ = dispatcher.each(&mut supplied, |_| event.clone(), take).await;
        supplied
    })
    .await
}

fn over(given: SuppliedCompaction, prepared: &Preparation) -> Compaction {
    Compaction {
        summary: given.summary,
        first_kept_entry_id: given.first_kept_entry_id.map(EntryId::from),
        tokens_before: given.tokens_before.unwrap_or(prepared.tokens_before),
        details: given.details,
        usage: given.usage,
        from_hook: Some(true),
        ..Compaction::default()
    }
}

fn preparation(prepared: &Preparation, settings: &CompactionSettings) -> Value {
    json!({
        "firstKeptEntryId": prepared.first_kept,
        "messagesToSummarize": prepared.history,
        "turnPrefixMessages": prepared.turn_prefix,
        "isSplitTurn": !prepared.turn_prefix.is_empty(),
        "tokensBefore": prepared.tokens_before,
        "previousSummary": prepared.previous_summary,
        "fileOps": prepared.files,
        "settings": {
            "enabled": settings.enabled,
            "reserveTokens": settings.reserve_tokens,
            "keepRecentTokens": settings.keep_recent_tokens,
        },
    })
}

/// `session_compact`.
pub(in crate::run) async fn compacted<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
    plan: &Plan<'_>,
    entry: &Entry,
    from_extension: bool,
) {
    let point = HookPoint::SessionCompact;
    with_handlers(host, cancel, point, (), async |dispatcher, ()| {
        let event = json!({
            "type": point.name(), "compactionEntry": entry.to_json(), "fromExtension": from_extension,
            "reason": plan.reason, "willRetry": plan.will_retry,
        });
        dispatcher.notify(&event).await;
    })
    .await;
}

/// `session_compact_failed`.
pub(in crate::run) async fn compact_failed<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
    ending: &Ending,
    error: &CompactionError,
) {
    let point = HookPoint::SessionCompactFailed;
    with_handlers(host, cancel, point, (), async |dispatcher, ()| {
        let aborted = *error == CompactionError::Aborted;
        let mut event = json!({
            "type": point.name(), "reason": ending.reason, "aborted": aborted,
            "willRetry": ending.will_retry, "fromExtension": ending.from_extension,
        });
        if !aborted {
            event["errorMessage"] = json!(error.to_string());
        }
        dispatcher.notify(&event).await;
    })
    .await;
}

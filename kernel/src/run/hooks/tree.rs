//! Around going to another place of the tree: handlers may refuse it, tell themselves what happened on
//! the branch that is left, or change how that is asked (R39, `extensions.md` §3.1).

use std::ops::ControlFlow;

use pliant_sdk::Error;
use pliant_sdk::hook::TreeAnswer;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::with_handlers;
use crate::registry::HookPoint;
use crate::run::RunHost;
use crate::run::navigate::{NavigateError, Plan};
use crate::tree::BranchSummary;

/// `session_before_tree`: the last result counts, the first cancel ends the dispatch. Answers the plan
/// as it is to be carried out, and the summary that a handler wrote.
pub(in crate::run) async fn before_tree<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
    mut plan: Plan,
) -> Result<(Plan, Option<BranchSummary>), NavigateError> {
    let point = HookPoint::SessionBeforeTree;
    let event = &plan;
    let answer = with_handlers(
        host,
        cancel,
        point,
        TreeAnswer::default(),
        async |dispatcher, mut last| {
            let event = json!({"type": point.name(), "preparation": preparation(event)});
            // The point does not fail closed, so the dispatch has no failure of its own.
            let _ = dispatcher.each(&mut last, |_| event.clone(), take).await;
            last
        },
    )
    .await;
    host.publish_reports().await;
    if answer.cancel {
        return Err(NavigateError::Cancelled);
    }
    let options = &mut plan.options;
    if answer.custom_instructions.is_some() {
        options.instructions = answer.custom_instructions;
    }
    options.replace_instructions = answer
        .replace_instructions
        .unwrap_or(options.replace_instructions);
    if answer.label.is_some() {
        options.label = answer.label;
    }
    let supplied = answer.summary.map(|given| BranchSummary {
        summary: given.summary,
        details: given.details,
        usage: given.usage,
        from_hook: Some(true),
        ..BranchSummary::default()
    });
    Ok((plan, supplied))
}

fn take(last: &mut TreeAnswer, answer: Value) -> Result<ControlFlow<()>, Error> {
    if answer.as_object().is_some_and(serde_json::Map::is_empty) {
        return Ok(ControlFlow::Continue(()));
    }
    let answer: TreeAnswer = serde_json::from_value(answer)
        .map_err(|error| Error::invalid(format!("its answer cannot be read: {error}")))?;
    let summary = answer.summary.as_ref();
    if summary.is_some_and(|given| given.summary.trim().is_empty()) {
        return Err(Error::invalid(
            "its summary of the branch is empty, so nothing of it would be known",
        ));
    }
    *last = answer;
    Ok(match last.cancel {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    })
}

fn preparation(plan: &Plan) -> Value {
    let options = &plan.options;
    let mut preparation = json!({
        "targetId": plan.target,
        "oldLeafId": plan.old_leaf,
        "commonAncestorId": plan.left.common_ancestor,
        "entriesToSummarize": plan.left.entries.iter().map(|e| e.to_json()).collect::<Value>(),
        "userWantsSummary": options.summarize,
        "replaceInstructions": options.replace_instructions,
    });
    if let Some(instructions) = &options.instructions {
        preparation["customInstructions"] = json!(instructions);
    }
    if let Some(label) = &options.label {
        preparation["label"] = json!(label);
    }
    preparation
}

/// `session_tree`.
pub(in crate::run) async fn moved<H: RunHost>(host: &H, cancel: &CancellationToken, event: &Value) {
    let point = HookPoint::SessionTree;
    with_handlers(host, cancel, point, (), async |dispatcher, ()| {
        dispatcher.notify(event).await;
    })
    .await;
}

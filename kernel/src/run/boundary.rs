//! What becomes of the wishes of a boundary's handlers: entries are stored, and one more request is
//! made if there is something to answer (R47–R50).

use std::sync::Arc;

use pliant_sdk::message::StopReason;
use pliant_sdk::{Error, Event, Message};
use serde_json::{Value, json};

use super::RunHost;
use super::driver::RunDriver;
use super::hooks::{self, Draft};
use super::tail::is_open;
use crate::agent::{Driver, NextStep};
use crate::registry::{HandlerFailure, HookPoint, Source};
use crate::tree::{Entry, EntryId};

/// After the results of a turn are stored, before it is told that the turn is over.
pub(super) async fn turn_end<H: RunHost>(
    driver: &RunDriver<'_, H>,
    message: &Arc<Message>,
    results: &[Arc<Message>],
    more_tools: bool,
) -> Result<NextStep, Error> {
    let host = driver.host;
    let point = HookPoint::TurnEnd;
    let own = || turn(driver, message, results);
    let Some(asked) = hooks::boundary(host, driver.cancel, point, own).await else {
        return Ok(NextStep::Natural);
    };
    commit(driver, asked.drafts).await?;
    let completed = outcome(Some(message)) == COMPLETED;
    let Some(source) = asked.wants.filter(|_| completed) else {
        return Ok(NextStep::Natural);
    };
    driver.arrived().await;
    if driver.is_cancelled() {
        return Ok(NextStep::Natural);
    }
    // What comes anyway needs no leave.
    let comes = more_tools || host.has_queued();
    Ok(match comes || granted(driver, point, source) {
        true => NextStep::Continue,
        false => NextStep::Natural,
    })
}

/// What handlers are shown of a turn (R49).
fn turn<H: RunHost>(
    driver: &RunDriver<'_, H>,
    message: &Arc<Message>,
    results: &[Arc<Message>],
) -> Value {
    let id = |message| entry_id(driver.host, message);
    json!({
        "outcome": outcome(Some(message)),
        "turnIndex": driver.turn_index(),
        "message": message,
        "toolResults": results,
        "messageEntryId": id(message),
        "toolResultEntryIds": results.iter().map(id).collect::<Vec<_>>(),
    })
}

/// Nothing is left to do; whether there is after this.
pub(super) async fn before_settle<H: RunHost>(
    driver: &RunDriver<'_, H>,
    answer: Option<&Arc<Message>>,
) -> Result<bool, Error> {
    let host = driver.host;
    let point = HookPoint::AgentBeforeSettle;
    let own = || json!({"outcome": outcome(answer)});
    let wants = match hooks::boundary(host, driver.cancel, point, own).await {
        Some(asked) => {
            commit(driver, asked.drafts).await?;
            host.flush_held().await?;
            asked.wants
        }
        None => None,
    };
    driver.arrived().await;
    let goes_on = |source| granted(driver, point, source);
    Ok(!driver.is_cancelled() && (host.has_queued() || wants.is_some_and(goes_on)))
}

/// Stores what was proposed, in its order, then tells of it. What was stored before something could
/// not be stays.
async fn commit<H: RunHost>(driver: &RunDriver<'_, H>, drafts: Vec<Draft>) -> Result<(), Error> {
    let host = driver.host;
    let mut stored = Vec::with_capacity(drafts.len());
    let all = drafts.iter().try_for_each(|draft| {
        let body = host.look(|tree| draft.body(tree))?;
        stored.push(serde_json::from_str(&host.append(body)?.raw())?);
        Ok(())
    });
    for entry in stored {
        driver.emit(Event::EntryAppended { entry }).await;
    }
    all
}

/// Whether a request is made because a handler wants it (R48); if not, its owner hears why.
fn granted<H: RunHost>(driver: &RunDriver<'_, H>, point: HookPoint, source: Source) -> bool {
    let host = driver.host;
    if driver.is_cancelled() {
        return false;
    }
    let open = host.look(|tree| is_open(tree.context())) || !host.pending().is_empty();
    let most = host.continuation_limit();
    let why_not = if !open {
        "it asked to continue, but the conversation ends with an answer and nothing is queued. \
         Propose a custom_message that the model can answer."
            .to_owned()
    } else if driver.may_continue(most) {
        return true;
    } else {
        format!(
            "it asked to continue more than {most} times in one run, so the run ends. The setting \
             extensions.maxContinuations allows more."
        )
    };
    host.report(HandlerFailure {
        source,
        event: point.name().into(),
        error: Error::failed(why_not),
    });
    false
}

const COMPLETED: &str = "completed";

fn outcome(answer: Option<&Arc<Message>>) -> &'static str {
    match answer
        .and_then(|answer| answer.as_assistant())
        .map(|answer| answer.stop_reason)
    {
        Some(StopReason::Aborted) => "aborted",
        Some(StopReason::Error) => "error",
        _ => COMPLETED,
    }
}

/// The entry that a message of this turn is stored in (L31).
fn entry_id<H: RunHost>(host: &H, message: &Arc<Message>) -> Value {
    let id: Option<EntryId> = host.look(|tree| {
        let mut path = tree.path_to_leaf().iter().rev();
        let stored = |entry: &&Arc<Entry>| {
            entry
                .message()
                .is_some_and(|stored| Arc::ptr_eq(stored, message))
        };
        path.find(stored).map(|entry| entry.id().clone())
    });
    id.map_or(Value::Null, |id| json!(id))
}

//! The two-level loop (`kernel.md` §3.4): tools and steering inside, follow-ups outside.

use std::sync::Arc;

use pliant_sdk::message::{Message, StopReason};
use pliant_sdk::{Error, Event};
use tokio_util::sync::CancellationToken;

use super::respond::respond;
use super::tools::{Desk, Lane, fail_truncated, run_batch};
use super::{Driver, NextStep};

/// How a low-level run ended.
#[derive(Debug)]
pub struct RunOutcome {
    /// Everything the run added, prompts included (L17).
    pub messages: Vec<Arc<Message>>,
    /// Set when a message could not be stored; the run stopped there.
    pub failure: Option<Error>,
}

/// Runs from the prompts (or, with none, from the transcript's tail) until nothing is pending.
/// `agent_start` is emitted here; `agent_end` by the caller, who knows whether a retry follows.
pub async fn run<D: Driver>(
    driver: &D,
    prompts: Vec<Message>,
    cancel: &CancellationToken,
) -> RunOutcome {
    let mut added = Vec::new();
    let mut lane = Lane::new(driver, cancel);
    let desk = lane.desk();
    let failure = tokio::select! {
        biased;
        ended = turns(driver, prompts, cancel, &desk, &mut added) => ended.err(),
        never = lane.serve() => match never {},
    };
    lane.finish().await;
    RunOutcome {
        messages: added,
        failure,
    }
}

async fn turns<D: Driver>(
    driver: &D,
    prompts: Vec<Message>,
    cancel: &CancellationToken,
    desk: &Desk,
    added: &mut Vec<Arc<Message>>,
) -> Result<(), Error> {
    driver.emit(Event::AgentStart).await;
    driver.emit(Event::TurnStart).await;
    let initial = driver.declare(prompts).await;
    inject(driver, initial, added).await?;
    let mut pending = steering(driver, cancel).await;
    let mut first = true;
    loop {
        let mut explicit = false;
        let mut more_tools = true;
        while more_tools || !pending.is_empty() {
            let prepared = if first || cancel.is_cancelled() {
                Vec::new()
            } else {
                driver.prepare_next_turn().await?
            };
            if !first {
                if pending.is_empty() {
                    pending = steering(driver, cancel).await;
                }
                driver.emit(Event::TurnStart).await;
            }
            first = false;
            let batch = prepared
                .into_iter()
                .chain(std::mem::take(&mut pending))
                .collect();
            let batch = driver.declare(batch).await;
            inject(driver, batch, added).await?;

            let turn = one_turn(driver, cancel, desk, added).await?;
            if turn.ended {
                return Ok(());
            }
            more_tools = turn.more_tools;
            explicit = turn.explicit;
            pending = steering(driver, cancel).await;
            if more_tools || !pending.is_empty() {
                explicit = false;
            }
        }
        pending = driver.poll_follow_up().await;
        if pending.is_empty() && !explicit {
            return Ok(());
        }
    }
}

/// What is queued stays queued when the run is being aborted (L11).
async fn steering<D: Driver>(driver: &D, cancel: &CancellationToken) -> Vec<Message> {
    if cancel.is_cancelled() {
        Vec::new()
    } else {
        driver.poll_steering().await
    }
}

struct Turn {
    ended: bool,
    more_tools: bool,
    explicit: bool,
}

/// One answer and the results of its calls.
async fn one_turn<D: Driver>(
    driver: &D,
    cancel: &CancellationToken,
    desk: &Desk,
    added: &mut Vec<Arc<Message>>,
) -> Result<Turn, Error> {
    let answer = respond(driver, cancel).await?;
    added.push(Arc::clone(&answer));
    let Message::Assistant(said) = &*answer else {
        return Err(Error::failed(
            "a message_end handler replaced the answer by another role",
        ));
    };
    if said.stop_reason.is_failure() {
        let _ = driver.finish_turn(&answer, &[]).await;
        driver
            .emit(Event::TurnEnd {
                message: Arc::clone(&answer),
                tool_results: Vec::new(),
            })
            .await;
        return Ok(Turn {
            ended: true,
            more_tools: false,
            explicit: false,
        });
    }
    let calls: Vec<_> = said.tool_calls().cloned().collect();
    let batch = if calls.is_empty() {
        None
    } else if said.stop_reason == StopReason::Length {
        // The arguments may be cut off, so none of the calls is safe to run (L15).
        Some(fail_truncated(driver, calls).await?)
    } else {
        Some(run_batch(driver, calls, desk).await?)
    };
    let (results, more_tools) = match batch {
        Some(batch) => (batch.results, !batch.terminate),
        None => (Vec::new(), false),
    };
    added.extend(results.iter().cloned());
    let next = driver.finish_turn(&answer, &results).await;
    driver
        .emit(Event::TurnEnd {
            message: answer,
            tool_results: results,
        })
        .await;
    Ok(Turn {
        ended: next == NextStep::End,
        more_tools,
        explicit: next == NextStep::Continue,
    })
}

/// Messages that were not streamed: announced as a pair each.
async fn inject<D: Driver>(
    driver: &D,
    messages: Vec<Message>,
    added: &mut Vec<Arc<Message>>,
) -> Result<(), Error> {
    for message in messages {
        driver
            .emit(Event::MessageStart {
                message: Arc::new(message.clone()),
            })
            .await;
        added.push(driver.message_end(message).await?);
    }
    Ok(())
}

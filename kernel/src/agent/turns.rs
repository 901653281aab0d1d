//! The two-level loop (`kernel.md` §3.4): tools and steering inside, follow-ups outside.

use std::sync::Arc;

use pliant_sdk::message::{AssistantMessage, Content, Message, StopReason};
use pliant_sdk::{Error, Event};
use tokio_util::sync::CancellationToken;

use super::respond::respond;
use super::tools::{Desk, Lane, fail_truncated, run_batch};
use super::{Driver, NextStep};

/// What a low-level run begins with.
#[derive(Debug)]
pub enum Begin {
    /// The messages of a prompt; steering that waits joins them.
    Prompt(Vec<Message>),
    /// A batch from a queue; no second one joins it (L3, L8).
    Queued(Vec<Message>),
    /// Nothing: the transcript ends with something to answer.
    Tail,
}

/// How a low-level run ended.
#[derive(Debug)]
pub struct RunOutcome {
    /// Everything the run added, prompts included (L17).
    pub messages: Vec<Arc<Message>>,
    /// Set when a message could not be stored; the run stopped there.
    pub failure: Option<Error>,
}

/// Why a run stopped before its end.
enum Failure {
    /// Nothing can be stored any more, so nothing more is said.
    Store(Error),
    /// What the run asked its surroundings for could not be done.
    Hook(Error),
}

/// Most failures inside a run are of this kind; the others are answers.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

/// What a run has done so far.
#[derive(Default)]
struct Progress {
    added: Vec<Arc<Message>>,
    /// A turn was begun and not ended.
    in_turn: bool,
}

/// Runs until nothing is pending. `agent_start` is emitted here; `agent_end` by the caller, who knows
/// whether a retry follows.
pub async fn run<D: Driver>(driver: &D, begin: Begin, cancel: &CancellationToken) -> RunOutcome {
    let mut run = Progress::default();
    let mut lane = Lane::new(driver, cancel);
    let desk = lane.desk();
    let ended = tokio::select! {
        biased;
        ended = turns(driver, begin, cancel, &desk, &mut run) => ended,
        never = lane.serve() => match never {},
    };
    lane.finish().await;
    let failure = match ended {
        Ok(()) => None,
        Err(Failure::Store(error)) => Some(error),
        Err(Failure::Hook(error)) => failed_turn(driver, &error, cancel, &mut run).await.err(),
    };
    RunOutcome {
        messages: run.added,
        failure,
    }
}

async fn turns<D: Driver>(
    driver: &D,
    begin: Begin,
    cancel: &CancellationToken,
    desk: &Desk,
    run: &mut Progress,
) -> Result<(), Failure> {
    driver.emit(Event::AgentStart).await;
    begin_turn(driver, run).await;
    let (initial, joined) = match begin {
        Begin::Prompt(messages) => (messages, true),
        Begin::Queued(messages) => (messages, false),
        Begin::Tail => (Vec::new(), true),
    };
    let initial = driver.declare(initial).await;
    inject(driver, initial, run).await?;
    let mut pending = match joined {
        true => steering(driver, cancel).await,
        false => Vec::new(),
    };
    let mut first = true;
    loop {
        let mut explicit = false;
        let mut more_tools = true;
        while more_tools || !pending.is_empty() {
            let prepared = if first || cancel.is_cancelled() {
                Vec::new()
            } else {
                let prepared = driver.prepare_next_turn().await;
                prepared.map_err(Failure::Hook)?
            };
            if !first {
                if pending.is_empty() {
                    pending = steering(driver, cancel).await;
                }
                begin_turn(driver, run).await;
            }
            first = false;
            let batch = prepared
                .into_iter()
                .chain(std::mem::take(&mut pending))
                .collect();
            let batch = driver.declare(batch).await;
            inject(driver, batch, run).await?;

            let turn = one_turn(driver, cancel, desk, run).await?;
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
        pending = follow_ups(driver, cancel).await;
        if pending.is_empty() && !explicit {
            return Ok(());
        }
    }
}

async fn begin_turn<D: Driver>(driver: &D, run: &mut Progress) {
    run.in_turn = true;
    driver.emit(Event::TurnStart).await;
}

/// Asks the boundary, then tells that the turn is over.
async fn end_turn<D: Driver>(
    driver: &D,
    run: &mut Progress,
    message: Arc<Message>,
    tool_results: Vec<Arc<Message>>,
    more_tools: bool,
) -> Result<NextStep, Error> {
    let next = driver
        .finish_turn(&message, &tool_results, more_tools)
        .await;
    run.in_turn = false;
    driver
        .emit(Event::TurnEnd {
            message,
            tool_results,
        })
        .await;
    next
}

/// A run that cannot go on ends with an answer that says why, like one whose request failed (L7).
async fn failed_turn<D: Driver>(
    driver: &D,
    error: &Error,
    cancel: &CancellationToken,
    run: &mut Progress,
) -> Result<(), Error> {
    if !run.in_turn {
        begin_turn(driver, run).await;
    }
    let stop_reason = match cancel.is_cancelled() {
        true => StopReason::Aborted,
        false => StopReason::Error,
    };
    let answer = Message::Assistant(AssistantMessage {
        content: vec![Content::text("")],
        stop_reason,
        error_message: Some(error.to_string()),
        thinking_level: Some(driver.thinking_level()),
        ..driver.template()
    });
    inject(driver, vec![answer], run).await?;
    if let Some(answer) = run.added.last().cloned() {
        end_turn(driver, run, answer, Vec::new(), false).await?;
    }
    Ok(())
}

/// What is queued stays queued when the run is being aborted (L11).
async fn steering<D: Driver>(driver: &D, cancel: &CancellationToken) -> Vec<Message> {
    if cancel.is_cancelled() {
        Vec::new()
    } else {
        driver.poll_steering().await
    }
}

async fn follow_ups<D: Driver>(driver: &D, cancel: &CancellationToken) -> Vec<Message> {
    if cancel.is_cancelled() {
        Vec::new()
    } else {
        driver.poll_follow_up().await
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
    run: &mut Progress,
) -> Result<Turn, Failure> {
    let answer = respond(driver, cancel).await?;
    run.added.push(Arc::clone(&answer));
    let Message::Assistant(said) = &*answer else {
        return Err(Failure::Hook(Error::failed(
            "a message_end handler replaced the answer by another role",
        )));
    };
    if said.stop_reason.is_failure() {
        end_turn(driver, run, answer, Vec::new(), false).await?;
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
    run.added.extend(results.iter().cloned());
    let next = end_turn(driver, run, answer, results, more_tools).await?;
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
    run: &mut Progress,
) -> Result<(), Error> {
    for message in messages {
        driver
            .emit(Event::MessageStart {
                message: Arc::new(message.clone()),
            })
            .await;
        run.added.push(driver.message_end(message).await?);
    }
    Ok(())
}

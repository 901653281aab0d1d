//! Commands the user runs himself: `!` in a front end (`kernel.md` §6.9). What they print is shown
//! while it comes and joins the conversation; while a run works on that, it is held back, because
//! it must not stand between a tool call and its result.

mod clean;
mod gate;
mod output;
mod whole;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use pliant_sdk::host::{ExecRequest, Host, Process, ProcessEvent};
use pliant_sdk::message::BashExecutionMessage;
use pliant_sdk::{Error, Event, Message};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::claim::Standing;
use super::{Session, Shared, lock};
use crate::host::actions::CallScope;
use crate::registry::{Rank, Source};
use output::Output;

/// How a command is run.
#[derive(Debug, Clone, Default)]
pub struct BashOptions {
    /// Given back with each piece of its output.
    pub id: Option<Value>,
    /// Stored and shown, but no model sees it (`!!`, R46).
    pub exclude_from_context: bool,
}

/// The user's commands in a session.
#[derive(Debug, Default)]
pub(super) struct UserCommands {
    /// Results that wait until no run works on the conversation, in the order they came.
    held: Mutex<VecDeque<Arc<Message>>>,
    /// Ends the commands that run; made anew when it has been used.
    abort: Mutex<CancellationToken>,
}

impl Session {
    /// Runs a command line of the user, unless a `user_bash` handler answers in its place, and records
    /// what came of it. Its output is published as it comes. Any exit code is a success.
    ///
    /// # Errors
    /// When a handler fails or its answer cannot be read, and when the command cannot be started:
    /// nothing was run then. When the result cannot be stored.
    pub async fn execute_bash(
        &self,
        command: &str,
        options: BashOptions,
    ) -> Result<BashExecutionMessage, Error> {
        let cancel = lock(&self.0.commands.abort).child_token();
        let given = gate::ask(&self.0, command, &options, &cancel).await;
        self.0.publish_reports().await;
        let ended = match given? {
            Some(given) => given,
            None => self.0.run_command(command, &options, &cancel).await?,
        };
        let result = BashExecutionMessage {
            command: command.to_owned(),
            exclude_from_context: options.exclude_from_context.then_some(true),
            timestamp: self.0.now(),
            ..ended
        };
        self.record_bash_result(result.clone())?;
        Ok(result)
    }

    /// Records the result of a command that a front end ran: at once, or when the active run is over
    /// (R45).
    ///
    /// # Errors
    /// When it cannot be stored; it is held then, and stored with the next one.
    pub fn record_bash_result(&self, result: BashExecutionMessage) -> Result<(), Error> {
        let shared = &self.0;
        shared.claims.look(|standing| {
            let result = Arc::new(Message::BashExecution(result));
            lock(&shared.commands.held).push_back(result);
            match is_worked_on(standing) {
                true => Ok(()),
                false => shared.flush_bash(),
            }
        })
    }

    /// Stops all running commands of the user and what they started. What they printed is kept.
    pub fn abort_bash(&self) {
        std::mem::take(&mut *lock(&self.0.commands.abort)).cancel();
    }
}

/// Whether what is stored now could come between things that belong together: a call and its result,
/// or a compaction or a move in the tree and what it leaves.
fn is_worked_on(standing: Standing) -> bool {
    use Standing::{Compacting, Navigating, Running};
    matches!(standing, Running | Compacting | Navigating)
}

impl Shared {
    /// Stores what is held.
    pub(super) fn flush_bash(&self) -> Result<(), Error> {
        let mut held = lock(&self.commands.held);
        while let Some(result) = held.front() {
            let stored = self.tree().append_message(Arc::clone(result)).map(|_| ());
            stored.map_err(|error| Error::failed(error.to_string()))?;
            held.pop_front();
        }
        Ok(())
    }

    /// Stores what is held, unless another run works on the conversation already. What cannot be
    /// stored now is stored, or told of, with the next result.
    pub(super) fn settle_bash(&self) {
        self.claims.look(|standing| {
            if !is_worked_on(standing) {
                let _ = self.flush_bash();
            }
        });
    }

    async fn run_command(
        self: &Arc<Self>,
        command: &str,
        options: &BashOptions,
        cancel: &CancellationToken,
    ) -> Result<BashExecutionMessage, Error> {
        let user = Source::inline("user", Rank::User);
        let host =
            Host::from_shared(self.source_services(&user, CallScope::Command { successor: None }));
        let request = ExecRequest {
            shell_command: Some(command.to_owned()),
            ..ExecRequest::default()
        };
        let mut output = Output::default();
        let exit = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            exit = async {
                let mut process = host.exec(&request).await?;
                self.follow(&mut process, &mut output, options.id.as_ref()).await
            } => Some(exit?),
        };
        output.finish();
        let shown = output.shown();
        Ok(BashExecutionMessage {
            cancelled: exit.is_none(),
            exit_code: exit.flatten().map(i64::from),
            truncated: shown.truncated,
            output: shown.content,
            full_output_path: output.path(),
            ..BashExecutionMessage::default()
        })
    }

    /// Reads and publishes until the end. Dropping the process kills it with all it started.
    async fn follow(
        &self,
        process: &mut Process,
        output: &mut Output,
        id: Option<&Value>,
    ) -> Result<Option<i32>, Error> {
        loop {
            match process.next().await? {
                ProcessEvent::Exit(exit) => return Ok(exit.code),
                ProcessEvent::Output(bytes) => {
                    let delta = output.push(&bytes);
                    if !delta.is_empty() {
                        let id = id.cloned();
                        let event = Event::BashExecutionUpdate { id, delta };
                        self.subscribers.publish(event).await;
                    }
                }
            }
        }
    }
}

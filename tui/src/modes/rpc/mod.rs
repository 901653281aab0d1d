//! RPC mode: a program sends commands, one JSON object a line, and reads answers and events
//! (`interfaces.md` §8). Lines come in by [`input`], are taken apart by [`request`], done by
//! [`commands`], and what is to be said leaves by [`output`], in order; [`dialogs`] asks the program what
//! plugins want to know.

mod commands;
mod dialogs;
mod input;
mod output;
mod request;

use std::fs::File;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use pliant_kernel::session::Session;
use pliant_kernel::{Kernel, OpenOptions, Runtime};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::signals::{Signals, orderly};
use super::unwritable;
use commands::Rpc;
use input::{Input, Line};
use output::{Failed, Output};
use request::{Reply, Request};

pub use dialogs::RpcUi;
pub use output::Records;

/// How long a command that is usually done at once holds up the next one, so that answers come in the
/// order of the questions.
const QUICK: Duration = Duration::from_millis(50);

/// The mode before there is a session: what plugins show has its place from the start.
pub struct Setup {
    output: Output,
    records: Records,
    ui: Arc<RpcUi>,
}

/// Why no more commands are taken.
enum End {
    /// Nothing more will be sent, or a plugin asked for it.
    Over,
    /// A signal that means this status.
    Signal(u8),
    /// Nobody reads any more.
    Unwritable(std::io::Error),
}

impl Setup {
    /// Begins to write to `stdout`.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn new(stdout: File) -> anyhow::Result<Self> {
        let (output, records) = Output::start(stdout)?;
        let ui = Arc::new(RpcUi::new(records.clone()));
        Ok(Self {
            output,
            records,
            ui,
        })
    }

    /// The user, as plugins reach him.
    pub fn ui(&self) -> Arc<RpcUi> {
        Arc::clone(&self.ui)
    }

    /// Where the events of every session go.
    pub fn records(&self) -> Records {
        self.records.clone()
    }

    /// Takes commands until the input ends, a signal comes or nobody reads any more, and answers the
    /// status of the process.
    ///
    /// # Errors
    /// When the input cannot be read.
    pub async fn run(
        mut self,
        kernel: Kernel,
        session: Session,
        options: OpenOptions,
        stdin: File,
        mut signals: Signals,
    ) -> anyhow::Result<u8> {
        let runtime = Runtime::new(Arc::new(kernel), session, options);
        let rpc = Arc::new(Rpc { runtime });
        let mut tasks = JoinSet::new();
        let mut input = Input::start(stdin)?;
        let end = self
            .take_commands(&rpc, &mut input, &mut tasks, &mut signals)
            .await;
        // What was read before the end is answered, also where the answer is that it was stopped.
        let ending = async {
            rpc.runtime.close().await;
            while tasks.join_next().await.is_some() {}
        };
        self.output.hurry();
        orderly(ending).await;
        let written = orderly(self.output.finish()).await;
        match (end, written) {
            (End::Unwritable(error), _) => unwritable(&error),
            (End::Signal(status), _) => Ok(status),
            (End::Over, Some(Err(error))) => unwritable(&error),
            (End::Over, _) => Ok(0),
        }
    }

    async fn take_commands(
        &mut self,
        rpc: &Arc<Rpc>,
        input: &mut Input,
        tasks: &mut JoinSet<()>,
        signals: &mut Signals,
    ) -> End {
        loop {
            // A plugin that asked for the end gets it once nothing runs.
            let is_over = self.ui.is_over() && tasks.is_empty();
            tokio::select! {
                biased;
                status = signals.next() => return End::Signal(status),
                Failed(error) = self.output.failed() => return End::Unwritable(error),
                () = idle(rpc), if is_over => return End::Over,
                () = self.ui.asked_to_end(), if !self.ui.is_over() => {}
                Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
                line = next(input, &self.records) => match line {
                    None => return End::Over,
                    Some((line, room)) => self.take(rpc, line, room, tasks).await,
                },
            }
        }
    }

    /// Begins a command, and waits a little for one that is usually done at once.
    async fn take(&self, rpc: &Arc<Rpc>, line: Line, room: output::Room, tasks: &mut JoinSet<()>) {
        let (request, reply) = match Request::read(line) {
            Ok(Request::Command(command)) => {
                let reply = Reply::to(&command, self.records.clone(), room);
                (command, reply)
            }
            Ok(Request::DialogAnswer(answer)) => return self.ui.answered(answer),
            Err(refusal) => return refusal.tell(&self.records, room),
        };
        let Some(command) = commands::find(&request.name) else {
            let error = format!("Unknown command: {}", request.name);
            return reply.failure(&error);
        };
        let mut running = command.run(Arc::clone(rpc), request, reply);
        // It begins before the next one is looked at, in whatever order they end.
        let begun = poll_fn(|cx| Poll::Ready(running.as_mut().poll(cx))).await;
        if begun.is_ready() {
            return;
        }
        if command.is_quick && timeout(QUICK, &mut running).await.is_ok() {
            return;
        }
        tasks.spawn(running);
    }
}

/// A line, and room for what answers it: a program that reads no answers cannot ask for more.
async fn next(input: &mut Input, records: &Records) -> Option<(Line, output::Room)> {
    let room = records.room().await;
    let line = input.next().await?;
    Some((line, room))
}

async fn idle(rpc: &Rpc) {
    rpc.runtime.session().wait_idle().await;
}

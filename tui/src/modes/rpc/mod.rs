//! RPC mode: a program sends commands, one JSON object a line, and reads answers and events
//! (`interfaces.md` §8). Lines come in by [`input`], are taken apart by [`request`], done by
//! [`commands`], and what is to be said leaves by [`output`], in order; [`dialogs`] asks the program what
//! plugins want to know.

mod commands;
mod dialogs;
mod input;
mod output;
mod request;

use std::collections::VecDeque;
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
use input::Input;
use output::{Failed, Output};
use request::{Refusal, Reply, Request};

pub use dialogs::RpcUi;
pub use output::Records;

/// How long a command that is usually done at once holds up the next one, so that answers come in the
/// order of the questions.
const QUICK: Duration = Duration::from_millis(50);

/// Commands that may be under way at a time; dialogs and what is done at once do not count.
const UNDER_WAY: usize = 1000;

/// Commands that may wait for the session to open.
const EARLY: usize = 1000;

/// The mode before there is a session: what plugins show has its place from the start.
pub struct Setup {
    output: Output,
    records: Records,
    ui: Arc<RpcUi>,
}

/// What a session is opened in, and with.
pub struct Opened {
    /// The kernel.
    pub kernel: Kernel,
    /// The session.
    pub session: Session,
    /// What it was opened with.
    pub options: OpenOptions,
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

    /// Opens a session, takes commands until the input ends, a signal comes or nobody reads any more, and
    /// answers the status of the process.
    ///
    /// # Errors
    /// When the session does not open, or the input cannot be read.
    pub async fn run(
        mut self,
        opening: impl Future<Output = anyhow::Result<Opened>>,
        stdin: File,
        mut signals: Signals,
    ) -> anyhow::Result<u8> {
        let mut input = Input::start(stdin)?;
        let mut early = VecDeque::new();
        let opened = self.open(opening, &mut input, &mut early, &mut signals);
        let Opened {
            kernel,
            session,
            options,
        } = match opened.await {
            Ok(opened) => opened?,
            Err(end) => return self.finish(end).await,
        };
        let runtime = Runtime::new(Arc::new(kernel), session, options);
        super::watch(&runtime);
        let rpc = Arc::new(Rpc {
            runtime,
            records: self.records.clone(),
        });
        let mut tasks = JoinSet::new();
        for request in early {
            self.take(&rpc, request, &mut tasks).await;
        }
        let end = self
            .take_commands(&rpc, &mut input, &mut tasks, &mut signals)
            .await;
        if let End::Signal(_) = end {
            rpc.runtime.session().hurry();
        }
        // What was read before the end is answered, also where the answer is that it was stopped.
        let ending = async {
            rpc.runtime.close().await;
            while tasks.join_next().await.is_some() {}
        };
        self.ui.close();
        self.output.hurry();
        orderly(ending).await;
        self.finish(end).await
    }

    /// Writes what is left.
    async fn finish(self, end: End) -> anyhow::Result<u8> {
        self.output.hurry();
        let written = orderly(self.output.finish()).await;
        match (end, written) {
            (End::Unwritable(error), _) => unwritable(&error),
            (End::Signal(status), _) => Ok(status),
            (End::Over, Some(Err(error))) => unwritable(&error),
            (End::Over, _) => Ok(0),
        }
    }

    /// Opens the session. Meanwhile the program can answer what handlers of its beginning ask; commands
    /// wait.
    async fn open(
        &mut self,
        opening: impl Future<Output = anyhow::Result<Opened>>,
        input: &mut Input,
        early: &mut VecDeque<Result<Request, Refusal>>,
        signals: &mut Signals,
    ) -> Result<anyhow::Result<Opened>, End> {
        tokio::pin!(opening);
        let mut has_ended = false;
        loop {
            tokio::select! {
                biased;
                status = signals.next() => return Err(End::Signal(status)),
                Failed(error) = self.output.failed() => return Err(End::Unwritable(error)),
                opened = &mut opening => return Ok(opened),
                line = input.next(), if !has_ended && early.len() < EARLY => match line.map(Request::read) {
                    // Nobody is there to answer.
                    None => {
                        has_ended = true;
                        self.ui.close();
                    }
                    Some(Ok(Request::DialogAnswer(answer))) => self.ui.answered(answer),
                    Some(request) => early.push_back(request),
                },
            }
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
                request = next(input, &self.records) => match request {
                    None => return End::Over,
                    Some(request) => self.take(rpc, request, tasks).await,
                },
            }
        }
    }

    /// Begins a command, and waits a little for one that is usually done at once.
    async fn take(
        &self,
        rpc: &Arc<Rpc>,
        request: Result<Request, Refusal>,
        tasks: &mut JoinSet<()>,
    ) {
        let (request, reply) = match request {
            Ok(Request::Command(command)) => {
                let reply = Reply::to(&command, self.records.clone());
                (command, reply)
            }
            Ok(Request::DialogAnswer(answer)) => return self.ui.answered(answer),
            Err(refusal) => return refusal.tell(&self.records),
        };
        let Some(command) = commands::find(&request.name) else {
            let error = format!("Unknown command: {}", request.name);
            return reply.failure(&error);
        };
        if tasks.len() >= UNDER_WAY && !command.is_quick {
            return reply.failure("Too many commands are under way. Wait for an answer to one.");
        }
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

/// The next request: a program that reads no answers cannot ask for more.
async fn next(input: &mut Input, records: &Records) -> Option<Result<Request, Refusal>> {
    records.room().await;
    input.next().await.map(Request::read)
}

async fn idle(rpc: &Rpc) {
    rpc.runtime.session().wait_idle().await;
}

//! JSON mode: the session header, then every event, one object a line (`interfaces.md` §2, §7). A
//! reader that is slow slows the session and loses nothing; one that is gone ends the run.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pliant_kernel::pipeline::Prompt;
use pliant_kernel::session::{Session, Subscription};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::prompts::Prompts;
use super::signals::{Signals, orderly};
use super::{report_failures, unwritable};
use crate::say;

/// How long a reader may keep a run waiting that was told to stop.
const PATIENCE: Duration = Duration::from_millis(500);

/// Why the run ended before its time.
enum Stop {
    /// A signal that means this status.
    Signal(u8),
    /// Nobody reads any more.
    Unwritable(io::Error),
}

/// Runs the prompts; a failure of the provider is in the stream and no failure of the process.
///
/// # Errors
/// When a prompt is refused, the session cannot be stored, or stdout cannot be written.
pub async fn run(
    session: &Session,
    prompts: Vec<Prompt>,
    mut signals: Signals,
    stdout: File,
) -> anyhow::Result<u8> {
    let mut output = Output::start(stdout, session.header().line()?, session.subscribe());
    let sender = Prompts::to(session);
    let running = async {
        let outcome = sender.run_all(prompts).await;
        // `agent_settled` is the last line: what fails while the session closes goes to stderr.
        session.end_subscriptions();
        let reporting = tokio::spawn(report_failures(session.subscribe()));
        session.close("quit").await;
        session.end_subscriptions();
        let _ = timeout(PATIENCE, reporting).await;
        outcome
    };
    tokio::pin!(running);
    let stop = tokio::select! {
        outcome = &mut running => {
            // Everything is stored: from here on a signal ends the process at once.
            drop(signals);
            let written = output.written().await;
            outcome?;
            return written.map_or_else(|error| unwritable(&error), |()| Ok(0));
        }
        status = signals.next() => Stop::Signal(status),
        Err(error) = output.written() => Stop::Unwritable(error),
    };
    sender.stop();
    session.hurry();
    if let Some(Err(error)) = orderly(output.relieved(running)).await {
        say::error(error);
    }
    session.end_subscriptions();
    match stop {
        Stop::Signal(status) => {
            let _ = timeout(PATIENCE, output.written()).await;
            Ok(status)
        }
        Stop::Unwritable(error) => unwritable(&error),
    }
}

/// Events on their way to stdout. They are written on a thread of their own, so that a full pipe
/// blocks nothing but this.
struct Output {
    /// Locked by the writer while it takes an event or waits for one, so never while it writes.
    events: Arc<Mutex<Subscription>>,
    writer: Option<JoinHandle<io::Result<()>>>,
}

impl Output {
    fn start(stdout: File, mut header: String, events: Subscription) -> Self {
        if !header.ends_with('\n') {
            header.push('\n');
        }
        let events = Arc::new(Mutex::new(events));
        let taken = Arc::clone(&events);
        let writer = tokio::task::spawn_blocking(move || write_events(stdout, &header, &taken));
        Self {
            events,
            writer: Some(writer),
        }
    }

    /// Returns when everything is written and the subscription has ended, or when writing failed;
    /// that is told once. Asked again, it answers at once.
    async fn written(&mut self) -> io::Result<()> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        let written = writer.await.map_err(io::Error::other).flatten();
        self.writer = None;
        // A session must not wait for a reader that is gone.
        lock(&self.events).close();
        written
    }

    /// Waits for the end of something that tells events. Those that a stalled reader does not take
    /// are turned away.
    async fn relieved<T>(&self, telling: impl Future<Output = T>) -> T {
        tokio::pin!(telling);
        loop {
            if let Ok(told) = timeout(PATIENCE, &mut telling).await {
                return told;
            }
            let writing = self.events.try_lock();
            if let Ok(mut events) = writing
                && events.capacity() == 0
            {
                events.close();
            }
        }
    }
}

/// Flushes whenever nothing more is waiting.
fn write_events(stdout: File, header: &str, events: &Mutex<Subscription>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(64 << 10, stdout);
    out.write_all(header.as_bytes())?;
    loop {
        let waiting = lock(events).try_recv().ok();
        let event = match waiting {
            Some(event) => event,
            None => {
                out.flush()?;
                let next = lock(events).blocking_recv();
                let Some(event) = next else { return Ok(()) };
                event
            }
        };
        serde_json::to_writer(&mut out, &*event)?;
        out.write_all(b"\n")?;
    }
}

fn lock(events: &Mutex<Subscription>) -> MutexGuard<'_, Subscription> {
    events.lock().unwrap_or_else(PoisonError::into_inner)
}

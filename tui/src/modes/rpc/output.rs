//! Records on their way to the program: answers, events and dialogs in the order in which they came up,
//! so that whoever reads an answer has read before what happened before, and nothing that happened after
//! (`interfaces.md` §8.2, `abort`). A reader that is slow slows the session and loses nothing (§8.3).

use std::collections::VecDeque;
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pliant_kernel::session::Subscription;
use pliant_sdk::Event;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Bytes of answers and dialogs that wait to be written, before whoever has more to say waits. Programs
/// that ask ten thousand times before they read are served; those that never read are not.
const WAITING: usize = 16 << 20;
/// Bytes that are written at a time, unless one record is longer.
const BATCH: usize = 64 << 10;
/// How long a reader may keep the end waiting.
const PATIENCE: Duration = Duration::from_millis(500);

/// Where records go in.
#[derive(Debug, Clone)]
pub struct Records(Arc<Desk>);

impl Records {
    /// Returns when there is room for a record. Who does not wait is heard all the same.
    pub async fn room(&self) {
        loop {
            // Made before the look: a change in between wakes it.
            let less = self.0.less.notified();
            if self.0.waiting().bytes < WAITING {
                return;
            }
            less.await;
        }
    }

    /// Says a record, which ends with LF, after everything that was said before.
    pub fn put(&self, line: Vec<u8>) {
        let mut waiting = self.0.waiting();
        let events: usize = waiting.sessions.iter().map(Subscription::waiting).sum();
        waiting.bytes += line.len();
        let after = waiting.heard + events;
        waiting.lines.push_back(Line { after, line });
        waiting.wake();
    }

    /// Tells the events of a session, after those of the one before, which has ended.
    pub fn follow(&self, events: Subscription) {
        let mut waiting = self.0.waiting();
        waiting.sessions.push_back(events);
        waiting.wake();
    }
}

/// What waits to be written.
#[derive(Debug, Default)]
struct Desk {
    waiting: Mutex<Waiting>,
    /// Lines were taken.
    less: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: VecDeque<Line>,
    /// Of the lines.
    bytes: usize,
    /// The session that is open, behind those whose last events were not heard yet.
    sessions: VecDeque<Subscription>,
    /// Events that were heard, of all sessions.
    heard: usize,
    /// Nothing more will be said.
    over: bool,
    writer: Option<Waker>,
}

#[derive(Debug)]
struct Line {
    /// How many events come first.
    after: usize,
    line: Vec<u8>,
}

/// The next thing to write.
enum Said {
    Line(Vec<u8>),
    Event(Arc<Event>),
    Over,
}

impl Desk {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Said> {
        let next = self.waiting().poll_next(cx);
        if matches!(next, Poll::Ready(Said::Line(_))) {
            self.less.notify_waiters();
        }
        next
    }

    fn end(&self) {
        let mut waiting = self.waiting();
        waiting.over = true;
        waiting.wake();
    }
}

impl Waiting {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Said> {
        if let Some(Line { after, .. }) = self.lines.front() {
            if *after > self.heard
                && let Some(event) = self.waiting_event()
            {
                return Poll::Ready(Said::Event(event));
            }
            return Poll::Ready(self.next_line());
        }
        while let Some(events) = self.sessions.front_mut() {
            match events.poll_recv(cx) {
                Poll::Ready(Some(event)) => {
                    self.heard += 1;
                    return Poll::Ready(Said::Event(event));
                }
                Poll::Ready(None) => drop(self.sessions.pop_front()),
                Poll::Pending => break,
            }
        }
        if self.over {
            return Poll::Ready(Said::Over);
        }
        self.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    /// An event that is there.
    fn waiting_event(&mut self) -> Option<Arc<Event>> {
        while let Some(events) = self.sessions.front_mut() {
            match events.try_recv() {
                Ok(event) => {
                    self.heard += 1;
                    return Some(event);
                }
                Err(mpsc::error::TryRecvError::Empty) => return None,
                Err(mpsc::error::TryRecvError::Disconnected) => drop(self.sessions.pop_front()),
            }
        }
        None
    }

    fn next_line(&mut self) -> Said {
        let line = self.lines.pop_front().map(|line| line.line);
        let line = line.unwrap_or_default();
        self.bytes -= line.len();
        Said::Line(line)
    }

    fn wake(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }
}

/// Nobody reads any more.
pub struct Failed(pub io::Error);

/// The way out.
pub struct Output {
    desk: Arc<Desk>,
    forwarding: Option<JoinHandle<io::Result<()>>>,
    hurry: CancellationToken,
}

impl Output {
    /// Begins to write.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start(stdout: File) -> io::Result<(Self, Records)> {
        let desk = Arc::new(Desk::default());
        // One batch is written while the next one is collected.
        let (batches, to_write) = mpsc::channel(1);
        let hurry = CancellationToken::new();
        let writer = write_on_a_thread(stdout, to_write)?;
        let forwarder = Forwarder {
            desk: Arc::clone(&desk),
            batch: Vec::new(),
            batches,
            hurry: hurry.clone(),
        };
        let output = Self {
            desk: Arc::clone(&desk),
            forwarding: Some(tokio::spawn(forwarder.run(writer))),
            hurry,
        };
        Ok((output, Records(desk)))
    }

    /// Returns when writing has failed.
    pub async fn failed(&mut self) -> Failed {
        if let Some(forwarding) = &mut self.forwarding {
            let written = forwarding.await.map_err(io::Error::other).flatten();
            self.forwarding = None;
            if let Err(error) = written {
                return Failed(error);
            }
        }
        std::future::pending().await
    }

    /// From now on a reader that takes nothing for a while is not waited for.
    pub fn hurry(&self) {
        self.hurry.cancel();
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// When it cannot be written.
    pub async fn finish(mut self) -> io::Result<()> {
        self.desk.end();
        match self.forwarding.take() {
            Some(forwarding) => forwarding.await.map_err(io::Error::other).flatten(),
            // That it failed has been told.
            None => Ok(()),
        }
    }
}

/// A full pipe blocks nothing but this thread. It is left behind when it hangs at the end of the process.
fn write_on_a_thread(
    mut stdout: File,
    mut batches: mpsc::Receiver<Vec<u8>>,
) -> io::Result<oneshot::Receiver<io::Result<()>>> {
    let (done, written) = oneshot::channel();
    let write = move || {
        let mut outcome = Ok(());
        while let Some(batch) = batches.blocking_recv() {
            outcome = stdout.write_all(&batch);
            if outcome.is_err() {
                break;
            }
        }
        // Whoever sends the next batch is to know that nobody takes it.
        drop(batches);
        let _ = done.send(outcome);
    };
    std::thread::Builder::new()
        .name("rpc output".to_owned())
        .spawn(write)?;
    Ok(written)
}

struct Forwarder {
    desk: Arc<Desk>,
    batch: Vec<u8>,
    batches: mpsc::Sender<Vec<u8>>,
    hurry: CancellationToken,
}

impl Forwarder {
    async fn run(mut self, writer: oneshot::Receiver<io::Result<()>>) -> io::Result<()> {
        tokio::pin!(writer);
        let mut is_over = false;
        while !is_over {
            let said = tokio::select! {
                written = &mut writer => return written.unwrap_or(Ok(())),
                said = poll_fn(|cx| self.desk.poll_next(cx)) => said,
            };
            is_over = self.collect(said).await;
            if !self.flush().await {
                break;
            }
        }
        drop(self);
        tokio::time::timeout(PATIENCE, writer)
            .await
            .map_or(Ok(()), |written| written.unwrap_or(Ok(())))
    }

    /// Adds that, and what else there is; whether it is over.
    async fn collect(&mut self, mut said: Said) -> bool {
        loop {
            match said {
                Said::Line(line) => self.batch.extend_from_slice(&line),
                Said::Event(event) => self.write(&event),
                Said::Over => return true,
            }
            if self.batch.len() >= BATCH {
                return false;
            }
            match poll_fn(|cx| Poll::Ready(self.desk.poll_next(cx))).await {
                Poll::Ready(next) => said = next,
                Poll::Pending => return false,
            }
        }
    }

    fn write(&mut self, event: &Event) {
        let before = self.batch.len();
        match serde_json::to_writer(&mut self.batch, event) {
            Ok(()) => self.batch.push(b'\n'),
            // No half record may go out.
            Err(_) => self.batch.truncate(before),
        }
    }

    /// Hands on what was collected; false when nobody takes it any more.
    async fn flush(&mut self) -> bool {
        if self.batch.is_empty() {
            return true;
        }
        let batch = std::mem::take(&mut self.batch);
        let stalled = async {
            self.hurry.cancelled().await;
            tokio::time::sleep(PATIENCE).await;
        };
        tokio::select! {
            sent = self.batches.send(batch) => sent.is_ok(),
            () = stalled => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use serde_json::{Value, json};

    use super::*;

    fn notice(text: &str) -> Arc<Event> {
        Arc::new(Event::Notice {
            message: text.to_owned(),
        })
    }

    fn line(text: &str) -> Vec<u8> {
        format!("{}\n", json!({ "answer": text })).into_bytes()
    }

    /// What arrives, by the texts of its records.
    fn read(mut pipe: impl Read) -> Vec<String> {
        let mut text = String::new();
        pipe.read_to_string(&mut text).unwrap();
        let records = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let text = |record: Value| {
            let said = record.get("answer").or(record.get("message"));
            said.unwrap().as_str().unwrap().to_owned()
        };
        records.map(text).collect()
    }

    #[tokio::test]
    async fn answers_stand_between_what_happened_before_and_after_them() {
        // interfaces §8.2
        let (reader, writer) = io::pipe().unwrap();
        let (output, records) =
            Output::start(File::from(std::os::fd::OwnedFd::from(writer))).unwrap();
        let (first, events) = mpsc::channel(8);
        records.follow(events.into());
        first.try_send(notice("1")).unwrap();
        first.try_send(notice("2")).unwrap();
        records.put(line("after 2"));
        first.try_send(notice("3")).unwrap();
        // The session ends, and another one takes its place.
        drop(first);
        let (second, events) = mpsc::channel(8);
        records.follow(events.into());
        second.try_send(notice("4")).unwrap();
        records.put(line("after 4"));
        second.try_send(notice("5")).unwrap();
        output.finish().await.unwrap();
        assert_eq!(
            read(reader),
            ["1", "2", "after 2", "3", "4", "after 4", "5"]
        );
    }

    #[tokio::test]
    async fn who_says_much_waits_until_some_of_it_is_read() {
        // interfaces §8.3
        let (reader, writer) = io::pipe().unwrap();
        let (output, records) =
            Output::start(File::from(std::os::fd::OwnedFd::from(writer))).unwrap();
        records.room().await;
        let long = "x".repeat(WAITING);
        records.put(line(&long));
        {
            let mut room = Box::pin(records.room());
            let look = poll_fn(|cx| Poll::Ready(room.as_mut().poll(cx))).await;
            assert!(look.is_pending());
        }
        let reading = tokio::task::spawn_blocking(move || read(reader));
        records.room().await;
        output.finish().await.unwrap();
        assert_eq!(reading.await.unwrap(), [long]);
    }
}

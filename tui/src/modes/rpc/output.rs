//! Records on their way to the program: one order for answers, events and dialogs, so that whoever reads
//! an answer has read before what happened before (`interfaces.md` §8.2, `abort`). A reader that is slow
//! slows the session and loses nothing (§8.3).

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use pliant_kernel::session::Subscription;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Answers and dialogs that wait to be written, before whoever has more to say waits.
const WAITING: usize = 256;
/// Bytes that are written at a time, unless one record is longer.
const BATCH: usize = 64 << 10;
/// How long a reader may keep the end waiting.
const PATIENCE: Duration = Duration::from_millis(500);

/// Room for a record; given back when it is on its way.
pub type Room = OwnedSemaphorePermit;

enum Item {
    Line(Vec<u8>, Room),
    /// The events of a session, from its beginning.
    Events(Subscription),
    End,
}

/// Where records go in.
#[derive(Clone)]
pub struct Records {
    items: mpsc::UnboundedSender<Item>,
    room: Arc<Semaphore>,
}

impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Records")
    }
}

impl Records {
    /// Waits for room for a record.
    pub async fn room(&self) -> Room {
        match Arc::clone(&self.room).acquire_owned().await {
            Ok(room) => room,
            // It is never closed.
            Err(_) => std::future::pending().await,
        }
    }

    /// Says a record, which ends with LF, after everything that was said before.
    pub fn put(&self, line: Vec<u8>, room: Room) {
        let _ = self.items.send(Item::Line(line, room));
    }

    /// Tells the events of a session, after those of the one before.
    pub fn follow(&self, events: Subscription) {
        let _ = self.items.send(Item::Events(events));
    }
}

/// Nobody reads any more.
pub struct Failed(pub io::Error);

/// The way out.
pub struct Output {
    items: mpsc::UnboundedSender<Item>,
    forwarding: Option<JoinHandle<io::Result<()>>>,
    hurry: CancellationToken,
}

impl Output {
    /// Begins to write.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn start(stdout: File) -> io::Result<(Self, Records)> {
        let (items, received) = mpsc::unbounded_channel();
        // One batch is written while the next one is collected.
        let (batches, waiting) = mpsc::channel(1);
        let hurry = CancellationToken::new();
        let writer = write_on_a_thread(stdout, waiting)?;
        let forwarder = Forwarder {
            items: received,
            events: None,
            batch: Vec::new(),
            batches,
            hurry: hurry.clone(),
        };
        let forwarding = tokio::spawn(forwarder.run(writer));
        let room = Arc::new(Semaphore::new(WAITING));
        let records = Records {
            items: items.clone(),
            room,
        };
        let output = Self {
            items,
            forwarding: Some(forwarding),
            hurry,
        };
        Ok((output, records))
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
        let _ = self.items.send(Item::End);
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
) -> io::Result<tokio::sync::oneshot::Receiver<io::Result<()>>> {
    let (done, written) = tokio::sync::oneshot::channel();
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
    items: mpsc::UnboundedReceiver<Item>,
    /// Of the session that is open.
    events: Option<Subscription>,
    batch: Vec<u8>,
    batches: mpsc::Sender<Vec<u8>>,
    hurry: CancellationToken,
}

/// Writing goes on, or it is over.
enum Next {
    More,
    Over,
}

impl Forwarder {
    async fn run(
        mut self,
        writer: tokio::sync::oneshot::Receiver<io::Result<()>>,
    ) -> io::Result<()> {
        tokio::pin!(writer);
        loop {
            let next = tokio::select! {
                written = &mut writer => return written.unwrap_or(Ok(())),
                next = self.step() => next,
            };
            if matches!(next, Next::Over) {
                break;
            }
        }
        drop(self);
        tokio::time::timeout(PATIENCE, writer)
            .await
            .map_or(Ok(()), |written| written.unwrap_or(Ok(())))
    }

    /// Waits for something to say, takes what else there is, and hands it on.
    async fn step(&mut self) -> Next {
        let mut next = tokio::select! {
            biased;
            event = next_event(&mut self.events) => {
                self.add(event);
                Next::More
            }
            item = self.items.recv() => self.take(item).await,
        };
        while matches!(next, Next::More) && self.batch.len() < BATCH {
            if self.add_waiting_events() {
                continue;
            }
            match self.items.try_recv() {
                Ok(item) => next = self.take(Some(item)).await,
                Err(_) => break,
            }
        }
        match self.flush().await {
            true => next,
            false => Next::Over,
        }
    }

    /// An item comes after all events that were there before it.
    async fn take(&mut self, item: Option<Item>) -> Next {
        while self.add_waiting_events() {
            if self.batch.len() >= BATCH && !self.flush().await {
                return Next::Over;
            }
        }
        match item {
            Some(Item::Line(line, _room)) => self.batch.extend_from_slice(&line),
            Some(Item::Events(events)) => {
                // The session before has ended; what it still had to say comes first.
                let mut before = self.events.replace(events);
                while let Some(event) = recv(&mut before).await {
                    self.write(&event);
                    if self.batch.len() >= BATCH && !self.flush().await {
                        return Next::Over;
                    }
                }
            }
            Some(Item::End) | None => return Next::Over,
        }
        Next::More
    }

    /// Adds an event that waits; false when there is none.
    fn add_waiting_events(&mut self) -> bool {
        let waiting = self.events.as_mut().map(Subscription::try_recv);
        let Some(Ok(event)) = waiting else {
            return false;
        };
        self.write(&event);
        true
    }

    fn add(&mut self, event: Option<Arc<pliant_sdk::Event>>) {
        match event {
            Some(event) => self.write(&event),
            None => self.events = None,
        }
    }

    fn write(&mut self, event: &pliant_sdk::Event) {
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

async fn next_event(events: &mut Option<Subscription>) -> Option<Arc<pliant_sdk::Event>> {
    match events {
        Some(events) => events.recv().await,
        None => std::future::pending().await,
    }
}

async fn recv(events: &mut Option<Subscription>) -> Option<Arc<pliant_sdk::Event>> {
    match events {
        Some(events) => events.recv().await,
        None => None,
    }
}

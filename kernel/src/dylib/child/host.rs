//! The kernel's side of one child: what it is asked, what its plugin asks, and what is told to whom when
//! it is gone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use pliant_abi::{EMIT_CONTINUE, EMIT_SLOW, EMIT_STOP};
use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::Services;
use pliant_sdk::plugin::{Caller, Flow, Invocation};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::AbortHandle;

use super::frame::{Frame, Kind};
use super::guest::{Start, WINDOW};
use super::link::{Inbox, Link};
use super::process::{HostProgram, Process};

/// How long a call may go on after nobody waits for it.
const GRACE: Duration = Duration::from_secs(1);

/// How long a child has for its last words.
const LAST_WORDS: Duration = Duration::from_secs(1);

type Answer = Result<Vec<u8>, Error>;

/// A child that was started.
pub(super) struct Child {
    name: String,
    link: Arc<Link>,
    process: Process,
    runtime: Handle,
    /// Of the plugin itself.
    services: Arc<dyn Services>,
    calls: Mutex<HashMap<u64, Call>>,
    asked: Mutex<HashMap<u64, Asked>>,
    next: AtomicU64,
    /// How it ended.
    ended: OnceLock<String>,
    /// Calls that were answered.
    served: AtomicU64,
}

/// A call of the kernel.
struct Call {
    tell: oneshot::Sender<Answer>,
    /// Whoever is told of what the call says on its way, and the services that go with it.
    from: Option<(Arc<dyn Caller>, Arc<dyn Services>)>,
}

/// A question of the plugin.
struct Asked {
    task: AbortHandle,
    /// How many items of a stream it has room for.
    room: Arc<Semaphore>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Child {
    /// Starts a child and lets it load; answers it with what its plugin says of itself. Holds the
    /// caller's thread, which must be one of `runtime` or know it.
    ///
    /// # Errors
    /// Why it does not run, as a clause; `None` when it took longer than `limit`.
    pub(super) fn start(
        name: &str,
        program: &HostProgram,
        start: &Start,
        services: Arc<dyn Services>,
        runtime: &Handle,
        limit: Duration,
    ) -> Result<(Arc<Self>, Vec<u8>), Option<String>> {
        let failed = |error: std::io::Error| {
            let program = program.program.display();
            Some(format!(
                "the process {program} cannot be started for it: {error}"
            ))
        };
        let (process, socket) = Process::start(program, name).map_err(failed)?;
        let link = {
            let _within = runtime.enter();
            Arc::new(Link::new(socket).map_err(failed)?)
        };
        let child = Arc::new(Self {
            name: name.to_owned(),
            link: Arc::clone(&link),
            process,
            runtime: runtime.clone(),
            services,
            calls: Mutex::default(),
            asked: Mutex::default(),
            next: AtomicU64::new(1),
            ended: OnceLock::new(),
            served: AtomicU64::new(0),
        });
        let (tell, told) = mpsc::sync_channel(1);
        let writing = runtime.spawn(Arc::clone(&link).write_on());
        runtime.spawn(listen(
            Arc::downgrade(&child),
            link,
            tell,
            writing.abort_handle(),
        ));
        let payload = serde_json::to_vec(start).unwrap_or_default();
        child.link.send(&Frame::with(Kind::Start, 0, payload));
        match told.recv_timeout(limit) {
            Ok(Ok(described)) => Ok((child, described)),
            Ok(Err(error)) => {
                child.process.kill();
                Err(Some(error.message))
            }
            Err(RecvTimeoutError::Timeout) => {
                child.process.kill();
                Err(None)
            }
            Err(RecvTimeoutError::Disconnected) => Err(Some("it ended without a word".to_owned())),
        }
    }

    /// Number of the process.
    pub(super) fn id(&self) -> u32 {
        self.process.id
    }

    /// How it ended, if it has.
    pub(super) fn ended(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }

    /// How many calls it has answered.
    pub(super) fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    /// Runs a call. Dropping the future cancels it.
    pub(super) async fn invoke(self: Arc<Self>, contribution: u32, call: Invocation) -> Answer {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (tell, told) = oneshot::channel();
        let from = (call.ctx.caller(), Arc::clone(call.ctx.host().services()));
        let from = Some(from);
        lock(&self.calls).insert(id, Call { tell, from });
        let mut waits = Waits {
            child: Arc::clone(&self),
            id,
            over: false,
        };
        self.link.send(&Frame {
            scope: u64::from(contribution),
            name: call.op,
            ..Frame::with(Kind::Invoke, id, call.payload)
        });
        // It may have ended before the call was in the list.
        if self.ended().is_some() {
            self.lose(id);
        }
        let answer = told.await;
        waits.over = true;
        answer.unwrap_or_else(|_| Err(self.crashed()))
    }

    /// Runs a lifecycle operation and holds the caller's thread.
    pub(super) fn control(&self, op: &str, payload: &[u8], limit: Duration) -> Answer {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (tell, told) = oneshot::channel();
        lock(&self.calls).insert(id, Call { tell, from: None });
        self.link.send(&Frame {
            name: op.to_owned(),
            ..Frame::with(Kind::Control, id, payload.to_vec())
        });
        if self.ended().is_some() {
            self.lose(id);
        }
        let (pass, passed) = mpsc::sync_channel(1);
        self.runtime.spawn(async move {
            // Nobody waits any more when the limit has passed.
            let _ = pass.send(told.await);
        });
        match passed.recv_timeout(limit) {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(self.crashed()),
            Err(_) => {
                self.lose(id);
                let seconds = limit.as_secs_f32();
                let message = format!(
                    "the plugin \"{}\" did not answer \"{op}\" within {seconds} s",
                    self.name
                );
                Err(Error::new(code::TIMEOUT, message))
            }
        }
    }

    /// Lets it say its last words and end, beside whoever lets go of it.
    pub(super) fn end(self: Arc<Self>) {
        if self.ended().is_some() {
            return;
        }
        let runtime = self.runtime.clone();
        runtime.spawn_blocking(move || {
            let _ = self.control(pliant_sdk::state::SHUTDOWN, b"null", LAST_WORDS);
            self.process.kill();
        });
    }

    fn lose(&self, id: u64) {
        // Dropping its sender tells who waits.
        drop(lock(&self.calls).remove(&id));
    }

    /// The error of calls that it took with it.
    pub(super) fn crashed(&self) -> Error {
        let how = self.ended().unwrap_or("its process is gone");
        Error::new(
            code::CRASHED,
            format!(
                "The plugin \"{}\" crashed: {how}. The next call starts it again.",
                self.name
            ),
        )
    }

    fn take(self: &Arc<Self>, frame: Frame) {
        match frame.kind {
            Kind::Answer => {
                let call = lock(&self.calls).remove(&frame.id);
                if let Some(call) = call {
                    self.served.fetch_add(1, Ordering::Relaxed);
                    // Nobody waits for what was cancelled.
                    let _ = call.tell.send(frame.into_answer());
                }
            }
            Kind::Emit => self.emit(&frame),
            Kind::Ask => self.ask(frame),
            Kind::Open => self.open(frame),
            Kind::Notify => {
                if let Some(services) = self.services_of(frame.scope) {
                    services.notify(&frame.name, &frame.payload);
                }
            }
            Kind::Drop => {
                if let Some(asked) = lock(&self.asked).remove(&frame.id) {
                    asked.task.abort();
                }
            }
            Kind::Credit => {
                if let Some(asked) = lock(&self.asked).get(&frame.id) {
                    let more = usize::try_from(frame.scope).unwrap_or_default();
                    asked.room.add_permits(more.min(1 << 20));
                }
            }
            // The others go the other way.
            _ => {}
        }
    }

    fn emit(&self, frame: &Frame) {
        let caller = {
            let calls = lock(&self.calls);
            let call = calls.get(&frame.id);
            call.and_then(|call| Some(Arc::clone(&call.from.as_ref()?.0)))
        };
        let flow = match caller {
            Some(caller) => caller.emit(&frame.payload),
            None => Flow::Stop,
        };
        let said = match flow {
            Flow::Continue => return,
            Flow::Slow => EMIT_SLOW,
            Flow::Stop => EMIT_STOP,
        };
        debug_assert_ne!(said, EMIT_CONTINUE);
        self.link.send(&Frame {
            scope: u64::from(said),
            ..Frame::new(Kind::Flow, frame.id)
        });
    }

    fn services_of(&self, scope: u64) -> Option<Arc<dyn Services>> {
        if scope == 0 {
            return Some(Arc::clone(&self.services));
        }
        let calls = lock(&self.calls);
        Some(Arc::clone(&calls.get(&scope)?.from.as_ref()?.1))
    }

    fn ask(self: &Arc<Self>, frame: Frame) {
        let Frame {
            id,
            scope,
            name,
            payload,
            ..
        } = frame;
        let services = self.services_of(scope);
        let child = Arc::downgrade(self);
        let answering = async move {
            let answer = match services {
                Some(services) => services.call(&name, payload).await,
                None => Err(Error::cancelled()),
            };
            if let Some(child) = child.upgrade() {
                lock(&child.asked).remove(&id);
                child.link.send(&Frame::answer(Kind::Told, id, answer));
            }
        };
        self.begin(id, Arc::new(Semaphore::new(0)), answering);
    }

    fn open(self: &Arc<Self>, frame: Frame) {
        let Frame {
            id,
            scope,
            name,
            payload,
            ..
        } = frame;
        let services = self.services_of(scope);
        let child = Arc::downgrade(self);
        let room = Arc::new(Semaphore::new(usize::try_from(WINDOW).unwrap_or(1)));
        let has_room = Arc::clone(&room);
        let say = move |frame: &Frame| match child.upgrade() {
            Some(child) => {
                child.link.send(frame);
                true
            }
            None => false,
        };
        let over = Arc::downgrade(self);
        let streaming = async move {
            let opened = match services {
                Some(services) => services.open(&name, payload).await,
                None => Err(Error::cancelled()),
            };
            match opened {
                Err(error) => drop(say(&Frame::answer(Kind::Item, id, Err(error)))),
                Ok(mut stream) => {
                    // The first item says that it is open.
                    say(&Frame::new(Kind::Item, id));
                    while let Some(item) = stream.next().await {
                        let Ok(permit) = has_room.acquire().await else {
                            break;
                        };
                        permit.forget();
                        let failed = item.is_err();
                        if !say(&Frame::answer(Kind::Item, id, item)) || failed {
                            break;
                        }
                    }
                }
            }
            say(&Frame::new(Kind::End, id));
            if let Some(child) = over.upgrade() {
                lock(&child.asked).remove(&id);
            }
        };
        self.begin(id, room, streaming);
    }

    fn begin(
        &self,
        id: u64,
        room: Arc<Semaphore>,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        // Held until it is in the list: what is done at once takes itself out of it.
        let mut asked = lock(&self.asked);
        let task = self.runtime.spawn(work).abort_handle();
        asked.insert(id, Asked { task, room });
    }

    /// It is over: everybody who waits is told.
    fn lost(&self, how: String) {
        // Only the reader ends here, and once.
        let _ = self.ended.set(how);
        lock(&self.calls).clear();
        for (_, asked) in lock(&self.asked).drain() {
            asked.task.abort();
        }
    }
}

/// Reads what a child says, until it is gone.
async fn listen(
    child: Weak<Child>,
    link: Arc<Link>,
    started: mpsc::SyncSender<Answer>,
    writing: AbortHandle,
) {
    let mut inbox = Inbox::default();
    let mut started = Some(started);
    let fault = loop {
        match link.read_more(&mut inbox).await {
            Ok(true) => {}
            Ok(false) => break None,
            Err(error) => break Some(error),
        }
        let Some(child) = child.upgrade() else {
            return writing.abort();
        };
        let frames = loop {
            match inbox.next() {
                Ok(Some(frame)) if frame.kind == Kind::Started => {
                    if let Some(started) = started.take() {
                        // Nobody waits any more when the limit has passed.
                        let _ = started.send(frame.into_answer());
                    }
                }
                Ok(Some(frame)) => child.take(frame),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if let Err(error) = frames {
            break Some(error);
        }
    };
    writing.abort();
    let Some(child) = child.upgrade() else { return };
    let ending = move || {
        // Also one that is only half gone.
        child.process.kill();
        let how = child.process.wait();
        let how = match fault.filter(|fault| fault.kind() == std::io::ErrorKind::InvalidData) {
            Some(fault) => format!("it sent {fault}"),
            None => how,
        };
        if let Some(started) = started {
            let _ = started.send(Err(Error::failed(how.clone())));
        }
        child.lost(how);
    };
    // Waiting for the process would hold a worker.
    drop(tokio::task::spawn_blocking(ending));
}

impl Drop for Child {
    fn drop(&mut self) {
        self.process.kill();
        // So that no entry stays in the table of processes; it has been ended, so this is short.
        let _ = self.process.wait();
    }
}

/// Somebody waits for a call.
struct Waits {
    child: Arc<Child>,
    id: u64,
    over: bool,
}

impl Drop for Waits {
    /// Given up: the child is told, and ended if it does not stop in time.
    fn drop(&mut self) {
        if self.over || !lock(&self.child.calls).contains_key(&self.id) {
            return;
        }
        let (child, id) = (Arc::clone(&self.child), self.id);
        child.link.send(&Frame::new(Kind::Cancel, id));
        let runtime = child.runtime.clone();
        runtime.spawn(async move {
            tokio::time::sleep(GRACE).await;
            let still_runs = lock(&child.calls).contains_key(&id);
            if still_runs && child.ended().is_none() {
                tracing::warn!(target: "pliant::plugin", source = %child.name, "ended, because a call that was given up goes on");
                child.process.kill();
            }
        });
    }
}

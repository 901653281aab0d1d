//! The child's side: loads the one library, runs what it is asked for, and lets the plugin ask the kernel
//! for services over the link. It ends with the link: nobody is there any more then.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use pliant_abi::abi_stable::std_types::{RSlice, RStr};
use pliant_abi::{EMIT_CONTINUE, EMIT_SLOW};
use pliant_sdk::export::unreply;
use pliant_sdk::host::{BoxFuture, ByteStream, Host, PollBytes, Services};
use pliant_sdk::plugin::{CallCtx, Caller, Flow, Invocation};
use pliant_sdk::{Error, catch};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use super::frame::{Frame, Kind};
use super::limits::{self, ChildLimits};
use super::link::{Inbox, Link};
use crate::dylib::find::found_at;
use crate::dylib::generation::invoke;
use crate::dylib::load::Loaded;
use crate::dylib::manifest::LoadError;
use crate::dylib::runtime::PluginRuntime;
use crate::dylib::stage::StagedCopy;
use crate::registry::Rank;

/// Items of a stream that may be on their way to the child.
pub(super) const WINDOW: u64 = 16;

/// What the child is to load.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Start {
    /// The private copy.
    pub(super) copy: PathBuf,
    /// What the plugin is created with.
    pub(super) init: Value,
    pub(super) limits: ChildLimits,
    /// It is only tried out.
    pub(super) tries: bool,
}

/// Serves one plugin until the link ends. The link is what stands at the standard input.
pub(super) fn serve(link: std::os::unix::net::UnixStream) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let link = Arc::new(Link::new(link)?);
        let _writing = tokio::spawn(Arc::clone(&link).write_on());
        let guest = Arc::new(Guest {
            link,
            plugins: PluginRuntime::default(),
            loaded: Mutex::default(),
            calls: Mutex::default(),
            asked: Mutex::default(),
            next: AtomicU64::new(1),
        });
        guest.listen().await
    })
}

struct Guest {
    link: Arc<Link>,
    plugins: PluginRuntime,
    loaded: Mutex<Option<Arc<Loaded>>>,
    calls: Mutex<HashMap<u64, Running>>,
    asked: Mutex<HashMap<u64, Asked>>,
    next: AtomicU64,
}

/// A call of the kernel.
struct Running {
    flow: Arc<CallFlow>,
    task: AbortHandle,
    /// Closed when the plugin's future is gone.
    ended: oneshot::Receiver<()>,
}

/// What the caller is known to want.
#[derive(Default)]
struct CallFlow {
    cancelled: AtomicBool,
    is_slow: AtomicBool,
}

/// A question of the plugin.
enum Asked {
    Answer(oneshot::Sender<Result<Vec<u8>, Error>>),
    Stream(mpsc::UnboundedSender<Result<Vec<u8>, Error>>),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Guest {
    async fn listen(self: &Arc<Self>) -> std::io::Result<()> {
        let mut inbox = Inbox::default();
        while self.link.read_more(&mut inbox).await? {
            while let Some(frame) = inbox.next()? {
                self.take(frame);
            }
        }
        Ok(())
    }

    fn take(self: &Arc<Self>, frame: Frame) {
        match frame.kind {
            Kind::Start => self.start(&frame.payload),
            Kind::Invoke => self.invoke(frame),
            Kind::Cancel => self.cancel(frame.id),
            Kind::Control => self.control(frame),
            Kind::Flow => {
                if let Some(running) = lock(&self.calls).get(&frame.id) {
                    let is_slow = frame.scope == u64::from(EMIT_SLOW);
                    running.flow.is_slow.store(is_slow, Ordering::Release);
                    let stops = !is_slow && frame.scope != u64::from(EMIT_CONTINUE);
                    if stops {
                        running.flow.cancelled.store(true, Ordering::Release);
                    }
                }
            }
            Kind::Told => {
                let is_stream = matches!(lock(&self.asked).get(&frame.id), Some(Asked::Stream(_)));
                if !is_stream && let Some(Asked::Answer(tell)) = lock(&self.asked).remove(&frame.id)
                {
                    // Nobody waits for what was dropped meanwhile.
                    let _ = tell.send(frame.into_answer());
                }
            }
            Kind::Item => {
                if let Some(Asked::Stream(items)) = lock(&self.asked).get(&frame.id) {
                    let _ = items.send(frame.into_answer());
                }
            }
            Kind::End => drop(lock(&self.asked).remove(&frame.id)),
            // The others go the other way.
            _ => {}
        }
    }

    /// Loads the library on a thread that it may hold.
    fn start(self: &Arc<Self>, payload: &[u8]) {
        let start: Result<Start, _> = serde_json::from_slice(payload);
        let guest = Arc::clone(self);
        let work = move || {
            let started = start
                .map_err(|error| error.to_string())
                .and_then(|start| guest.load(start).map_err(|error| error.cause()));
            let answer = started.map_err(Error::failed);
            guest.link.send(&Frame::answer(Kind::Started, 0, answer));
        };
        if let Err(error) = self.plugins.blocking(work) {
            self.link.send(&Frame::answer(Kind::Started, 0, Err(error)));
        }
    }

    fn load(self: &Arc<Self>, start: Start) -> Result<Vec<u8>, LoadError> {
        limits::set(start.limits, start.tries);
        let found = found_at(&start.copy, Rank::User)?;
        let services: Arc<dyn Services> = Arc::new(OverLink {
            guest: Arc::clone(self),
            scope: 0,
        });
        let init = serde_json::to_vec(&start.init).unwrap_or_default();
        let copy = StagedCopy::Kept(start.copy);
        let loaded = Loaded::from_copy(&found, copy, services, &init, Arc::default())?;
        let described = loaded.described().unwrap_or_default();
        *lock(&self.loaded) = Some(Arc::new(loaded));
        Ok(described)
    }

    fn invoke(self: &Arc<Self>, frame: Frame) {
        let Frame {
            id,
            scope,
            name,
            payload,
            ..
        } = frame;
        let loaded = lock(&self.loaded).clone();
        let flow = Arc::new(CallFlow::default());
        let services: Arc<dyn Services> = Arc::new(OverLink {
            guest: Arc::clone(self),
            scope: id,
        });
        let caller = GuestCaller {
            link: Arc::clone(&self.link),
            flow: Arc::clone(&flow),
            id,
        };
        let ctx = CallCtx::new(Arc::new(caller), Host::from_shared(services));
        let call = Invocation {
            op: name,
            payload,
            ctx,
        };
        let (lives, ended) = oneshot::channel();
        let running = async move {
            let _lives: oneshot::Sender<()> = lives;
            let loaded = loaded.ok_or_else(|| Error::failed("the plugin is not loaded"))?;
            invoke(loaded, u32::try_from(scope).unwrap_or(u32::MAX), call).await
        };
        let guest = Arc::clone(self);
        let task = self.plugins.run(running);
        let answering = tokio::spawn(async move {
            let answer = task.await;
            lock(&guest.calls).remove(&id);
            guest.link.send(&Frame::answer(Kind::Answer, id, answer));
        });
        let task = answering.abort_handle();
        lock(&self.calls).insert(id, Running { flow, task, ended });
    }

    fn cancel(self: &Arc<Self>, id: u64) {
        let Some(running) = lock(&self.calls).remove(&id) else {
            return;
        };
        running.flow.cancelled.store(true, Ordering::Release);
        // Drops the plugin's future, but not while that is being polled: the kernel ends who takes too
        // long.
        running.task.abort();
        let link = Arc::clone(&self.link);
        tokio::spawn(async move {
            // It is closed, never sent to.
            let _ = running.ended.await;
            let cancelled = Err(Error::cancelled());
            link.send(&Frame::answer(Kind::Answer, id, cancelled));
        });
    }

    fn control(self: &Arc<Self>, frame: Frame) {
        let loaded = lock(&self.loaded).clone();
        let guest = Arc::clone(self);
        let id = frame.id;
        let work = move || {
            let answer = match loaded {
                None => Err(Error::failed("the plugin is not loaded")),
                Some(loaded) => {
                    let op = RStr::from_str(&frame.name);
                    let payload = RSlice::from_slice(&frame.payload);
                    let run = || unreply(loaded.instance()?.control(op, payload));
                    catch(run).and_then(|answer| answer)
                }
            };
            guest.link.send(&Frame::answer(Kind::Answer, id, answer));
        };
        if let Err(error) = self.plugins.blocking(work) {
            self.link.send(&Frame::answer(Kind::Answer, id, Err(error)));
        }
    }
}

struct GuestCaller {
    link: Arc<Link>,
    flow: Arc<CallFlow>,
    id: u64,
}

impl Caller for GuestCaller {
    fn cancelled(&self) -> bool {
        self.flow.cancelled.load(Ordering::Acquire)
    }

    fn emit(&self, payload: &[u8]) -> Flow {
        if self.cancelled() {
            return Flow::Stop;
        }
        let frame = Frame::with(Kind::Emit, self.id, payload.to_vec());
        self.link.send_soon(&frame);
        match self.flow.is_slow.load(Ordering::Acquire) {
            true => Flow::Slow,
            false => Flow::Continue,
        }
    }
}

/// The kernel's services, for the plugin itself or for one of its calls.
struct OverLink {
    guest: Arc<Guest>,
    scope: u64,
}

impl OverLink {
    fn ask(&self, kind: Kind, service: &str, payload: Vec<u8>, asked: Asked) -> Question {
        let id = self.guest.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.guest.asked).insert(id, asked);
        self.guest.link.send(&Frame {
            scope: self.scope,
            name: service.to_owned(),
            ..Frame::with(kind, id, payload)
        });
        Question {
            guest: Arc::clone(&self.guest),
            id,
        }
    }
}

/// A question that the plugin may give up.
struct Question {
    guest: Arc<Guest>,
    id: u64,
}

impl Drop for Question {
    fn drop(&mut self) {
        if lock(&self.guest.asked).remove(&self.id).is_some() {
            self.guest.link.send(&Frame::new(Kind::Drop, self.id));
        }
    }
}

fn gone<T>(_: T) -> Error {
    Error::failed("the kernel gave no answer")
}

impl Services for OverLink {
    fn call(&self, service: &str, payload: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        let (tell, told) = oneshot::channel();
        let is_ready = service == "emit.ready";
        let question = self.ask(Kind::Ask, service, payload, Asked::Answer(tell));
        let scope = self.scope;
        Box::pin(async move {
            let answer = told.await.unwrap_or_else(|lost| Err(gone(lost)));
            if is_ready && let Some(running) = lock(&question.guest.calls).get(&scope) {
                running.flow.is_slow.store(false, Ordering::Release);
            }
            answer
        })
    }

    fn open(
        &self,
        service: &str,
        payload: Vec<u8>,
    ) -> BoxFuture<'static, Result<ByteStream, Error>> {
        let (items, coming) = mpsc::unbounded_channel();
        let question = self.ask(Kind::Open, service, payload, Asked::Stream(items));
        // The first item says whether it opened.
        Box::pin(async move {
            let mut coming = coming;
            match coming.recv().await {
                Some(Ok(_)) => Ok(ByteStream::new(GuestStream {
                    question,
                    coming,
                    taken: 0,
                })),
                Some(Err(error)) => Err(error),
                None => Err(gone(())),
            }
        })
    }

    fn notify(&self, service: &str, payload: &[u8]) {
        self.guest.link.send(&Frame {
            scope: self.scope,
            name: service.to_owned(),
            ..Frame::with(Kind::Notify, 0, payload.to_vec())
        });
    }
}

struct GuestStream {
    question: Question,
    coming: mpsc::UnboundedReceiver<Result<Vec<u8>, Error>>,
    taken: u64,
}

impl PollBytes for GuestStream {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        let item = std::task::ready!(self.coming.poll_recv(cx));
        self.taken += 1;
        if item.is_some() && self.taken >= WINDOW / 2 {
            self.question.guest.link.send(&Frame {
                scope: std::mem::take(&mut self.taken),
                ..Frame::new(Kind::Credit, self.question.id)
            });
        }
        Poll::Ready(item)
    }
}

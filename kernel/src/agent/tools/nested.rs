//! Calls that a running tool makes of other tools (`kernel.md` §4.5). A tool's future knows nothing of
//! the run it belongs to, so it asks by a channel; the run serves it in a lane beside its turns, where
//! the calls pass the same stations as those of the model. They leave no trace in the transcript but
//! the record on the result of the model's call.
//!
//! A call belongs to the low-level run: when that ends, what still runs in the lane is aborted.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::BoxFuture;
use pliant_sdk::message::ToolCall;
use pliant_sdk::tool::ToolResult;
use serde_json::{Map, Value};
use tokio::sync::{Mutex, OwnedMutexGuard, mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::call::{
    Call, Finished, Prepared, Reach, announce, end, execute, is_sequential, prepare,
};
use super::record::{Place, Record};
use super::updates::Board;
use crate::agent::Driver;

/// Calls inside calls; whoever goes deeper calls itself.
const DEEPEST: usize = 32;

/// Calls of a run that are under way at the same time, callers that wait for others included.
const MOST: usize = 4096;

/// Makes calls for one running tool.
#[derive(Debug, Clone)]
pub struct NestedCalls(Arc<Caller>);

#[derive(Debug)]
struct Caller {
    id: String,
    standing: Standing,
    made: AtomicU64,
    over: AtomicBool,
}

/// How a nested call ended.
#[derive(Debug, Clone, PartialEq)]
pub struct NestedEnd {
    /// The call.
    pub call: ToolCall,
    /// Its result; what went wrong is an error result too.
    pub result: ToolResult,
    /// Wall time, milliseconds; absent when the tool did not run.
    pub duration_ms: Option<u64>,
}

/// A nested call that was made. Dropping it aborts the call.
#[derive(Debug)]
pub struct NestedCall {
    call: ToolCall,
    done: oneshot::Receiver<NestedEnd>,
    board: Board,
    cancel: DropGuard,
}

impl NestedCalls {
    pub(super) fn new(id: &str, standing: &Standing) -> Self {
        Self(Arc::new(Caller {
            id: id.to_owned(),
            standing: standing.clone(),
            made: AtomicU64::new(0),
            over: AtomicBool::new(false),
        }))
    }

    /// The tool has answered; it makes no more calls.
    pub(super) fn close(&self) {
        self.0.over.store(true, Ordering::SeqCst);
    }

    /// Makes a call. Its id is the caller's with a number (T19). Arguments that are no object are a
    /// problem of the call, not of its maker.
    ///
    /// # Errors
    /// When the caller's own call is over.
    pub fn call(&self, name: &str, arguments: Value) -> Result<NestedCall, Error> {
        let caller = &*self.0;
        let ended = || {
            Error::new(
                code::UNAVAILABLE,
                format!(
                    "The tool call {} has ended; a tool can call others only while it runs.",
                    caller.id
                ),
            )
        };
        if caller.over.load(Ordering::SeqCst) {
            return Err(ended());
        }
        let number = caller.made.fetch_add(1, Ordering::SeqCst) + 1;
        let (arguments, arguments_error) = match arguments {
            Value::Object(arguments) => (arguments, None),
            Value::Null => (Map::new(), None),
            other => (Map::new(), Some(format!("they are not an object: {other}"))),
        };
        let call = ToolCall {
            id: format!("{}/{number}", caller.id),
            name: name.to_owned(),
            arguments,
            arguments_error,
            ..ToolCall::default()
        };
        let standing = caller.standing.inside();
        let (reply, done) = oneshot::channel();
        let made = NestedCall {
            call: call.clone(),
            done,
            board: Board::default(),
            cancel: standing.cancel.clone().drop_guard(),
        };
        let request = Request {
            place: standing.record.begin(&call),
            call: Call {
                asked: call,
                parent: Some(caller.id.clone()),
            },
            board: made.board.clone(),
            under_way: UnderWay::new(&standing.desk.under_way),
            standing,
            reply,
        };
        let desk = &caller.standing.desk;
        desk.requests.send(request).map_err(|_| ended())?;
        Ok(made)
    }
}

impl NestedCall {
    /// Id of the call.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.call.id
    }

    /// The next partial result, `None` when the call has ended.
    pub async fn update(&self) -> Option<ToolResult> {
        self.board.next().await
    }

    /// Waits for the end.
    pub async fn end(self) -> NestedEnd {
        let Self {
            call, done, cancel, ..
        } = self;
        let end = done.await;
        // What it started without waiting goes on.
        cancel.disarm();
        end.unwrap_or_else(|_| NestedEnd {
            call,
            result: Finished::aborted().result,
            duration_ms: None,
        })
    }

    /// Lets the call go on by itself (T19).
    pub fn leave(self) {
        self.cancel.disarm();
    }
}

/// Where a call stands among the others: what calls made inside it go by.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    pub(super) cancel: CancellationToken,
    pub(super) record: Record,
    depth: usize,
    queue: Queue,
    desk: Desk,
}

impl Standing {
    /// That of a call made inside this one.
    fn inside(&self) -> Self {
        Self {
            cancel: self.cancel.child_token(),
            depth: self.depth + 1,
            ..self.clone()
        }
    }

    /// Waits for its turn among the sequential calls. Sequential calls made inside this one wait for
    /// each other and not for it (T20). An aborted call waits no longer.
    pub(super) async fn in_turn(self) -> (Self, Option<OwnedMutexGuard<()>>) {
        let turn = tokio::select! {
            biased;
            () = self.cancel.cancelled() => None,
            turn = Arc::clone(&self.queue.0).lock_owned() => Some(turn),
        };
        let inner = Self {
            queue: Queue::default(),
            ..self
        };
        (inner, turn)
    }
}

/// Sequential calls, one after another in the order they came.
#[derive(Debug, Clone, Default)]
struct Queue(Arc<Mutex<()>>);

/// Where calls are asked for, one for each low-level run.
#[derive(Debug, Clone)]
pub(in crate::agent) struct Desk {
    requests: mpsc::UnboundedSender<Request>,
    cancel: CancellationToken,
    queue: Queue,
    under_way: Arc<AtomicUsize>,
}

impl Desk {
    /// The standing of a call of the model.
    pub(super) fn standing(&self) -> Standing {
        Standing {
            cancel: self.cancel.child_token(),
            record: Record::default(),
            depth: 0,
            queue: self.queue.clone(),
            desk: self.clone(),
        }
    }
}

#[derive(Debug)]
struct Request {
    call: Call,
    standing: Standing,
    place: Place,
    board: Board,
    reply: oneshot::Sender<NestedEnd>,
    under_way: UnderWay,
}

/// Counts a call until it has ended.
#[derive(Debug)]
struct UnderWay {
    all: Arc<AtomicUsize>,
    before: usize,
}

impl UnderWay {
    fn new(all: &Arc<AtomicUsize>) -> Self {
        Self {
            all: Arc::clone(all),
            before: all.fetch_add(1, Ordering::SeqCst),
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs the calls that are asked for at a desk, side by side.
pub(in crate::agent) struct Lane<'a, D> {
    driver: &'a D,
    desk: Desk,
    requests: mpsc::UnboundedReceiver<Request>,
    running: FuturesUnordered<BoxFuture<'a, ()>>,
}

impl<'a, D: Driver> Lane<'a, D> {
    pub(in crate::agent) fn new(driver: &'a D, cancel: &CancellationToken) -> Self {
        let (sender, requests) = mpsc::unbounded_channel();
        let desk = Desk {
            requests: sender,
            cancel: cancel.child_token(),
            queue: Queue::default(),
            under_way: Arc::default(),
        };
        Self {
            driver,
            desk,
            requests,
            running: FuturesUnordered::new(),
        }
    }

    pub(in crate::agent) fn desk(&self) -> Desk {
        self.desk.clone()
    }

    /// Serves for as long as it is polled.
    pub(in crate::agent) async fn serve(&mut self) -> Infallible {
        loop {
            tokio::select! {
                Some(request) = self.requests.recv() => self.begin(request),
                Some(()) = self.running.next() => {}
                // The desk is held here, so that requests never end.
                else => std::future::pending::<()>().await,
            }
        }
    }

    /// The run is over: what still runs is aborted and announced as ended.
    pub(in crate::agent) async fn finish(mut self) {
        self.desk.cancel.cancel();
        self.requests.close();
        while let Ok(request) = self.requests.try_recv() {
            self.begin(request);
        }
        while self.running.next().await.is_some() {}
    }

    fn begin(&mut self, request: Request) {
        self.running.push(Box::pin(run(self.driver, request)));
    }
}

/// One nested call (T18).
async fn run<D: Driver>(driver: &D, request: Request) {
    let Request {
        call,
        mut standing,
        place,
        board,
        reply,
        under_way,
    } = request;
    let mut turn = None;
    if is_sequential(driver, &call.asked.name, Reach::Callable) {
        (standing, turn) = standing.in_turn().await;
    }
    announce(driver, &call).await;
    let prepared = match too_many(&call, &standing, &under_way) {
        Some(text) => Prepared::refused(text),
        None => prepare(driver, &call, Reach::Callable, &standing.cancel).await,
    };
    let finished = match prepared {
        Prepared::Immediate(result) => Finished::not_run(*result),
        Prepared::Ready { tool, arguments } => {
            execute(driver, &call, tool, arguments, &standing, Some(&board)).await
        }
    };
    drop(turn);
    standing.record.end(place, &finished);
    end(driver, &call, &finished).await;
    board.close();
    // A caller that is gone wants no answer.
    let _ = reply.send(NestedEnd {
        call: call.asked,
        result: finished.result,
        duration_ms: finished.duration_ms,
    });
}

/// Why a call is not run for its number.
fn too_many(call: &Call, standing: &Standing, under_way: &UnderWay) -> Option<String> {
    let name = &call.asked.name;
    if standing.depth > DEEPEST {
        return Some(format!(
            "The call of \"{name}\" was not run: it is made inside {DEEPEST} calls that are made inside each other. A tool seems to call itself without end."
        ));
    }
    (under_way.before >= MOST).then(|| {
        format!(
            "The call of \"{name}\" was not run: {MOST} calls are under way already. Wait for some of them first."
        )
    })
}

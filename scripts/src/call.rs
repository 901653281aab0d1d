//! One running evaluation: who asked, which services answer, and when it has to stop.
//!
//! Functions offered to scripts find it through their thread ([`Call::current`]), because the engine
//! they are registered with is shared. It outlives the evaluation only in values a script kept; those
//! find it closed.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pliant_kernel::registry::Kind;
use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::{ByteStream, Host};
use pliant_sdk::late::LOOK_AGAIN;
use pliant_sdk::plugin::{CallCtx, Flow};
use rhai::{Dynamic, EvalAltResult, Position};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::contribution::{Registration, Registrations};
use crate::convert;
use crate::program::Program;
use crate::threads::STACK_LIMIT;

/// What a host function answers.
pub(crate) type ScriptResult<T> = Result<T, Box<EvalAltResult>>;

/// How many steps pass between two looks at the clock and the stack. A step takes some 50 ns.
const TICKS_PER_LOOK: u32 = 64;
const NO_DEADLINE: u64 = u64::MAX;

thread_local! {
    static CURRENT: RefCell<Option<Arc<Call>>> = const { RefCell::new(None) };
    static TICKS: Cell<u32> = const { Cell::new(0) };
    static STACK_BASE: Cell<usize> = const { Cell::new(0) };
}

/// Why an evaluation ends before its end. Once set it stays, so that no `catch` survives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stop {
    /// The caller went away.
    Cancelled = 1,
    /// The time limit passed.
    Deadline = 2,
    /// The native stack is nearly used up.
    Stack = 3,
}

/// Asks a running evaluation to stop; shared with whoever waits for it.
#[derive(Debug, Default)]
pub(crate) struct StopSign {
    reason: AtomicU8,
    raised: Notify,
}

impl StopSign {
    pub(crate) fn raise(&self, reason: Stop) {
        let unset =
            self.reason
                .compare_exchange(0, reason as u8, Ordering::Relaxed, Ordering::Relaxed);
        if unset.is_ok() {
            self.raised.notify_waiters();
        }
    }

    pub(crate) fn reason(&self) -> Option<Stop> {
        match self.reason.load(Ordering::Relaxed) {
            1 => Some(Stop::Cancelled),
            2 => Some(Stop::Deadline),
            3 => Some(Stop::Stack),
            _ => None,
        }
    }

    async fn wait(&self) {
        let raised = self.raised.notified();
        tokio::pin!(raised);
        // Listening begins before looking, so that no signal falls between the two.
        raised.as_mut().enable();
        if self.reason().is_none() {
            raised.await;
        }
    }
}

/// What is asked of the script.
pub(crate) enum Phase {
    /// The top level runs and registers.
    Loading(Mutex<Registrations>),
    /// A contribution runs.
    Serving(CallCtx),
}

/// One running evaluation.
pub(crate) struct Call {
    program: Arc<Program>,
    phase: Phase,
    host: Host,
    runtime: Option<Handle>,
    stop: Arc<StopSign>,
    started: Instant,
    deadline_ms: AtomicU64,
    limit: Option<Duration>,
    open: AtomicBool,
    /// Connections that end with it.
    bodies: Mutex<Vec<Body>>,
}

/// The body of an answer that is still coming; taken while somebody reads it.
pub(crate) type Body = Arc<Mutex<Option<ByteStream>>>;

impl Call {
    /// Prepares an evaluation; `limit` bounds its time without that of dialogs.
    pub(crate) fn new(
        program: Arc<Program>,
        phase: Phase,
        host: Host,
        limit: Option<Duration>,
    ) -> Arc<Self> {
        Arc::new(Self {
            program,
            phase,
            host,
            runtime: Handle::try_current().ok(),
            stop: Arc::default(),
            started: Instant::now(),
            deadline_ms: AtomicU64::new(limit.map_or(NO_DEADLINE, to_ms)),
            limit,
            open: AtomicBool::new(true),
            bodies: Mutex::default(),
        })
    }

    /// The evaluation this thread is in.
    pub(crate) fn current() -> ScriptResult<Arc<Self>> {
        CURRENT
            .with_borrow(Clone::clone)
            .ok_or_else(|| fail("this function works only while pliant runs the script"))
    }

    /// Makes this the evaluation of the thread while `run` lasts.
    pub(crate) fn enter<T>(self: &Arc<Self>, run: impl FnOnce() -> T) -> T {
        struct Leave<'a>(&'a Call);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                self.0.open.store(false, Ordering::Relaxed);
                self.0.close_bodies();
                CURRENT.with_borrow_mut(Option::take);
            }
        }
        STACK_BASE.set(stack_pointer());
        CURRENT.with_borrow_mut(|current| *current = Some(Arc::clone(self)));
        let _leave = Leave(self);
        run()
    }

    /// Keeps a connection until somebody closes it or the call ends.
    pub(crate) fn keep_open(&self, body: ByteStream) -> Body {
        let body: Body = Arc::new(Mutex::new(Some(body)));
        let mut bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        bodies.retain(|other| Arc::strong_count(other) > 1);
        bodies.push(Arc::clone(&body));
        body
    }

    fn close_bodies(&self) {
        let mut bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner);
        for body in bodies.drain(..) {
            body.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
    }

    /// Called for every step of a script; an answer ends it.
    pub(crate) fn tick() -> Option<Dynamic> {
        CURRENT.with_borrow(|current| current.as_ref()?.look())
    }

    fn look(&self) -> Option<Dynamic> {
        let ticks = TICKS.get().wrapping_add(1);
        TICKS.set(ticks);
        if ticks.is_multiple_of(TICKS_PER_LOOK) {
            if STACK_BASE.get().abs_diff(stack_pointer()) > STACK_LIMIT {
                self.stop.raise(Stop::Stack);
            }
            if to_ms(self.started.elapsed()) >= self.deadline_ms.load(Ordering::Relaxed) {
                self.stop.raise(Stop::Deadline);
            }
        }
        self.stop.reason().map(|reason| self.token(reason))
    }

    /// The script that runs.
    pub(crate) fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The services.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// What the top level has registered so far; nothing once the script is loaded.
    pub(crate) fn registrations(&self) -> Option<&Mutex<Registrations>> {
        match &self.phase {
            Phase::Loading(registrations) => Some(registrations),
            Phase::Serving(_) => None,
        }
    }

    /// Registers something: with the rest when the script has been loaded, or at once if it is already.
    pub(crate) fn register(&self, new: Registration) -> ScriptResult<()> {
        if let Some(registrations) = self.registrations() {
            let mut registrations = registrations.lock().unwrap_or_else(PoisonError::into_inner);
            registrations.add(new);
            return Ok(());
        }
        let (kind, name) = (new.kind, new.name.clone());
        let contributed = self.program.contributed();
        contributed.add([new]).map_err(|error| throw(&error))?;
        self.look_again().inspect_err(|_| {
            // What nobody knows of is not there either.
            if kind != Kind::Hook {
                contributed.remove(kind, &name);
            }
        })
    }

    /// Takes back what was registered; `false` when nothing was.
    pub(crate) fn unregister(&self, kind: Kind, name: &str) -> ScriptResult<bool> {
        if let Some(registrations) = self.registrations() {
            let mut registrations = registrations.lock().unwrap_or_else(PoisonError::into_inner);
            return Ok(registrations.remove(kind, name));
        }
        let was_there = self.program.contributed().remove(kind, name);
        if was_there {
            self.look_again()?;
        }
        Ok(was_there)
    }

    /// The registry takes in what has changed.
    fn look_again(&self) -> ScriptResult<()> {
        self.ensure_open()?;
        let host = self.host.clone();
        let asked = self.wait_for(async move { host.call(LOOK_AGAIN, &Value::Null).await })?;
        asked.map_err(|error| match error.is(code::UNSUPPORTED) {
            true => fail(
                "nothing can be registered here, because there is no session: register it at the top level, or in on(\"session_start\", |event, ctx| …)",
            ),
            false => throw(&error),
        })
    }

    /// Takes what the top level registered.
    pub(crate) fn take_registrations(&self) -> Registrations {
        match &self.phase {
            Phase::Loading(registrations) => registrations
                .lock()
                .map(|mut all| std::mem::take(&mut *all))
                .unwrap_or_default(),
            Phase::Serving(_) => Registrations::default(),
        }
    }

    /// Raised when nobody waits for the evaluation any more.
    pub(crate) fn stop_sign(&self) -> &Arc<StopSign> {
        &self.stop
    }

    /// Whether the caller has given up.
    pub(crate) fn cancelled(&self) -> bool {
        let given_up = match &self.phase {
            Phase::Serving(ctx) => ctx.cancelled(),
            Phase::Loading(_) => false,
        };
        given_up || self.stop.reason().is_some()
    }

    /// Pushes JSON to the caller; waits when it is behind.
    pub(crate) fn emit(&self, payload: &[u8]) -> ScriptResult<()> {
        let Phase::Serving(ctx) = &self.phase else {
            return Ok(());
        };
        match ctx.emit(payload) {
            Flow::Continue => Ok(()),
            Flow::Slow => self
                .wait(self.host.call_bytes("emit.ready", b"null".to_vec()))
                .map(drop),
            Flow::Stop => {
                self.stop.raise(Stop::Cancelled);
                Err(self.terminated())
            }
        }
    }

    /// Waits for a service. Stops waiting on cancellation and at the deadline; a failure of the
    /// service is thrown as `#{code, message}`.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = Result<T, Error>>) -> ScriptResult<T> {
        self.wait_for(work)?.map_err(|error| throw(&error))
    }

    /// What services run on.
    pub(crate) fn runtime(&self) -> ScriptResult<&Handle> {
        let runtime = self.runtime.as_ref();
        runtime.ok_or_else(|| fail("services are not there yet while this script is loaded"))
    }

    /// As [`Call::wait`], leaving the service's failure to the caller.
    pub(crate) fn wait_for<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> ScriptResult<Result<T, Error>> {
        self.ensure_open()?;
        let runtime = self.runtime()?;
        let deadline = self.deadline_ms.load(Ordering::Relaxed);
        runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.stop.wait() => Err(self.terminated()),
                answer = work => Ok(answer),
                () = until(self.started, deadline) => {
                    self.stop.raise(Stop::Deadline);
                    Err(self.terminated())
                }
            }
        })
    }

    /// As [`Call::wait_for`] for a dialog: the user's time does not count.
    pub(crate) fn wait_for_user<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> ScriptResult<Result<T, Error>> {
        let deadline = self.deadline_ms.swap(NO_DEADLINE, Ordering::Relaxed);
        let asked = Instant::now();
        let answer = self.wait_for(work);
        let later = deadline.saturating_add(to_ms(asked.elapsed()));
        self.deadline_ms.store(later, Ordering::Relaxed);
        answer
    }

    /// Refuses use of a context that a script kept after its call ended.
    pub(crate) fn ensure_open(&self) -> ScriptResult<()> {
        if self.open.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(fail(
            "this context belongs to a call that has ended; use the one given to the handler",
        ))
    }

    /// Gives the error of an evaluation that was stopped its code; keeps where it was.
    pub(crate) fn explain(&self, mut error: Error) -> Error {
        match self.stop.reason() {
            Some(Stop::Cancelled) => Error::cancelled(),
            Some(Stop::Deadline) => {
                code::TIMEOUT.clone_into(&mut error.code);
                error
            }
            Some(Stop::Stack) | None => error,
        }
    }

    /// Ends the script; not to be caught.
    fn terminated(&self) -> Box<EvalAltResult> {
        let why = match self.stop.reason() {
            Some(reason) => self.token(reason),
            None => Dynamic::UNIT,
        };
        EvalAltResult::ErrorTerminated(why, Position::NONE).into()
    }

    /// Why the script ends, as the error will say it.
    fn token(&self, reason: Stop) -> Dynamic {
        match reason {
            Stop::Cancelled => "the script was cancelled".into(),
            Stop::Deadline => format!(
                "the script did not end within {} ms and was stopped",
                self.limit.map_or(0, to_ms)
            )
            .into(),
            Stop::Stack => "calls and expressions are nested too deeply".into(),
        }
    }
}

async fn until(started: Instant, deadline_ms: u64) {
    if deadline_ms == NO_DEADLINE {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep_until((started + Duration::from_millis(deadline_ms)).into()).await;
}

/// A mistake in using a host function.
pub(crate) fn fail(message: impl Into<String>) -> Box<EvalAltResult> {
    throw(&Error::invalid(message))
}

/// A service's failure as a script can catch it.
pub(crate) fn throw(error: &Error) -> Box<EvalAltResult> {
    let mut thrown = rhai::Map::new();
    thrown.insert("code".into(), error.code.clone().into());
    thrown.insert("message".into(), error.message.clone().into());
    if let Some(details) = error
        .details
        .as_deref()
        .and_then(|d| convert::to_dynamic(d).ok())
    {
        thrown.insert("details".into(), details);
    }
    EvalAltResult::ErrorRuntime(thrown.into(), Position::NONE).into()
}

fn to_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(NO_DEADLINE - 1)
}

/// About where the stack is.
#[inline(never)]
fn stack_pointer() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}

//! Calling handlers: in load order, one after another, each bounded in time, failures isolated.
//!
//! How answers compose (chain, gate, collect) is the business of the stage that dispatches; here one
//! handler is called, its failure is reported with its owner's name, and the stage decides what
//! comes next. A dispatch works on one snapshot's list, so a reload never mixes generations in it.

use std::borrow::Cow;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use pliant_sdk::error::code;
use pliant_sdk::host::{Host, Services};
use pliant_sdk::plugin::{CallCtx, Caller, Flow};
use pliant_sdk::{Error, Event};
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::patience::{LEFT_BEHIND, OnAbort, Patience};
use super::snapshot::Snapshot;
use super::stopwatch::Stopwatch;
use super::{HandlerSpec, HookPoint, Registered, Source};

/// A failure of one handler or command.
#[derive(Debug, Clone)]
pub struct HandlerFailure {
    /// Whose it is.
    pub source: Source,
    /// At which event, or in which operation.
    pub event: Cow<'static, str>,
    /// What went wrong.
    pub error: Error,
}

impl From<HandlerFailure> for Event {
    fn from(failure: HandlerFailure) -> Self {
        let Source { name, path, .. } = failure.source;
        Self::ExtensionError {
            extension_path: path.map_or(name, |path| path.display().to_string()),
            event: failure.event.into_owned(),
            error: failure.error.to_string(),
        }
    }
}

/// Lends code of plugins what it is called with, and hears of its failures.
pub trait Lender: Send + Sync {
    /// The services of a handler's owner.
    fn services(&self, source: &Source) -> Arc<dyn Services>;

    /// Takes a failure.
    fn report(&self, failure: HandlerFailure);
}

/// What handlers are called with.
#[derive(Clone)]
pub struct Callers<'a> {
    lender: &'a dyn Lender,
    patience: Patience,
}

impl<'a> Callers<'a> {
    /// Code is lent what `lender` has, and has as much time as `patience` says.
    #[must_use]
    pub fn new(lender: &'a dyn Lender, patience: Patience) -> Self {
        Self { lender, patience }
    }

    /// Reports a failure that is none of code's own.
    pub fn report(&self, failure: HandlerFailure) {
        self.lender.report(failure);
    }

    /// How long code may take.
    #[must_use]
    pub fn patience(&self) -> &Patience {
        &self.patience
    }

    /// Runs one operation of a registered thing and reports its failure. An abort ends it at once.
    ///
    /// # Errors
    /// The failure; `cancelled` after an abort, which is not reported.
    pub async fn call<S>(
        &self,
        callee: &Registered<S>,
        event: &'static str,
        op: &str,
        payload: Vec<u8>,
    ) -> Result<Value, HandlerFailure> {
        let caller = user_call(self.patience.cancel.clone());
        self.call_as(caller, callee, event, op, payload, OnAbort::End)
            .await
    }

    async fn call_as<S>(
        &self,
        caller: Arc<dyn Caller>,
        callee: &Registered<S>,
        event: &'static str,
        op: &str,
        payload: Vec<u8>,
        on_abort: OnAbort,
    ) -> Result<Value, HandlerFailure> {
        let source = callee.source();
        let clock = Stopwatch::start();
        let mut services = callee.lend(self.lender.services(source));
        if self.patience.limit.is_some() {
            services = clock.watching(services);
        }
        let ctx = CallCtx::new(caller, Host::from_shared(services));
        let mut running = callee.invoke_bytes(op, payload, ctx);
        // Most answer at once, and need neither a timer nor an ear for the user.
        let answer = match poll_fn(|cx| Poll::Ready(running.as_mut().poll(cx))).await {
            Poll::Ready(answer) => answer,
            Poll::Pending => self.patience.wait(running, &clock, on_abort).await,
        };
        let value = answer.and_then(|bytes| match bytes.as_slice() {
            b"" | b"null" => Ok(Value::Null),
            bytes => Ok(serde_json::from_slice(bytes)?),
        });
        value.map_err(|error| {
            let failure = HandlerFailure {
                source: source.clone(),
                event: event.into(),
                error,
            };
            // Of the user's giving up nobody has to be told; code that says so by itself has failed.
            if !(on_abort == OnAbort::End && self.is_given_up(&failure)) {
                self.lender.report(failure.clone());
            }
            failure
        })
    }

    fn is_given_up(&self, failure: &HandlerFailure) -> bool {
        failure.error.is(code::CANCELLED) && self.patience.cancel.is_cancelled()
    }
}

/// The calling context of a handler or command: it can see that the user gave up.
#[must_use]
pub fn call_ctx(services: Arc<dyn Services>, cancel: CancellationToken) -> CallCtx {
    CallCtx::new(user_call(cancel), Host::from_shared(services))
}

fn user_call(cancel: CancellationToken) -> Arc<dyn Caller> {
    struct UserCall(CancellationToken);
    impl Caller for UserCall {
        fn cancelled(&self) -> bool {
            self.0.is_cancelled()
        }
        fn emit(&self, _: &[u8]) -> Flow {
            Flow::Continue
        }
    }
    Arc::new(UserCall(cancel))
}

/// One dispatch of one event.
pub struct Dispatcher<'a> {
    handlers: &'a [Arc<Registered<HandlerSpec>>],
    point: HookPoint,
    callers: Callers<'a>,
    /// Of the handlers that end when the user gives up.
    caller: Arc<dyn Caller>,
    /// The sources that are told, if not all.
    only: Option<&'a [String]>,
}

impl<'a> Dispatcher<'a> {
    /// Prepares a dispatch; `None` when nobody listens, so that a stage can skip all its work (G4).
    #[must_use]
    pub fn new(snapshot: &'a Snapshot, point: HookPoint, callers: Callers<'a>) -> Option<Self> {
        let handlers = snapshot.handlers(point.name());
        (!handlers.is_empty()).then(|| Self {
            handlers,
            point,
            caller: user_call(callers.patience.cancel.clone()),
            callers,
            only: None,
        })
    }

    /// Tells these sources and no others.
    #[must_use]
    pub fn only(self, sources: &'a [String]) -> Self {
        Self {
            only: Some(sources),
            ..self
        }
    }

    /// Calls all handlers with the same payload and ignores what they answer.
    pub async fn notify(&self, payload: &impl Serialize) {
        let Ok(bytes) = serde_json::to_vec(payload) else {
            return;
        };
        for handler in self.handlers {
            let is_meant = |only: &[String]| only.contains(&handler.source().name);
            if handler.strikes.load(Ordering::Relaxed) >= STRIKES || !self.only.is_none_or(is_meant)
            {
                continue;
            }
            // The failure was reported; a notification has no other consequence.
            let told = self.call(handler, bytes.clone()).await;
            self.count(handler, told.err());
        }
    }

    /// A handler that panicked, and one that may be called very often and fails time after time, is left
    /// out from then on, and that is said once.
    fn count(&self, handler: &Registered<HandlerSpec>, failure: Option<HandlerFailure>) {
        let strikes = &handler.strikes;
        let why = match failure {
            None => return strikes.store(0, Ordering::Relaxed),
            Some(failure) if failure.error.is(code::PANIC) => PANICKED,
            Some(failure) if self.callers.is_given_up(&failure) => return,
            Some(failure) if failure.error.is(code::FAULTY) => return,
            Some(_) if !self.point.is_frequent() => return,
            Some(_) if strikes.fetch_add(1, Ordering::Relaxed) + 1 < STRIKES => return,
            Some(_) => FAILED_AGAIN,
        };
        strikes.store(STRIKES, Ordering::Relaxed);
        // That its owner takes no calls at all was told instead.
        if handler.fault().is_some() {
            return;
        }
        let left_out = format!("{why} and is left out here until the extension is loaded again");
        self.unusable(handler, Error::failed(left_out));
    }

    /// Calls the handlers one after another. `payload` makes their argument, anew when an answer may
    /// have changed it, `take` gets each answer that is not null and says whether to go on, or why the
    /// answer is no answer. Failing handlers are reported and passed by, except where the hook point
    /// fails closed, and where an abort kept one from its answer that was to guard something: there the
    /// failure ends the dispatch.
    ///
    /// # Errors
    /// The first failure that ends it.
    pub async fn each<S>(
        &self,
        state: &mut S,
        payload: impl Fn(&S) -> Value,
        take: impl FnMut(&mut S, Value) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), HandlerFailure> {
        let encode = |state: &S| serde_json::to_vec(&payload(state)).unwrap_or_default();
        self.each_encoded(state, encode, take).await
    }

    /// As [`Dispatcher::each`], for a payload that is written by the caller.
    ///
    /// # Errors
    /// As [`Dispatcher::each`].
    pub async fn each_encoded<S>(
        &self,
        state: &mut S,
        payload: impl Fn(&S) -> Vec<u8>,
        mut take: impl FnMut(&mut S, Value) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), HandlerFailure> {
        let mut written = None;
        for handler in self.handlers {
            let bytes = written.get_or_insert_with(|| payload(state)).clone();
            let taken = match self.call(handler, bytes).await {
                Ok(Value::Null) => Ok(ControlFlow::Continue(())),
                Ok(answer) => {
                    written = None;
                    take(state, answer).map_err(|error| self.unusable(handler, error))
                }
                Err(failure) => Err(failure),
            };
            match taken {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => break,
                Err(failure) if self.ends_with(&failure) => return Err(failure),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// The handlers in order, for a stage that does more between two of them than [`Dispatcher::each`].
    pub(crate) fn handlers(&self) -> &'a [Arc<Registered<HandlerSpec>>] {
        self.handlers
    }

    /// Calls one of them; its failure is reported. One whose owner takes no calls is a failure that was
    /// reported when that began. After an abort it hears how things ended: it is not told that nobody
    /// wants its answer, and has the grace for it.
    pub(crate) async fn call(
        &self,
        handler: &Registered<HandlerSpec>,
        payload: Vec<u8>,
    ) -> Result<Value, HandlerFailure> {
        let event = self.point.name();
        if let Some(error) = handler.fault() {
            return Err(HandlerFailure {
                source: handler.source().clone(),
                event: event.into(),
                error,
            });
        }
        let finishes =
            self.point.outlasts_an_abort() || self.callers.patience.cancel.is_cancelled();
        let (caller, on_abort) = match finishes {
            true => (user_call(CancellationToken::new()), OnAbort::Finish),
            false => (Arc::clone(&self.caller), OnAbort::End),
        };
        self.callers
            .call_as(caller, handler, event, event, payload, on_abort)
            .await
    }

    fn ends_with(&self, failure: &HandlerFailure) -> bool {
        let kept_from = failure.error.is(LEFT_BEHIND) || self.callers.is_given_up(failure);
        self.point.fails_closed() || (kept_from && self.point.guards())
    }

    /// Reports that a handler's answer is no answer.
    pub(crate) fn unusable(
        &self,
        handler: &Registered<HandlerSpec>,
        error: Error,
    ) -> HandlerFailure {
        let failure = HandlerFailure {
            source: handler.source().clone(),
            event: self.point.name().into(),
            error,
        };
        self.callers.lender.report(failure.clone());
        failure
    }
}

/// Failures in a row after which a handler is left out that is called very often.
pub(super) const STRIKES: u32 = 3;

pub(super) const FAILED_AGAIN: &str = "it failed three times in a row";

const PANICKED: &str = "it panicked";

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use pliant_sdk::Plugin;
    use serde_json::json;

    use super::*;
    use crate::registry::testing::Reports;
    use crate::registry::{Grace, InProcess, Rank, Registry};

    fn registered(plugin: Plugin) -> Arc<Snapshot> {
        let registry = Registry::default();
        let source = Source::inline("extension", Rank::User);
        registry.publish(Arc::new(InProcess::new(source, plugin).unwrap()));
        registry.snapshot()
    }

    fn callers(reports: &Reports, cancel: CancellationToken) -> Callers<'_> {
        Callers::new(reports, Patience::new(cancel, None, Grace::default()))
    }

    /// A dispatch to the handlers of a plugin, and what of them was reported.
    async fn notified(plugin: Plugin, cancel: CancellationToken) -> Vec<String> {
        let (snapshot, reports) = (registered(plugin), Reports::default());
        let callers = callers(&reports, cancel);
        let dispatcher = Dispatcher::new(&snapshot, HookPoint::AgentEnd, callers).unwrap();
        dispatcher.notify(&json!({"type": "agent_end"})).await;
        texts(&reports)
    }

    fn texts(reports: &Reports) -> Vec<String> {
        let reported = reports.take().into_iter();
        reported.map(|failure| failure.error.to_string()).collect()
    }

    #[tokio::test]
    async fn who_is_called_after_an_abort_hears_of_it_to_the_end() {
        // G4: handlers are awaited; the abort ends the one that runs.
        let (cancel, heard) = (CancellationToken::new(), Arc::new(Mutex::new(Vec::new())));
        let (gives_up, hears) = (cancel.clone(), Arc::clone(&heard));
        let plugin = Plugin::new()
            .on_event("agent_end", move |_, _| {
                gives_up.cancel();
                std::future::pending()
            })
            .on_event("agent_end", move |_, _| {
                let hears = Arc::clone(&hears);
                async move {
                    for _ in 0..3 {
                        tokio::task::yield_now().await;
                    }
                    hears.lock().unwrap().push("the end");
                    Ok(Value::Null)
                }
            });
        assert_eq!(notified(plugin, cancel).await, [""; 0]);
        assert_eq!(*heard.lock().unwrap(), ["the end"]);
    }

    #[tokio::test]
    async fn a_handler_that_says_it_was_cancelled_though_nobody_gave_up_has_failed() {
        // G5
        let plugin = Plugin::new().on_event("agent_end", |_, _| async { Err(Error::cancelled()) });
        assert_eq!(notified(plugin, CancellationToken::new()).await.len(), 1);
    }

    /// Calls the handlers of an event in turn, each with what those before it made of `1`.
    async fn counted(
        plugin: Plugin,
        point: HookPoint,
        cancel: CancellationToken,
        reports: &Reports,
    ) -> Result<(u64, usize), HandlerFailure> {
        let snapshot = registered(plugin);
        let dispatcher = Dispatcher::new(&snapshot, point, callers(reports, cancel)).unwrap();
        let written = Cell::new(0);
        let payload = |state: &u64| {
            written.set(written.get() + 1);
            json!(state)
        };
        let take = |state: &mut u64, answer: Value| {
            *state = answer.as_u64().unwrap();
            Ok(ControlFlow::Continue(()))
        };
        let mut state = 1;
        dispatcher.each(&mut state, payload, take).await?;
        Ok((state, written.get()))
    }

    async fn one_more(event: Value, _: CallCtx) -> Result<Value, Error> {
        Ok(json!(event.as_u64().unwrap() + 1))
    }

    #[tokio::test]
    async fn each_handler_sees_what_those_before_it_made_and_it_is_written_when_it_changed() {
        // G7
        let nothing = |_: Value, _: CallCtx| async { Ok(Value::Null) };
        let fails = |_: Value, _: CallCtx| async { Err(Error::failed("as asked")) };
        let event = "message_end";
        let plugin = Plugin::new()
            .on_event(event, nothing)
            .on_event(event, one_more)
            .on_event(event, nothing)
            .on_event(event, fails)
            .on_event(event, one_more);
        let (point, reports) = (HookPoint::MessageEnd, Reports::default());
        let counted = counted(plugin, point, CancellationToken::new(), &reports).await;
        assert_eq!(counted.unwrap(), (3, 2));
    }

    /// Two handlers, of which the first sees an abort while it works.
    fn aborted_in_the_first(event: &'static str, cancel: &CancellationToken) -> Plugin {
        let gives_up = cancel.clone();
        let slow = move |event: Value, ctx: CallCtx| {
            gives_up.cancel();
            async move {
                tokio::task::yield_now().await;
                assert!(!ctx.cancelled());
                one_more(event, ctx).await
            }
        };
        Plugin::new()
            .on_event(event, slow)
            .on_event(event, one_more)
    }

    #[tokio::test]
    async fn handlers_that_decide_what_is_stored_finish_after_an_abort() {
        // R51, G7, T15, R50
        for point in HookPoint::ALL
            .iter()
            .filter(|point| point.outlasts_an_abort())
        {
            let (cancel, reports) = (CancellationToken::new(), Reports::default());
            let plugin = aborted_in_the_first(point.name(), &cancel);
            let counted = counted(plugin, *point, cancel, &reports).await;
            assert_eq!(
                (counted.unwrap().0, reports.take().len()),
                (3, 0),
                "{point:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_guard_that_an_abort_keeps_from_its_answer_ends_the_dispatch() {
        // R51, P16
        let (cancel, reports) = (CancellationToken::new(), Reports::default());
        let gives_up = cancel.clone();
        let plugin = Plugin::new()
            .on_event("input", move |_, _| {
                gives_up.cancel();
                std::future::pending()
            })
            .on_event("input", one_more);
        let failure = counted(plugin, HookPoint::Input, cancel, &reports).await;
        assert!(failure.unwrap_err().error.is(code::CANCELLED));
        assert_eq!(reports.take().len(), 0);
    }

    #[tokio::test]
    async fn a_handler_of_every_piece_that_keeps_failing_is_left_out_and_that_is_said_once() {
        // G5, E09
        let calls = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&calls);
        let fails = move |_: Value, _: CallCtx| {
            let call = count.fetch_add(1, Ordering::Relaxed);
            // Not in a row at first.
            async move {
                if call == 1 {
                    Ok(Value::Null)
                } else {
                    Err(Error::failed("no"))
                }
            }
        };
        let snapshot = registered(Plugin::new().on_event("message_update", fails));
        let reports = Reports::default();
        for _ in 0..100 {
            let callers = callers(&reports, CancellationToken::new());
            let point = HookPoint::MessageUpdate;
            let dispatcher = Dispatcher::new(&snapshot, point, callers).unwrap();
            dispatcher.notify(&json!({})).await;
        }
        assert_eq!(calls.load(Ordering::Relaxed), 5);
        let told = texts(&reports);
        assert_eq!(told[..4], ["no"; 4]);
        assert!(told[4].contains("three times in a row and is left out here"));
        assert_eq!(told.len(), 5);
    }

    #[tokio::test]
    async fn a_handler_that_panicked_hears_no_more() {
        // E09, extensions §6
        let calls = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&calls);
        let panics = move |_: Value, _: CallCtx| {
            count.fetch_add(1, Ordering::Relaxed);
            // A panic that says nothing on the terminal of the tests.
            async { std::panic::resume_unwind(Box::new("it panics")) }
        };
        let snapshot = registered(Plugin::new().on_event("agent_end", panics));
        let reports = Reports::default();
        for _ in 0..10 {
            let callers = callers(&reports, CancellationToken::new());
            let dispatcher = Dispatcher::new(&snapshot, HookPoint::AgentEnd, callers).unwrap();
            dispatcher.notify(&json!({})).await;
        }
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        assert_eq!(texts(&reports).len(), 2);
    }

    #[tokio::test]
    async fn handlers_of_a_source_that_takes_no_calls_are_passed_by_and_its_gates_are_shut() {
        // plugin-abi §6, G5
        let panics = |_: Value, _: CallCtx| async { std::panic::resume_unwind(Box::new("boom")) };
        let gates = [HookPoint::ToolCall, HookPoint::UserBash];
        let plugin = gates.iter().fold(Plugin::new(), |plugin, gate| {
            plugin.on_event(gate.name(), panics)
        });
        let snapshot = registered(plugin.on_event("agent_end", one_more));
        let reports = Reports::default();
        let dispatch = async |point| {
            let callers = callers(&reports, CancellationToken::new());
            let dispatcher = Dispatcher::new(&snapshot, point, callers).unwrap();
            let take = |_: &mut (), _| Ok(ControlFlow::Continue(()));
            dispatcher.each(&mut (), |()| Value::Null, take).await
        };
        for _ in 0..3 {
            dispatch(HookPoint::ToolCall).await.unwrap_err();
        }
        assert_eq!(reports.take().len(), 3);
        for gate in gates {
            let failure = dispatch(gate).await.unwrap_err();
            assert!(failure.error.is(code::FAULTY), "{failure:?}");
        }
        dispatch(HookPoint::AgentEnd).await.unwrap();
        let callers = callers(&reports, CancellationToken::new());
        let dispatcher = Dispatcher::new(&snapshot, HookPoint::AgentEnd, callers).unwrap();
        dispatcher.notify(&Value::Null).await;
        assert_eq!(texts(&reports), [""; 0]);
    }

    #[tokio::test]
    async fn the_limit_of_a_handler_is_told_with_the_setting_that_allows_more() {
        // G5
        let hangs = |_: Value, _: CallCtx| std::future::pending();
        let snapshot = registered(Plugin::new().on_event("agent_end", hangs));
        let reports = Reports::default();
        let limit = Some(Duration::from_millis(1));
        let patience = Patience::new(CancellationToken::new(), limit, Grace::default());
        let callers = Callers::new(&reports, patience);
        let dispatcher = Dispatcher::new(&snapshot, HookPoint::AgentEnd, callers).unwrap();
        dispatcher.notify(&json!({})).await;
        let [told] = &texts(&reports)[..] else {
            panic!("one failure")
        };
        assert!(told.contains("extensions.handlerTimeoutMs"), "{told}");
    }
}

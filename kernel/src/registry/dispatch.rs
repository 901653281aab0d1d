//! Calling handlers: in load order, one after another, each bounded in time, failures isolated.
//!
//! How answers compose (chain, gate, collect) is the business of the stage that dispatches; here one
//! handler is called, its failure is reported with its owner's name, and the stage decides what
//! comes next. A dispatch works on one snapshot's list, so a reload never mixes generations in it.

use std::borrow::Cow;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use pliant_sdk::error::code;
use pliant_sdk::host::{BoxFuture, Host, Services};
use pliant_sdk::plugin::{CallCtx, Caller, Flow};
use pliant_sdk::{Error, Event};
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

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

/// What handlers are called with, and where their failures go.
#[derive(Clone)]
pub struct Callers<'a> {
    /// Makes the services of a handler's owner.
    pub services: &'a (dyn Fn(&Source) -> Arc<dyn Services> + Send + Sync),
    /// Takes failures.
    pub report: &'a (dyn Fn(HandlerFailure) + Send + Sync),
    /// Ends the call when the user gives up.
    pub cancel: CancellationToken,
    /// Longest time a handler may take, without that of its dialogs; `None` = no limit.
    pub limit: Option<Duration>,
}

impl Callers<'_> {
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
        limit: Option<Duration>,
    ) -> Result<Value, HandlerFailure> {
        let caller = user_call(self.cancel.clone());
        self.call_as(caller, callee, event, op, payload, limit)
            .await
    }

    /// The same where the user has given up by now.
    fn after_abort(&self) -> (Self, Option<Duration>) {
        let (cancel, limit) = bounds(&self.cancel, self.limit);
        let callers = Self {
            cancel,
            limit,
            ..self.clone()
        };
        (callers, limit)
    }

    async fn call_as<S>(
        &self,
        caller: Arc<dyn Caller>,
        callee: &Registered<S>,
        event: &'static str,
        op: &str,
        payload: Vec<u8>,
        limit: Option<Duration>,
    ) -> Result<Value, HandlerFailure> {
        let source = callee.source();
        let limit = limit.map(|limit| (Stopwatch::start(), limit));
        let services = callee.lend((self.services)(source));
        let services = match &limit {
            Some((clock, _)) => clock.watching(services),
            None => services,
        };
        let ctx = CallCtx::new(caller, Host::from_shared(services));
        let mut running = callee.invoke_bytes(op, payload, ctx);
        // Most answer at once, and need neither a timer nor an ear for the user.
        let answer = match poll_fn(|cx| Poll::Ready(running.as_mut().poll(cx))).await {
            Poll::Ready(answer) => answer,
            Poll::Pending => self.bounded(running, limit).await,
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
            if !(failure.error.is(code::CANCELLED) && self.cancel.is_cancelled()) {
                (self.report)(failure.clone());
            }
            failure
        })
    }

    async fn bounded(
        &self,
        running: BoxFuture<'static, Result<Vec<u8>, Error>>,
        limit: Option<(Stopwatch, Duration)>,
    ) -> Result<Vec<u8>, Error> {
        let time_is_over = async {
            match limit {
                Some((clock, limit)) => {
                    clock.reaches(limit).await;
                    limit
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            answer = running => answer,
            limit = time_is_over => Err(too_slow(limit)),
            () = self.cancel.cancelled() => Err(Error::cancelled()),
        }
    }
}

/// Time for a handler that hears of something after the user gave up.
const AFTER_ABORT: Duration = Duration::from_secs(5);

/// What ends a handler. An abort ends one that is running; one that is called later, to hear how it
/// ended, gets a short time of its own.
pub(crate) fn bounds(
    cancel: &CancellationToken,
    limit: Option<Duration>,
) -> (CancellationToken, Option<Duration>) {
    if cancel.is_cancelled() {
        let limit = limit.map_or(AFTER_ABORT, |limit| limit.min(AFTER_ABORT));
        return (CancellationToken::new(), Some(limit));
    }
    (cancel.clone(), limit)
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
    caller: Arc<dyn Caller>,
}

impl<'a> Dispatcher<'a> {
    /// Prepares a dispatch; `None` when nobody listens, so that a stage can skip all its work (G4).
    #[must_use]
    pub fn new(snapshot: &'a Snapshot, point: HookPoint, callers: Callers<'a>) -> Option<Self> {
        let handlers = snapshot.handlers(point.name());
        (!handlers.is_empty()).then(|| Self {
            handlers,
            point,
            caller: user_call(callers.cancel.clone()),
            callers,
        })
    }

    /// Calls all handlers with the same payload and ignores what they answer.
    pub async fn notify(&self, payload: &impl Serialize) {
        let Ok(bytes) = serde_json::to_vec(payload) else {
            return;
        };
        for handler in self.handlers {
            // The failure was reported; a notification has no other consequence.
            let _ = if self.callers.cancel.is_cancelled() {
                let (callers, limit) = self.callers.after_abort();
                let event = self.point.name();
                let told = callers.call(handler, event, event, bytes.clone(), limit);
                told.await
            } else {
                self.call(handler, bytes.clone()).await
            };
        }
    }

    /// Calls the handlers one after another. `payload` makes their argument, anew when an answer may
    /// have changed it, `take` gets each answer that is not null and says whether to go on, or why the
    /// answer is no answer. Failing handlers are reported and passed by, except where the hook point
    /// fails closed: there the failure ends the dispatch.
    ///
    /// # Errors
    /// The first failure, at a hook point that fails closed.
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
    /// The first failure, at a hook point that fails closed.
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
                Err(failure) if self.point.fails_closed() => return Err(failure),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// The handlers in order, for a stage that does more between two of them than [`Dispatcher::each`].
    pub(crate) fn handlers(&self) -> &'a [Arc<Registered<HandlerSpec>>] {
        self.handlers
    }

    /// Calls one of them; its failure is reported.
    pub(crate) async fn call(
        &self,
        handler: &Registered<HandlerSpec>,
        payload: Vec<u8>,
    ) -> Result<Value, HandlerFailure> {
        let event = self.point.name();
        let (caller, limit) = (Arc::clone(&self.caller), self.callers.limit);
        self.callers
            .call_as(caller, handler, event, event, payload, limit)
            .await
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
        (self.callers.report)(failure.clone());
        failure
    }
}

fn too_slow(limit: Duration) -> Error {
    let ms = limit.as_millis();
    Error::new(
        code::TIMEOUT,
        format!(
            "the handler did not answer within {ms} ms and was ended; the setting extensions.handlerTimeoutMs allows more"
        ),
    )
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Mutex;

    use pliant_sdk::Plugin;
    use pliant_sdk::host::ByteStream;
    use serde_json::json;

    use super::*;
    use crate::registry::{InProcess, Rank, Registry};

    struct NoServices;

    impl Services for NoServices {
        fn call(&self, name: &str, _: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
            Box::pin(std::future::ready(Err(Error::unsupported(name))))
        }

        fn open(&self, name: &str, _: Vec<u8>) -> BoxFuture<'static, Result<ByteStream, Error>> {
            Box::pin(std::future::ready(Err(Error::unsupported(name))))
        }

        fn notify(&self, _: &str, _: &[u8]) {}
    }

    /// A dispatch to the handlers of a plugin, and what of them was reported.
    async fn notified(plugin: Plugin, cancel: CancellationToken) -> Vec<String> {
        let registry = Registry::default();
        let source = Source::inline("extension", Rank::User);
        registry.publish(Arc::new(InProcess::new(source, plugin).unwrap()));
        let snapshot = registry.snapshot();
        let reported = Mutex::new(Vec::new());
        let services = |_: &Source| Arc::new(NoServices) as Arc<dyn Services>;
        let report = |failure: HandlerFailure| {
            reported.lock().unwrap().push(failure.error.to_string());
        };
        let callers = Callers {
            services: &services,
            report: &report,
            cancel,
            limit: None,
        };
        let dispatcher = Dispatcher::new(&snapshot, HookPoint::AgentEnd, callers).unwrap();
        dispatcher.notify(&json!({"type": "agent_end"})).await;
        reported.into_inner().unwrap()
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

    #[tokio::test]
    async fn each_handler_sees_what_those_before_it_made_and_it_is_written_when_it_changed() {
        // G7
        let nothing = |_: Value, _: CallCtx| async { Ok(Value::Null) };
        let one_more =
            |event: Value, _: CallCtx| async move { Ok(json!(event.as_u64().unwrap() + 1)) };
        let fails = |_: Value, _: CallCtx| async { Err(Error::failed("as asked")) };
        let event = "message_end";
        let plugin = Plugin::new()
            .on_event(event, nothing)
            .on_event(event, one_more)
            .on_event(event, nothing)
            .on_event(event, fails)
            .on_event(event, one_more);
        let registry = Registry::default();
        let source = Source::inline("counting", Rank::User);
        registry.publish(Arc::new(InProcess::new(source, plugin).unwrap()));
        let snapshot = registry.snapshot();
        let (services, report) = (
            |_: &Source| Arc::new(NoServices) as Arc<dyn Services>,
            |_: HandlerFailure| (),
        );
        let callers = Callers {
            services: &services,
            report: &report,
            cancel: CancellationToken::new(),
            limit: Some(Duration::from_secs(10)),
        };
        let dispatcher = Dispatcher::new(&snapshot, HookPoint::MessageEnd, callers).unwrap();
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
        assert!(dispatcher.each(&mut state, payload, take).await.is_ok());
        assert_eq!((state, written.get()), (3, 2));
    }
}

//! Generations whose code panics again and again take no more calls (`plugin-abi.md` §6): whatever the
//! registry holds is wrapped here, so that it makes no difference where a call comes from.
//!
//! Three panics in a row are it; a call that ends otherwise begins the count anew. What stops a
//! generation by itself (it hangs, its process crashed) is asked of it and told from here too. Either
//! is told once, to whoever watches the registry; the calls themselves are answered with the reason.

use std::future::ready;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::BoxFuture;
use pliant_sdk::plugin::Invocation;

use super::grown::Grown;
use super::vitals::Vitals;
use super::watch::Watchers;
use super::{Contribution, Generation, HandlerFailure, Source};

/// Panics in a row that are too many.
const PANICS: u32 = 3;

/// A generation under watch.
pub(super) struct Quarantine(Arc<Record>);

/// The generation, and what is known of its calls.
struct Record {
    generation: Arc<dyn Generation>,
    grown: Arc<Grown>,
    watchers: Arc<Watchers>,
    calls: AtomicU64,
    running: AtomicU64,
    failures: AtomicU64,
    panics: AtomicU64,
    in_a_row: AtomicU32,
    quarantined: OnceLock<Error>,
    /// Whether what stops it by itself was told.
    told: AtomicBool,
}

impl Quarantine {
    /// Watches a generation that is being registered.
    pub(super) fn around(
        generation: Arc<dyn Generation>,
        watchers: &Arc<Watchers>,
    ) -> Arc<dyn Generation> {
        Arc::new(Self(Arc::new(Record {
            generation,
            grown: Arc::default(),
            watchers: Arc::clone(watchers),
            calls: AtomicU64::new(0),
            running: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            panics: AtomicU64::new(0),
            in_a_row: AtomicU32::new(0),
            quarantined: OnceLock::new(),
            told: AtomicBool::new(false),
        })))
    }
}

impl Record {
    /// Counts the end of a call or an operation. `event` says in what it ended.
    fn count<T>(&self, answer: &Result<T, Error>, event: impl FnOnce() -> String) {
        let error = match answer {
            Ok(_) => return self.in_a_row.store(0, Ordering::Relaxed),
            Err(error) if error.is(code::CANCELLED) => return,
            Err(error) => error,
        };
        self.failures.fetch_add(1, Ordering::Relaxed);
        if !error.is(code::PANIC) {
            return self.in_a_row.store(0, Ordering::Relaxed);
        }
        self.panics.fetch_add(1, Ordering::Relaxed);
        if self.in_a_row.fetch_add(1, Ordering::Relaxed) + 1 < PANICS {
            return;
        }
        let quarantine = self.sentence(error);
        if self.quarantined.set(quarantine.clone()).is_ok() {
            self.tell(event(), quarantine);
        }
    }

    /// What a call of a contribution is to the user: the event of a hook, the name of a tool.
    fn event_of(&self, contribution: u32) -> String {
        let all = self.grown.with(self.generation.contributions());
        let called = all.iter().find(|item| item.id == contribution);
        called.map_or_else(|| "call".to_owned(), |item| item.name.clone())
    }

    fn sentence(&self, last: &Error) -> Error {
        let (name, last) = (&self.generation.source().name, last.to_string());
        let last = last.trim_end_matches('.');
        Error::new(
            code::FAULTY,
            format!(
                "\"{name}\" panicked three times in a row and takes no more calls (the last time: {last}). Mend it, or /reload it as it is."
            ),
        )
    }

    fn tell(&self, event: String, error: Error) {
        let source = self.generation.source();
        tracing::warn!(target: "pliant::registry", source = %source.name, "{error}");
        self.watchers.failed(&HandlerFailure {
            source: source.clone(),
            event: event.into(),
            error,
        });
    }
}

/// A call under way.
struct Counted {
    running: BoxFuture<'static, Result<Vec<u8>, Error>>,
    record: Arc<Record>,
    contribution: u32,
}

impl Future for Counted {
    type Output = Result<Vec<u8>, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = self.running.as_mut().poll(cx);
        if let Poll::Ready(answer) = &polled {
            let record = &self.record;
            record.count(answer, || record.event_of(self.contribution));
        }
        polled
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.record.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Generation for Quarantine {
    fn source(&self) -> &Source {
        self.0.generation.source()
    }

    fn contributions(&self) -> Arc<[Contribution]> {
        self.0.grown.with(self.0.generation.contributions())
    }

    fn invoke(
        &self,
        contribution: u32,
        mut call: Invocation,
    ) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        if let Some(fault) = self.fault() {
            return Box::pin(ready(Err(fault)));
        }
        let record = Arc::clone(&self.0);
        record.calls.fetch_add(1, Ordering::Relaxed);
        record.running.fetch_add(1, Ordering::Relaxed);
        let loaded = record.generation.contributions();
        call.ctx = record.grown.growing(&call.ctx, loaded);
        Box::pin(Counted {
            running: record.generation.invoke(contribution, call),
            record,
            contribution,
        })
    }

    /// One that takes no calls knows no operations: it can be replaced without being asked.
    fn control(&self, op: &str, payload: &[u8]) -> Result<Vec<u8>, Error> {
        if let Some(fault) = self.fault() {
            return Err(Error::new(code::UNSUPPORTED, fault.message));
        }
        let answer = self.0.generation.control(op, payload);
        // That an operation is unknown says nothing of the plugin's health.
        if !matches!(&answer, Err(error) if error.is(code::UNSUPPORTED)) {
            self.0.count(&answer, || op.to_owned());
        }
        answer
    }

    fn retire(&self) {
        self.0.generation.retire();
    }

    fn fault(&self) -> Option<Error> {
        let Self(record) = self;
        if let Some(error) = record.quarantined.get() {
            return Some(error.clone());
        }
        let error = record.generation.fault()?;
        if !record.told.swap(true, Ordering::Relaxed) {
            record.tell("call".to_owned(), error.clone());
        }
        Some(error)
    }

    fn vitals(&self) -> Vitals {
        let Self(record) = self;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Vitals {
            calls: count(&record.calls),
            running: count(&record.running),
            failures: count(&record.failures),
            panics: count(&record.panics),
            fault: self.fault().map(|error| error.message),
            ..record.generation.vitals()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, Weak};

    use pliant_sdk::Plugin;
    use pliant_sdk::host::Host;
    use pliant_sdk::plugin::CallCtx;
    use serde_json::Value;

    use super::*;
    use crate::registry::{InProcess, Rank, Registry, Watcher};
    use pliant_sdk::host::NoServices;

    /// Hears what the user would.
    #[derive(Default)]
    struct User(Mutex<Vec<String>>);

    impl Watcher for User {
        fn registry_changed(&self) {}

        fn source_failed(&self, failure: &HandlerFailure) {
            let told = format!("{}: {}", failure.event, failure.error);
            self.0.lock().unwrap().push(told);
        }
    }

    struct Lab {
        registry: Registry,
        user: Arc<User>,
    }

    /// Panics when it is told to.
    fn plugin() -> Plugin {
        Plugin::new().on_event("input", |event: Value, _| async move {
            match event.as_str() {
                Some("panic") => std::panic::resume_unwind(Box::new("boom")),
                Some("fail") => Err(Error::failed("no")),
                _ => Ok(Value::Null),
            }
        })
    }

    impl Lab {
        fn new() -> Self {
            let (registry, user) = (Registry::default(), Arc::new(User::default()));
            let watcher: Weak<User> = Arc::downgrade(&user);
            registry.watch(watcher);
            let lab = Self { registry, user };
            lab.load();
            lab
        }

        fn load(&self) {
            let source = Source::inline("x", Rank::User);
            let generation = InProcess::new(source, plugin()).unwrap();
            self.registry.publish(Arc::new(generation));
        }

        fn generation(&self) -> Arc<dyn Generation> {
            Arc::clone(self.registry.snapshot().sources()[0].generation())
        }

        /// The code of the error, if it is one.
        async fn call(&self, what: &str) -> Option<String> {
            let call = Invocation {
                op: "handle".to_owned(),
                payload: serde_json::to_vec(what).unwrap(),
                ctx: CallCtx::answer_only(Host::from_services(NoServices)),
            };
            let generation = self.generation();
            let id = generation.contributions()[0].id;
            let answer = generation.invoke(id, call).await;
            answer.err().map(|error| error.code)
        }

        fn told(&self) -> Vec<String> {
            std::mem::take(&mut self.user.0.lock().unwrap())
        }
    }

    #[tokio::test]
    async fn three_panics_in_a_row_stop_a_generation_and_that_is_told_once() {
        // plugin-abi §6, E09
        let lab = Lab::new();
        for _ in 0..PANICS {
            assert_eq!(lab.call("panic").await.as_deref(), Some(code::PANIC));
        }
        for _ in 0..1000 {
            assert_eq!(lab.call("fine").await.as_deref(), Some(code::FAULTY));
        }
        let [told] = &lab.told()[..] else {
            panic!("one report")
        };
        assert!(
            told.starts_with("input: \"x\" panicked three times"),
            "{told}"
        );
        assert!(told.contains("boom") && told.contains("/reload"), "{told}");
        let vitals = lab.generation().vitals();
        assert_eq!((vitals.calls, vitals.panics, vitals.running), (3, 3, 0));
        assert!(vitals.fault.is_some_and(|fault| told.ends_with(&fault)));
    }

    #[tokio::test]
    async fn the_next_generation_begins_anew() {
        // E09
        let lab = Lab::new();
        for _ in 0..PANICS {
            lab.call("panic").await;
        }
        let refused = lab.generation().control("session.export", b"null");
        assert!(refused.is_err_and(|error| error.is(code::UNSUPPORTED)));
        lab.load();
        assert_eq!(lab.call("fine").await, None);
        assert_eq!(lab.generation().vitals().calls, 1);
    }

    #[tokio::test]
    async fn a_call_that_ends_otherwise_begins_the_count_anew() {
        // plugin-abi §6
        let lab = Lab::new();
        for ending in ["fine", "fail", "fine"] {
            lab.call("panic").await;
            lab.call("panic").await;
            assert_ne!(lab.call(ending).await.as_deref(), Some(code::FAULTY));
        }
        assert_eq!(lab.told(), [""; 0]);
        let vitals = lab.generation().vitals();
        assert_eq!((vitals.panics, vitals.failures), (6, 7));
    }
}

//! How long a handler has taken, without the time in which the user thinks: while a dialog of it is open
//! the clock stands still (`extensions.md` §6).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pliant_sdk::Error;
use pliant_sdk::host::{BoxFuture, ByteStream, Services};
use pliant_sdk::ui;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// A clock that can be stopped. Its copies are the same clock.
#[derive(Debug, Clone)]
pub(super) struct Stopwatch(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    reading: Mutex<Reading>,
    changed: Notify,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    /// Without what runs now.
    taken: Duration,
    running_since: Instant,
    open_dialogs: usize,
}

impl Stopwatch {
    /// A clock that runs.
    pub(super) fn start() -> Self {
        Self(Arc::new(Inner {
            reading: Mutex::new(Reading {
                taken: Duration::ZERO,
                running_since: Instant::now(),
                open_dialogs: 0,
            }),
            changed: Notify::new(),
        }))
    }

    /// The services, by whose dialogs the clock is stopped.
    pub(super) fn watching(&self, services: Arc<dyn Services>) -> Arc<dyn Services> {
        Arc::new(Watched {
            services,
            clock: self.clone(),
        })
    }

    /// Returns when the clock shows this.
    pub(super) async fn reaches(&self, limit: Duration) {
        loop {
            // Made before the look: a change in between wakes it.
            let changed = self.0.changed.notified();
            let end = self.reading().end(limit);
            match end {
                Some(end) if end <= Instant::now() => return,
                Some(end) => drop(timeout_at(end, changed).await),
                None => changed.await,
            }
        }
    }

    fn open_dialog(&self) -> OpenDialog {
        let mut reading = self.reading();
        if reading.open_dialogs == 0 {
            let ran = reading.running_since.elapsed();
            reading.taken += ran;
        }
        reading.open_dialogs += 1;
        drop(reading);
        self.0.changed.notify_waiters();
        OpenDialog(self.clone())
    }

    fn reading(&self) -> MutexGuard<'_, Reading> {
        let reading = self.0.reading.lock();
        reading.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reading {
    /// When the clock will show `limit`, if it goes on running; `None` while it stands.
    fn end(self, limit: Duration) -> Option<Instant> {
        let left = limit.saturating_sub(self.taken);
        (self.open_dialogs == 0).then(|| self.running_since + left)
    }
}

/// A dialog that stops the clock.
struct OpenDialog(Stopwatch);

impl Drop for OpenDialog {
    fn drop(&mut self) {
        let mut reading = self.0.reading();
        reading.open_dialogs -= 1;
        if reading.open_dialogs == 0 {
            reading.running_since = Instant::now();
        }
        drop(reading);
        self.0.0.changed.notify_waiters();
    }
}

/// Services whose dialogs stop a clock.
struct Watched {
    services: Arc<dyn Services>,
    clock: Stopwatch,
}

impl Services for Watched {
    fn call(&self, service: &str, payload: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        let call = self.services.call(service, payload);
        if !ui::DIALOG_SERVICES.contains(&service) {
            return call;
        }
        let clock = self.clock.clone();
        Box::pin(async move {
            let _open = clock.open_dialog();
            call.await
        })
    }

    fn open(
        &self,
        service: &str,
        payload: Vec<u8>,
    ) -> BoxFuture<'static, Result<ByteStream, Error>> {
        self.services.open(service, payload)
    }

    fn notify(&self, service: &str, payload: &[u8]) {
        self.services.notify(service, payload);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn};
    use std::task::Poll;

    use super::*;

    /// Answers when it is let.
    struct Asks(Arc<Notify>);

    impl Services for Asks {
        fn call(&self, _: &str, _: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
            let answered = Arc::clone(&self.0);
            Box::pin(async move {
                answered.notified().await;
                Ok(Vec::new())
            })
        }

        fn open(&self, _: &str, _: Vec<u8>) -> BoxFuture<'static, Result<ByteStream, Error>> {
            Box::pin(pending())
        }

        fn notify(&self, _: &str, _: &[u8]) {}
    }

    /// Whether a handler whose time is over but for its dialogs would be ended now.
    async fn is_ended(clock: &Stopwatch) -> bool {
        let mut reached = Box::pin(clock.reaches(Duration::ZERO));
        let look = poll_fn(|cx| Poll::Ready(reached.as_mut().poll(cx))).await;
        look.is_ready()
    }

    async fn begin(call: &mut BoxFuture<'static, Result<Vec<u8>, Error>>) {
        let begun = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await;
        assert!(begun.is_pending());
    }

    #[tokio::test]
    async fn the_time_of_dialogs_does_not_count_and_other_time_does() {
        // extensions §5.5
        let answered = Arc::new(Notify::new());
        let clock = Stopwatch::start();
        let services = clock.watching(Arc::new(Asks(Arc::clone(&answered))));
        let mut sleeping = services.call("time.sleep", Vec::new());
        begin(&mut sleeping).await;
        assert!(is_ended(&clock).await);
        let mut first = services.call("ui.confirm", Vec::new());
        let mut second = services.call("ui.ask", Vec::new());
        begin(&mut first).await;
        begin(&mut second).await;
        assert!(!is_ended(&clock).await);
        // One is given up, the other one answered.
        drop(first);
        assert!(!is_ended(&clock).await);
        drop(sleeping);
        answered.notify_one();
        second.await.unwrap();
        assert!(is_ended(&clock).await);
    }

    #[tokio::test]
    async fn who_waits_for_the_end_hears_of_it_when_the_dialog_closes() {
        let clock = Stopwatch::start();
        let services = clock.watching(Arc::new(Asks(Arc::default())));
        let mut dialog = services.call("ui.input", Vec::new());
        begin(&mut dialog).await;
        assert!(!is_ended(&clock).await);
        let waiting = clock.reaches(Duration::ZERO);
        let closing = async move { drop(dialog) };
        let both = async { tokio::join!(waiting, closing) };
        let ended = tokio::time::timeout(Duration::from_secs(5), both).await;
        assert!(ended.is_ok(), "nobody said that the dialog was closed");
    }
}

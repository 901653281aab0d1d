//! Panics become error values at every entry of a plugin (`plugin-abi.md` §6).
//!
//! A panic that escaped into abi_stable's glue would end the whole process, and each plugin has its
//! own copy of std, so the hook that reports panics is installed per plugin: inside a guarded entry
//! it keeps message and place for the error value, and on a thread of the plugin's own it writes
//! them to the kernel's log. Neither prints into the middle of a terminal.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::task::{Context, Poll};

use crate::error::{Error, code};
use crate::host::{BoxFuture, Host, LogLevel, Services};

thread_local! {
    static LAST_PANIC: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
    /// How many [`catch`]es this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Who hears of a panic that no [`catch`] sees. Weak: what lives as long as the library must not
/// keep the kernel's services alive after the instance they were lent to.
static LISTENER: Mutex<Option<Weak<dyn Services>>> = Mutex::new(None);

/// Installs the plugin's panic hook, once.
pub(crate) fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        panic::set_hook(Box::new(|info| {
            let message = text_of(info.payload());
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            if DEPTH.get() == 0 {
                return report(&message, &place);
            }
            // A thread that ends may have lost the value already; the error then has no place.
            let _ = LAST_PANIC.try_with(|last| last.replace(Some((message, place))));
        }));
    });
}

/// Panics outside of every entry are written to the log of these services from now on.
pub(crate) fn report_to(services: &Arc<dyn Services>) {
    let mut listener = LISTENER.lock().unwrap_or_else(PoisonError::into_inner);
    *listener = Some(Arc::downgrade(services));
}

fn report(message: &str, place: &str) {
    let listener = LISTENER.lock().unwrap_or_else(PoisonError::into_inner);
    let services = listener.as_ref().and_then(Weak::upgrade);
    // The kernel's code runs now; it must not meet the lock.
    drop(listener);
    if let Some(services) = services {
        let line = format!("a thread of the plugin panicked: {message} ({place})");
        Host::from_shared(services).log(LogLevel::Error, &line);
    }
}

/// Runs plugin code; a panic becomes an error with code `panic`, its message and its place.
///
/// # Errors
/// Only that one.
pub fn catch<T>(run: impl FnOnce() -> T) -> Result<T, Error> {
    DEPTH.set(DEPTH.get() + 1);
    let ran = panic::catch_unwind(AssertUnwindSafe(run));
    DEPTH.set(DEPTH.get() - 1);
    ran.map_err(|payload| {
        let kept = LAST_PANIC.try_with(RefCell::take).unwrap_or_default();
        let (message, location) = kept.unwrap_or_else(|| (text_of(&*payload), String::new()));
        // Dropping a payload may panic again (a hostile Drop); leaking it is the safe end.
        std::mem::forget(payload);
        Error {
            code: code::PANIC.to_owned(),
            message: format!("panicked: {message}"),
            location: (!location.is_empty()).then_some(location),
            details: None,
        }
    })
}

fn text_of(payload: &(dyn std::any::Any + Send)) -> String {
    match (
        payload.downcast_ref::<&str>(),
        payload.downcast_ref::<String>(),
    ) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "with a value that is not text".to_owned(),
    }
}

/// A future whose every poll, and whose drop, is guarded.
pub(crate) struct Guarded<T> {
    inner: Option<BoxFuture<'static, Result<T, Error>>>,
}

impl<T> Guarded<T> {
    pub(crate) fn new(future: impl Future<Output = Result<T, Error>> + Send + 'static) -> Self {
        Self {
            inner: Some(Box::pin(future)),
        }
    }

    fn discard(&mut self) -> Result<(), Error> {
        let inner = self.inner.take();
        catch(move || drop(inner))
    }
}

impl<T> Future for Guarded<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(inner) = self.inner.as_mut() else {
            return Poll::Ready(Err(Error::failed("the call was polled after its end")));
        };
        match catch(|| inner.as_mut().poll(cx)) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => Poll::Ready(self.discard().and(value)),
            Err(error) => {
                let _ = self.discard();
                Poll::Ready(Err(error))
            }
        }
    }
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        let _ = self.discard();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_message() {
        let error = catch(|| panic!("no {}", "way")).unwrap_err();
        assert_eq!(
            (error.code.as_str(), error.message.as_str()),
            ("panic", "panicked: no way")
        );
    }

    #[test]
    fn a_panic_in_poll_or_drop_is_an_error_and_no_unwinding() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("in drop");
            }
        }
        let bomb = Bomb;
        let mut future = Guarded::new(async move {
            let _bomb = &bomb;
            Ok(1)
        });
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let Poll::Ready(Err(error)) = Pin::new(&mut future).poll(&mut cx) else {
            panic!("not an error")
        };
        assert!(error.message.contains("in drop"));
        drop(Guarded::<()>::new(async { panic!("never polled") }));
    }
}

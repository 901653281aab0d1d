//! Panics become error values at every entry of a plugin (`plugin-abi.md` §6).
//!
//! A panic that escaped into abi_stable's glue would end the whole process, and each plugin has its
//! own copy of std, so the hook that reports panics is installed per plugin: it keeps message and
//! place for the error value instead of printing into the middle of a terminal.

use std::cell::RefCell;
use std::future::Future;
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::Once;
use std::task::{Context, Poll};

use crate::error::{Error, code};
use crate::host::BoxFuture;

thread_local! {
    static LAST_PANIC: RefCell<Option<(String, String)>> = const { RefCell::new(None) };
}

/// Installs the plugin's panic hook, once.
pub(crate) fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        panic::set_hook(Box::new(|info| {
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            LAST_PANIC.with_borrow_mut(|last| *last = Some((text_of(info.payload()), place)));
        }));
    });
}

/// Runs plugin code; a panic becomes an error with code `panic`, its message and its place.
///
/// # Errors
/// Only that one.
pub fn catch<T>(run: impl FnOnce() -> T) -> Result<T, Error> {
    panic::catch_unwind(AssertUnwindSafe(run)).map_err(|payload| {
        let kept = LAST_PANIC.with_borrow_mut(Option::take);
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

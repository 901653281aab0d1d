//! Services end with what they were lent to (`extensions.md` §6): who keeps them beyond it is told so.
//! Handlers and commands are lent them until their generation is replaced; a call of a tool that is
//! under way then goes on to its end, so what it was lent ends with the generation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::{BoxFuture, ByteStream, Services};

use super::Generation;

/// The time that a generation is registered.
#[derive(Debug, Default)]
pub(super) struct Tenure(AtomicBool);

impl Tenure {
    /// It has been replaced or withdrawn.
    pub(super) fn end(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn has_ended(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Services of a lifetime.
struct Ending<E> {
    services: Arc<dyn Services>,
    has_ended: E,
}

/// The services, until `has_ended` says that whoever they are for is gone. What is not there yet, as a
/// plugin that is being created, has not ended.
pub(crate) fn until(
    services: Arc<dyn Services>,
    has_ended: impl Fn() -> bool + Send + Sync + 'static,
) -> Arc<dyn Services> {
    Arc::new(Ending {
        services,
        has_ended,
    })
}

/// The services, as long as somebody holds the generation.
pub(super) fn with_generation(
    services: Arc<dyn Services>,
    generation: &Arc<dyn Generation>,
) -> Arc<dyn Services> {
    let generation: Weak<dyn Generation> = Arc::downgrade(generation);
    until(services, move || generation.strong_count() == 0)
}

/// The services, as long as the generation is registered.
pub(super) fn with_tenure(services: Arc<dyn Services>, tenure: &Arc<Tenure>) -> Arc<dyn Services> {
    let tenure = Arc::clone(tenure);
    until(services, move || tenure.has_ended())
}

impl<E: Fn() -> bool> Ending<E> {
    fn check(&self, service: &str) -> Result<(), Error> {
        if !(self.has_ended)() {
            return Ok(());
        }
        Err(Error::new(
            code::STALE,
            format!(
                "{service} was asked by code that has been replaced or withdrawn. Stop what it left running in its session_shutdown handler."
            ),
        ))
    }
}

impl<E: Fn() -> bool + Send + Sync> Services for Ending<E> {
    fn call(&self, service: &str, payload: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        match self.check(service) {
            Ok(()) => self.services.call(service, payload),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn open(
        &self,
        service: &str,
        payload: Vec<u8>,
    ) -> BoxFuture<'static, Result<ByteStream, Error>> {
        match self.check(service) {
            Ok(()) => self.services.open(service, payload),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    /// The log stays open: that something is stale may be worth a line.
    fn notify(&self, service: &str, payload: &[u8]) {
        self.services.notify(service, payload);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use super::*;
    use pliant_sdk::host::NoServices;

    #[tokio::test]
    async fn who_is_not_there_yet_may_ask_and_who_is_gone_may_not() {
        // extensions §2, §6: code keeps what it was created with.
        let slot: Arc<OnceLock<Weak<()>>> = Arc::default();
        let seen = Arc::clone(&slot);
        let has_ended = move || seen.get().is_some_and(|it| it.strong_count() == 0);
        let services = until(Arc::new(NoServices), has_ended);
        let answer = async || services.call("x", Vec::new()).await.unwrap_err().code;
        assert_eq!(answer().await, code::UNSUPPORTED);
        let it = Arc::new(());
        slot.set(Arc::downgrade(&it)).unwrap();
        assert_eq!(answer().await, code::UNSUPPORTED);
        drop(it);
        assert_eq!(answer().await, code::STALE);
        let opened = services.open("x", Vec::new()).await;
        assert!(opened.is_err_and(|error| error.is(code::STALE)));
    }
}

//! Services end with the generation that they were lent to (`extensions.md` §6): who keeps them beyond it
//! is told so. A call in flight holds its generation, so a reload takes nothing away from it.

use std::sync::{Arc, Weak};

use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::{BoxFuture, ByteStream, Services};

use super::Generation;

/// Services of one generation.
pub(super) struct WithGeneration {
    services: Arc<dyn Services>,
    generation: Weak<dyn Generation>,
}

impl WithGeneration {
    pub(super) fn new(services: Arc<dyn Services>, generation: &Arc<dyn Generation>) -> Self {
        Self {
            services,
            generation: Arc::downgrade(generation),
        }
    }

    fn check(&self, service: &str) -> Result<(), Error> {
        if self.generation.strong_count() > 0 {
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

impl Services for WithGeneration {
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

//! What tests call handlers with: services that there are none of, and a list of what failed.

use std::sync::{Arc, Mutex};

use pliant_sdk::Error;
use pliant_sdk::host::{BoxFuture, ByteStream, Services};

use super::{HandlerFailure, Lender, Source};

/// Answers everything with "unsupported".
pub(crate) struct NoServices;

impl Services for NoServices {
    fn call(&self, name: &str, _: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        Box::pin(std::future::ready(Err(Error::unsupported(name))))
    }

    fn open(&self, name: &str, _: Vec<u8>) -> BoxFuture<'static, Result<ByteStream, Error>> {
        Box::pin(std::future::ready(Err(Error::unsupported(name))))
    }

    fn notify(&self, _: &str, _: &[u8]) {}
}

/// Lends that, and keeps what is reported.
#[derive(Default)]
pub(crate) struct Reports(Mutex<Vec<HandlerFailure>>);

impl Reports {
    pub(crate) fn take(&self) -> Vec<HandlerFailure> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Lender for Reports {
    fn services(&self, _: &Source) -> Arc<dyn Services> {
        Arc::new(NoServices)
    }

    fn report(&self, failure: HandlerFailure) {
        self.0.lock().unwrap().push(failure);
    }
}

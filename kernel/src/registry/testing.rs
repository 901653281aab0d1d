//! What tests call handlers with: services that there are none of, and a list of what failed.

use std::sync::{Arc, Mutex};

use pliant_sdk::host::{NoServices, Services};

use super::{HandlerFailure, Lender, Source};

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

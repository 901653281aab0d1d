//! The registry and the subscribers as a run sees them.

use std::sync::Arc;

use pliant_sdk::Event;
use pliant_sdk::host::Services;
use tokio_util::sync::CancellationToken;

use crate::host::actions::CallScope;
use crate::registry::{HandlerFailure, Lender, Patience, Registry, Source};
use crate::run::PluginHost;
use crate::session::{Shared, lock};

impl Lender for Arc<Shared> {
    fn services(&self, source: &Source) -> Arc<dyn Services> {
        self.source_services(source, CallScope::Handler)
    }

    fn report(&self, failure: HandlerFailure) {
        lock(&self.reports).push(failure);
    }
}

impl PluginHost for Arc<Shared> {
    fn registry(&self) -> &Registry {
        &self.equipment.registry
    }

    fn patience(&self, cancel: &CancellationToken) -> Patience {
        Shared::patience(self, cancel.clone())
    }

    async fn between_turns(&self, cancel: &CancellationToken) {
        self.claims.between_turns(cancel).await;
    }

    fn continuation_limit(&self) -> u64 {
        let limit = self
            .equipment
            .settings
            .now()
            .count("extensions.maxContinuations");
        limit.unwrap_or(25)
    }

    async fn publish(&self, event: impl Into<Arc<Event>> + Send) {
        let event = event.into();
        self.note(&event);
        self.subscribers.publish(event).await;
    }

    async fn publish_reports(&self) {
        Shared::publish_reports(self).await;
    }
}

//! The registry and the subscribers as a run sees them.

use std::sync::Arc;
use std::time::Duration;

use pliant_sdk::Event;
use pliant_sdk::host::Services;

use crate::host::actions::CallScope;
use crate::registry::{HandlerFailure, Registry, Source};
use crate::run::PluginHost;
use crate::session::{Shared, lock};

impl PluginHost for Arc<Shared> {
    fn registry(&self) -> &Registry {
        &self.equipment.registry
    }

    fn services(&self, source: &Source) -> Arc<dyn Services> {
        self.source_services(source, CallScope::Handler)
    }

    fn handler_limit(&self) -> Option<Duration> {
        self.equipment.settings.handler_limit()
    }

    fn continuation_limit(&self) -> u64 {
        let limit = self.equipment.settings.count("extensions.maxContinuations");
        limit.unwrap_or(25)
    }

    async fn publish(&self, event: impl Into<Arc<Event>> + Send) {
        let event = event.into();
        self.note(&event);
        self.subscribers.publish(event).await;
    }

    fn report(&self, failure: HandlerFailure) {
        lock(&self.reports).push(failure);
    }

    async fn publish_reports(&self) {
        Shared::publish_reports(self).await;
    }
}

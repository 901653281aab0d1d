//! The registry and the subscribers as a run sees them.

use std::sync::Arc;
use std::time::Duration;

use pliant_sdk::Event;
use pliant_sdk::host::{BoxFuture, Services};

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

    fn publish(&self, event: Event) -> BoxFuture<'_, ()> {
        Box::pin(self.subscribers.publish(event))
    }

    fn report(&self, failure: HandlerFailure) {
        lock(&self.reports).push(failure);
    }

    fn publish_reports(&self) -> BoxFuture<'_, ()> {
        Box::pin(Shared::publish_reports(self))
    }
}

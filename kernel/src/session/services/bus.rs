//! The event bus: extensions speak to each other on channels (`extensions.md` §4.11). Who listens has a
//! handler named `bus:CHANNEL`, so it goes with its generation and is called like any other.

use std::sync::Arc;

use pliant_sdk::Error;
use pliant_sdk::host::Services;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Allowed, Service};
use crate::registry::{BUS_PREFIX, Callers, HandlerFailure, Lender, Source};
use crate::session::Shared;

pub(super) const SERVICES: &[Service] = &[Service {
    name: "bus.emit",
    allowed: Allowed::Anywhere,
    run: |session, ask| {
        Box::pin(async move {
            let channel = ask.payload.get("channel").and_then(Value::as_str);
            let channel = channel.filter(|channel| !channel.is_empty());
            let channel = channel.ok_or_else(|| Error::invalid("bus.emit needs a \"channel\""))?;
            let data = ask.payload.get("data").unwrap_or(&Value::Null);
            emit(&session, channel, data).await;
            Ok(Value::Null)
        })
    },
}];

/// Calls who listens to a channel, one after another. What fails is reported as `events:CHANNEL`.
async fn emit(session: &Arc<Shared>, channel: &str, data: &Value) {
    let snapshot = session.equipment.registry.snapshot();
    let name = format!("{BUS_PREFIX}{channel}");
    let lender = OfChannel { session, channel };
    let callers = Callers::new(&lender, session.patience(CancellationToken::new()));
    let payload = data.to_string().into_bytes();
    let handlers = snapshot.handlers(&name).iter();
    for handler in handlers.filter(|handler| handler.fault().is_none()) {
        // The failure was reported; the next one hears of the data all the same.
        let _ = callers.call(handler, "bus", &name, payload.clone()).await;
    }
}

/// Says which channel a failure is of.
struct OfChannel<'a> {
    session: &'a Arc<Shared>,
    channel: &'a str,
}

impl Lender for OfChannel<'_> {
    fn services(&self, source: &Source) -> Arc<dyn Services> {
        self.session.services(source)
    }

    fn report(&self, failure: HandlerFailure) {
        let event = format!("events:{}", self.channel).into();
        self.session.report(HandlerFailure { event, ..failure });
    }
}

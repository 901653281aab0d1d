//! Handlers that do nothing, in a source that costs nothing: what is measured is the calling.

use std::sync::Arc;

use pliant_kernel::registry::{Contribution, Generation, HookPoint, Kind, Rank, Source};
use pliant_sdk::Error;
use pliant_sdk::host::BoxFuture;
use pliant_sdk::plugin::Invocation;
use serde_json::Value;

struct Idle {
    source: Source,
    contributions: Vec<Contribution>,
}

/// A source with so many handlers of every event.
pub fn of_every_event(count: usize) -> Arc<dyn Generation> {
    let events = HookPoint::ALL.iter().map(|point| point.name());
    let handlers = events.flat_map(|event| (0..count).map(move |_| event));
    let contribution = |(id, event): (u32, &'static str)| Contribution {
        id,
        kind: Kind::Hook,
        name: event.to_owned(),
        spec: Value::Null,
    };
    Arc::new(Idle {
        source: Source::inline("idle", Rank::User),
        contributions: (0..).zip(handlers).map(contribution).collect(),
    })
}

impl Generation for Idle {
    fn source(&self) -> &Source {
        &self.source
    }

    fn contributions(&self) -> &[Contribution] {
        &self.contributions
    }

    fn invoke(&self, _: u32, _: Invocation) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        Box::pin(std::future::ready(Ok(b"null".to_vec())))
    }

    fn control(&self, op: &str, _: &[u8]) -> Result<Vec<u8>, Error> {
        Err(Error::unsupported(op))
    }
}

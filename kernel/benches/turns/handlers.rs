//! Handlers that do nothing, in sources that cost nothing: what is measured is the calling.

use std::sync::Arc;

use pliant_kernel::registry::{Contribution, Generation, HookPoint, Kind, Rank, Source};
use pliant_sdk::Error;
use pliant_sdk::host::BoxFuture;
use pliant_sdk::plugin::Invocation;
use serde_json::json;

struct Idle {
    source: Source,
    contributions: Arc<[Contribution]>,
}

/// So many sources with a handler of every event each. What shows the whole conversation is left out, for
/// its cost grows with it: the two events that are there for that, and the part of a boundary's event
/// that the SDK's typed hooks decline too.
pub fn of_every_event(count: usize) -> impl Iterator<Item = Arc<dyn Generation>> {
    let whole = [HookPoint::Context, HookPoint::ContextWithSystem];
    let events = HookPoint::ALL
        .iter()
        .filter(move |point| !whole.contains(point));
    let contribution = |(id, point): (u32, &HookPoint)| Contribution {
        id,
        kind: Kind::Hook,
        name: point.name().to_owned(),
        spec: json!({"without": ["context"]}),
    };
    let contributions: Arc<[_]> = (0..).zip(events).map(contribution).collect();
    (0..count).map(move |number| -> Arc<dyn Generation> {
        Arc::new(Idle {
            source: Source::inline(format!("idle {number}"), Rank::User),
            contributions: contributions.clone(),
        })
    })
}

impl Generation for Idle {
    fn source(&self) -> &Source {
        &self.source
    }

    fn contributions(&self) -> Arc<[Contribution]> {
        Arc::clone(&self.contributions)
    }

    fn invoke(&self, _: u32, _: Invocation) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        Box::pin(std::future::ready(Ok(b"null".to_vec())))
    }

    fn control(&self, op: &str, _: &[u8]) -> Result<Vec<u8>, Error> {
        Err(Error::unsupported(op))
    }
}

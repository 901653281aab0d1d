//! Handlers that do nothing, in sources that cost nothing: what is measured is the calling.

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

/// So many sources with a handler of every event each. The two events that show the whole conversation
/// are left out: what they cost grows with it, and who listens to them wants that.
pub fn of_every_event(count: usize) -> impl Iterator<Item = Arc<dyn Generation>> {
    let whole = [HookPoint::Context, HookPoint::ContextWithSystem];
    let events = HookPoint::ALL
        .iter()
        .filter(move |point| !whole.contains(point));
    let contribution = |(id, point): (u32, &HookPoint)| Contribution {
        id,
        kind: Kind::Hook,
        name: point.name().to_owned(),
        spec: Value::Null,
    };
    let contributions: Vec<_> = (0..).zip(events).map(contribution).collect();
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

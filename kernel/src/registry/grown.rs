//! What native code registers while it serves (`extensions.md` §4.1): it describes what it has beyond what
//! it was loaded with, by the service [`LOOK_AGAIN`] of one of its calls. The answer is tied to the
//! generation whose call it is, so that a version that has just been replaced adds nothing to the next.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use pliant_sdk::Error;
use pliant_sdk::host::{BoxFuture, ByteStream, Host, Services};
use pliant_sdk::late::LOOK_AGAIN;
use pliant_sdk::plugin::CallCtx;
use serde::Deserialize;
use serde_json::Value;

use super::{Contribution, Kind};

/// More are a mistake, such as a registration with each message.
const MOST: usize = 10_000;

/// What came later.
#[derive(Default)]
pub(super) struct Grown(ArcSwapOption<Vec<Contribution>>);

impl Grown {
    /// Everything, in order: of one kind and name the last counts, in the place of the first; handlers of
    /// events add up.
    pub(super) fn with(&self, loaded: Arc<[Contribution]>) -> Arc<[Contribution]> {
        let Some(later) = self.0.load_full() else {
            return loaded;
        };
        let mut all = loaded.to_vec();
        for item in later.iter() {
            let same = |old: &Contribution| {
                item.kind != Kind::Hook && old.kind == item.kind && old.name == item.name
            };
            match all.iter_mut().find(|old| same(old)) {
                Some(old) => *old = item.clone(),
                None => all.push(item.clone()),
            }
        }
        all.into()
    }

    /// The call of a generation that contributes `loaded`, with services that let it register more.
    pub(super) fn growing(self: &Arc<Self>, ctx: &CallCtx, loaded: Arc<[Contribution]>) -> CallCtx {
        let services = Growing {
            services: Arc::clone(ctx.host().services()),
            grown: Arc::clone(self),
            loaded,
        };
        CallCtx::new(ctx.caller(), Host::from_shared(Arc::new(services)))
    }
}

struct Growing {
    services: Arc<dyn Services>,
    grown: Arc<Grown>,
    loaded: Arc<[Contribution]>,
}

#[derive(Deserialize)]
struct Described {
    contributions: Vec<Value>,
}

impl Growing {
    fn take(&self, payload: &[u8]) -> Result<(), Error> {
        // A script keeps its own list, and says no more than that it is another one.
        let Ok(Some(described)) = serde_json::from_slice::<Option<Described>>(payload) else {
            return Ok(());
        };
        let later = Contribution::parse_all(described.contributions)?;
        if later.len() > MOST {
            return Err(Error::invalid(format!(
                "a plugin has registered something {MOST} times; register each thing once"
            )));
        }
        let is_taken = |item: &&Contribution| self.loaded.iter().any(|old| old.id == item.id);
        if let Some(item) = later.iter().find(is_taken) {
            return Err(Error::invalid(format!(
                "the id {} of \"{}\" belongs to something else",
                item.id, item.name
            )));
        }
        self.grown.0.store(Some(Arc::new(later)));
        Ok(())
    }
}

impl Services for Growing {
    fn call(&self, service: &str, payload: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        if service == LOOK_AGAIN
            && let Err(error) = self.take(&payload)
        {
            return Box::pin(std::future::ready(Err(error)));
        }
        self.services.call(service, payload)
    }

    fn open(
        &self,
        service: &str,
        payload: Vec<u8>,
    ) -> BoxFuture<'static, Result<ByteStream, Error>> {
        self.services.open(service, payload)
    }

    fn notify(&self, service: &str, payload: &[u8]) {
        self.services.notify(service, payload);
    }
}

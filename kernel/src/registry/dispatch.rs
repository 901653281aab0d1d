//! Calling handlers: in load order, one after another, each bounded in time, failures isolated.
//!
//! How answers compose (chain, gate, collect) is the business of the stage that dispatches; here one
//! handler is called, its failure is reported with its owner's name, and the stage decides what
//! comes next. A dispatch works on one snapshot's list, so a reload never mixes generations in it.

use std::sync::Arc;
use std::time::Duration;

use pliant_sdk::Error;
use pliant_sdk::error::code;
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;

use super::snapshot::Snapshot;
use super::{HookPoint, Registered, Source};
use pliant_sdk::plugin::CallCtx;

/// A failure of one handler.
#[derive(Debug, Clone)]
pub struct HandlerFailure {
    /// Whose handler.
    pub source: Source,
    /// At which event.
    pub event: &'static str,
    /// What went wrong.
    pub error: Error,
}

/// Makes the calling context of one handler, bound to its owner.
type MakeCtx<'a> = &'a (dyn Fn(&Source) -> CallCtx + Send + Sync);

/// One dispatch of one event.
pub struct Dispatcher<'a> {
    handlers: &'a [Arc<Registered<()>>],
    point: HookPoint,
    limit: Option<Duration>,
    ctx: MakeCtx<'a>,
    report: &'a (dyn Fn(HandlerFailure) + Send + Sync),
}

impl<'a> Dispatcher<'a> {
    /// Prepares a dispatch; `None` when nobody listens, so that a stage can skip all its work (G4).
    #[must_use]
    pub fn new(
        snapshot: &'a Snapshot,
        point: HookPoint,
        limit: Option<Duration>,
        ctx: MakeCtx<'a>,
        report: &'a (dyn Fn(HandlerFailure) + Send + Sync),
    ) -> Option<Self> {
        let handlers = snapshot.handlers(point.name());
        (!handlers.is_empty()).then_some(Self {
            handlers,
            point,
            limit,
            ctx,
            report,
        })
    }

    /// Calls all handlers with the same payload and ignores what they answer.
    pub async fn notify(&self, payload: &impl Serialize) {
        let Ok(bytes) = serde_json::to_vec(payload) else {
            return;
        };
        for handler in self.handlers {
            // The failure was reported; a notification has no other consequence.
            let _ = self.call(handler, bytes.clone()).await;
        }
    }

    /// Calls the handlers one after another. `payload` makes each one's argument, `take` gets each
    /// answer that is not null and says whether to go on. Failing handlers are reported and passed
    /// by, except where the hook point fails closed: there the failure ends the dispatch.
    ///
    /// # Errors
    /// The first failure, at a hook point that fails closed.
    pub async fn each<S>(
        &self,
        state: &mut S,
        payload: impl Fn(&S) -> Value,
        mut take: impl FnMut(&mut S, Value) -> std::ops::ControlFlow<()>,
    ) -> Result<(), HandlerFailure> {
        for handler in self.handlers {
            let bytes = serde_json::to_vec(&payload(state)).unwrap_or_default();
            match self.call(handler, bytes).await {
                Ok(Value::Null) => {}
                Ok(answer) => {
                    if take(state, answer).is_break() {
                        break;
                    }
                }
                Err(failure) if self.point.fails_closed() => return Err(failure),
                Err(_) => {}
            }
        }
        Ok(())
    }

    async fn call(
        &self,
        handler: &Registered<()>,
        payload: Vec<u8>,
    ) -> Result<Value, HandlerFailure> {
        let source = handler.source();
        let running = handler.invoke_bytes(self.point.name(), payload, (self.ctx)(source));
        let answer = match self.limit {
            Some(limit) => timeout(limit, running)
                .await
                .unwrap_or_else(|_| Err(too_slow(limit))),
            None => running.await,
        };
        let value = answer.and_then(|bytes| {
            if bytes.is_empty() {
                Ok(Value::Null)
            } else {
                Ok(serde_json::from_slice(&bytes)?)
            }
        });
        value.map_err(|error| {
            let failure = HandlerFailure {
                source: source.clone(),
                event: self.point.name(),
                error,
            };
            (self.report)(failure.clone());
            failure
        })
    }
}

fn too_slow(limit: Duration) -> Error {
    let ms = limit.as_millis();
    Error::new(
        code::TIMEOUT,
        format!(
            "the handler did not answer within {ms} ms (extensions.handlerTimeoutMs) and was ended"
        ),
    )
}

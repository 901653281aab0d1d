//! Events that handlers hear of beside whatever goes on: nobody waits for them, and they come in the
//! order in which they were told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::{Session, Shared, lock};
use crate::registry::HookPoint;

/// More that wait are a sign of a handler that hangs; the oldest are let go then.
const MOST: usize = 100;

/// What is still to be told.
#[derive(Default)]
pub(super) struct Telling(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    events: VecDeque<(HookPoint, Value)>,
    /// Somebody tells them.
    working: bool,
}

impl Telling {
    /// The next one; with none, the next event finds somebody new to tell it.
    fn next(&self) -> Option<(HookPoint, Value)> {
        let mut waiting = lock(&self.0);
        let next = waiting.events.pop_front();
        waiting.working = next.is_some();
        next
    }
}

impl Shared {
    /// Tells an event without waiting for its handlers.
    pub(super) fn tell_beside(self: &Arc<Self>, point: HookPoint, event: Value) {
        if !self.equipment.registry.hears(point.name()) || self.claims.is_closed() {
            return;
        }
        let is_idle = {
            let mut waiting = lock(&self.telling.0);
            if waiting.events.len() >= MOST {
                waiting.events.pop_front();
            }
            waiting.events.push_back((point, event));
            !std::mem::replace(&mut waiting.working, true)
        };
        if is_idle {
            let session = Session(Arc::clone(self));
            self.outbox.spawn(async move {
                while let Some((point, event)) = session.0.telling.next() {
                    session.tell(point, &event).await;
                }
            });
        }
    }
}

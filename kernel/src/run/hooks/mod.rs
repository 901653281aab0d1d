//! The hook points of a run: what each handler is shown, and what its answer changes
//! (`extensions.md` §3). A file for each group of them; here is what they have in common, and the
//! events that only notify.

mod boundary;
mod compaction;
mod context;
mod loadout;
mod message;
mod provider;
mod start;
mod tools;
mod tree;
mod turn;
mod withheld;

use std::sync::Arc;

use pliant_sdk::Event;
use tokio_util::sync::CancellationToken;

use super::{PluginHost, RunHost};
use crate::registry::{Callers, Dispatcher, HookPoint, Snapshot};

pub(super) use boundary::{Draft, boundary};
pub(super) use compaction::{Supplied, before_compact, compact_failed, compacted};
pub(super) use context::context;
pub(super) use loadout::prepare_loadout;
pub(super) use message::message_end;
pub(super) use provider::provider;
pub(super) use start::{Start, before_agent_start};
pub(super) use tools::{tool_call, tool_result};
pub(super) use tree::{before_tree, moved};
pub(super) use turn::turn_start;

/// Dispatches `point` on the current snapshot; `then` gets the dispatcher if anybody listens.
async fn with_handlers<H, T, F>(
    host: &H,
    cancel: &CancellationToken,
    point: HookPoint,
    nobody: T,
    then: F,
) -> T
where
    H: RunHost,
    F: for<'a> AsyncFnOnce(Dispatcher<'a>, T) -> T,
{
    let snapshot: Arc<Snapshot> = host.registry().snapshot();
    if snapshot.handlers(point.name()).is_empty() {
        return nobody;
    }
    let callers = Callers::new(host, host.patience(cancel));
    match Dispatcher::new(&snapshot, point, callers) {
        Some(dispatcher) => then(dispatcher, nobody).await,
        None => nobody,
    }
}

/// Whether anybody attached a handler to `point`.
fn listens<H: RunHost>(host: &H, point: HookPoint) -> bool {
    host.registry().hears(point.name())
}

/// Tells subscribers of an event that is no hook point, after what failed in handlers (L30).
pub(super) async fn announce<H: PluginHost>(host: &H, event: Event) {
    host.publish_reports().await;
    host.publish(event).await;
}

/// Tells handlers of an event that only notifies; whether there were any.
pub(super) async fn notify<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
    event: &Event,
) -> bool {
    let Some(point) = point_of(event) else {
        return false;
    };
    if !listens(host, point) {
        return false;
    }
    with_handlers(host, cancel, point, (), async |dispatcher, ()| {
        dispatcher.notify(event).await
    })
    .await;
    true
}

fn point_of(event: &Event) -> Option<HookPoint> {
    Some(match event {
        Event::AgentStart => HookPoint::AgentStart,
        Event::AgentEnd { .. } => HookPoint::AgentEnd,
        Event::AgentSettled { .. } => HookPoint::AgentSettled,
        Event::MessageStart { .. } => HookPoint::MessageStart,
        Event::MessageUpdate { .. } => HookPoint::MessageUpdate,
        Event::ToolExecutionStart { .. } => HookPoint::ToolExecutionStart,
        Event::ToolExecutionUpdate { .. } => HookPoint::ToolExecutionUpdate,
        Event::ToolExecutionEnd { .. } => HookPoint::ToolExecutionEnd,
        _ => return None,
    })
}

//! A turn begins: handlers hear which one it is.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::with_handlers;
use crate::registry::HookPoint;
use crate::run::RunHost;

/// `turn_start`.
pub(in crate::run) async fn turn_start<H: RunHost>(
    host: &H,
    cancel: &CancellationToken,
    index: u32,
) {
    with_handlers(
        host,
        cancel,
        HookPoint::TurnStart,
        (),
        async |dispatcher, ()| {
            let event =
                json!({"type": "turn_start", "turnIndex": index, "timestamp": host.now_ms()});
            dispatcher.notify(&event).await;
        },
    )
    .await;
}

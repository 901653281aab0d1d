//! The tools in force have changed: active tools that want it say what the model is told of them.

use std::time::Duration;

use pliant_sdk::Error;
use pliant_sdk::loadout::LoadoutChanges;
use tokio_util::sync::CancellationToken;

use crate::registry::{Callers, HandlerFailure};
use crate::run::RunHost;

/// The operation, and the event that failures are reported as.
const PREPARE: &str = "prepare_loadout";

/// The model waits for it.
const LIMIT: Duration = Duration::from_millis(200);

/// Asks the tools, one after another, unless nothing has changed since. A failing one is reported, and
/// changes nothing (`extensions.md` §4.3).
pub(in crate::run) async fn prepare_loadout<H: RunHost>(host: &H, cancel: &CancellationToken) {
    let loadout = host.loadout(&host.registry().snapshot());
    let asked = loadout.to_ask();
    if asked.is_empty() {
        return;
    }
    let payload = serde_json::to_vec(&loadout.view()).unwrap_or_default();
    let callers = Callers::new(host, host.patience(cancel).at_most(LIMIT));
    let mut all = LoadoutChanges::default();
    for tool in asked {
        let answer = callers.call(&tool, PREPARE, PREPARE, payload.clone());
        // A failure was reported.
        let Ok(answer) = answer.await else { continue };
        match serde_json::from_value::<Option<LoadoutChanges>>(answer) {
            Ok(changes) => {
                let changes = changes.unwrap_or_default();
                all.descriptions.extend(changes.descriptions);
                all.hidden_declarations.extend(changes.hidden_declarations);
            }
            Err(error) => host.report(HandlerFailure {
                source: tool.source().clone(),
                event: PREPARE.into(),
                error: Error::invalid(format!("its answer is none: {error}")),
            }),
        }
    }
    if !cancel.is_cancelled() {
        host.change_loadout(&loadout, all);
    }
}

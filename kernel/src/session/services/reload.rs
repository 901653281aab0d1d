//! Loading plugins and scripts anew (P14, R53).

use serde_json::json;

use super::{Allowed, Service};
use crate::session::Session;

pub(super) const SERVICES: &[Service] = &[Service {
    name: "session.reload",
    allowed: Allowed::InCommands,
    run: |session, _| {
        Box::pin(async move {
            let report = Session(session).reload().await?;
            Ok(json!(report.changes))
        })
    },
}];

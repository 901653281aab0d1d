//! What is around the session: what can be called by a slash, whether the project is trusted.

use serde_json::json;

use super::{Allowed, Service};

pub(super) const SERVICES: &[Service] = &[
    Service {
        name: "session.commands",
        allowed: Allowed::Anywhere,
        run: |session, _| Box::pin(async move { Ok((session.equipment.surroundings.commands)()) }),
    },
    Service {
        name: "session.is_project_trusted",
        allowed: Allowed::Anywhere,
        run: |session, _| {
            Box::pin(async move { Ok(json!(session.equipment.surroundings.trusts_project)) })
        },
    },
];

//! What sources register while they serve, beyond what they registered when they were loaded
//! (`extensions.md` §4.1, §4.9).

use serde::Deserialize;
use serde_json::Value;

use super::{Allowed, Service, read_as};

pub(super) const SERVICES: &[Service] = &[
    Service {
        name: "registry.look_again",
        allowed: Allowed::Anywhere,
        run: |session, _| {
            Box::pin(async move {
                session.equipment.registry.look_again();
                session.note_mcp_servers();
                Ok(Value::Null)
            })
        },
    },
    Service {
        name: "mcp.servers",
        allowed: Allowed::Anywhere,
        run: |session, _| Box::pin(async move { Ok(session.mcp_servers()) }),
    },
    Service {
        name: "mcp.claim",
        allowed: Allowed::Anywhere,
        run: |session, ask| {
            Box::pin(async move {
                let Named { name } = read_as("mcp.claim", ask.payload)?;
                session.claim_mcp_server(&ask.source, &name)?;
                Ok(Value::Null)
            })
        },
    },
];

#[derive(Deserialize)]
struct Named {
    name: String,
}

//! The prompt that requests are made with.

use serde_json::{Value, json};

use super::{Allowed, Service};
use crate::session::Session;

pub(super) const SERVICES: &[Service] = &[
    Service {
        name: "session.system_prompt",
        allowed: Allowed::Anywhere,
        run: |session, _| {
            Box::pin(async move { Ok(Value::String(Session(session).system_prompt())) })
        },
    },
    Service {
        name: "session.system_prompt_options",
        allowed: Allowed::InCommands,
        run: |session, _| Box::pin(async move { Ok(json!(Session(session).prompt_inputs())) }),
    },
    Service {
        name: "session.has_pending_messages",
        allowed: Allowed::Anywhere,
        run: |session, _| Box::pin(async move { Ok(json!(Session(session).has_pending())) }),
    },
];

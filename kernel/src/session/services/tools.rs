//! The tools of the session, and calls of them by running tools.

use pliant_sdk::Error;
use pliant_sdk::error::code;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Allowed, Service, StreamService};
use crate::host::actions::{Ask, CallScope, ToolCallMade};

pub(super) const SERVICES: &[Service] = &[
    Service {
        name: "tools.active",
        allowed: Allowed::Anywhere,
        run: |session, _| Box::pin(async move { Ok(json!(session.active_tools())) }),
    },
    Service {
        name: "tools.set_active",
        allowed: Allowed::Anywhere,
        run: |session, ask| {
            Box::pin(async move {
                let SetActive { names } = serde_json::from_value(ask.payload)?;
                session.set_active_tools(&names);
                Ok(Value::Null)
            })
        },
    },
    Service {
        name: "tools.list",
        allowed: Allowed::Anywhere,
        run: |session, _| Box::pin(async move { Ok(serde_json::to_value(session.all_tools())?) }),
    },
    Service {
        name: "tools.call",
        allowed: Allowed::InTools,
        run: |_, ask| Box::pin(async move { Ok(serde_json::to_value(call(ask)?.end().await)?) }),
    },
    Service {
        name: "tools.start",
        allowed: Allowed::InTools,
        run: |_, ask| Box::pin(async move { Ok(json!(call(ask)?.leave())) }),
    },
];

pub(super) const STREAMS: &[StreamService] = &[StreamService {
    name: "tools.call",
    allowed: Allowed::InTools,
    open: |ask| Ok(call(ask)?.watch()),
}];

#[derive(Deserialize)]
struct SetActive {
    names: Vec<String>,
}

#[derive(Deserialize)]
struct Call {
    name: String,
    #[serde(default)]
    arguments: Value,
}

fn call(ask: Ask) -> Result<Box<dyn ToolCallMade>, Error> {
    let CallScope::Tool { calls, .. } = ask.scope else {
        return Err(Error::new(
            code::UNAVAILABLE,
            "only a running tool can call others",
        ));
    };
    let Call { name, arguments } = serde_json::from_value(ask.payload)?;
    calls.call(&name, arguments)
}

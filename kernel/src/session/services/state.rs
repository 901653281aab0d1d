//! How the session stands, and stopping it.

use pliant_sdk::Error;
use serde_json::{Value, json};

use super::{Allowed, Service};
use crate::session::Session;

pub(super) const SERVICES: &[Service] = &[
    Service {
        name: "session.is_idle",
        allowed: Allowed::Anywhere,
        run: |session, _| Box::pin(async move { Ok(json!(Session(session).is_idle())) }),
    },
    Service {
        name: "session.abort",
        allowed: Allowed::Anywhere,
        run: |session, _| {
            Box::pin(async move {
                // Without waiting: the call may belong to the run that ends.
                Session(session).cancel();
                Ok(Value::Null)
            })
        },
    },
    Service {
        name: "session.wait_idle",
        allowed: Allowed::InCommands,
        run: |session, _| {
            Box::pin(async move {
                // A command that was put off until a run had settled would wait for itself.
                let session = Session(session);
                if !session.is_settling() {
                    session.wait_idle().await;
                }
                Ok::<_, Error>(Value::Null)
            })
        },
    },
];

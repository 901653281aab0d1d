//! Naming the session and its entries.

use pliant_sdk::Error;
use pliant_sdk::error::code;
use serde::Deserialize;
use serde_json::Value;

use super::{Allowed, Service};
use crate::session::Session;
use crate::tree::{EntryId, TreeError};

pub(super) const SERVICES: &[Service] = &[
    Service {
        name: "session.set_name",
        allowed: Allowed::Anywhere,
        run: |session, ask| {
            Box::pin(async move {
                let SetName { name } = serde_json::from_value(ask.payload)?;
                let named = Session(session).set_name(&name.unwrap_or_default()).await;
                named.map(|()| Value::Null).map_err(refused)
            })
        },
    },
    Service {
        name: "session.set_label",
        allowed: Allowed::Anywhere,
        run: |session, ask| {
            Box::pin(async move {
                let SetLabel { entry_id, label } = serde_json::from_value(ask.payload)?;
                let named = Session(session).set_label(&entry_id, label.as_deref());
                named.map(|()| Value::Null).map_err(refused)
            })
        },
    },
];

#[derive(Deserialize)]
struct SetName {
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetLabel {
    entry_id: EntryId,
    label: Option<String>,
}

fn refused(error: TreeError) -> Error {
    match error {
        TreeError::UnknownEntry { .. } => Error::new(code::NOT_FOUND, error.to_string()),
        error => Error::failed(error.to_string()),
    }
}

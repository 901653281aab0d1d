//! Going to another place of the tree, and letting the conversation be compacted.

use std::sync::Arc;

use pliant_sdk::error::code;
use pliant_sdk::{Error, Event};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Allowed, Service};
use crate::compaction::CompactionError;
use crate::run::{NavigateError, NavigateOptions};
use crate::session::{Session, Shared};
use crate::tree::EntryId;

pub(super) const SERVICES: &[Service] = &[
    Service {
        name: "session.navigate",
        allowed: Allowed::InCommands,
        run: |session, ask| {
            Box::pin(async move { navigate(session, serde_json::from_value(ask.payload)?).await })
        },
    },
    Service {
        name: "session.compact",
        allowed: Allowed::Anywhere,
        run: |session, ask| {
            Box::pin(async move {
                let Compact {
                    custom_instructions,
                } = serde_json::from_value(ask.payload)?;
                // Nobody waits: the call may belong to the run that a compaction stops first. The claim
                // on the session is what can end it.
                tokio::spawn(compact(session, ask.source, custom_instructions));
                Ok(Value::Null)
            })
        },
    },
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Navigate {
    target_id: EntryId,
    #[serde(default)]
    summarize: bool,
    custom_instructions: Option<String>,
    #[serde(default)]
    replace_instructions: bool,
    label: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Compact {
    custom_instructions: Option<String>,
}

async fn navigate(session: Arc<Shared>, wish: Navigate) -> Result<Value, Error> {
    let options = NavigateOptions {
        summarize: wish.summarize,
        instructions: wish.custom_instructions,
        replace_instructions: wish.replace_instructions,
        label: wish.label,
    };
    let session = Session(session);
    match session.navigate_tree(&wish.target_id, options).await {
        Ok(arrival) => Ok(json!({
            "cancelled": false,
            "editorText": arrival.editor_text,
            "summaryEntryId": arrival.summary.map(|entry| entry.id().clone()),
        })),
        Err(NavigateError::Cancelled | NavigateError::Aborted) => Ok(json!({"cancelled": true})),
        Err(error) => Err(match error {
            NavigateError::Unknown(_) => Error::new(code::NOT_FOUND, error.to_string()),
            NavigateError::Busy => Error::new(code::UNAVAILABLE, error.to_string()),
            error => Error::failed(error.to_string()),
        }),
    }
}

async fn compact(session: Arc<Shared>, source: String, instructions: Option<String>) {
    let session = Session(session);
    let Err(error) = session.compact(instructions.as_deref()).await else {
        return;
    };
    // Of one that was begun, its end tells.
    if matches!(error, CompactionError::Aborted | CompactionError::Failed(_)) {
        return;
    }
    let event = Event::ExtensionError {
        extension_path: source,
        event: "session.compact".to_owned(),
        error: error.to_string(),
    };
    session.0.subscribers.publish(event).await;
}

//! Another session in the place of this one, for commands (`extensions.md` §5.3). The command goes on in
//! the new session: what it asks from then on, that answers.

use std::path::PathBuf;
use std::sync::Arc;

use pliant_sdk::Error;
use pliant_sdk::error::code;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Allowed, Service, read_as};
use crate::host::actions::{Ask, CallScope};
use crate::session::surroundings::{Replaced, Replacement};
use crate::session::{Shared, lock};
use crate::tree::{EntryId, Position};

pub(super) const SERVICES: &[Service] = &[
    Service {
        name: "session.new",
        allowed: Allowed::InCommands,
        run: |session, ask| {
            Box::pin(async move {
                let New { parent } = read_as("session.new", ask.payload.clone())?;
                replace(session, &ask, Replacement::New { parent }).await
            })
        },
    },
    Service {
        name: "session.switch",
        allowed: Allowed::InCommands,
        run: |session, ask| {
            Box::pin(async move {
                let Switch { file } = read_as("session.switch", ask.payload.clone())?;
                replace(session, &ask, Replacement::Switch { file }).await
            })
        },
    },
    Service {
        name: "session.fork",
        allowed: Allowed::InCommands,
        run: |session, ask| {
            Box::pin(async move {
                let Fork { entry, position } = read_as("session.fork", ask.payload.clone())?;
                let position = match position {
                    Place::Before => Position::Before,
                    Place::At => Position::At,
                };
                let entry = EntryId::from(entry.as_str());
                replace(session, &ask, Replacement::Fork { entry, position }).await
            })
        },
    },
];

#[derive(Default, Deserialize)]
#[serde(default)]
struct New {
    #[serde(rename = "parentSession")]
    parent: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Switch {
    #[serde(rename = "sessionPath")]
    file: PathBuf,
}

#[derive(Deserialize)]
struct Fork {
    #[serde(rename = "entryId")]
    entry: String,
    #[serde(default)]
    position: Place,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    #[default]
    Before,
    At,
}

async fn replace(session: Arc<Shared>, ask: &Ask, wish: Replacement) -> Result<Value, Error> {
    let CallScope::Command {
        successor: Some(successor),
    } = &ask.scope
    else {
        return Err(Error::new(
            code::UNAVAILABLE,
            "The session is not replaced by a command that was given while a run was active. Give it again now that it is over.",
        ));
    };
    // The old session ends, and with it what runs in it, but for the command that wants that.
    drop(std::mem::take(&mut *lock(&session.abort)));
    // Beside whoever asks: once begun, it is done to its end.
    let surroundings = Arc::clone(&session.equipment.surroundings);
    let replacing = tokio::spawn(async move { surroundings.replace(wish).await });
    let replaced = replacing
        .await
        .map_err(|lost| Error::failed(lost.to_string()))??;
    let Some(Replaced {
        session: next,
        editor_text,
    }) = replaced
    else {
        return Ok(json!({"cancelled": true}));
    };
    successor.set(next.0);
    Ok(json!({"cancelled": false, "editorText": editor_text}))
}

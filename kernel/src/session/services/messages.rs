//! Messages and entries of plugins. What becomes of a message is not waited for: the call may belong to
//! the run that it joins. What goes wrong afterwards is reported as an error of the sender.

use std::sync::Arc;

use pliant_sdk::Error;
use pliant_sdk::session::{AppendEntry, SendMessage, SendUserMessage};
use serde_json::Value;

use super::{Allowed, Service};
use crate::host::actions::Ask;
use crate::registry::{Rank, Source};
use crate::session::{Session, Shared};

pub(super) const SERVICES: &[Service] = &[
    Service {
        name: "session.send_message",
        allowed: Allowed::Anywhere,
        run: |session, ask| Box::pin(send_message(session, ask)),
    },
    Service {
        name: "session.send_user_message",
        allowed: Allowed::Anywhere,
        run: |session, ask| Box::pin(std::future::ready(send_user_message(session, ask))),
    },
    Service {
        name: "session.append",
        allowed: Allowed::Anywhere,
        run: |session, ask| Box::pin(append(session, ask)),
    },
];

async fn send_message(session: Arc<Shared>, ask: Ask) -> Result<Value, Error> {
    let SendMessage { message, options } = serde_json::from_value(ask.payload)?;
    let sender = sender(&session, ask.source);
    let session = Session(session);
    let sent = session.send_message(message, options, Some(sender.clone()));
    if let Err(error) = sent.await {
        let told = session.0.tell_failure(Some(sender), "send_message", error);
        told.await;
    }
    Ok(Value::Null)
}

fn send_user_message(session: Arc<Shared>, ask: Ask) -> Result<Value, Error> {
    let SendUserMessage { content, options } = serde_json::from_value(ask.payload)?;
    let sender = sender(&session, ask.source);
    Session(session).send_user_message(content, options, sender);
    Ok(Value::Null)
}

async fn append(session: Arc<Shared>, ask: Ask) -> Result<Value, Error> {
    let AppendEntry { custom_type, data } = serde_json::from_value(ask.payload)?;
    Session(session).append(custom_type, data).await
}

fn sender(session: &Shared, name: String) -> Source {
    let snapshot = session.equipment.registry.snapshot();
    let mut sources = snapshot
        .sources()
        .iter()
        .map(|generation| generation.source());
    let source = sources.find(|source| source.name == name).cloned();
    source.unwrap_or_else(|| Source::inline(name, Rank::User))
}

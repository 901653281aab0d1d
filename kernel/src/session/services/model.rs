//! Model, thinking level, the models there are, and how full the context is (`extensions.md` §5.2, §5.3).

use pliant_sdk::message::ThinkingLevel;
use pliant_sdk::session::ScopedModel;
use pliant_sdk::{Error, Model};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Allowed, Service, read_as};
use crate::session::model::shown;
use crate::session::{Keep, SelectError, SelectOptions, Session};

pub(super) const SERVICES: &[Service] = &[
    Service {
        name: "session.model",
        allowed: Allowed::Anywhere,
        run: |session, _| Box::pin(async move { Ok(json!(Session(session).model().map(shown))) }),
    },
    Service {
        name: "session.set_model",
        allowed: Allowed::Anywhere,
        run: |session, ask| Box::pin(set_model(Session(session), ask.payload)),
    },
    Service {
        name: "session.thinking_level",
        allowed: Allowed::Anywhere,
        run: |session, _| Box::pin(async move { Ok(json!(Session(session).thinking_level())) }),
    },
    Service {
        name: "session.set_thinking_level",
        allowed: Allowed::Anywhere,
        run: |session, ask| {
            Box::pin(async move {
                let SetLevel { level } = read_as("session.set_thinking_level", ask.payload)?;
                let session = Session(session);
                let level = session.set_thinking_level(level, Keep::Session).await?;
                Ok(json!(level))
            })
        },
    },
    Service {
        name: "session.scoped_models",
        allowed: Allowed::Anywhere,
        run: |session, _| {
            Box::pin(async move {
                let scope = Session(session).scoped_models().await?;
                let scope = scope.into_iter().map(|choice| ScopedModel {
                    model: shown(choice.model),
                    thinking_level: choice.level,
                });
                Ok(json!(scope.collect::<Vec<_>>()))
            })
        },
    },
    Service {
        name: "session.usage",
        allowed: Allowed::Anywhere,
        run: |session, _| {
            Box::pin(async move { Ok(json!(Session(session).context_usage().await)) })
        },
    },
    Service {
        name: "models.list",
        allowed: Allowed::Anywhere,
        run: |session, _| {
            Box::pin(async move {
                let available = session.equipment.catalog.available().await?;
                let available: Vec<Model> = available.into_iter().map(shown).collect();
                Ok(json!(available))
            })
        },
    },
];

#[derive(Deserialize)]
struct SetModel {
    model: String,
}

#[derive(Deserialize)]
struct SetLevel {
    level: ThinkingLevel,
}

/// Without a key the answer is a plain no: an extension may try one model after another.
async fn set_model(session: Session, payload: Value) -> Result<Value, Error> {
    let SetModel { model: wanted } = read_as("session.set_model", payload)?;
    let catalog = &session.0.equipment.catalog;
    let model = catalog.by_reference(&wanted).await?.ok_or_else(|| {
        Error::failed(format!(
            "There is no model \"{wanted}\". Name one as provider/id; models.list tells which there are."
        ))
    })?;
    match session.set_model(&model, SelectOptions::default()).await {
        Ok(()) => Ok(json!(true)),
        Err(SelectError::NoKey { .. }) => Ok(json!(false)),
        Err(SelectError::Failed(error)) => Err(error),
    }
}

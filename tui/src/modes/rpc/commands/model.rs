//! Model and thinking level.

use pliant_kernel::session::{Direction, Keep, SelectOptions, Session};
use pliant_sdk::Model;
use pliant_sdk::message::ThinkingLevel;
use serde_json::{Value, json};

use super::{Answer, Call, Entry, quick, said};
use crate::modes::rpc::request::Data;

pub(super) const COMMANDS: &[Entry] = &[
    quick("set_model", |call| Box::pin(set_model(call))),
    quick("cycle_model", |call| Box::pin(cycle_model(call))),
    quick("get_available_models", |call| {
        Box::pin(async move {
            let models = available(&call).await?;
            Data::of(&json!({ "models": models }))
        })
    }),
    quick("set_thinking_level", |call| {
        Box::pin(set_thinking_level(call))
    }),
    quick("cycle_thinking_level", |call| {
        Box::pin(async move {
            let level = call.session().cycle_thinking_level().await.map_err(said)?;
            Data::of(&level.map(|level| json!({ "level": level })))
        })
    }),
    quick("get_available_thinking_levels", |call| {
        Box::pin(async move { Data::of(&json!({"levels": call.session().thinking_levels()})) })
    }),
];

/// What a program is shown of a model: its headers may hold a secret.
pub(super) fn shown(model: Model) -> Model {
    Model {
        headers: None,
        ..model
    }
}

async fn available(call: &Call) -> Result<Vec<Model>, String> {
    let catalog = call.rpc.runtime.kernel().catalog();
    let models = catalog.available().await.map_err(said)?;
    Ok(models.into_iter().map(shown).collect())
}

async fn set_model(call: Call) -> Answer {
    let provider: String = call.fields().required("provider")?;
    let id: String = call.fields().required("modelId")?;
    let session = call.session();
    let catalog = call.rpc.runtime.kernel().catalog();
    let found = catalog.find(&provider, &id).await.map_err(said)?;
    let Some(model) = found.filter(|model| catalog.usable(&model.provider)) else {
        return Err(format!("Model not found: {provider}/{id}"));
    };
    session
        .set_model(&model, SelectOptions::default())
        .await
        .map_err(said)?;
    Data::of(&shown(model))
}

async fn cycle_model(call: Call) -> Answer {
    let cycled = call.session().cycle_model(Direction::Forward).await;
    Data::of(&cycled.map_err(said)?.map_or(Value::Null, |cycled| {
        json!({
            "model": shown(cycled.model),
            "thinkingLevel": cycled.level,
            "isScoped": cycled.scoped,
        })
    }))
}

async fn set_thinking_level(call: Call) -> Answer {
    let word: String = call.fields().required("level")?;
    let Some(level) = ThinkingLevel::parse(&word) else {
        return Err(format!(
            "The level \"{word}\" is none of off, minimal, low, medium, high, xhigh, max."
        ));
    };
    let session: Session = call.session();
    session
        .set_thinking_level(level, Keep::Session)
        .await
        .map_err(said)?;
    Ok(Data::none())
}

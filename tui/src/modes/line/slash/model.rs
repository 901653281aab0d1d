//! `/model` and `/thinking`: another model or level for the rest of the session, or what is in force.

use pliant_kernel::models::ModelWish;
use pliant_kernel::session::{Keep, SelectOptions, Session};
use pliant_sdk::message::ThinkingLevel;

use super::{Outcome, Said, Slash};

pub(super) const MODEL: Slash = Slash {
    name: "model",
    takes: "[MODEL]",
    about: "Use another model, or show the one in force.",
    run: |runtime, word| {
        Box::pin(async move {
            let session = runtime.session();
            if !word.is_empty() {
                choose_model(&session, word).await?;
            }
            in_force(&session)
        })
    },
};

pub(super) const THINKING: Slash = Slash {
    name: "thinking",
    takes: "[LEVEL]",
    about: "Let the model think more or less, or show how much it does.",
    run: |runtime, word| {
        Box::pin(async move {
            let session = runtime.session();
            if !word.is_empty() {
                choose_level(&session, word).await?;
            }
            in_force(&session)
        })
    },
};

fn in_force(session: &Session) -> Outcome {
    let model = session.model();
    let model = model.map_or_else(|| "no model".to_owned(), |model| model.reference());
    let levels = session.thinking_levels();
    let level = session.thinking_level().as_str();
    Ok(Said::Text(match levels.len() {
        0 | 1 => format!("[{model}]\n"),
        _ => format!("[{model}, thinking {level} (of {})]\n", names(&levels)),
    }))
}

async fn choose_model(session: &Session, word: &str) -> Result<(), String> {
    let wish = ModelWish {
        provider: None,
        model: Some(word.to_owned()),
    };
    let choice = session.find_model(&wish).await;
    let choice = choice.map_err(|error| error.to_string())?;
    let how = SelectOptions {
        level: choice.level,
        keep: Keep::Session,
    };
    let selected = session.set_model(&choice.model, how).await;
    selected.map_err(|error| error.to_string())
}

async fn choose_level(session: &Session, word: &str) -> Result<(), String> {
    let Some(level) = ThinkingLevel::parse(word) else {
        let levels = names(&session.thinking_levels());
        return Err(format!(
            "\"{word}\" is not a thinking level; this model has {levels}."
        ));
    };
    let set = session.set_thinking_level(level, Keep::Session).await;
    set.map(drop).map_err(|error| error.to_string())
}

fn names(levels: &[ThinkingLevel]) -> String {
    let names: Vec<_> = levels.iter().map(|level| level.as_str()).collect();
    names.join(", ")
}

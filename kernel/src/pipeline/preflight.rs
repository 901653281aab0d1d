//! A model, and credentials for it (P34–P36).

use super::{Prompt, PromptError, Scene};

/// Checks that a run could send its first request.
pub(super) fn check(scene: &Scene<'_>, prompt: &Prompt) -> Result<(), PromptError> {
    if prompt.text.trim().is_empty() && prompt.images.is_empty() {
        return Err(PromptError::Empty);
    }
    let model = scene.model.ok_or(PromptError::NoModel)?;
    if scene.usable {
        return Ok(());
    }
    Err(PromptError::NoKey {
        provider: model.provider.clone(),
        advice: key_advice(scene.key_variables),
    })
}

/// How a provider gets its key, which may be in one of these variables.
#[must_use]
pub fn key_advice(variables: &[String]) -> String {
    match variables {
        [] => "Give \"apiKey\" to the provider in models.json, or use --api-key.".to_owned(),
        names => format!(
            "Set {}, or give it an \"apiKey\" in models.json, or use --api-key.",
            names.join(" or ")
        ),
    }
}

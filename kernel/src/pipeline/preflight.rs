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
    let advice = match scene.key_variables {
        [] => "Give \"apiKey\" to the provider in models.json, or use --api-key.".to_owned(),
        names => format!(
            "Set {}, or give it an \"apiKey\" in models.json, or use --api-key.",
            names.join(" or ")
        ),
    };
    Err(PromptError::NoKey {
        provider: model.provider.clone(),
        advice,
    })
}

//! A model, and credentials for it (P34–P36). Looked at when the handlers of the stages before have
//! spoken, for they may choose another model.

use pliant_sdk::Model;

use super::PromptError;

/// What a run needs before its first request, as it stands now.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    /// The selected model.
    pub model: Option<Model>,
    /// Whether it can be paid for.
    pub usable: bool,
    /// Environment variables that may hold the key, for advice.
    pub key_variables: Vec<String>,
}

impl Readiness {
    /// Checks that a run could send its first request.
    ///
    /// # Errors
    /// What is missing, and what to do about it.
    pub fn check(&self) -> Result<(), PromptError> {
        let model = self.model.as_ref().ok_or(PromptError::NoModel)?;
        if self.usable {
            return Ok(());
        }
        let advice = match &*self.key_variables {
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
}

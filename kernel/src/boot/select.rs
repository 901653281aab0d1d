//! Which model and level a session starts with (V3), and what to tell of it.

use pliant_sdk::message::ThinkingLevel;

use super::{Kernel, OpenOptions};
use crate::models::{ModelChoice, ModelError, ModelWish};
use crate::session::implied_model;
use crate::tree::{ModelRef, SessionTree};

impl Kernel {
    /// What was asked for, else what the branch used if it still works, else the default of the
    /// settings, else the first that works; of a new session with models to choose from, one of those.
    pub(super) async fn choose_model(
        &self,
        open: &OpenOptions,
        tree: &SessionTree,
        notices: &mut Vec<String>,
    ) -> Result<ModelChoice, ModelError> {
        if open.model != ModelWish::default() {
            let choice = self.catalog.choose_or_believe(&open.model).await?;
            let ModelRef { provider, model_id } = reference(&choice);
            if self.catalog.find(&provider, &model_id).await?.is_none() {
                notices.push(format!(
                    "The provider \"{provider}\" does not list the model \"{model_id}\"; it is asked for it all the same."
                ));
            }
            return Ok(choice);
        }
        let said = tree.settings();
        let implied = implied_model(said, |name| self.catalog.is_virtual(name));
        let Some(implied) = implied else {
            return self.first_choice(open, notices).await;
        };
        // A virtual model that is gone leaves the one that answered for it last (V9).
        for model in [Some(implied), said.answered_by.as_ref()]
            .into_iter()
            .flatten()
        {
            if let Some(choice) = self.usable(model).await {
                if model != implied {
                    notices.push(replaced(implied, &choice));
                }
                return Ok(choice);
            }
        }
        let choice = self.first_choice(open, notices).await?;
        notices.push(replaced(implied, &choice));
        Ok(choice)
    }

    async fn usable(&self, model: &ModelRef) -> Option<ModelChoice> {
        let ModelRef { provider, model_id } = model;
        if !self.catalog.usable(provider) {
            return None;
        }
        let model = self.catalog.find(provider, model_id).await.ok()??;
        Some(ModelChoice { model, level: None })
    }

    async fn first_choice(
        &self,
        open: &OpenOptions,
        notices: &mut Vec<String>,
    ) -> Result<ModelChoice, ModelError> {
        let settings = self.settings.now();
        let used = settings.used();
        let default = ModelWish {
            provider: used.default_provider.clone(),
            model: used.default_model.clone(),
        };
        let (scope, unmatched) = self.catalog.scope(&self.scope_of(open)).await?;
        notices.extend(unmatched.into_iter().map(|pattern| {
            format!("No model matches \"{pattern}\". `pliant --list-models` shows the usable ones.")
        }));
        let is_default = |choice: &&ModelChoice| {
            Some(&choice.model.provider) == default.provider.as_ref()
                && Some(&choice.model.id) == default.model.as_ref()
        };
        let mut usable = scope
            .iter()
            .filter(|choice| self.catalog.usable(&choice.model.provider));
        // Without a model in it, the list does not say whose key that of the command line is.
        if let Some(pattern) = self.scope_of(open).into_iter().next()
            && self.options.api_key.is_some()
            && scope.is_empty()
        {
            return Err(ModelError::NoMatch(pattern));
        }
        let in_scope = usable.clone().find(is_default).or_else(|| usable.next());
        match in_scope {
            Some(choice) => Ok(choice.clone()),
            None => self.default_or_first(&default, notices).await,
        }
    }

    /// Where nothing works, what the settings want says best what is missing.
    async fn default_or_first(
        &self,
        default: &ModelWish,
        notices: &mut Vec<String>,
    ) -> Result<ModelChoice, ModelError> {
        let wanted = self.catalog.choose(default).await;
        if *default == ModelWish::default() {
            return wanted;
        }
        let works = |choice: &ModelChoice| self.catalog.usable(&choice.model.provider);
        if wanted.as_ref().is_ok_and(works) {
            return wanted;
        }
        let first = self.catalog.choose(&ModelWish::default()).await;
        // What works without a key is no sign that somebody wants it.
        let keyed = |choice: &ModelChoice| !self.catalog.keyless(&choice.model.provider);
        let Some(first) = first.ok().filter(|first| works(first) && keyed(first)) else {
            return wanted;
        };
        let cause = match &wanted {
            Ok(choice) => format!("no key for \"{}\" is known", choice.model.provider),
            Err(error) => error.to_string(),
        };
        notices.push(format!(
            "The default model of the settings is not used: {}. {} is used instead.",
            cause.trim_end_matches('.'),
            first.model.reference()
        ));
        Ok(first)
    }

    /// Patterns of the models to choose from: those of the command line, else of the settings.
    pub(super) fn scope_of(&self, open: &OpenOptions) -> Vec<String> {
        let written = || self.settings.now().used().enabled_models.clone();
        open.scope.clone().or_else(written).unwrap_or_default()
    }

    /// The level wanted: asked for, else of the branch, else of the settings. What is set for one model
    /// is for new sessions; an older one without a level goes by what holds for all.
    pub(super) fn choose_level(
        &self,
        open: &OpenOptions,
        choice: &ModelChoice,
        tree: &SessionTree,
    ) -> ThinkingLevel {
        let of_model = || {
            let reference = choice.model.reference();
            self.settings.now().model_level(&reference)
        };
        let resumed = !tree.entries().is_empty();
        open.level
            .or(choice.level)
            .or(tree.settings().thinking_level)
            .or_else(|| of_model().filter(|_| !resumed))
            .or(self.settings.now().used().default_thinking_level)
            .unwrap_or(ThinkingLevel::Medium)
    }
}

fn reference(choice: &ModelChoice) -> ModelRef {
    ModelRef {
        provider: choice.model.provider.clone(),
        model_id: choice.model.id.clone(),
    }
}

fn replaced(gone: &ModelRef, choice: &ModelChoice) -> String {
    let ModelRef { provider, model_id } = gone;
    format!(
        "The session's model {provider}/{model_id} is not usable any more; {} goes on instead.",
        choice.model.reference()
    )
}

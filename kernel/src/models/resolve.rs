//! From what a user typed to one model (`providers.md` §9, `interfaces.md` §1.2).

use pliant_sdk::message::ThinkingLevel;
use pliant_sdk::{Error, Model};
use thiserror::Error as ThisError;

use super::catalog::Catalog;

/// What is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelWish {
    /// Provider id.
    pub provider: Option<String>,
    /// Id, `provider/id`, or a part of id or name; may end in `:level`.
    pub model: Option<String>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelChoice {
    /// The model.
    pub model: Model,
    /// The level that the wish named.
    pub level: Option<ThinkingLevel>,
}

/// Why no model was found.
#[derive(Debug, ThisError)]
pub enum ModelError {
    #[error(
        "There is no provider \"{0}\". `pliant --list-models` shows which there are; your own go into models.json."
    )]
    UnknownProvider(String),
    #[error("No model matches \"{0}\". `pliant --list-models` shows the usable ones.")]
    NoMatch(String),
    #[error(
        "No provider can be used. Set a provider's key variable, or add a provider to models.json."
    )]
    NothingUsable,
    #[error("\"{wish}\" matches several models: {found}. Name one as provider/id.")]
    Ambiguous { wish: String, found: String },
    #[error("The provider \"{0}\" has no models. Add some to models.json.")]
    Empty(String),
    #[error("--provider needs --model: name a model of \"{0}\".")]
    ProviderAlone(String),
    #[error("{0}")]
    BrokenFile(String),
    #[error("{0}")]
    Failed(#[from] Error),
}

impl Catalog {
    /// Finds the wanted model; without a wish, the first usable provider's first model, and at last
    /// whatever works without a key (the guide).
    ///
    /// # Errors
    /// A sentence that says what to do.
    pub async fn choose(&self, wish: &ModelWish) -> Result<ModelChoice, ModelError> {
        let result = match (&wish.provider, &wish.model) {
            (None, None) => self.first_usable().await,
            (provider, Some(model)) => self.named(provider.as_deref(), model).await,
            (Some(provider), None) => self.first_of(provider).await,
        };
        let result = match result {
            Err(ModelError::NoMatch(_) | ModelError::Empty(_)) => match self.left_out(wish).await {
                Some(problem) => Err(ModelError::BrokenFile(problem)),
                None => result,
            },
            result => result,
        };
        match (result, self.error()) {
            // A provider that seems unknown is more likely one of the file that could not be read.
            (Err(ModelError::UnknownProvider(_) | ModelError::NoMatch(_)), Some(broken)) => {
                Err(ModelError::BrokenFile(broken.to_owned()))
            }
            (result, _) => result,
        }
    }

    /// A definition of models.json that was left out and may be the wanted one.
    async fn left_out(&self, wish: &ModelWish) -> Option<String> {
        let model = wish.model.as_deref().unwrap_or_default();
        for provider in self.providers() {
            let problems = self
                .models(&provider)
                .await
                .map(|(_, problems)| problems)
                .unwrap_or_default();
            let named = |problem: &String| {
                let id = problem.split('"').nth(1).unwrap_or_default();
                !id.is_empty() && (model.is_empty() || model.contains(id))
            };
            let asked = wish
                .provider
                .as_ref()
                .is_none_or(|asked| *asked == provider);
            if let Some(problem) = problems.into_iter().find(named).filter(|_| asked) {
                return Some(problem);
            }
        }
        None
    }

    async fn first_usable(&self) -> Result<ModelChoice, ModelError> {
        if let Some(broken) = self.error() {
            return Err(ModelError::BrokenFile(broken.to_owned()));
        }
        // What works without a key is no sign that somebody wants it, so it comes last.
        let (keyless, keyed): (Vec<_>, Vec<_>) = self
            .providers()
            .into_iter()
            .filter(|id| self.usable(id))
            .partition(|id| self.keyless(id));
        let mut failure = None;
        for provider in keyed.iter().chain(&keyless) {
            match self.models_of(std::slice::from_ref(provider)).await {
                Ok(models) => {
                    if let Some(model) = models.into_iter().next() {
                        return Ok(ModelChoice { model, level: None });
                    }
                }
                Err(error) => drop(failure.get_or_insert(error)),
            }
        }
        Err(failure.map_or(ModelError::NothingUsable, ModelError::from))
    }

    async fn first_of(&self, provider: &str) -> Result<ModelChoice, ModelError> {
        let mut models = self.known(provider).await?.into_iter();
        match (models.next(), models.next()) {
            (Some(model), None) => Ok(ModelChoice { model, level: None }),
            (Some(_), Some(_)) => Err(ModelError::ProviderAlone(provider.to_owned())),
            _ => Err(ModelError::Empty(provider.to_owned())),
        }
    }

    async fn named(
        &self,
        provider: Option<&str>,
        pattern: &str,
    ) -> Result<ModelChoice, ModelError> {
        if let Some(choice) = self.exact(provider, pattern, None).await? {
            return Ok(choice);
        }
        // A model id may hold a colon itself, so the level is split off only when the whole is none.
        let split = pattern
            .rsplit_once(':')
            .and_then(|(id, level)| Some((id, ThinkingLevel::parse(level)?)));
        if let Some((id, level)) = split
            && let Some(choice) = self.exact(provider, id, Some(level)).await?
        {
            return Ok(choice);
        }
        let (part, level) = split.map_or((pattern, None), |(id, level)| (id, Some(level)));
        self.fuzzy(provider, part, level).await
    }

    /// `provider/id` with the longest provider that matches, or an id.
    async fn exact(
        &self,
        provider: Option<&str>,
        id: &str,
        level: Option<ThinkingLevel>,
    ) -> Result<Option<ModelChoice>, ModelError> {
        if let Some(provider) = provider {
            if let Some(model) = self.find(provider, id).await? {
                return Ok(Some(ModelChoice { model, level }));
            }
            let models = self.known(provider).await?;
            let bare = id
                .strip_prefix(provider)
                .and_then(|rest| rest.strip_prefix('/'));
            let found = models
                .into_iter()
                .find(|model| model.id == id || Some(model.id.as_str()) == bare);
            return Ok(found.map(|model| ModelChoice { model, level }));
        }
        if let Some(model) = self.by_reference(id).await? {
            return Ok(Some(ModelChoice { model, level }));
        }
        let found: Vec<Model> = self
            .all()
            .await?
            .into_iter()
            .filter(|model| model.id == id)
            .collect();
        self.one_of(id, found)
            .map(|model| model.map(|model| ModelChoice { model, level }))
    }

    async fn fuzzy(
        &self,
        provider: Option<&str>,
        part: &str,
        level: Option<ThinkingLevel>,
    ) -> Result<ModelChoice, ModelError> {
        let models = match provider {
            Some(provider) => self.known(provider).await?,
            None => self.all().await?,
        };
        let wanted = part.to_lowercase();
        let matches = |model: &Model| {
            model.reference().to_lowercase().contains(&wanted)
                || model.name.to_lowercase().contains(&wanted)
        };
        let found: Vec<Model> = models.into_iter().filter(matches).collect();
        match self.one_of(part, found)? {
            Some(model) => Ok(ModelChoice { model, level }),
            None => Err(ModelError::NoMatch(part.to_owned())),
        }
    }

    /// The only one, or the only one that can be paid for.
    fn one_of(&self, wish: &str, found: Vec<Model>) -> Result<Option<Model>, ModelError> {
        let mut usable: Vec<Model> = found
            .iter()
            .filter(|model| self.usable(&model.provider))
            .cloned()
            .collect();
        match (found.len(), usable.len()) {
            (0, _) => Ok(None),
            (1, _) => Ok(found.into_iter().next()),
            (_, 1) => Ok(usable.pop()),
            _ => {
                let candidates = if usable.is_empty() { &found } else { &usable };
                let names: Vec<String> = candidates.iter().take(5).map(Model::reference).collect();
                let more = candidates.len().saturating_sub(names.len());
                let found = names.join(", ")
                    + &if more > 0 {
                        format!(" and {more} more")
                    } else {
                        String::new()
                    };
                Err(ModelError::Ambiguous {
                    wish: wish.to_owned(),
                    found,
                })
            }
        }
    }

    async fn known(&self, provider: &str) -> Result<Vec<Model>, ModelError> {
        if !self.providers().iter().any(|id| id == provider) {
            return Err(ModelError::UnknownProvider(provider.to_owned()));
        }
        Ok(self.models(provider).await?.0)
    }

    async fn all(&self) -> Result<Vec<Model>, ModelError> {
        Ok(self.models_of(&self.providers()).await?)
    }
}

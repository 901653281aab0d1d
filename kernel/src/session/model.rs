//! Switching model and thinking level (`kernel.md` §7.1, §7.2). A run that is active sends its next
//! request with what is selected then (R12).

use pliant_sdk::message::ThinkingLevel;
use pliant_sdk::{Error, Event, Model};
use serde_json::{Value, json};
use thiserror::Error as ThisError;

use super::{Session, Shared, lock};
use crate::models::{ModelChoice, ModelError, ModelWish};
use crate::pipeline::key_advice;
use crate::registry::HookPoint;
use crate::tree::{EntryBody, ModelChange, SessionTree, ThinkingLevelChange, TreeError};

/// How a model is selected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SelectOptions {
    /// The level wanted over those of the settings.
    pub level: Option<ThinkingLevel>,
    /// For how long.
    pub keep: Keep,
}

/// For how long a choice holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Keep {
    /// In this session.
    #[default]
    Session,
    /// In new sessions too: it goes into the user's settings.
    AsDefault,
}

/// Which way to go through the models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Direction {
    /// To the next one.
    #[default]
    Forward,
    /// To the one before.
    Backward,
}

/// What came of going to another model.
#[derive(Debug, Clone, PartialEq)]
pub struct Cycled {
    /// The model in force.
    pub model: Model,
    /// The level in force.
    pub level: ThinkingLevel,
    /// It is one of those that the user wants to choose from.
    pub scoped: bool,
}

/// Why a model is not selected.
#[derive(Debug, ThisError)]
pub enum SelectError {
    /// The model needs a key that nobody has.
    #[error("{model} is not selected, because no key for \"{provider}\" is known. {advice}")]
    NoKey {
        /// `provider/id`.
        model: String,
        /// Provider id.
        provider: String,
        /// What to do.
        advice: String,
    },
    /// It cannot be stored or kept.
    #[error("{0}")]
    Failed(#[from] Error),
}

/// What a selection changed.
pub(super) struct Change {
    /// The model before, if another one is in force.
    model: Option<Option<Model>>,
    /// The levels before and now, if they differ.
    level: Option<(ThinkingLevel, ThinkingLevel)>,
}

impl Session {
    /// The model in force.
    #[must_use]
    pub fn model(&self) -> Option<Model> {
        lock(&self.0.state).model.clone()
    }

    /// The thinking level in force.
    #[must_use]
    pub fn thinking_level(&self) -> ThinkingLevel {
        lock(&self.0.state).level
    }

    /// The levels that the model supports; only `off` without a model.
    #[must_use]
    pub fn thinking_levels(&self) -> Vec<ThinkingLevel> {
        let model = self.model();
        model.map_or_else(|| vec![ThinkingLevel::Off], |model| model.thinking_levels())
    }

    /// The model that a wish means, and the level it names.
    ///
    /// # Errors
    /// Why it means none, or several.
    pub async fn find_model(&self, wish: &ModelWish) -> Result<ModelChoice, ModelError> {
        self.0.equipment.catalog.choose(wish).await
    }

    /// Selects a model (V1), and the level that the options, the settings or the moment want for it (V4).
    ///
    /// # Errors
    /// When nobody can pay for it, and nothing changed then; when it cannot be stored or kept.
    pub async fn set_model(&self, model: &Model, how: SelectOptions) -> Result<(), SelectError> {
        self.select(model, how, "set").await
    }

    /// Goes to the next usable model: of those that the user wants to choose from, if there are such,
    /// else of all (V2). `None` when there is no other.
    ///
    /// # Errors
    /// When providers cannot be asked, or as [`Session::set_model`].
    pub async fn cycle_model(&self, direction: Direction) -> Result<Option<Cycled>, SelectError> {
        let catalog = &self.0.equipment.catalog;
        let mut choices = self.scoped_models().await?;
        let scoped = !choices.is_empty();
        if scoped {
            choices.retain(|choice| catalog.usable(&choice.model.provider));
        } else {
            let all = catalog.available().await?.into_iter();
            choices.extend(all.map(|model| ModelChoice { model, level: None }));
        }
        let current = self.model().map(|model| model.reference());
        let Some(next) = next(&choices, current.as_deref(), direction) else {
            return Ok(None);
        };
        let how = SelectOptions {
            level: next.level,
            keep: Keep::Session,
        };
        self.select(&next.model, how, "cycle").await?;
        Ok(Some(Cycled {
            model: next.model.clone(),
            level: self.thinking_level(),
            scoped,
        }))
    }

    /// The models that the user wants to choose from, and their levels; empty = all.
    ///
    /// # Errors
    /// When providers cannot be asked.
    pub async fn scoped_models(&self) -> Result<Vec<ModelChoice>, Error> {
        Ok(self.0.equipment.catalog.scope(&self.0.scope).await?.0)
    }

    /// Sets the level that is nearest to the wish (V6) and answers it. Nothing is stored or said of it
    /// when it is in force already; as default the wish itself is kept (V7).
    ///
    /// # Errors
    /// When it cannot be stored or kept.
    pub async fn set_thinking_level(
        &self,
        wish: ThinkingLevel,
        keep: Keep,
    ) -> Result<ThinkingLevel, Error> {
        let change = self.0.change_selection(None, wish)?;
        self.announce_selection(change, "set").await;
        if keep == Keep::AsDefault {
            lock(&self.0.state).default_level = Some(wish);
            let kept = ("defaultThinkingLevel", json!(wish));
            self.keep_as_default(vec![kept]).await?;
        }
        Ok(self.thinking_level())
    }

    /// Goes to the next level that the model supports, and from the last to the first. `None` when there
    /// is only one.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub async fn cycle_thinking_level(&self) -> Result<Option<ThinkingLevel>, Error> {
        let (levels, current) = (self.thinking_levels(), self.thinking_level());
        if levels.len() < 2 {
            return Ok(None);
        }
        let higher = levels.iter().find(|level| **level > current);
        let next = higher.or(levels.first()).copied().unwrap_or_default();
        self.set_thinking_level(next, Keep::Session).await.map(Some)
    }

    async fn select(
        &self,
        model: &Model,
        how: SelectOptions,
        source: &str,
    ) -> Result<(), SelectError> {
        let catalog = &self.0.equipment.catalog;
        if !catalog.usable(&model.provider) {
            return Err(SelectError::NoKey {
                model: model.reference(),
                provider: model.provider.clone(),
                advice: key_advice(&catalog.key_variables(&model.provider)),
            });
        }
        let wish = self.0.level_for(model, how.level);
        let change = self.0.change_selection(Some(model), wish)?;
        self.announce_selection(change, source).await;
        if how.keep == Keep::AsDefault {
            let kept = vec![
                ("defaultProvider", json!(model.provider)),
                ("defaultModel", json!(model.id)),
            ];
            self.keep_as_default(kept).await?;
        }
        Ok(())
    }

    /// The level comes first: whoever hears of the model finds both in force (V1).
    pub(super) async fn announce_selection(&self, change: Change, source: &str) {
        if let Some((previous, level)) = change.level {
            let changed = Event::ThinkingLevelChanged { level };
            self.0.subscribers.publish(changed).await;
            let event = json!({
                "type": "thinking_level_select", "level": level, "previousLevel": previous,
            });
            self.tell(HookPoint::ThinkingLevelSelect, &event).await;
        }
        if let Some(previous) = change.model {
            let mut event = json!({
                "type": "model_select", "model": self.model().map(shown), "source": source,
            });
            if let Some(previous) = previous {
                event["previousModel"] = json!(shown(previous));
            }
            self.tell(HookPoint::ModelSelect, &event).await;
        }
    }

    async fn keep_as_default(&self, kept: Vec<(&'static str, Value)>) -> Result<(), Error> {
        if self.0.equipment.settings.now().path().is_none() {
            return Err(Error::failed(
                "The choice holds in this session only, because there is no settings file.",
            ));
        }
        self.change_settings(kept).await
    }
}

impl Shared {
    /// V4.
    fn level_for(&self, model: &Model, explicit: Option<ThinkingLevel>) -> ThinkingLevel {
        let state = lock(&self.state);
        let of_model = self
            .equipment
            .settings
            .now()
            .model_level(&model.reference());
        explicit
            .or(of_model)
            .or(state.default_level)
            .unwrap_or(state.level)
    }

    /// Stores and puts into force what is selected. A model is stored also when it is the same (V1), a
    /// level only when it is another (V7).
    pub(super) fn change_selection(
        &self,
        model: Option<&Model>,
        wish: ThinkingLevel,
    ) -> Result<Change, Error> {
        let mut state = lock(&self.state);
        let mut tree = self.tree();
        let mut change = Change {
            model: None,
            level: None,
        };
        if let Some(model) = model {
            append_model(&mut tree, model)?;
            state.model_of = self.equipment.registry.snapshot().number();
            let previous = state.model.replace(model.clone());
            let same = previous.as_ref().map(Model::reference) == Some(model.reference());
            change.model = (!same).then_some(previous);
        }
        let level = match &state.model {
            Some(model) => model.clamp_level(wish),
            None => ThinkingLevel::Off,
        };
        if level != state.level {
            change.level = Some((state.level, level));
            // Also where it cannot be stored: the level of before may be none of this model's.
            state.level = level;
            append_level(&mut tree, level)?;
        }
        Ok(change)
    }
}

/// What plugins are shown of a model: its headers may hold a secret.
pub(super) fn shown(model: Model) -> Model {
    Model {
        headers: None,
        ..model
    }
}

pub(super) fn append_model(tree: &mut SessionTree, model: &Model) -> Result<(), Error> {
    let change = ModelChange {
        provider: model.provider.clone(),
        model_id: model.id.clone(),
    };
    append(tree, EntryBody::ModelChange(change))
}

pub(super) fn append_level(tree: &mut SessionTree, level: ThinkingLevel) -> Result<(), Error> {
    let change = ThinkingLevelChange {
        thinking_level: level.as_str().to_owned(),
    };
    append(tree, EntryBody::ThinkingLevelChange(change))
}

fn append(tree: &mut SessionTree, body: EntryBody) -> Result<(), Error> {
    let failed = |error: TreeError| Error::failed(error.to_string());
    tree.append(body).map(drop).map_err(failed)
}

/// The choice after the current one; from one that is not in the list the first or the last. `None` when
/// that is the current one.
fn next<'a>(
    choices: &'a [ModelChoice],
    current: Option<&str>,
    direction: Direction,
) -> Option<&'a ModelChoice> {
    let is_current = |choice: &ModelChoice| Some(choice.model.reference().as_str()) == current;
    let count = choices.len();
    let at = choices.iter().position(is_current);
    let next = match (at, direction) {
        (None, Direction::Forward) => choices.first(),
        (None, Direction::Backward) => choices.last(),
        (Some(at), Direction::Forward) => choices.get((at + 1) % count),
        (Some(at), Direction::Backward) => choices.get((at + count - 1) % count),
    };
    next.filter(|choice| !is_current(choice))
}

//! The model and the thinking level of the session, the models there are, and how full the context is
//! (`extensions.md` §5.2, §5.3).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Session;
use crate::error::Error;
use crate::message::ThinkingLevel;
use crate::model::Model;

/// A model to choose from, and the level it is chosen with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScopedModel {
    /// The model.
    pub model: Model,
    /// The level; absent = as the settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<ThinkingLevel>,
}

/// How full the context is (V15).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    /// Tokens of the next request; unknown after a compaction until a model has answered.
    pub tokens: Option<u64>,
    /// Tokens that fit.
    pub context_window: u64,
    /// The part of the window that is full, 0 to 100 and above.
    pub percent: Option<f64>,
}

impl Session<'_> {
    /// The model selected; `None` when there is none. Headers are left out.
    ///
    /// # Errors
    /// `unsupported` outside a session.
    pub async fn model(&self) -> Result<Option<Model>, Error> {
        self.host.call("session.model", &Value::Null).await
    }

    /// Selects a model, `provider/id`, for this session. A running run uses it from its next turn on.
    /// False when nobody can pay for it.
    ///
    /// # Errors
    /// When there is no such model; `unsupported` outside a session.
    pub async fn set_model(&self, model: &str) -> Result<bool, Error> {
        let payload = json!({ "model": model });
        self.host.call("session.set_model", &payload).await
    }

    /// The thinking level in force.
    ///
    /// # Errors
    /// `unsupported` outside a session.
    pub async fn thinking_level(&self) -> Result<ThinkingLevel, Error> {
        self.host.call("session.thinking_level", &Value::Null).await
    }

    /// Sets the thinking level for this session and answers what is in force then: the nearest one that
    /// the model supports.
    ///
    /// # Errors
    /// `unsupported` outside a session.
    pub async fn set_thinking_level(&self, level: ThinkingLevel) -> Result<ThinkingLevel, Error> {
        let payload = json!({ "level": level });
        self.host.call("session.set_thinking_level", &payload).await
    }

    /// The models that the user wants to choose from; empty = all.
    ///
    /// # Errors
    /// When providers cannot be asked; `unsupported` outside a session.
    pub async fn scoped_models(&self) -> Result<Vec<ScopedModel>, Error> {
        self.host.call("session.scoped_models", &Value::Null).await
    }

    /// How full the context is; `None` without a model, and where its window is not known.
    ///
    /// # Errors
    /// `unsupported` outside a session.
    pub async fn usage(&self) -> Result<Option<ContextUsage>, Error> {
        self.host.call("session.usage", &Value::Null).await
    }

    /// The models that can be used, with headers left out.
    ///
    /// # Errors
    /// When providers cannot be asked; `unsupported` outside a session.
    pub async fn models(&self) -> Result<Vec<Model>, Error> {
        self.host.call("models.list", &Value::Null).await
    }
}

//! Virtual models: selections that an extension maps to a physical model and level before each request
//! (`extensions.md` §4.8, `providers.md` §1.4).
//!
//! ```
//! use pliant_sdk::plugin::CallCtx;
//! use pliant_sdk::virtual_model::{Route, RouteReason, RouteRequest, VirtualModel, VirtualModelSpec};
//! use pliant_sdk::{Error, Plugin};
//!
//! /// Begins cheaply, and takes the large model when that failed.
//! struct Thrifty;
//!
//! impl VirtualModel for Thrifty {
//!     fn spec(&self) -> VirtualModelSpec {
//!         VirtualModelSpec::new("router", "thrifty", "Thrifty")
//!     }
//!
//!     async fn route(&self, request: RouteRequest, _ctx: CallCtx) -> Result<Route, Error> {
//!         Ok(match request.reason {
//!             RouteReason::Retry => Route::to("acme/large"),
//!             _ => Route::to("acme/small"),
//!         })
//!     }
//! }
//!
//! let plugin = Plugin::new().virtual_model(Thrifty);
//! ```

use std::future::Future;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::error::Error;
use crate::message::{Message, ThinkingLevel};
use crate::model::Model;
use crate::plugin::CallCtx;

/// What models carry as their wire that have none: their requests are routed (`providers.md` §1.4).
pub const VIRTUAL_API: &str = "pi-virtual";

/// A model that stands for others.
pub trait VirtualModel: Send + Sync + 'static {
    /// What is selected.
    fn spec(&self) -> VirtualModelSpec;

    /// Says which physical model answers the request that is about to be sent. An error, and a target
    /// that cannot be used, end the request with an answer that says so.
    fn route(
        &self,
        request: RouteRequest,
        ctx: CallCtx,
    ) -> impl Future<Output = Result<Route, Error>> + Send;
}

/// A virtual model as the registry keeps it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VirtualModelSpec {
    /// `provider/id`; hides a physical model of that name.
    pub name: String,
    /// Provider id that it is listed under. One that no real provider has is always usable.
    pub provider: String,
    /// Id of the model.
    pub model_id: String,
    /// Name for people.
    pub label: String,
    /// Levels a user may choose; empty = `off` alone.
    pub thinking_levels: Vec<ThinkingLevel>,
    /// Tokens, until a physical model has answered; 0 = unknown.
    pub context_window: u64,
    /// Output limit, tokens; 0 = unknown.
    pub max_tokens: u64,
    /// `text`, `image`; empty = text alone.
    pub input: Vec<String>,
}

impl VirtualModelSpec {
    /// A virtual model without levels and limits.
    pub fn new(
        provider: impl Into<String>,
        id: impl Into<String>,
        label: impl Into<String>,
    ) -> Self {
        let (provider, model_id) = (provider.into(), id.into());
        Self {
            name: format!("{provider}/{model_id}"),
            provider,
            model_id,
            label: label.into(),
            ..Self::default()
        }
    }

    /// As a model that can be selected.
    #[must_use]
    pub fn model(&self) -> Model {
        let offers = |level: &ThinkingLevel| match self.thinking_levels.is_empty() {
            true => *level == ThinkingLevel::Off,
            false => self.thinking_levels.contains(level),
        };
        let word = |level: ThinkingLevel| match offers(&level) {
            true => Value::from(level.as_str()),
            false => Value::Null,
        };
        let map = ThinkingLevel::ALL.map(|level| (level.as_str().to_owned(), word(level)));
        let input = match self.input.is_empty() {
            true => vec!["text".to_owned()],
            false => self.input.clone(),
        };
        let name = match self.label.is_empty() {
            true => self.model_id.clone(),
            false => self.label.clone(),
        };
        Model {
            id: self.model_id.clone(),
            name,
            api: VIRTUAL_API.to_owned(),
            provider: self.provider.clone(),
            reasoning: ThinkingLevel::ALL.iter().skip(1).any(offers),
            input,
            context_window: self.context_window,
            max_tokens: self.max_tokens,
            thinking_level_map: Some(Map::from_iter(map)),
            ..Model::default()
        }
    }
}

/// Why a request is made (V11).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteReason {
    /// The user said something.
    #[default]
    User,
    /// Tool results are to be answered, or what an extension said.
    Continuation,
    /// The last request failed, or did not fit, and is made again.
    Retry,
    /// A request beside the conversation, such as one for a summary. Knows and keeps no state.
    Direct,
}

/// A request that is to be routed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteRequest {
    /// The virtual model.
    pub model: Model,
    /// The level selected.
    pub thinking_level: ThinkingLevel,
    /// Why the request is made.
    pub reason: RouteReason,
    /// The latest answer that neither failed nor was aborted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<Arc<Message>>,
    /// The answer that is asked for again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedAnswer>,
    /// What the last route on this branch kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Value>,
    /// The conversation.
    pub messages: Vec<Arc<Message>>,
}

/// An answer that failed, and who gave it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FailedAnswer {
    /// The answer.
    pub message: Arc<Message>,
    /// The physical model.
    pub model: Model,
}

/// Where a request goes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// The physical model, `provider/id`. A whole model may be given as well; its names count.
    #[serde(deserialize_with = "reference")]
    pub model: String,
    /// The level, clamped to the model; absent = the one selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<ThinkingLevel>,
    /// Kept on the branch for the next route, if it differs from what is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Value>,
}

impl Route {
    /// To a physical model, `provider/id`, at the level selected.
    pub fn to(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            ..Self::default()
        }
    }

    /// With another level.
    #[must_use]
    pub fn at(mut self, level: ThinkingLevel) -> Self {
        self.thinking_level = Some(level);
        self
    }

    /// Keeps something for the next route.
    #[must_use]
    pub fn with_state(mut self, state: Value) -> Self {
        self.state = Some(state);
        self
    }
}

fn reference<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    match (value.as_str(), text("provider"), text("id")) {
        (Some(reference), ..) => Ok(reference.to_owned()),
        (None, Some(provider), Some(id)) => Ok(format!("{provider}/{id}")),
        _ => Err(serde::de::Error::custom(
            "the model of a route is neither \"provider/id\" nor a model",
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_virtual_model_offers_the_levels_it_names_and_no_others() {
        // extensions §4.8, V5
        use ThinkingLevel::{High, Low, Max, Off};
        let mut spec = VirtualModelSpec::new("router", "auto", "Auto");
        assert_eq!(spec.model().thinking_levels(), [Off]);
        assert_eq!(spec.model().context_window, 0);
        spec.thinking_levels = vec![Off, Low, Max];
        assert_eq!(spec.model().thinking_levels(), [Off, Low, Max]);
        assert_eq!(spec.model().clamp_level(High), Max);
        assert_eq!(spec.model().reference(), "router/auto");
    }

    #[test]
    fn a_route_names_its_model_or_holds_it() {
        let read = |route: Value| serde_json::from_value::<Route>(route);
        let named = read(json!({"model": "a/b/c", "thinkingLevel": "low"})).unwrap();
        assert_eq!(named, Route::to("a/b/c").at(ThinkingLevel::Low));
        let held = read(json!({"model": {"provider": "a", "id": "b/c"}, "state": {"n": 1}}));
        assert_eq!(
            held.unwrap(),
            Route::to("a/b/c").with_state(json!({"n": 1}))
        );
        assert!(read(json!({"model": 3})).is_err());
    }
}

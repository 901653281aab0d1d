//! What a service does differently: the `compat` switches of a model (`providers.md` §3.1).
//!
//! The rest of the crate asks this struct and never looks at provider ids or addresses itself.

use pliant_sdk::Model;
use pliant_sdk::model::ModelCost;
use pliant_sdk::wire::Compat;
use pliant_sdk::wire::usage::is_open_router;
use serde_json::Value;

/// The switches as they are in force for one model. Names are those of `compat`, shortened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quirks {
    /// Each tool says that its arguments may come in pieces; other services need a beta for that.
    pub(crate) eager_input_streaming: bool,
    pub(crate) long_retention: bool,
    /// Header that keeps a conversation on one machine of the service.
    pub(crate) affinity: Option<&'static str>,
    pub(crate) cache_control_on_tools: bool,
    pub(crate) temperature: bool,
    /// Thinking goes back as such although nobody signed it.
    pub(crate) empty_signature: bool,
    pub(crate) strict_tools: bool,
    pub(crate) system_in_place: bool,
    /// Only with `system_in_place`.
    pub(crate) tools_in_place: bool,
    /// The level of thinking stands between the messages.
    pub(crate) effort_in_place: bool,
    /// Thinking is asked for by effort, not by budget.
    pub(crate) adaptive: bool,
    /// Models that the service may use instead.
    pub(crate) fallbacks: Vec<Fallback>,
    /// The service reports what it charged.
    pub(crate) reports_cost: bool,
}

/// A model that may answer instead of the one asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fallback {
    pub(crate) model: String,
    /// Its rates, if it is one of the same provider.
    pub(crate) cost: Option<ModelCost>,
}

impl Quirks {
    /// An explicit switch of the model wins over what its service is known for.
    pub(crate) fn of(model: &Model) -> Self {
        let compat = Compat::of(model);
        let flag = |name, default| compat.flag(name, default);
        let open_router = is_open_router(model);
        let system_in_place = flag("supportsMidConvoSystemMessages", false);
        let affinity = match compat.text("sessionAffinityFormat").as_deref() {
            Some("openrouter") => "x-session-id",
            None if open_router => "x-session-id",
            _ => "x-session-affinity",
        };
        Self {
            eager_input_streaming: flag("supportsEagerToolInputStreaming", true),
            long_retention: flag("supportsLongCacheRetention", true),
            affinity: flag("sendSessionAffinityHeaders", open_router).then_some(affinity),
            cache_control_on_tools: flag("supportsCacheControlOnTools", true),
            temperature: flag("supportsTemperature", true),
            empty_signature: flag("allowEmptySignature", false),
            strict_tools: flag("supportsStrictTools", false),
            system_in_place,
            tools_in_place: system_in_place && flag("supportsMidConvoToolChanges", false),
            effort_in_place: model.reasoning && flag("supportsMidConvoEffort", false),
            adaptive: flag("forceAdaptiveThinking", false),
            fallbacks: fallbacks(model, compat.value("allowedFallbackModels")),
            reports_cost: open_router,
        }
    }
}

fn fallbacks(model: &Model, allowed: Option<Value>) -> Vec<Fallback> {
    let allowed = allowed.as_ref().and_then(Value::as_array);
    let read = |entry: &Value| {
        let own = entry.get("provider").and_then(Value::as_str) == Some(&model.provider);
        let cost = entry.get("cost").filter(|_| own);
        Some(Fallback {
            model: entry.get("model")?.as_str()?.to_owned(),
            cost: cost.and_then(|cost| serde_json::from_value(cost.clone()).ok()),
        })
    };
    allowed.into_iter().flatten().filter_map(read).collect()
}

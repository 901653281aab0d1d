//! Facts about a model, plain data (`providers.md` §1.1, §5).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::lenient;
use crate::message::{ThinkingLevel, Usage};

/// A chat model. Unknown fields are kept in `extra`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Model {
    /// Id sent to the service.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Wire it speaks, e.g. `openai-completions`.
    pub api: String,
    /// Provider id.
    pub provider: String,
    /// Address, without the wire's own path.
    pub base_url: String,
    /// Supports thinking.
    pub reasoning: bool,
    /// `text`, `image`.
    pub input: Vec<String>,
    /// US dollars per million tokens.
    pub cost: ModelCost,
    /// Tokens; 0 = unknown.
    pub context_window: u64,
    /// Output limit, tokens.
    pub max_tokens: u64,
    /// Level → the service's word, null = unsupported, missing = default.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::field"
    )]
    pub thinking_level_map: Option<Map<String, Value>>,
    /// Static request headers.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::field"
    )]
    pub headers: Option<Map<String, Value>>,
    /// Merged last into the request body, where the wire allows.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::field"
    )]
    pub sampling_params: Option<Map<String, Value>>,
    /// Switches of the wire.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::field"
    )]
    pub compat: Option<Map<String, Value>>,
    /// Everything else: `promptCache`, `inputLimits`, `samplingParamsByThinkingLevel`, …
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Default for Model {
    /// The defaults of a `models.json` definition (`providers.md` §9).
    fn default() -> Self {
        Self {
            id: String::new(),
            name: String::new(),
            api: String::new(),
            provider: String::new(),
            base_url: String::new(),
            reasoning: false,
            input: vec!["text".to_owned()],
            cost: ModelCost::default(),
            context_window: 128_000,
            max_tokens: 16_384,
            thinking_level_map: None,
            headers: None,
            sampling_params: None,
            compat: None,
            extra: Map::new(),
        }
    }
}

impl Model {
    /// `provider/id`.
    #[must_use]
    pub fn reference(&self) -> String {
        format!("{}/{}", self.provider, self.id)
    }

    /// Whether the model sees images.
    #[must_use]
    pub fn takes_images(&self) -> bool {
        self.input.iter().any(|kind| kind == "image")
    }

    /// Levels the model supports (V5).
    #[must_use]
    pub fn thinking_levels(&self) -> Vec<ThinkingLevel> {
        if !self.reasoning {
            return vec![ThinkingLevel::Off];
        }
        ThinkingLevel::ALL
            .into_iter()
            .filter(|level| self.supports(*level))
            .collect()
    }

    fn supports(&self, level: ThinkingLevel) -> bool {
        match self
            .thinking_level_map
            .as_ref()
            .and_then(|map| map.get(level.as_str()))
        {
            Some(Value::Null) => false,
            Some(_) => true,
            None => level < ThinkingLevel::Xhigh,
        }
    }

    /// The supported level nearest to the wish: itself, else the next higher, else the next lower (V6).
    #[must_use]
    pub fn clamp_level(&self, wish: ThinkingLevel) -> ThinkingLevel {
        let levels = self.thinking_levels();
        let higher = levels.iter().find(|level| **level >= wish);
        let lower = levels.iter().rev().find(|level| **level < wish);
        higher.or(lower).copied().unwrap_or_default()
    }

    /// The service's word for a level, if the map has a string for it.
    #[must_use]
    pub fn mapped_level(&self, level: ThinkingLevel) -> Option<&str> {
        self.thinking_level_map
            .as_ref()?
            .get(level.as_str())?
            .as_str()
    }

    /// Fills in the cost of a usage from the model's rates (`providers.md` §2.4).
    pub fn price(&self, usage: &mut Usage) {
        let rates = self
            .cost
            .rates_for(usage.input + usage.cache_read + usage.cache_write);
        let one_hour = usage.cache_write_1h.unwrap_or(0).min(usage.cache_write);
        let cost = &mut usage.cost;
        cost.input = per_million(rates.input, usage.input);
        cost.output = per_million(rates.output, usage.output);
        cost.cache_read = per_million(rates.cache_read, usage.cache_read);
        cost.cache_write = (rates.cache_write * tokens(usage.cache_write - one_hour)
            + 2.0 * rates.input * tokens(one_hour))
            / 1e6;
        cost.total = cost.input + cost.output + cost.cache_read + cost.cache_write;
    }
}

fn per_million(rate: f64, count: u64) -> f64 {
    rate / 1e6 * tokens(count)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "token counts are far below 2^53"
)]
fn tokens(count: u64) -> f64 {
    count as f64
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelCost {
    /// Input.
    #[serde(serialize_with = "lenient::js_number")]
    pub input: f64,
    /// Output.
    #[serde(serialize_with = "lenient::js_number")]
    pub output: f64,
    /// Cached input.
    #[serde(serialize_with = "lenient::js_number")]
    pub cache_read: f64,
    /// Writing the cache.
    #[serde(serialize_with = "lenient::js_number")]
    pub cache_write: f64,
    /// Higher rates for long inputs.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "lenient::list"
    )]
    pub tiers: Vec<CostTier>,
}

/// Rates that replace the model's when the input is longer than a bound.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CostTier {
    /// Applies when strictly more input tokens were sent.
    pub input_tokens_above: u64,
    /// The four rates.
    #[serde(flatten)]
    pub rates: Rates,
}

/// The four rates of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rates {
    /// Input.
    #[serde(serialize_with = "lenient::js_number")]
    pub input: f64,
    /// Output.
    #[serde(serialize_with = "lenient::js_number")]
    pub output: f64,
    /// Cached input.
    #[serde(serialize_with = "lenient::js_number")]
    pub cache_read: f64,
    /// Writing the cache.
    #[serde(serialize_with = "lenient::js_number")]
    pub cache_write: f64,
}

impl ModelCost {
    /// The rates for a request of that many input tokens.
    #[must_use]
    pub fn rates_for(&self, input_tokens: u64) -> Rates {
        self.tiers
            .iter()
            .filter(|tier| input_tokens > tier.input_tokens_above)
            .max_by_key(|tier| tier.input_tokens_above)
            .map_or(
                Rates {
                    input: self.input,
                    output: self.output,
                    cache_read: self.cache_read,
                    cache_write: self.cache_write,
                },
                |tier| tier.rates,
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasoning(map: Value) -> Model {
        Model {
            reasoning: true,
            thinking_level_map: map.as_object().cloned(),
            ..Model::default()
        }
    }

    #[test]
    fn a_level_is_clamped_up_first_then_down() {
        // V6
        use ThinkingLevel::{High, Low, Max, Medium, Off};
        let model = reasoning(serde_json::json!({"low": null, "high": "hard"}));
        assert_eq!(model.clamp_level(Low), Medium);
        assert_eq!(model.clamp_level(Max), High);
        assert_eq!(Model::default().clamp_level(Max), Off);
    }

    #[test]
    fn the_highest_exceeded_tier_sets_all_rates() {
        let cost: ModelCost = serde_json::from_value(serde_json::json!({"input": 1, "output": 2,
            "tiers": [{"inputTokensAbove": 100, "input": 3, "output": 4}, {"inputTokensAbove": 200, "input": 5}]}))
        .unwrap();
        assert_eq!(cost.rates_for(100).input, 1.0);
        assert_eq!(cost.rates_for(101).output, 4.0);
        assert_eq!(cost.rates_for(201).input, 5.0);
    }
}

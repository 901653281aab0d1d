//! Thinking: a level becomes body fields and an output limit (`providers.md` §5).

use pliant_sdk::Model;
use pliant_sdk::history::ContextEstimate;
use pliant_sdk::message::ThinkingLevel;
use pliant_sdk::provider::StreamOptions;
use pliant_sdk::wire::thinking::{self, ANSWER_TOKENS, off_is_impossible};
use serde_json::{Value, json};

use crate::quirks::Quirks;

/// Services refuse a smaller budget.
const SMALLEST_BUDGET: u64 = 1024;

/// The limit for a model that says none; the protocol wants one.
const USUAL_LIMIT: u64 = 8192;

/// Organisations may cap effort, and refuse every request that holds more anywhere.
const LEAST_EFFORT: &str = "low";

/// What is asked of one request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Thinking {
    pub(crate) mode: Mode,
    /// The output limit that leaves the input its place.
    pub(crate) max_tokens: u64,
}

/// How the model is to think.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Mode {
    /// Nothing is said: the model cannot think, or cannot be told not to.
    Unsaid,
    Disabled,
    /// With that effort; the model decides how much.
    Adaptive(String),
    /// As adaptive, but the effort stands between the messages, where it can change without what is
    /// before it being another prompt.
    AdaptiveInPlace(String),
    Budget(u64),
}

impl Thinking {
    pub(crate) fn of(
        model: &Model,
        quirks: &Quirks,
        options: &StreamOptions,
        estimate: ContextEstimate,
    ) -> Self {
        let clamp = |cap| estimate.clamp_output(cap, model.context_window);
        let most = match model.max_tokens {
            0 => USUAL_LIMIT,
            limit => limit,
        };
        let cap = clamp(options.max_tokens.unwrap_or(most)).max(1);
        let level = thinking::level(model, options.reasoning);
        let off = match model.reasoning && !off_is_impossible(model) {
            true => Mode::Disabled,
            false => Mode::Unsaid,
        };
        let (mode, max_tokens) = match level {
            None if off == Mode::Disabled => (off, cap),
            _ if quirks.effort_in_place => (Mode::AdaptiveInPlace(effort(model, level)), cap),
            None => (off, cap),
            Some(_) if quirks.adaptive => (Mode::Adaptive(effort(model, level)), cap),
            Some(level) => {
                let wished = thinking::budget(level, options.thinking_budgets.as_ref());
                let wished = wished.max(SMALLEST_BUDGET);
                // The budget comes on top of what the caller wants to read, as far as that goes.
                let limit = clamp(cap.saturating_add(wished).min(most)).max(1);
                match wished.min(limit.saturating_sub(ANSWER_TOKENS)) {
                    budget if budget >= SMALLEST_BUDGET => (Mode::Budget(budget), limit),
                    _ => (off, cap),
                }
            }
        };
        Self { mode, max_tokens }
    }

    /// The effort that stands between the messages.
    pub(crate) fn effort_in_place(&self) -> Option<&str> {
        match &self.mode {
            Mode::AdaptiveInPlace(effort) => Some(effort),
            _ => None,
        }
    }

    /// Whether the model will think, as far as it was told.
    pub(crate) fn is_on(&self) -> bool {
        !matches!(self.mode, Mode::Unsaid | Mode::Disabled)
    }

    /// The body fields `thinking` and `output_config`.
    pub(crate) fn fields(&self) -> (Option<Value>, Option<Value>) {
        match &self.mode {
            Mode::Unsaid => (None, None),
            Mode::Disabled => (Some(json!({"type": "disabled"})), None),
            Mode::Adaptive(effort) => (
                Some(json!({"type": "adaptive", "display": "summarized"})),
                Some(json!({"effort": effort})),
            ),
            Mode::AdaptiveInPlace(_) => (
                Some(json!({"type": "adaptive", "display": "summarized",
                    "block_binding": {"prefix_mismatch_behavior": "drop_block"}})),
                Some(json!({"effort": LEAST_EFFORT})),
            ),
            Mode::Budget(tokens) => (
                Some(json!({"type": "enabled", "budget_tokens": tokens, "display": "summarized"})),
                None,
            ),
        }
    }
}

/// The service's word for a level; a caller that says nothing gets what the service does by itself.
fn effort(model: &Model, level: Option<ThinkingLevel>) -> String {
    let usual = match level {
        Some(ThinkingLevel::Minimal | ThinkingLevel::Low) => "low",
        Some(ThinkingLevel::Medium) => "medium",
        _ => "high",
    };
    let mapped = level.and_then(|level| model.mapped_level(level));
    mapped.unwrap_or(usual).to_owned()
}

/// Whether a word that was kept with an answer is one that services take.
pub(crate) fn is_effort(word: &str) -> bool {
    matches!(word, "low" | "medium" | "high" | "xhigh" | "max")
}

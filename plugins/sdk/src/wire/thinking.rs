//! Thinking levels and token budgets, whatever a protocol makes of them (`providers.md` §5).

use serde_json::{Map, Value};

use crate::message::ThinkingLevel;
use crate::model::Model;

/// Tokens of the output limit that a budget leaves for the answer itself.
pub const ANSWER_TOKENS: u64 = 1024;

/// The level that is sent: what the caller asked for, as far as the model supports it; `None` = off.
/// A caller that says nothing wants thinking off, even where the model cannot switch it off.
#[must_use]
pub fn level(model: &Model, wish: Option<ThinkingLevel>) -> Option<ThinkingLevel> {
    let level = model.clamp_level(wish?);
    (level != ThinkingLevel::Off).then_some(level)
}

/// Whether the model says that it cannot be asked without thinking.
#[must_use]
pub fn off_is_impossible(model: &Model) -> bool {
    let map = model.thinking_level_map.as_ref();
    map.and_then(|map| map.get(ThinkingLevel::Off.as_str()))
        .is_some_and(Value::is_null)
}

/// Tokens to think with at a level: the user's budget, or the usual one.
#[must_use]
pub fn budget(level: ThinkingLevel, budgets: Option<&Map<String, Value>>) -> u64 {
    let (name, usual) = match level {
        ThinkingLevel::Off => return 0,
        ThinkingLevel::Minimal => ("minimal", 1024),
        ThinkingLevel::Low => ("low", 2048),
        ThinkingLevel::Medium => ("medium", 8192),
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => ("high", 16_384),
    };
    let own = budgets.and_then(|budgets| budgets.get(name)?.as_u64());
    own.unwrap_or(usual)
}

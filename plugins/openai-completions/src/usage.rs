//! Token counts of a response → usage with cost (`providers.md` §2.4).

use pliant_sdk::Model;
use pliant_sdk::message::Usage;
use pliant_sdk::wire::usage::{charged, count};
use serde_json::Value;

/// Reads the service's counts. `reports_cost`: its own figure replaces the estimate.
pub(crate) fn read(raw: &Value, model: &Model, reports_cost: bool) -> Usage {
    let count = |path: &[&str]| count(raw, path);
    let prompt = count(&["prompt_tokens"]).unwrap_or(0);
    let cache_read = count(&["prompt_tokens_details", "cached_tokens"])
        .or_else(|| count(&["prompt_cache_hit_tokens"]))
        .or_else(|| count(&["cached_tokens"]))
        .unwrap_or(0);
    let cache_write = count(&["prompt_tokens_details", "cache_write_tokens"]).unwrap_or(0);
    let output = count(&["completion_tokens"]).unwrap_or(0);
    let reasoning = count(&["completion_tokens_details", "reasoning_tokens"])
        .or_else(|| count(&["reasoning_tokens"]))
        .unwrap_or(0);
    let input = prompt
        .saturating_sub(cache_read)
        .saturating_sub(cache_write);
    let mut usage = Usage {
        input,
        output,
        cache_read,
        cache_write,
        reasoning: Some(reasoning),
        total_tokens: input + output + cache_read + cache_write,
        ..Usage::default()
    };
    model.price(&mut usage);
    let charged = reports_cost.then(|| charged(raw)).flatten();
    if let Some(total) = charged {
        usage.cost.total = total;
    }
    usage.cost.total_from_provider = Some(charged.is_some());
    usage
}

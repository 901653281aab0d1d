//! Token counts of a response → usage with cost (`providers.md` §2.4).

use pliant_sdk::Model;
use pliant_sdk::message::Usage;
use serde_json::Value;

/// Reads the service's counts. `reports_cost`: its own figure replaces the estimate.
pub(crate) fn read(raw: &Value, model: &Model, reports_cost: bool) -> Usage {
    let count = |path: &[&str]| count_at(raw, path);
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

/// What OpenRouter took, and for a key of the user's own also what the service behind it took.
fn charged(raw: &Value) -> Option<f64> {
    let cost = amount(raw, "cost")?;
    if !raw.get("is_byok")?.as_bool()? {
        return Some(cost);
    }
    let details = raw.get("cost_details")?;
    let upstream = match details.get("upstream_inference_cost") {
        None | Some(Value::Null) => {
            amount(details, "upstream_inference_prompt_cost")?
                + amount(details, "upstream_inference_completions_cost")?
        }
        Some(_) => amount(details, "upstream_inference_cost")?,
    };
    Some(cost + upstream)
}

fn amount(of: &Value, name: &str) -> Option<f64> {
    of.get(name)?.as_f64().filter(|amount| *amount >= 0.0)
}

fn count_at(raw: &Value, path: &[&str]) -> Option<u64> {
    // Far above any real count, and sums of a few still fit.
    const MAX_COUNT: u64 = 1 << 53;
    let mut value = raw;
    for name in path {
        value = value.get(name)?;
    }
    let count = match value.as_u64() {
        Some(count) => count,
        None => whole(value.as_f64()?),
    };
    Some(count.min(MAX_COUNT))
}

/// JavaScript services write `1e3` and `12.0` too; the conversion saturates.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates"
)]
fn whole(number: f64) -> u64 {
    number as u64
}

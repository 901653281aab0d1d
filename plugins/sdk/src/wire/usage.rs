//! Token counts and charges as services write them (`providers.md` §2.4).

use serde_json::Value;

use crate::model::Model;

/// The count at that path; `None` when there is no number.
#[must_use]
pub fn count(raw: &Value, path: &[&str]) -> Option<u64> {
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

/// Whether the model is OpenRouter's, which reports what it charged.
#[must_use]
pub fn is_open_router(model: &Model) -> bool {
    model.provider == "openrouter" || model.base_url.contains("openrouter.ai")
}

/// What OpenRouter took, and for a key of the user's own also what the service behind it took. `None`
/// when it does not say all of that.
#[must_use]
pub fn charged(raw: &Value) -> Option<f64> {
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

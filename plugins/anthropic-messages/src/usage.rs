//! Token counts of a response → usage with cost (`providers.md` §2.4).

use pliant_sdk::Model;
use pliant_sdk::message::Usage;
use pliant_sdk::wire::usage::{charged, count};
use serde_json::Value;

/// The counts so far. The beginning tells those of the input, the end those of the output; what a
/// later report leaves out stays.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    usage: Usage,
    charged: Option<f64>,
}

impl Counts {
    /// Takes a report. `reports_cost`: the service's own figure replaces the estimate.
    pub(crate) fn take(&mut self, raw: &Value, reports_cost: bool) {
        let usage = &mut self.usage;
        let fields = [
            (&mut usage.input, "input_tokens"),
            (&mut usage.output, "output_tokens"),
            (&mut usage.cache_read, "cache_read_input_tokens"),
            (&mut usage.cache_write, "cache_creation_input_tokens"),
        ];
        for (field, name) in fields {
            *field = count(raw, &[name]).unwrap_or(*field);
        }
        let one_hour = count(raw, &["cache_creation", "ephemeral_1h_input_tokens"]);
        usage.cache_write_1h = one_hour.or(usage.cache_write_1h).or(Some(0));
        let reasoning = count(raw, &["output_tokens_details", "thinking_tokens"]);
        usage.reasoning = reasoning.or(usage.reasoning);
        if reports_cost {
            self.charged = charged(raw).or(self.charged);
        }
    }

    /// The usage, at the rates of the model that answers.
    pub(crate) fn priced(&self, model: &Model) -> Usage {
        let mut usage = self.usage.clone();
        usage.total_tokens = usage.input + usage.output + usage.cache_read + usage.cache_write;
        model.price(&mut usage);
        if let Some(total) = self.charged {
            usage.cost.total = total;
        }
        usage.cost.total_from_provider = Some(self.charged.is_some());
        usage
    }
}

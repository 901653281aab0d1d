//! Services as data: address, key variables, models.

use crate::model::Model;
use crate::provider::{Provider, ProviderSpec};

/// A service with facts that are known beforehand. Providers that speak several protocols are a
/// service in the plugin of each, with the models of that protocol.
#[derive(Debug, Clone, Copy)]
pub struct Service {
    /// Provider id.
    pub id: &'static str,
    /// Name for people.
    pub label: &'static str,
    /// Address used when a model has none.
    pub base_url: &'static str,
    /// Environment variables that may hold its key, in order.
    pub env: &'static [&'static str],
    /// Wire of its models.
    pub api: &'static str,
    /// The models of all services of the wire, one a line as JSON without `api`; `provider` is the
    /// first member of each.
    pub catalogue: &'static str,
}

impl Provider for Service {
    fn spec(&self) -> ProviderSpec {
        ProviderSpec {
            name: self.id.to_owned(),
            label: self.label.to_owned(),
            base_url: self.base_url.to_owned(),
            api: self.api.to_owned(),
            env: self.env.iter().map(|name| (*name).to_owned()).collect(),
            ..ProviderSpec::default()
        }
    }

    /// Parses this service's lines only.
    fn models(&self) -> Vec<Model> {
        let start = format!("{{\"provider\":\"{}\",", self.id);
        let lines = self.catalogue.lines();
        lines
            .filter(|line| line.starts_with(&start))
            .filter_map(|line| serde_json::from_str::<Model>(line).ok())
            .map(|model| Model {
                api: self.api.to_owned(),
                ..model
            })
            .collect()
    }
}

//! A service with models. It speaks a protocol that pliant knows, so nothing but its address, its key and
//! its models are said here.

use pliant_sdk::provider::{Provider, ProviderSpec};
use pliant_sdk::{Error, Host, Init, Model, Plugin};

/// The address of a local server; put your service here.
const ADDRESS: &str = "http://127.0.0.1:11434/v1";

struct Service;

impl Provider for Service {
    fn spec(&self) -> ProviderSpec {
        ProviderSpec {
            name: "my-plugin".to_owned(),
            label: "My service".to_owned(),
            base_url: ADDRESS.to_owned(),
            api: "openai-completions".to_owned(),
            // A variable that holds the key goes into `env` here and in `provides` below:
            // provider "my-plugin" env "MY_SERVICE_KEY"
            keyless: true,
            ..ProviderSpec::default()
        }
    }

    fn models(&self) -> Vec<Model> {
        vec![Model {
            id: "my-model".to_owned(),
            name: "My model".to_owned(),
            api: "openai-completions".to_owned(),
            provider: "my-plugin".to_owned(),
            base_url: ADDRESS.to_owned(),
            input: vec!["text".to_owned()],
            context_window: 32_000,
            max_tokens: 8_000,
            ..Model::default()
        }]
    }
}

fn create(_host: Host, _init: Init) -> Result<Plugin, Error> {
    Ok(Plugin::new().provider(Service))
}

pliant_sdk::export! {
    name: "my-plugin",
    provides: { provider "my-plugin" },
    create: create,
}

#[cfg(test)]
mod tests {
    use pliant_sdk::testing::Bench;

    use super::*;

    #[test]
    fn the_service_has_a_model() {
        let plugin = create(Bench::host(), Init::default()).unwrap();
        let models = Bench::new(plugin).models("my-plugin").unwrap();
        assert_eq!(models[0].id, "my-model");
        assert_eq!(models[0].base_url, ADDRESS);
    }
}

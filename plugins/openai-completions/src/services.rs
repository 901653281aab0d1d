//! The services that speak this wire: address, key variables, models.
//!
//! Facts are those of `data/`, see its README. Left out are providers that need machinery which the
//! plugin does not have: `github-copilot` (tokens are exchanged), the two of Cloudflare (an account
//! id inside the address) and `azure` (an address per resource). Of providers that speak several
//! protocols only the models of this one are listed.

use pliant_sdk::Model;
use pliant_sdk::provider::{Provider, ProviderSpec};

use crate::API;

/// One model a line, sorted by provider, which is the first member of each.
const MODELS: &str = include_str!("../data/models.jsonl");

/// A service with facts that are known beforehand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Service {
    id: &'static str,
    label: &'static str,
    base_url: &'static str,
    env: &'static [&'static str],
}

impl Provider for Service {
    fn spec(&self) -> ProviderSpec {
        ProviderSpec {
            name: self.id.to_owned(),
            label: self.label.to_owned(),
            base_url: self.base_url.to_owned(),
            api: API.to_owned(),
            env: self.env.iter().map(|name| (*name).to_owned()).collect(),
            ..ProviderSpec::default()
        }
    }

    /// Parses this provider's lines only.
    fn models(&self) -> Vec<Model> {
        let start = format!("{{\"provider\":\"{}\",", self.id);
        MODELS
            .lines()
            .filter(|line| line.starts_with(&start))
            .filter_map(|line| serde_json::from_str::<Model>(line).ok())
            .map(|model| Model {
                api: API.to_owned(),
                ..model
            })
            .collect()
    }
}

/// All services, sorted by id.
pub(crate) const SERVICES: &[Service] = &[
    Service {
        id: "ant-ling",
        label: "Ant Ling",
        base_url: "https://api.ant-ling.com/v1",
        env: &["ANT_LING_API_KEY"],
    },
    Service {
        id: "baseten",
        label: "Baseten",
        base_url: "https://inference.baseten.co/v1",
        env: &["BASETEN_API_KEY"],
    },
    Service {
        id: "cerebras",
        label: "Cerebras",
        base_url: "https://api.cerebras.ai/v1",
        env: &["CEREBRAS_API_KEY"],
    },
    Service {
        id: "deepseek",
        label: "DeepSeek",
        base_url: "https://api.deepseek.com",
        env: &["DEEPSEEK_API_KEY"],
    },
    Service {
        id: "fireworks",
        label: "Fireworks",
        base_url: "https://api.fireworks.ai/inference/v1",
        env: &["FIREWORKS_API_KEY"],
    },
    Service {
        id: "groq",
        label: "Groq",
        base_url: "https://api.groq.com/openai/v1",
        env: &["GROQ_API_KEY"],
    },
    Service {
        id: "huggingface",
        label: "Hugging Face",
        base_url: "https://router.huggingface.co/v1",
        env: &["HF_TOKEN"],
    },
    Service {
        id: "kimi-coding",
        label: "Kimi For Coding",
        base_url: "https://api.kimi.com/coding/v1",
        env: &["KIMI_API_KEY"],
    },
    Service {
        id: "moonshotai",
        label: "Moonshot AI",
        base_url: "https://api.moonshot.ai/v1",
        env: &["MOONSHOT_API_KEY"],
    },
    Service {
        id: "moonshotai-cn",
        label: "Moonshot AI CN",
        base_url: "https://api.moonshot.cn/v1",
        env: &["MOONSHOT_API_KEY"],
    },
    Service {
        id: "nvidia",
        label: "NVIDIA",
        base_url: "https://integrate.api.nvidia.com/v1",
        env: &["NVIDIA_API_KEY"],
    },
    Service {
        id: "opencode",
        label: "OpenCode Zen",
        base_url: "https://opencode.ai/inference/openai/v1",
        env: &["OPENCODE_API_KEY"],
    },
    Service {
        id: "opencode-go",
        label: "OpenCode Go",
        base_url: "https://opencode.ai/inference/go/openai/v1",
        env: &["OPENCODE_API_KEY"],
    },
    Service {
        id: "openrouter",
        label: "OpenRouter",
        base_url: "https://openrouter.ai/api/v1",
        env: &["OPENROUTER_API_KEY"],
    },
    Service {
        id: "qwen-token-plan",
        label: "Qwen Token Plan Team",
        base_url: "https://token-plan.maas.qwencloudapi.com/compatible-mode/v1",
        env: &["QWEN_TOKEN_PLAN_TEAM_API_KEY", "QWEN_TOKEN_PLAN_API_KEY"],
    },
    Service {
        id: "qwen-token-plan-cn",
        label: "Qwen Token Plan Team CN",
        base_url: "https://token-plan.maas.qianwenaiapi.com/compatible-mode/v1",
        env: &[
            "QWEN_TOKEN_PLAN_TEAM_CN_API_KEY",
            "QWEN_TOKEN_PLAN_CN_API_KEY",
        ],
    },
    Service {
        id: "qwen-token-plan-individual",
        label: "Qwen Token Plan Individual",
        base_url: "https://token-plan.maas.qwencloudapi.com/compatible-mode/v1",
        env: &[
            "QWEN_TOKEN_PLAN_INDIVIDUAL_API_KEY",
            "QWEN_TOKEN_PLAN_API_KEY",
        ],
    },
    Service {
        id: "qwen-token-plan-individual-cn",
        label: "Qwen Token Plan Individual CN",
        base_url: "https://token-plan.maas.qianwenaiapi.com/compatible-mode/v1",
        env: &[
            "QWEN_TOKEN_PLAN_INDIVIDUAL_CN_API_KEY",
            "QWEN_TOKEN_PLAN_CN_API_KEY",
        ],
    },
    Service {
        id: "together",
        label: "Together",
        base_url: "https://api.together.ai/v1",
        env: &["TOGETHER_API_KEY"],
    },
    Service {
        id: "xiaomi",
        label: "Xiaomi",
        base_url: "https://api.xiaomimimo.com/v1",
        env: &["XIAOMI_API_KEY"],
    },
    Service {
        id: "xiaomi-token-plan-ams",
        label: "Xiaomi Token Plan AMS",
        base_url: "https://token-plan-ams.xiaomimimo.com/v1",
        env: &["XIAOMI_TOKEN_PLAN_AMS_API_KEY"],
    },
    Service {
        id: "xiaomi-token-plan-cn",
        label: "Xiaomi Token Plan CN",
        base_url: "https://token-plan-cn.xiaomimimo.com/v1",
        env: &["XIAOMI_TOKEN_PLAN_CN_API_KEY"],
    },
    Service {
        id: "xiaomi-token-plan-sgp",
        label: "Xiaomi Token Plan SGP",
        base_url: "https://token-plan-sgp.xiaomimimo.com/v1",
        env: &["XIAOMI_TOKEN_PLAN_SGP_API_KEY"],
    },
    Service {
        id: "zai",
        label: "Z.AI",
        base_url: "https://api.z.ai/api/coding/paas/v4",
        env: &["ZAI_API_KEY"],
    },
    Service {
        id: "zai-coding-cn",
        label: "Z.AI Coding CN",
        base_url: "https://open.bigmodel.cn/api/coding/paas/v4",
        env: &["ZAI_CODING_CN_API_KEY"],
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    /// What the export macro in `lib.rs` lists, as `{name, env}`.
    fn listed() -> Vec<Value> {
        let source = include_str!("lib.rs");
        let list = source.split_once("provides: {").unwrap().1;
        let list = list.split_once('}').unwrap().0;
        let entries = list.split(',').map(str::trim);
        let providers = entries.filter(|entry| entry.starts_with("provider "));
        providers
            .map(|entry| {
                let mut quoted = entry.split('"').skip(1).step_by(2);
                json!({"name": quoted.next(), "env": quoted.collect::<Vec<_>>()})
            })
            .collect()
    }

    #[test]
    fn what_the_manifest_lists_is_what_the_plugin_contributes() {
        let described = crate::plugin().describe();
        let wires: Vec<&Value> = described.iter().filter(|c| c["kind"] == "wire").collect();
        assert_eq!(wires.len(), 1);
        assert_eq!(wires[0]["name"], API);
        let providers = described.iter().filter(|c| c["kind"] == "provider");
        let providers: Vec<Value> = providers
            .map(|c| json!({"name": c["name"], "env": c["env"]}))
            .collect();
        assert_eq!(providers, listed());
    }

    #[test]
    fn every_line_of_the_data_is_a_model_of_a_listed_service() {
        let lines: Vec<Value> = MODELS
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let in_data: BTreeSet<&str> = lines
            .iter()
            .map(|line| line["provider"].as_str().unwrap())
            .collect();
        let in_table: BTreeSet<&str> = SERVICES.iter().map(|service| service.id).collect();
        assert_eq!(in_data, in_table);
        let models: Vec<Model> = SERVICES.iter().flat_map(Service::models).collect();
        assert_eq!(models.len(), lines.len());
        for (model, line) in models.iter().zip(&lines) {
            assert_eq!(model.api, API);
            let mut written = serde_json::to_value(model).unwrap();
            written.as_object_mut().unwrap().shift_remove("api");
            assert_eq!(&written, line);
        }
    }

    #[test]
    fn models_of_a_service_share_its_address() {
        for service in SERVICES {
            assert!(!service.env.is_empty());
            for model in service.models() {
                assert_eq!(model.base_url, service.base_url);
            }
        }
    }
}

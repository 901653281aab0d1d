//! The services that speak this wire: address, key variables, models.
//!
//! Facts are those of `data/`, see its README. Left out are providers that need machinery which the
//! plugin does not have: `github-copilot` (tokens are exchanged), the two of Cloudflare (an account
//! id inside the address) and `azure` (an address per resource). Of providers that speak several
//! protocols only the models of this one are listed.

use pliant_sdk::wire::Service;

use crate::API;

/// One model a line, sorted by provider, which is the first member of each.
const MODELS: &str = include_str!("../data/models.jsonl");

const fn service(
    id: &'static str,
    label: &'static str,
    base_url: &'static str,
    env: &'static [&'static str],
) -> Service {
    Service {
        id,
        label,
        base_url,
        env,
        api: API,
        catalogue: MODELS,
    }
}

/// All services, sorted by id.
pub(crate) const SERVICES: &[Service] = &[
    service(
        "ant-ling",
        "Ant Ling",
        "https://api.ant-ling.com/v1",
        &["ANT_LING_API_KEY"],
    ),
    service(
        "baseten",
        "Baseten",
        "https://inference.baseten.co/v1",
        &["BASETEN_API_KEY"],
    ),
    service(
        "cerebras",
        "Cerebras",
        "https://api.cerebras.ai/v1",
        &["CEREBRAS_API_KEY"],
    ),
    service(
        "deepseek",
        "DeepSeek",
        "https://api.deepseek.com",
        &["DEEPSEEK_API_KEY"],
    ),
    service(
        "fireworks",
        "Fireworks",
        "https://api.fireworks.ai/inference/v1",
        &["FIREWORKS_API_KEY"],
    ),
    service(
        "groq",
        "Groq",
        "https://api.groq.com/openai/v1",
        &["GROQ_API_KEY"],
    ),
    service(
        "huggingface",
        "Hugging Face",
        "https://router.huggingface.co/v1",
        &["HF_TOKEN"],
    ),
    service(
        "kimi-coding",
        "Kimi For Coding",
        "https://api.kimi.com/coding/v1",
        &["KIMI_API_KEY"],
    ),
    service(
        "moonshotai",
        "Moonshot AI",
        "https://api.moonshot.ai/v1",
        &["MOONSHOT_API_KEY"],
    ),
    service(
        "moonshotai-cn",
        "Moonshot AI CN",
        "https://api.moonshot.cn/v1",
        &["MOONSHOT_API_KEY"],
    ),
    service(
        "nvidia",
        "NVIDIA",
        "https://integrate.api.nvidia.com/v1",
        &["NVIDIA_API_KEY"],
    ),
    service(
        "opencode",
        "OpenCode Zen",
        "https://opencode.ai/inference/openai/v1",
        &["OPENCODE_API_KEY"],
    ),
    service(
        "opencode-go",
        "OpenCode Go",
        "https://opencode.ai/inference/go/openai/v1",
        &["OPENCODE_API_KEY"],
    ),
    service(
        "openrouter",
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        &["OPENROUTER_API_KEY"],
    ),
    service(
        "qwen-token-plan",
        "Qwen Token Plan Team",
        "https://token-plan.maas.qwencloudapi.com/compatible-mode/v1",
        &["QWEN_TOKEN_PLAN_TEAM_API_KEY", "QWEN_TOKEN_PLAN_API_KEY"],
    ),
    service(
        "qwen-token-plan-cn",
        "Qwen Token Plan Team CN",
        "https://token-plan.maas.qianwenaiapi.com/compatible-mode/v1",
        &[
            "QWEN_TOKEN_PLAN_TEAM_CN_API_KEY",
            "QWEN_TOKEN_PLAN_CN_API_KEY",
        ],
    ),
    service(
        "qwen-token-plan-individual",
        "Qwen Token Plan Individual",
        "https://token-plan.maas.qwencloudapi.com/compatible-mode/v1",
        &[
            "QWEN_TOKEN_PLAN_INDIVIDUAL_API_KEY",
            "QWEN_TOKEN_PLAN_API_KEY",
        ],
    ),
    service(
        "qwen-token-plan-individual-cn",
        "Qwen Token Plan Individual CN",
        "https://token-plan.maas.qianwenaiapi.com/compatible-mode/v1",
        &[
            "QWEN_TOKEN_PLAN_INDIVIDUAL_CN_API_KEY",
            "QWEN_TOKEN_PLAN_CN_API_KEY",
        ],
    ),
    service(
        "together",
        "Together",
        "https://api.together.ai/v1",
        &["TOGETHER_API_KEY"],
    ),
    service(
        "xiaomi",
        "Xiaomi",
        "https://api.xiaomimimo.com/v1",
        &["XIAOMI_API_KEY"],
    ),
    service(
        "xiaomi-token-plan-ams",
        "Xiaomi Token Plan AMS",
        "https://token-plan-ams.xiaomimimo.com/v1",
        &["XIAOMI_TOKEN_PLAN_AMS_API_KEY"],
    ),
    service(
        "xiaomi-token-plan-cn",
        "Xiaomi Token Plan CN",
        "https://token-plan-cn.xiaomimimo.com/v1",
        &["XIAOMI_TOKEN_PLAN_CN_API_KEY"],
    ),
    service(
        "xiaomi-token-plan-sgp",
        "Xiaomi Token Plan SGP",
        "https://token-plan-sgp.xiaomimimo.com/v1",
        &["XIAOMI_TOKEN_PLAN_SGP_API_KEY"],
    ),
    service(
        "zai",
        "Z.AI",
        "https://api.z.ai/api/coding/paas/v4",
        &["ZAI_API_KEY"],
    ),
    service(
        "zai-coding-cn",
        "Z.AI Coding CN",
        "https://open.bigmodel.cn/api/coding/paas/v4",
        &["ZAI_CODING_CN_API_KEY"],
    ),
];

#[cfg(test)]
mod tests {
    use pliant_sdk::provider::Provider as _;
    use pliant_tests::recorded::check_services;

    use super::*;

    #[test]
    fn the_manifest_the_table_and_the_catalogue_list_the_same_services() {
        let described = crate::plugin().describe();
        check_services(API, include_str!("lib.rs"), &described, SERVICES);
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

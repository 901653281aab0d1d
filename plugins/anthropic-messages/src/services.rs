//! The services that speak this wire: address, key variables, models.
//!
//! Facts are those of `data/`, see its README. Left out are providers that need machinery which the
//! plugin does not have: `github-copilot` (tokens are exchanged) and `cloudflare-ai-gateway` (an
//! account id inside the address). Of providers that speak several protocols only the models of this
//! one are listed.

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
        "anthropic",
        "Anthropic",
        "https://api.anthropic.com",
        &["ANTHROPIC_API_KEY"],
    ),
    service(
        "fireworks",
        "Fireworks",
        "https://api.fireworks.ai/inference",
        &["FIREWORKS_API_KEY"],
    ),
    service(
        "minimax",
        "MiniMax",
        "https://api.minimax.io/anthropic",
        &["MINIMAX_API_KEY"],
    ),
    service(
        "minimax-cn",
        "MiniMax CN",
        "https://api.minimaxi.com/anthropic",
        &["MINIMAX_CN_API_KEY"],
    ),
    service(
        "opencode",
        "OpenCode Zen",
        "https://opencode.ai/inference/anthropic",
        &["OPENCODE_API_KEY"],
    ),
    service(
        "opencode-go",
        "OpenCode Go",
        "https://opencode.ai/inference/go/anthropic",
        &["OPENCODE_API_KEY"],
    ),
    service(
        "openrouter",
        "OpenRouter",
        "https://openrouter.ai/api",
        &["OPENROUTER_API_KEY"],
    ),
    service(
        "vercel-ai-gateway",
        "Vercel AI Gateway",
        "https://ai-gateway.vercel.sh",
        &["AI_GATEWAY_API_KEY"],
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

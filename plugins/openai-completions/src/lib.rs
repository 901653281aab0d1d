//! The wire `openai-completions` and the services that speak it.
//!
//! `request` makes a body of the conversation, on what `prefix` keeps of the previous turn; the
//! host sends it and adds the credential, so no key is ever seen here; `stream` makes an answer of
//! the events. What services do differently is in `quirks`, who they are in `services`.

mod services;

mod prefix;
mod request;

mod messages;
mod thinking;
mod tools;

mod stream;

mod chunk;
mod failure;
mod usage;

mod quirks;

use pliant_sdk::message::AssistantMessage;
use pliant_sdk::provider::{StreamOut, StreamRequest, Wire};
use pliant_sdk::wire::{self, Reader as _, Response};
use pliant_sdk::{Error, Host, Init, Plugin};

use stream::Answer;

/// The name of the wire.
pub(crate) const API: &str = "openai-completions";

struct OpenAiCompletions;

impl Wire for OpenAiCompletions {
    fn api(&self) -> &'static str {
        API
    }

    async fn stream(
        &self,
        request: StreamRequest,
        out: StreamOut,
    ) -> Result<AssistantMessage, Error> {
        let message = request.answer();
        let built = match request::build(&request) {
            Ok(built) => built,
            Err(reason) => return Ok(wire::Draft::new(message).fail(reason)),
        };
        let answer = Answer::new(request.model, built.grammars, message);
        match wire::send(built.http, out.host()).await {
            Ok(Response::Stream(response)) => wire::read(response, answer, &out).await,
            Ok(Response::Refused { status, body }) => {
                Ok(answer.fail(failure::of_status(status, &body)))
            }
            Err(error) => wire::broken(answer, error),
        }
    }
}

fn plugin() -> Plugin {
    let wire = Plugin::new().wire(OpenAiCompletions);
    let services = services::SERVICES.iter();
    services.fold(wire, |plugin, service| plugin.provider(*service))
}

fn create(_host: Host, _init: Init) -> Result<Plugin, Error> {
    Ok(plugin())
}

pliant_sdk::export! {
    name: "openai-completions",
    provides: {
        wire "openai-completions",
        provider "ant-ling" env "ANT_LING_API_KEY",
        provider "baseten" env "BASETEN_API_KEY",
        provider "cerebras" env "CEREBRAS_API_KEY",
        provider "deepseek" env "DEEPSEEK_API_KEY",
        provider "fireworks" env "FIREWORKS_API_KEY",
        provider "groq" env "GROQ_API_KEY",
        provider "huggingface" env "HF_TOKEN",
        provider "kimi-coding" env "KIMI_API_KEY",
        provider "moonshotai" env "MOONSHOT_API_KEY",
        provider "moonshotai-cn" env "MOONSHOT_API_KEY",
        provider "nvidia" env "NVIDIA_API_KEY",
        provider "opencode" env "OPENCODE_API_KEY",
        provider "opencode-go" env "OPENCODE_API_KEY",
        provider "openrouter" env "OPENROUTER_API_KEY",
        provider "qwen-token-plan" env "QWEN_TOKEN_PLAN_TEAM_API_KEY" env "QWEN_TOKEN_PLAN_API_KEY",
        provider "qwen-token-plan-cn" env "QWEN_TOKEN_PLAN_TEAM_CN_API_KEY" env "QWEN_TOKEN_PLAN_CN_API_KEY",
        provider "qwen-token-plan-individual" env "QWEN_TOKEN_PLAN_INDIVIDUAL_API_KEY" env "QWEN_TOKEN_PLAN_API_KEY",
        provider "qwen-token-plan-individual-cn" env "QWEN_TOKEN_PLAN_INDIVIDUAL_CN_API_KEY" env "QWEN_TOKEN_PLAN_CN_API_KEY",
        provider "together" env "TOGETHER_API_KEY",
        provider "xiaomi" env "XIAOMI_API_KEY",
        provider "xiaomi-token-plan-ams" env "XIAOMI_TOKEN_PLAN_AMS_API_KEY",
        provider "xiaomi-token-plan-cn" env "XIAOMI_TOKEN_PLAN_CN_API_KEY",
        provider "xiaomi-token-plan-sgp" env "XIAOMI_TOKEN_PLAN_SGP_API_KEY",
        provider "zai" env "ZAI_API_KEY",
        provider "zai-coding-cn" env "ZAI_CODING_CN_API_KEY",
    },
    create: create,
}

#[cfg(test)]
mod tests;

//! The wire `anthropic-messages` and the services that speak it.
//!
//! `request` makes a body of the conversation, which `conversation` keeps converted; the host sends it
//! and adds the credential, so no key is ever seen here; `stream` makes an answer of the events. What
//! services do differently is in `quirks`, who they are in `services`.
//!
//! Keys only: tokens of a subscription belong to the client they were made for, and pliant passes
//! itself off as no other.

mod services;

mod conversation;
mod request;

mod messages;
mod results;
mod thinking;
mod tools;

mod stream;

mod event;
mod failure;
mod usage;

mod quirks;

use pliant_sdk::message::AssistantMessage;
use pliant_sdk::provider::{StreamOut, StreamRequest, Wire};
use pliant_sdk::wire::{self, Reader as _, Response};
use pliant_sdk::{Error, Host, Init, Plugin};
use serde_json::json;

use request::Kept;
use stream::Answer;

/// The name of the wire.
pub(crate) const API: &str = "anthropic-messages";

struct AnthropicMessages;

impl Wire for AnthropicMessages {
    fn api(&self) -> &'static str {
        API
    }

    async fn stream(
        &self,
        request: StreamRequest,
        out: StreamOut,
    ) -> Result<AssistantMessage, Error> {
        let mut message = request.answer();
        loop {
            let built = match request.with_cache(|kept: &mut Kept| request::build(kept, &request)) {
                Ok(built) => built,
                Err(reason) => return Ok(wire::Draft::new(message).fail(reason)),
            };
            message.provider_thinking_level = built.effort;
            let (status, body) = match wire::send(built.http, out.host()).await {
                Ok(Response::Stream(response)) => {
                    let answer = Answer::new(request.model, message);
                    return wire::read(response, answer, &out).await;
                }
                Ok(Response::Refused { status, body }) => (status, body),
                Err(error) => return wire::broken(Answer::new(request.model, message), error),
            };
            let text = failure::of_status(status, &body);
            if !(built.prefers_strict_tools && failure::is_of_strict_tools(status, &body)) {
                return Ok(Answer::new(request.model, message).fail(text));
            }
            // Once: the conversation remembers it, and prefers nothing from then on.
            request.with_cache(|kept: &mut Kept| kept.strict_tools_refused = true);
            message.diagnostics.get_or_insert_default().push(json!({
                "type": "anthropic_strict_tools_fallback",
                "timestamp": message.timestamp,
                "error": {"message": text},
                "details": {"reason": "strict_tool_limits_exceeded"},
            }));
        }
    }
}

fn plugin() -> Plugin {
    let wire = Plugin::new().wire(AnthropicMessages);
    let services = services::SERVICES.iter();
    services.fold(wire, |plugin, service| plugin.provider(*service))
}

fn create(_host: Host, _init: Init) -> Result<Plugin, Error> {
    Ok(plugin())
}

pliant_sdk::export! {
    name: "anthropic-messages",
    provides: {
        wire "anthropic-messages",
        provider "anthropic" env "ANTHROPIC_API_KEY",
        provider "fireworks" env "FIREWORKS_API_KEY",
        provider "minimax" env "MINIMAX_API_KEY",
        provider "minimax-cn" env "MINIMAX_CN_API_KEY",
        provider "opencode" env "OPENCODE_API_KEY",
        provider "opencode-go" env "OPENCODE_API_KEY",
        provider "openrouter" env "OPENROUTER_API_KEY",
        provider "vercel-ai-gateway" env "AI_GATEWAY_API_KEY",
    },
    create: create,
}

#[cfg(test)]
mod tests;

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

use pliant_sdk::error::code;
use pliant_sdk::host::HttpResponse;
use pliant_sdk::message::{AssistantMessage, StopReason};
use pliant_sdk::provider::{StreamOut, StreamRequest, Wire};
use pliant_sdk::sse::Decoder;
use pliant_sdk::{Error, Host, Init, Plugin, StreamEvent};

use stream::{Answer, Step};

/// The name of the wire.
pub(crate) const API: &str = "openai-completions";

/// Longest body of an error that is read.
const MAX_ERROR_BYTES: usize = 1 << 20;

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
            Err(reason) => return Ok(failed(message, reason)),
        };
        let response = match out.host().http_framed(built.http).await {
            Ok(response) => response,
            Err(error) => return failed_by(error, |text| failed(message, text)),
        };
        let answer = Answer::new(request.model, built.grammars, message);
        match response.status {
            200..300 => read(response, answer, &out).await,
            status => refused(status, response, answer).await,
        }
    }
}

/// The service answered with an error status.
async fn refused(
    status: u16,
    mut response: HttpResponse,
    answer: Answer,
) -> Result<AssistantMessage, Error> {
    match response.body.read_to_end(MAX_ERROR_BYTES).await {
        Ok(body) => {
            let text = failure::of_status(status, &String::from_utf8_lossy(&body));
            Ok(answer.fail(text))
        }
        Err(error) => failed_by(error, |text| answer.fail(format!("{status} {text}"))),
    }
}

/// Reads the stream to its end.
async fn read(
    mut response: HttpResponse,
    mut answer: Answer,
    out: &StreamOut,
) -> Result<AssistantMessage, Error> {
    let mut events = vec![StreamEvent::Start];
    out.send_all(&mut events).await?;
    let mut decoder = Decoder::new();
    // What came before the first event; a service that sends no stream sends nothing else.
    let mut unheard = Some(Vec::new());
    let mut at_end = false;
    while !at_end {
        let taken = match response.body.next().await {
            Some(Ok(bytes)) => {
                if let Some(unheard) = &mut unheard {
                    let room = MAX_ERROR_BYTES.saturating_sub(unheard.len());
                    unheard.extend_from_slice(&bytes[..bytes.len().min(room)]);
                }
                take(&mut decoder, &bytes, &mut answer, &mut events)
            }
            Some(Err(error)) => return failed_by(error, |text| answer.fail(text)),
            None => {
                at_end = true;
                // An event without its blank line counts too.
                match decoder.finish_lent() {
                    (Some(last), _) => answer.take(last.event, last.data, &mut events).map(Some),
                    (None, _) => Ok(None),
                }
            }
        };
        match taken {
            Ok(None) => {}
            Ok(Some(step)) => {
                unheard = None;
                at_end |= step == Step::Done;
            }
            Err(text) => {
                out.send_all(&mut events).await?;
                return Ok(answer.fail(text));
            }
        }
        out.send_all(&mut events).await?;
    }
    let body = unheard.unwrap_or_default();
    if let Some(text) = failure::of_no_stream(&String::from_utf8_lossy(&body)) {
        return Ok(answer.fail(text));
    }
    let message = answer.finish(&mut events);
    out.send_all(&mut events).await?;
    Ok(message)
}

/// Takes the events that some bytes complete, and answers what the last one led to, if there was one.
fn take(
    decoder: &mut Decoder,
    bytes: &[u8],
    answer: &mut Answer,
    events: &mut Vec<StreamEvent>,
) -> Result<Option<Step>, String> {
    let mut frames = decoder.frames(bytes);
    let mut step = None;
    while let Some(frame) = frames.next().map_err(|error| error.to_string())? {
        step = Some(answer.take(frame.event, frame.data, events)?);
    }
    Ok(step)
}

/// A caller that gave up gets no message; any other failure is one.
fn failed_by(
    error: Error,
    message: impl FnOnce(String) -> AssistantMessage,
) -> Result<AssistantMessage, Error> {
    if error.is(code::CANCELLED) {
        return Err(error);
    }
    Ok(message(error.message))
}

fn failed(message: AssistantMessage, text: String) -> AssistantMessage {
    AssistantMessage {
        stop_reason: StopReason::Error,
        error_message: Some(text),
        ..message
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

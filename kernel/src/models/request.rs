//! One request to a model: which source answers it, and what of the conversation it already holds.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pliant_sdk::error::code;
use pliant_sdk::host::{BoxFuture, ByteStream, Host, Services};
use pliant_sdk::message::{AssistantMessage, Message, StopReason};
use pliant_sdk::plugin::{CallCtx, Caller, Flow};
use pliant_sdk::provider::{Conversation, StreamOptions, StreamPayload};
use pliant_sdk::{Error, Model, StreamEvent, crossing};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::agent::{Answer, EventSender, Sent, event_channel};
use crate::models::exchange::{Exchange, ProviderHooks};
use crate::models::{AskedDelay, Credentials};
use crate::registry::{MakeServices, Registered, Snapshot, Source};

/// What to ask.
#[derive(Debug)]
pub struct ModelRequest {
    /// The model.
    pub model: Model,
    /// The options.
    pub options: StreamOptions,
    /// The transcript, shared: a turn costs what it adds to it.
    pub messages: Arc<Vec<Arc<Message>>>,
    /// Name of the conversation; `None` for a request that stands alone.
    pub conversation: Option<String>,
    /// Unix milliseconds, for the answer.
    pub now_ms: i64,
    /// Where it is kept what the service asks for when it refuses.
    pub asked: AskedDelay,
}

/// What a source was last sent of a conversation; of one that it was sent nothing of, nothing.
#[derive(Default)]
struct Held {
    revision: u64,
    messages: Vec<Arc<Message>>,
}

impl Held {
    /// How many leading messages are the same values.
    fn shared(&self, messages: &[Arc<Message>]) -> usize {
        let pairs = self.messages.iter().zip(messages);
        pairs.take_while(|(old, new)| Arc::ptr_eq(old, new)).count()
    }
}

/// By conversation and source: a session that switches between wires goes on from each one's own state.
type SentTo = Mutex<HashMap<(String, String), Held>>;

/// Sends requests. Remembers per conversation what its source holds, so that only new messages cross.
pub struct ModelClient {
    services: MakeServices,
    credentials: Arc<Credentials>,
    sent: Arc<SentTo>,
    revisions: Arc<AtomicU64>,
}

impl std::fmt::Debug for ModelClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ModelClient")
    }
}

impl ModelClient {
    /// `services` makes the services of a source; `credentials` knows what must not be shown.
    #[must_use]
    pub fn new(services: MakeServices, credentials: Arc<Credentials>) -> Self {
        Self {
            services,
            credentials,
            sent: Arc::default(),
            revisions: Arc::new(AtomicU64::new(1)),
        }
    }

    /// Forgets a conversation that has ended.
    pub fn forget(&self, conversation: &str) {
        lock(&self.sent).retain(|(id, _), _| id != conversation);
    }

    /// Opens the stream of an answer (L20, G12). The wire's code is loaded here, on first use (G14).
    /// `hooks` hear of every exchange that the wire has with its service.
    ///
    /// # Errors
    /// When nobody serves the model.
    pub fn open(
        &self,
        snapshot: &Snapshot,
        request: ModelRequest,
        hooks: Option<Arc<dyn ProviderHooks>>,
        cancel: &CancellationToken,
    ) -> Result<Answer, Error> {
        let target = Target::find(snapshot, &request.model)?;
        request.asked.forget();
        let (events, received) = event_channel();
        let services = (self.services)(target.source());
        let services = StreamServices {
            exchange: hooks.map(|hooks| {
                Exchange::new(Arc::clone(&services), hooks, Arc::clone(&self.credentials))
            }),
            services,
            events: events.clone(),
            asked: request.asked.clone(),
        };
        let template = AssistantMessage {
            api: request.model.api.clone(),
            provider: request.model.provider.clone(),
            model: request.model.id.clone(),
            timestamp: request.now_ms,
            ..AssistantMessage::default()
        };
        let services = target.lend_to_call(Arc::new(services));
        let caller = StreamCaller {
            events,
            cancel: cancel.clone(),
        };
        let ctx = CallCtx::new(Arc::new(caller), Host::from_shared(services));
        let done = self.send(target, request, ctx);
        Ok(Answer {
            template,
            events: received,
            done,
        })
    }

    fn send(
        &self,
        target: Target,
        request: ModelRequest,
        ctx: CallCtx,
    ) -> BoxFuture<'static, Result<AssistantMessage, Error>> {
        let sent = Arc::clone(&self.sent);
        let revisions = Arc::clone(&self.revisions);
        let credentials = Arc::clone(&self.credentials);
        Box::pin(async move {
            let key = request
                .conversation
                .clone()
                .map(|id| (id, target.source().name.clone()));
            let before = key.as_ref().and_then(|key| lock(&sent).remove(key));
            let mut held = before.unwrap_or_default();
            let revision = revisions.fetch_add(1, Ordering::Relaxed);
            let keep = held.shared(&request.messages);
            let first = target
                .stream(
                    payload(&request, held.revision, revision, keep)?,
                    ctx.clone(),
                )
                .await;
            let answer = match first {
                // The source was loaded anew, or forgot: it gets everything once.
                Err(error) if error.is(code::CONVERSATION_UNKNOWN) => {
                    target.stream(payload(&request, 0, revision, 0)?, ctx).await
                }
                other => other,
            };
            let most_ms = request.options.max_retry_delay_ms;
            let answer = answer.map_err(|error| {
                let mut error = with_owner(error, target.source());
                request.asked.told_in_text(&mut error.message, most_ms);
                error
            })?;
            // What the source holds is known again only now: a request that was cut off or failed may
            // or may not have reached it, so the one after that is sent whole.
            if let Some(key) = key {
                held.revision = revision;
                held.messages.truncate(keep);
                held.messages.extend_from_slice(&request.messages[keep..]);
                lock(&sent).insert(key, held);
            }
            let mut answer = answer_of(&answer)?;
            answer.error_message = answer.error_message.map(|text| credentials.mask(text));
            request.asked.told_in(&mut answer, most_ms);
            Ok(answer)
        })
    }
}

/// A panic tells of itself only; whose it is has to be said.
fn with_owner(error: Error, source: &Source) -> Error {
    let message = match error.is(code::PANIC) {
        true => format!("the code of \"{}\" {}", source.name, error.message),
        false => error.message,
    };
    Error { message, ..error }
}

/// The answer that a source gave, which must say how it ended: a message that is read from a file may
/// leave that out, and counts as finished then.
fn answer_of(bytes: &[u8]) -> Result<AssistantMessage, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Ending {
        #[serde(default)]
        stop_reason: Value,
    }
    let unreadable = |error: serde_json::Error| {
        Error::failed(format!(
            "the answer of the provider cannot be read: {error}"
        ))
    };
    let mut answer: AssistantMessage = serde_json::from_slice(bytes).map_err(unreadable)?;
    if answer.stop_reason != StopReason::Stop {
        return Ok(answer);
    }
    let Ending { stop_reason } = serde_json::from_slice(bytes).map_err(unreadable)?;
    match stop_reason {
        Value::String(reason) if reason == StopReason::Stop.as_str() => {}
        Value::Null => answer.stop_reason = StopReason::Pending,
        unknown => {
            answer.stop_reason = StopReason::Error;
            answer.error_message = Some(format!(
                "the provider ended its answer with an unknown stop reason: {unknown}"
            ));
        }
    }
    Ok(answer)
}

fn lock(sent: &SentTo) -> MutexGuard<'_, HashMap<(String, String), Held>> {
    sent.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The request as it crosses: without the leading messages that are the same values as before.
fn payload(
    request: &ModelRequest,
    after: u64,
    revision: u64,
    keep: usize,
) -> Result<Vec<u8>, Error> {
    let conversation = request.conversation.clone().map(|id| Conversation {
        id,
        after,
        revision,
        keep,
    });
    Ok(serde_json::to_vec(&StreamPayload {
        model: request.model.clone(),
        options: request.options.clone(),
        conversation,
        messages: request.messages[keep..].to_vec(),
    })?)
}

/// Who answers: a provider that streams itself, else the wire of the model's api.
enum Target {
    Provider(Arc<Registered<pliant_sdk::provider::ProviderSpec>>),
    Wire(Arc<Registered<()>>),
}

impl Target {
    fn find(snapshot: &Snapshot, model: &Model) -> Result<Self, Error> {
        if let Some(provider) = snapshot.provider(&model.provider)
            && provider.spec.streams
        {
            return Ok(Self::Provider(Arc::clone(provider)));
        }
        match snapshot.wire(&model.api) {
            Some(wire) => Ok(Self::Wire(Arc::clone(wire))),
            None => Err(Error::failed(format!(
                "Provider {} has no API implementation for \"{}\". Install a plugin that speaks it, or correct \"api\" in models.json.",
                model.provider, model.api
            ))),
        }
    }

    fn source(&self) -> &Source {
        match self {
            Self::Provider(provider) => provider.source(),
            Self::Wire(wire) => wire.source(),
        }
    }

    fn lend_to_call(&self, services: Arc<dyn Services>) -> Arc<dyn Services> {
        match self {
            Self::Provider(provider) => provider.lend_to_call(services),
            Self::Wire(wire) => wire.lend_to_call(services),
        }
    }

    fn stream(&self, payload: Vec<u8>, ctx: CallCtx) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        match self {
            Self::Provider(provider) => provider.invoke_bytes("stream", payload, ctx),
            Self::Wire(wire) => wire.invoke_bytes("stream", payload, ctx),
        }
    }
}

/// The caller of a stream: emitted JSON becomes events of the answer.
struct StreamCaller {
    events: EventSender,
    cancel: CancellationToken,
}

impl Caller for StreamCaller {
    fn cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    fn emit(&self, payload: &[u8]) -> Flow {
        match self.events.send(events_of(payload)) {
            Sent::Fine => Flow::Continue,
            Sent::Behind => Flow::Slow,
            Sent::Closed => Flow::Stop,
        }
    }
}

/// The events that came at once. What cannot be read is left out, alone.
fn events_of(payload: &[u8]) -> Vec<StreamEvent> {
    // Looked at once here, instead of text by text.
    let Some(text) = readable(std::str::from_utf8(payload)) else {
        return Vec::new();
    };
    if !text.starts_with('[') {
        return readable(crossing::read(text)).unwrap_or_default();
    }
    crossing::read(text).unwrap_or_else(|_| {
        let each: Vec<&RawValue> = readable(serde_json::from_str(text)).unwrap_or_default();
        let each = each.into_iter().map(|item| crossing::read(item.get()));
        each.filter_map(readable).flatten().collect()
    })
}

fn readable<T, E: Display>(event: Result<T, E>) -> Option<T> {
    event
        .inspect_err(|error| {
            tracing::debug!(target: "pliant::models", %error, "an event of a stream could not be read");
        })
        .ok()
}

/// The source's services, with `emit.ready` of this stream, and with HTTP that handlers hear of.
struct StreamServices {
    exchange: Option<Exchange>,
    services: Arc<dyn Services>,
    events: EventSender,
    asked: AskedDelay,
}

impl Services for StreamServices {
    fn call(&self, service: &str, payload: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        if service == "emit.ready" {
            let events = self.events.clone();
            return Box::pin(async move {
                events.ready().await;
                Ok(b"null".to_vec())
            });
        }
        if let Some(exchange) = self.exchange.clone().filter(|_| service == "http.request") {
            return Box::pin(exchange.request(payload));
        }
        self.services.call(service, payload)
    }

    fn open(
        &self,
        service: &str,
        payload: Vec<u8>,
    ) -> BoxFuture<'static, Result<ByteStream, Error>> {
        if service != "http.stream" {
            return self.services.open(service, payload);
        }
        let opening = match self.exchange.clone() {
            Some(exchange) => Box::pin(exchange.stream(payload)),
            None => self.services.open(service, payload),
        };
        let asked = self.asked.clone();
        Box::pin(async move { Ok(asked.heard(opening.await?).await) })
    }

    fn notify(&self, service: &str, payload: &[u8]) {
        self.services.notify(service, payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_came_at_once_are_taken_in_order_and_an_unreadable_one_is_left_out() {
        // kernel §3.5: events of later versions are passed by.
        let text = |delta: &str| StreamEvent::TextDelta {
            content_index: 0,
            delta: delta.to_owned(),
        };
        let written = |events: &[StreamEvent]| serde_json::to_string(events).unwrap_or_default();
        let both = [text("a"), text("b")];
        assert_eq!(events_of(written(&both).as_bytes()), both);
        assert_eq!(
            events_of(written(&both[..1]).trim_matches(['[', ']']).as_bytes()),
            both[..1]
        );
        let later = written(&both).replace("},{", "},{\"type\":\"of_later\"},{");
        assert_eq!(events_of(later.as_bytes()), both);
        for unread in ["{\"type\":\"of_later\"}", "[", "[1]", ""] {
            assert_eq!(events_of(unread.as_bytes()), [], "{unread}");
        }
    }
}

//! Wires (protocols that services speak) and providers (services), `providers.md` §1–§3.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::crossing;
use crate::error::{Error, code};
use crate::host::Host;
use crate::message::{AssistantMessage, Message, StopReason, ThinkingLevel};
use crate::model::Model;
use crate::plugin::{CallCtx, Flow};
use crate::stream::{EventSink, StreamEvent};

/// A protocol. One implementation serves many providers.
pub trait Wire: Send + Sync + 'static {
    /// Name that models carry in `api`, e.g. `openai-completions`.
    fn api(&self) -> &'static str;

    /// Sends one request and streams the answer. `start` and the block events go to `out`; the
    /// final message is the value. A failure of the service is a message with stop reason `error`;
    /// an `Err` is turned into one by the kernel (L21). When the caller gives up, the future is
    /// dropped and the kernel keeps what was streamed.
    fn stream(
        &self,
        request: StreamRequest,
        out: StreamOut,
    ) -> impl Future<Output = Result<AssistantMessage, Error>> + Send;
}

/// A service: where it is, how to pay, what it offers.
pub trait Provider: Send + Sync + 'static {
    /// Who it is.
    fn spec(&self) -> ProviderSpec;

    /// Its chat models. Must not fail and needs no network.
    fn models(&self) -> Vec<Model>;
}

/// A provider as the registry keeps it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderSpec {
    /// Provider id, e.g. `openrouter`.
    pub name: String,
    /// Name for people.
    pub label: String,
    /// Address used when a model has none.
    pub base_url: String,
    /// Wire of its models.
    pub api: String,
    /// Environment variables that may hold its key, in order.
    pub env: Vec<String>,
    /// Works without a key (a local server, a script).
    pub keyless: bool,
    /// The source streams answers itself; no wire is looked up.
    pub streams: bool,
    /// Models given with the registration; otherwise they are asked for (operation `models`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Model>,
}

/// Neutral options of a request (`providers.md` §1.3).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StreamOptions {
    /// Thinking level; absent = off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<ThinkingLevel>,
    /// Token budgets per level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_budgets: Option<Map<String, Value>>,
    /// Output cap, tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Merged last into the body where the wire allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling_params: Option<Map<String, Value>>,
    /// `auto` or `none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<Value>,
    /// Passed on where the wire can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Cache key and affinity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// `none`, `short` (default) or `long`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_retention: Option<String>,
    /// Limit for the time to response headers, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Attempts after the first, before the response began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Longest delay a server may ask for, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retry_delay_ms: Option<u64>,
    /// Request headers over all others; null removes one.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub headers: Map<String, Value>,
}

/// One request to a model.
#[derive(Clone)]
pub struct StreamRequest {
    /// The model.
    pub model: Model,
    /// The options.
    pub options: StreamOptions,
    /// The transcript: LLM messages only, prompt and tools in system messages (M12). A message that
    /// was part of the previous request of this conversation is the same `Arc`.
    pub messages: Arc<Vec<Arc<Message>>>,
    cache: Cache,
}

type Cache = Arc<Mutex<Option<Box<dyn Any + Send>>>>;

impl fmt::Debug for StreamRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamRequest")
            .field("model", &self.model.reference())
            .field("messages", &self.messages.len())
            .finish_non_exhaustive()
    }
}

impl StreamRequest {
    /// A request outside a conversation.
    #[must_use]
    pub fn new(model: Model, options: StreamOptions, messages: Vec<Arc<Message>>) -> Self {
        Self {
            model,
            options,
            messages: Arc::new(messages),
            cache: Cache::default(),
        }
    }

    /// What the wire keeps between requests of one conversation, made on first use. Lets a wire
    /// keep the converted prefix, so that a turn costs what the turn adds.
    pub fn with_cache<T: Default + Send + 'static, R>(
        &self,
        use_it: impl FnOnce(&mut T) -> R,
    ) -> R {
        let mut slot = self
            .cache
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let kept = slot.get_or_insert_with(|| Box::new(T::default()));
        match kept.downcast_mut::<T>() {
            Some(cache) => use_it(cache),
            None => use_it(&mut T::default()),
        }
    }

    /// An empty answer to this request: names, time now, no content, zero usage.
    #[must_use]
    pub fn answer(&self) -> AssistantMessage {
        AssistantMessage {
            api: self.model.api.clone(),
            provider: self.model.provider.clone(),
            model: self.model.id.clone(),
            timestamp: unix_ms(),
            stop_reason: StopReason::Pending,
            ..AssistantMessage::default()
        }
    }
}

fn unix_ms() -> i64 {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Payload of the operation `stream`, as it crosses the waist: of a conversation already held only
/// the new messages travel.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamPayload {
    /// The model.
    pub model: Model,
    /// The options.
    pub options: StreamOptions,
    /// Which conversation this continues; absent = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Conversation>,
    /// The messages after the kept ones.
    pub messages: Vec<Arc<Message>>,
}

/// A conversation that sender and receiver both hold. Every request that is sent gets a revision, so
/// that both know whether they speak of the same messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// Name, unique per kernel.
    pub id: String,
    /// The revision this request goes on from. The receiver answers [`code::CONVERSATION_UNKNOWN`]
    /// when it holds another one.
    pub after: u64,
    /// The revision of this request; grows from request to request.
    pub revision: u64,
    /// How many leading messages of `after` stay; 0 when this request is whole.
    pub keep: usize,
}

/// Conversations a source holds between requests; the least recently used one is forgotten.
#[derive(Default)]
pub struct Conversations {
    held: Mutex<Vec<Held>>,
}

struct Held {
    id: String,
    revision: u64,
    /// Shared with the request that is answered; by the next one it is held here alone.
    messages: Arc<Vec<Arc<Message>>>,
    cache: Cache,
}

impl Conversations {
    /// How many are held. A kernel rarely has more active sessions with one wire.
    const LIMIT: usize = 8;

    /// The whole request of a payload.
    ///
    /// # Errors
    /// [`code::CONVERSATION_UNKNOWN`] when the kept messages are not held.
    pub fn request(&self, payload: StreamPayload) -> Result<StreamRequest, Error> {
        let StreamPayload {
            model,
            options,
            conversation,
            messages,
        } = payload;
        let Some(Conversation {
            id,
            after,
            revision,
            keep,
        }) = conversation
        else {
            return Ok(StreamRequest::new(model, options, messages));
        };
        let mut held = self
            .held
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let place = held.iter().position(|entry| entry.id == id);
        if keep > 0
            && !place
                .is_some_and(|at| held[at].revision == after && held[at].messages.len() >= keep)
        {
            return Err(Error::new(
                code::CONVERSATION_UNKNOWN,
                "the conversation is not held here",
            ));
        }
        // A request that was given up may arrive after the one that followed it.
        if place.is_some_and(|at| held[at].revision > revision) {
            return Ok(StreamRequest::new(model, options, messages));
        }
        let mut entry = match place {
            Some(at) => held.remove(at),
            None => Held {
                id,
                revision,
                messages: Arc::default(),
                cache: Cache::default(),
            },
        };
        entry.revision = revision;
        let held_messages = Arc::make_mut(&mut entry.messages);
        held_messages.truncate(keep);
        held_messages.extend(messages);
        let request = StreamRequest {
            model,
            options,
            messages: Arc::clone(&entry.messages),
            cache: Arc::clone(&entry.cache),
        };
        held.push(entry);
        if held.len() > Self::LIMIT {
            held.remove(0);
        }
        Ok(request)
    }
}

/// Where a wire sends its events.
#[derive(Debug, Clone)]
pub struct StreamOut {
    call: CallCtx,
}

impl StreamOut {
    /// Over a call.
    #[must_use]
    pub fn new(call: CallCtx) -> Self {
        Self { call }
    }

    /// The services, bound to this request.
    #[must_use]
    pub fn host(&self) -> &Host {
        self.call.host()
    }

    /// Sends one event; waits when the reader is behind.
    ///
    /// # Errors
    /// `cancelled` when nobody listens any more; end the request then.
    pub async fn send(&self, event: &StreamEvent) -> Result<(), Error> {
        self.emit(&serde_json::to_vec(event)?).await
    }

    /// Sends events in order. They cross at once, so a wire sends together what it read together.
    ///
    /// # Errors
    /// As [`StreamOut::send`].
    pub async fn send_all(&self, events: &mut Vec<StreamEvent>) -> Result<(), Error> {
        if !events.is_empty() {
            self.emit(&crossing::write(events)?).await?;
        }
        events.clear();
        Ok(())
    }

    async fn emit(&self, events: &[u8]) -> Result<(), Error> {
        match self.call.emit(events) {
            Flow::Continue => Ok(()),
            Flow::Slow => self
                .host()
                .call_bytes("emit.ready", b"null".to_vec())
                .await
                .map(drop),
            Flow::Stop => Err(Error::cancelled()),
        }
    }
}

impl EventSink for &StreamOut {
    /// Sends without waiting; for writers whose whole answer is short.
    fn event(&mut self, event: StreamEvent) {
        if let Ok(bytes) = serde_json::to_vec(&event) {
            self.call.emit(&bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::NoServices;

    fn payload(after: u64, revision: u64, keep: usize, texts: &[&str]) -> StreamPayload {
        StreamPayload {
            model: Model::default(),
            options: StreamOptions::default(),
            conversation: Some(Conversation {
                id: "c".into(),
                after,
                revision,
                keep,
            }),
            messages: texts
                .iter()
                .map(|t| Arc::new(Message::user(*t, 0)))
                .collect(),
        }
    }

    #[test]
    fn kept_messages_are_the_same_values_and_the_cache_survives() {
        let held = Conversations::default();
        let first = held.request(payload(0, 1, 0, &["a", "b"])).unwrap();
        first.with_cache(|n: &mut u32| *n = 7);
        let second = held.request(payload(1, 2, 1, &["c"])).unwrap();
        assert!(Arc::ptr_eq(&first.messages[0], &second.messages[0]));
        assert_eq!(second.messages.len(), 2);
        assert_eq!(second.with_cache(|n: &mut u32| *n), 7);
    }

    #[test]
    fn messages_of_another_revision_are_never_taken_for_the_kept_ones() {
        let held = Conversations::default();
        held.request(payload(0, 1, 0, &["a", "b", "c"])).unwrap();
        held.request(payload(1, 5, 1, &["x", "y"])).unwrap();
        assert!(
            held.request(payload(1, 6, 3, &["q"]))
                .unwrap_err()
                .is(code::CONVERSATION_UNKNOWN)
        );
        // One that was given up and arrives late is answered, but changes nothing that is held.
        assert_eq!(
            held.request(payload(0, 2, 0, &["late"]))
                .unwrap()
                .messages
                .len(),
            1
        );
        assert_eq!(
            held.request(payload(5, 7, 3, &["z"]))
                .unwrap()
                .messages
                .len(),
            4
        );
    }

    #[test]
    fn a_conversation_that_is_not_held_is_asked_for_whole() {
        let error = Conversations::default()
            .request(payload(1, 2, 3, &[]))
            .unwrap_err();
        assert!(error.is(code::CONVERSATION_UNKNOWN));
    }

    #[test]
    fn events_that_were_read_together_cross_together() {
        #[derive(Default)]
        struct Emitted(Mutex<Vec<String>>);
        impl crate::plugin::Caller for Emitted {
            fn cancelled(&self) -> bool {
                false
            }
            fn emit(&self, payload: &[u8]) -> Flow {
                let text = String::from_utf8(payload.to_vec()).unwrap();
                self.0.lock().unwrap().push(text);
                Flow::Continue
            }
        }
        let caller = Arc::new(Emitted::default());
        let host = Host::from_services(NoServices);
        let out = StreamOut::new(CallCtx::new(Arc::clone(&caller) as _, host));
        for count in [0, 1, 2] {
            let mut events = vec![StreamEvent::Start; count];
            let mut sending = std::pin::pin!(out.send_all(&mut events));
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(sending.as_mut().poll(&mut cx).is_ready());
        }
        let start = "{\"type\":\"start\"}";
        let both = format!("[{start},{start}]");
        assert_eq!(*caller.0.lock().unwrap(), [start.to_owned(), both]);
    }
}

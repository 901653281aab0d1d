//! A host that answers from memory, and what the tests of this crate share.

mod cache;
mod damaged;
mod fixtures;
mod flags;
mod request;
mod streaming;

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use pliant_sdk::host::{BoxFuture, ByteStream, HttpRequest, Services, unframed};
use pliant_sdk::message::{AssistantMessage, Message};
use pliant_sdk::plugin::{CallCtx, Caller, Flow};
use pliant_sdk::provider::{StreamOptions, StreamOut, StreamRequest, Wire};
use pliant_sdk::{Error, Host, Model, StreamEvent};
use serde_json::{Value, json};

use crate::OpenAiCompletions;

/// What the host answers: status and pieces of the body, or a failure.
pub(crate) type Reply = Result<(u16, Vec<Result<Vec<u8>, Error>>), Error>;

/// What was sent and what came out.
pub(crate) struct Outcome {
    pub(crate) http: HttpRequest,
    pub(crate) body: Value,
    pub(crate) events: Vec<StreamEvent>,
    pub(crate) message: Result<AssistantMessage, Error>,
}

struct FakeHost {
    reply: Mutex<Option<Reply>>,
    sent: Arc<Mutex<Option<(HttpRequest, Value)>>>,
}

impl Services for FakeHost {
    fn call(&self, _: &str, _: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        Box::pin(std::future::ready(Err(Error::unsupported("the service"))))
    }

    fn open(
        &self,
        service: &str,
        payload: Vec<u8>,
    ) -> BoxFuture<'static, Result<ByteStream, Error>> {
        assert_eq!(service, "http.stream");
        let (http, body): (HttpRequest, &[u8]) = unframed(&payload).unwrap();
        let body = serde_json::from_slice(body).unwrap();
        *self.sent.lock().unwrap() = Some((http, body));
        let reply = self.reply.lock().unwrap().take().unwrap();
        Box::pin(std::future::ready(reply.map(|(status, pieces)| {
            let head = json!({"status": status, "headers": []}).to_string();
            let mut chunks = vec![Ok(head.into_bytes())];
            chunks.extend(pieces);
            ByteStream::new(Pieces(chunks.into_iter()))
        })))
    }

    fn notify(&self, _: &str, _: &[u8]) {}
}

struct Pieces(std::vec::IntoIter<Result<Vec<u8>, Error>>);

impl pliant_sdk::host::PollBytes for Pieces {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        Poll::Ready(self.0.next())
    }
}

#[derive(Default)]
struct Events(Mutex<Vec<StreamEvent>>);

impl Caller for Events {
    fn cancelled(&self) -> bool {
        false
    }

    fn emit(&self, payload: &[u8]) -> Flow {
        let mut events = self.0.lock().unwrap();
        match payload[0] {
            b'[' => events.extend(serde_json::from_slice::<Vec<_>>(payload).unwrap()),
            _ => events.push(serde_json::from_slice(payload).unwrap()),
        }
        Flow::Continue
    }
}

/// Sends a request through the wire, against a host that answers `reply`.
pub(crate) fn exchange(request: StreamRequest, reply: Reply) -> Outcome {
    let sent = Arc::default();
    let host = Host::from_services(FakeHost {
        reply: Mutex::new(Some(reply)),
        sent: Arc::clone(&sent),
    });
    let caller = Arc::new(Events::default());
    let out = StreamOut::new(CallCtx::new(Arc::clone(&caller) as Arc<dyn Caller>, host));
    let message = block_on(OpenAiCompletions.stream(request, out));
    let events = std::mem::take(&mut *caller.0.lock().unwrap());
    let (http, body) = sent.lock().unwrap().take().unwrap_or_default();
    Outcome {
        http,
        body,
        events,
        message,
    }
}

/// Nothing here ever waits.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    match future.as_mut().poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the wire waits for something that is not there"),
    }
}

/// A whole body with a status.
pub(crate) fn reply(status: u16, body: &str) -> Reply {
    Ok((status, vec![Ok(body.as_bytes().to_vec())]))
}

/// A model of no known service.
pub(crate) fn model(patch: Value) -> Model {
    let mut model = json!({"id": "m", "name": "M", "api": "openai-completions", "provider": "p",
        "baseUrl": "https://h.test/v1", "reasoning": true, "input": ["text", "image"],
        "contextWindow": 128_000, "maxTokens": 32_000});
    for (name, value) in patch.as_object().unwrap() {
        model[name] = value.clone();
    }
    serde_json::from_value(model).unwrap()
}

pub(crate) fn messages(list: Value) -> Vec<Arc<Message>> {
    let list = list.as_array().unwrap().iter().cloned();
    list.map(|value| Arc::new(Message::from(value))).collect()
}

pub(crate) fn options(value: Value) -> StreamOptions {
    serde_json::from_value(value).unwrap()
}

/// The body for a model with these switches.
pub(crate) fn body(patch: Value, option: Value, list: Value) -> Value {
    let request = StreamRequest::new(model(patch), options(option), messages(list));
    serde_json::from_slice(crate::request::build(&request).unwrap().http.body()).unwrap()
}

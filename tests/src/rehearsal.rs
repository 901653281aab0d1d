//! A wire on its own: a request goes in, a host answers from memory, and what was sent and what came
//! out is there to be compared.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use pliant_sdk::host::{BoxFuture, ByteStream, HttpRequest, PollBytes, Services, unframed};
use pliant_sdk::message::{AssistantMessage, Message};
use pliant_sdk::plugin::{CallCtx, Caller, Flow};
use pliant_sdk::provider::{StreamOptions, StreamOut, StreamRequest, Wire};
use pliant_sdk::{Error, Host, StreamEvent, crossing};
use serde_json::{Value, json};

/// What the host answers: status and pieces of the body, or a failure.
pub type Answered = Result<(u16, Vec<Result<Vec<u8>, Error>>), Error>;

/// What was sent and what came out.
#[derive(Debug)]
pub struct Outcome {
    /// The last request that was sent.
    pub http: HttpRequest,
    /// Its body.
    pub body: Value,
    /// The bodies of all requests.
    pub bodies: Vec<Value>,
    /// The events, in order.
    pub events: Vec<StreamEvent>,
    /// The message, or why there is none.
    pub message: Result<AssistantMessage, Error>,
}

/// Sends a request through a wire, against a host that answers the first attempt with the first of
/// the replies, and so on.
pub fn exchange<W: Wire>(
    wire: &W,
    request: StreamRequest,
    replies: impl IntoIterator<Item = Answered>,
) -> Outcome {
    let sent = Arc::default();
    let host = Host::from_services(FromMemory {
        replies: Mutex::new(replies.into_iter().collect()),
        sent: Arc::clone(&sent),
    });
    let caller = Arc::new(Events::default());
    let out = StreamOut::new(CallCtx::new(Arc::clone(&caller) as Arc<dyn Caller>, host));
    let message = at_once(wire.stream(request, out));
    let events = std::mem::take(&mut *caller.0.lock().expect("no holder panics"));
    let sent = std::mem::take(&mut *sent.lock().expect("no holder panics"));
    let (http, body) = sent.last().cloned().unwrap_or_default();
    Outcome {
        http,
        body,
        bodies: sent.into_iter().map(|(_, body)| body).collect(),
        events,
        message,
    }
}

/// A whole body with a status.
pub fn answered(status: u16, body: &str) -> Answered {
    Ok((status, vec![Ok(body.as_bytes().to_vec())]))
}

/// Messages as a request holds them.
pub fn messages(list: Value) -> Vec<Arc<Message>> {
    let list = list
        .as_array()
        .expect("messages are a list")
        .iter()
        .cloned();
    list.map(|value| Arc::new(Message::from(value))).collect()
}

/// Options from JSON.
pub fn options(value: Value) -> StreamOptions {
    serde_json::from_value(value).expect("the options are well formed")
}

type Sent = Arc<Mutex<Vec<(HttpRequest, Value)>>>;

struct FromMemory {
    replies: Mutex<VecDeque<Answered>>,
    sent: Sent,
}

impl Services for FromMemory {
    fn call(&self, _: &str, _: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        Box::pin(std::future::ready(Err(Error::unsupported("the service"))))
    }

    fn open(
        &self,
        service: &str,
        payload: Vec<u8>,
    ) -> BoxFuture<'static, Result<ByteStream, Error>> {
        assert_eq!(service, "http.stream");
        let (http, body): (HttpRequest, &[u8]) = unframed(&payload).expect("a request is framed");
        let body = serde_json::from_slice(body).expect("a body is JSON");
        self.sent
            .lock()
            .expect("no holder panics")
            .push((http, body));
        let reply = self.replies.lock().expect("no holder panics").pop_front();
        let reply = reply.expect("there is a reply to every request");
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

impl PollBytes for Pieces {
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
        let text = std::str::from_utf8(payload).expect("events are text");
        let crossed = crossing::read(text).expect("events are readable");
        self.0.lock().expect("no holder panics").extend(crossed);
        Flow::Continue
    }
}

/// Nothing here ever waits.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    match future.as_mut().poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the wire waits for something that is not there"),
    }
}

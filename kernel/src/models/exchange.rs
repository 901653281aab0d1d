//! The HTTP exchange of a model request with its service, as handlers hear of it and change it
//! (`extensions.md` §3.3). The kernel brings the I/O, so no wire has to know of this: what a wire
//! asks of `http.stream` and `http.request` passes here on its way.
//!
//! Handlers stand before the host: the secret is added after them, and attempts that the host makes
//! anew reuse what they said. With nobody listening, what passes is not looked at.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::stream::{self, BoxStream, StreamExt};
use pliant_sdk::Error;
use pliant_sdk::host::{BoxFuture, ByteStream, HttpRequest, PollBytes, Services, framed, unframed};
use pliant_sdk::sse::Decoder;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Credentials;
use crate::registry::HookPoint;

/// Names and values of headers; null removes one.
pub type HeaderMap = Map<String, Value>;

/// Who is told of an exchange.
pub trait ProviderHooks: Send + Sync {
    /// Whether anybody listens at one of the four points.
    fn wants(&self, point: HookPoint) -> bool;

    /// The headers to send, without the secret.
    fn headers(&self, headers: HeaderMap) -> BoxFuture<'_, HeaderMap>;

    /// The body to send instead, if it is not this one.
    fn body(&self, body: Value) -> BoxFuture<'_, Option<Value>>;

    /// The service answered; its body is not read yet.
    fn response(&self, status: u16, headers: HeaderMap) -> BoxFuture<'_, ()>;

    /// A frame of the answer, before the wire gets it.
    fn frame(&self, data: Value) -> BoxFuture<'_, ()>;
}

/// One request's way to the service and back.
#[derive(Clone)]
pub(super) struct Exchange {
    services: Arc<dyn Services>,
    hooks: Arc<dyn ProviderHooks>,
    credentials: Arc<Credentials>,
}

#[derive(Deserialize)]
struct Head {
    status: u16,
    headers: Vec<(String, String)>,
}

impl Exchange {
    pub(super) fn new(
        services: Arc<dyn Services>,
        hooks: Arc<dyn ProviderHooks>,
        credentials: Arc<Credentials>,
    ) -> Self {
        Self {
            services,
            hooks,
            credentials,
        }
    }

    /// `http.stream`: the head of the response, then its body as it arrives.
    pub(super) async fn stream(self, payload: Vec<u8>) -> Result<ByteStream, Error> {
        let payload = self.outgoing(payload).await?;
        let mut body = self.services.open("http.stream", payload).await?;
        let frames = self.hooks.wants(HookPoint::ProviderStreamEvent);
        if !frames && !self.hooks.wants(HookPoint::AfterProviderResponse) {
            return Ok(body);
        }
        let Some(head) = body.next().await.transpose()? else {
            return Ok(body);
        };
        let accepted = self.answered(&head).await;
        let body = Body {
            body,
            decoder: (frames && accepted).then(Decoder::new),
            exchange: self,
        };
        let rest = stream::unfold(body, Body::next);
        let whole = stream::once(async { Ok(head) }).chain(rest);
        Ok(ByteStream::new(Heard(whole.boxed())))
    }

    /// `http.request`: head and body at once.
    pub(super) async fn request(self, payload: Vec<u8>) -> Result<Vec<u8>, Error> {
        let payload = self.outgoing(payload).await?;
        let answer = self.services.call("http.request", payload).await?;
        let head = answer.split(|byte| *byte == b'\n').next();
        self.answered(head.unwrap_or_default()).await;
        Ok(answer)
    }

    /// The request as handlers want it sent.
    async fn outgoing(&self, payload: Vec<u8>) -> Result<Vec<u8>, Error> {
        let headers = self.hooks.wants(HookPoint::BeforeProviderHeaders);
        let body = self.hooks.wants(HookPoint::BeforeProviderRequest);
        if !headers && !body {
            return Ok(payload);
        }
        let (mut request, sent) = unframed::<HttpRequest>(&payload)?;
        if headers {
            request.headers = self.headers(request.headers).await;
        }
        // A body that is not JSON belongs to a request that handlers do not know, as one for a token.
        let instead = match serde_json::from_slice(sent) {
            Ok(json) if body => self.hooks.body(json).await,
            _ => None,
        };
        Ok(match instead {
            Some(instead) => framed(&request, &serde_json::to_vec(&instead)?),
            None => framed(&request, sent),
        })
    }

    /// Keys of users who wrote them into headers are not shown, but sent.
    async fn headers(
        &self,
        headers: Vec<(String, Option<String>)>,
    ) -> Vec<(String, Option<String>)> {
        let headers = without_repetitions(headers);
        let shown: HeaderMap = headers
            .iter()
            .map(|(name, value)| {
                let masked = value.clone().map(|value| self.credentials.mask(value));
                (name.clone(), Value::from(masked))
            })
            .collect();
        let sent = |(name, value): (String, Value)| {
            let known = shown.get(&name) == Some(&value);
            let known = headers.iter().find(|(old, _)| known && *old == name);
            let value = match known {
                Some((_, value)) => value.clone(),
                None => value.as_str().map(str::to_owned),
            };
            (name, value)
        };
        let wanted = self.hooks.headers(shown.clone()).await;
        wanted.into_iter().map(sent).collect()
    }

    /// Tells of the response; whether it is one with an answer.
    async fn answered(&self, head: &[u8]) -> bool {
        let Ok(Head { status, headers }) = serde_json::from_slice(head) else {
            return false;
        };
        if self.hooks.wants(HookPoint::AfterProviderResponse) {
            let headers = self.joined(headers);
            self.hooks.response(status, headers).await;
        }
        (200..300).contains(&status)
    }

    /// Headers that came several times are one, as HTTP has it.
    fn joined(&self, headers: Vec<(String, String)>) -> HeaderMap {
        let mut joined = HeaderMap::new();
        for (name, value) in headers {
            let value = self.credentials.mask(value);
            let value = match joined.get(&name).and_then(Value::as_str) {
                Some(before) => format!("{before}, {value}"),
                None => value,
            };
            joined.insert(name, Value::String(value));
        }
        joined
    }

    fn data(&self, frame: String) -> Value {
        let frame = self.credentials.mask(frame);
        serde_json::from_str(&frame).unwrap_or(Value::String(frame))
    }
}

/// The last of the headers of one name, however it is written.
fn without_repetitions(headers: Vec<(String, Option<String>)>) -> Vec<(String, Option<String>)> {
    let mut last: Vec<(String, Option<String>)> = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        last.retain(|(other, _)| !other.eq_ignore_ascii_case(&name));
        last.push((name, value));
    }
    last
}

/// The body of a response whose frames somebody hears.
struct Body {
    body: ByteStream,
    /// None once what comes cannot be events.
    decoder: Option<Decoder>,
    exchange: Exchange,
}

impl Body {
    /// The next chunk, after handlers have heard of the frames that it completes.
    async fn next(mut self) -> Option<(Result<Vec<u8>, Error>, Self)> {
        let chunk = self.body.next().await;
        let mut frames = Vec::new();
        let decoded = match (&chunk, &mut self.decoder) {
            (Some(Ok(bytes)), Some(decoder)) => decoder.push(bytes, &mut frames),
            (None, Some(decoder)) => {
                let _ = decoder.finish(&mut frames);
                Ok(())
            }
            _ => Ok(()),
        };
        for frame in frames {
            let data = self.exchange.data(frame.data);
            self.exchange.hooks.frame(data).await;
        }
        if decoded.is_err() {
            self.decoder = None;
        }
        Some((chunk?, self))
    }
}

struct Heard(BoxStream<'static, Result<Vec<u8>, Error>>);

impl PollBytes for Heard {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        self.0.poll_next_unpin(cx)
    }
}

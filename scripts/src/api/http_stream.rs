//! `http_stream(#{url, method, headers, body, credential})` answers `#{status, headers}` with a body that
//! is still coming: `for event in answer.events()` are the events of a text/event-stream, `lines()` the
//! lines of anything else, such as one JSON value each, `chunks()` the text as it arrives, `text()` all of
//! it. With these a provider's `stream` closure can speak a protocol that pliant does not know.
//!
//! The connection is closed when the call ends that opened it, and when the user gives up. The key of a
//! provider that the script registered is added by `credential: "name"`; the script never sees it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, PoisonError};

use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::{HttpCredential, HttpRequest};
use pliant_sdk::sse;
use pliant_sdk::utf8;
use rhai::{Dynamic, Engine, Map};
use serde::Deserialize;
use serde_json::{Value, json};

use super::http::{body_of, headers_of, join_headers};
use crate::call::{Body, Call, ScriptResult, fail, throw};
use crate::convert;
use crate::engine::MAX_STRING;

const FIELDS: [&str; 7] = [
    "url",
    "method",
    "headers",
    "body",
    "timeout_ms",
    "max_retries",
    "credential",
];

#[derive(Default, Deserialize)]
#[serde(default)]
struct Request {
    url: String,
    method: Option<String>,
    headers: BTreeMap<String, String>,
    body: Value,
    /// For the head of the answer.
    timeout_ms: Option<u64>,
    max_retries: u32,
    credential: Option<Credential>,
}

/// A provider's name, or more than that.
#[derive(Deserialize)]
#[serde(untagged)]
enum Credential {
    Bearer(String),
    Header {
        provider: String,
        header: String,
        #[serde(default)]
        prefix: String,
    },
}

impl From<Credential> for HttpCredential {
    fn from(given: Credential) -> Self {
        match given {
            Credential::Bearer(provider) => Self {
                provider,
                header: "authorization".to_owned(),
                prefix: "Bearer ".to_owned(),
            },
            Credential::Header {
                provider,
                header,
                prefix,
            } => Self {
                provider,
                header,
                prefix,
            },
        }
    }
}

/// An answer whose body is still coming.
#[derive(Clone)]
struct HttpStream {
    call: Arc<Call>,
    status: u16,
    headers: Dynamic,
    body: Body,
}

pub(super) fn install(engine: &mut Engine) {
    engine.register_type_with_name::<HttpStream>("HttpStream");
    engine.register_fn("http_stream", http_stream);
    engine.register_get("status", |answer: &mut HttpStream| i64::from(answer.status));
    engine.register_get("headers", |answer: &mut HttpStream| answer.headers.clone());
    engine.register_fn("events", |answer: &mut HttpStream| {
        answer.pieces(Shape::Events(sse::Decoder::with_max_event_bytes(
            MAX_STRING,
        )))
    });
    engine.register_fn("lines", |answer: &mut HttpStream| {
        answer.pieces(Shape::Lines(Lines::default()))
    });
    engine.register_fn("chunks", |answer: &mut HttpStream| {
        answer.pieces(Shape::Chunks(utf8::Decoder::default()))
    });
    engine.register_fn("text", |answer: &mut HttpStream| answer.text());
    engine.register_fn("close", |answer: &mut HttpStream| {
        drop(answer.take_body());
    });
    engine.register_iterator_result::<Pieces, Dynamic>();
}

fn http_stream(request: Map) -> ScriptResult<HttpStream> {
    let call = Call::current()?;
    let request: Request = super::options("http_stream", request, &FIELDS)?;
    if request.url.is_empty() {
        return Err(fail("http_stream: `url` is missing"));
    }
    let (body, is_json) = body_of(request.body).map_err(|error| throw(&error))?;
    let method = request
        .method
        .unwrap_or_else(|| if body.is_empty() { "GET" } else { "POST" }.to_owned());
    let request = HttpRequest {
        method,
        url: request.url,
        headers: headers_of(request.headers, is_json),
        credential: request.credential.map(HttpCredential::from),
        timeout_ms: request.timeout_ms,
        // A script sees a failure at once, and decides itself.
        max_retries: Some(request.max_retries),
        ..HttpRequest::default()
    };
    let host = call.host().clone();
    let response = call.wait(async move { host.http(request, &body).await })?;
    let headers = convert::to_dynamic(join_headers(response.headers))?;
    let body = call.keep_open(response.body);
    Ok(HttpStream {
        call,
        status: response.status,
        headers,
        body,
    })
}

impl HttpStream {
    fn take_body(&self) -> Option<pliant_sdk::host::ByteStream> {
        let mut body = self.body.lock().unwrap_or_else(PoisonError::into_inner);
        body.take()
    }

    fn pieces(&mut self, shape: Shape) -> Pieces {
        Pieces {
            answer: self.clone(),
            shape,
            waiting: VecDeque::new(),
            is_over: false,
        }
    }

    /// The next bytes; `None` at the end.
    fn next(&self) -> ScriptResult<Option<Vec<u8>>> {
        self.call.ensure_open()?;
        let Some(mut body) = self.take_body() else {
            return Err(fail("this answer was closed, or is read elsewhere"));
        };
        let read = self.call.wait(async {
            let bytes = body.next().await.transpose()?;
            Ok((bytes, body))
        });
        let (bytes, body) = read?;
        if bytes.is_some() {
            let mut kept = self.body.lock().unwrap_or_else(PoisonError::into_inner);
            *kept = Some(body);
        }
        Ok(bytes)
    }

    fn text(&self) -> ScriptResult<String> {
        let mut all = Vec::new();
        while let Some(bytes) = self.next()? {
            all.extend_from_slice(&bytes);
            if all.len() > MAX_STRING {
                return Err(too_long());
            }
        }
        Ok(super::text_within_limit(&all))
    }
}

fn too_long() -> Box<rhai::EvalAltResult> {
    throw(&Error::new(
        code::INVALID,
        format!("the answer has more than {MAX_STRING} bytes in one piece; read it with chunks()"),
    ))
}

/// What a body is cut into.
#[derive(Clone)]
enum Shape {
    Events(sse::Decoder),
    Lines(Lines),
    Chunks(utf8::Decoder),
}

/// Lines without their ends; CR LF and LF end one.
#[derive(Clone, Default)]
struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    fn push(&mut self, bytes: &[u8], lines: &mut VecDeque<Dynamic>) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.begun.pop();
                lines.push_back(self.take());
            }
        }
    }

    fn take(&mut self) -> Dynamic {
        let mut line = std::mem::take(&mut self.begun);
        if line.ends_with(b"\r") {
            line.pop();
        }
        super::text_within_limit(&line).into()
    }
}

/// The pieces of a body, one after the other. Two that are asked for of one answer share it.
#[derive(Clone)]
struct Pieces {
    answer: HttpStream,
    shape: Shape,
    waiting: VecDeque<Dynamic>,
    is_over: bool,
}

impl Iterator for Pieces {
    type Item = ScriptResult<Dynamic>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(piece) = self.waiting.pop_front() {
                return Some(Ok(piece));
            }
            if self.is_over {
                return None;
            }
            let taken = match self.answer.next() {
                Ok(Some(bytes)) => self.take(&bytes),
                Ok(None) => {
                    self.is_over = true;
                    self.finish()
                }
                Err(error) => Err(error),
            };
            if let Err(error) = taken {
                self.is_over = true;
                return Some(Err(error));
            }
        }
    }
}

impl Pieces {
    fn take(&mut self, bytes: &[u8]) -> ScriptResult<()> {
        let waiting = &mut self.waiting;
        match &mut self.shape {
            Shape::Events(decoder) => {
                let mut events = Vec::new();
                let decoded = decoder.push(bytes, &mut events);
                decoded.map_err(|error| fail(error.to_string()))?;
                for event in events {
                    waiting.push_back(event_map(event)?);
                }
            }
            Shape::Lines(lines) => {
                lines.push(bytes, waiting);
                if lines.begun.len() > MAX_STRING {
                    return Err(too_long());
                }
            }
            Shape::Chunks(decoder) => {
                let mut text = String::new();
                decoder.push(bytes, |piece| text.push_str(piece));
                waiting.extend((!text.is_empty()).then(|| text.into()));
            }
        }
        Ok(())
    }

    /// What was begun when the body ended is a piece too.
    fn finish(&mut self) -> ScriptResult<()> {
        let waiting = &mut self.waiting;
        match &mut self.shape {
            Shape::Events(decoder) => {
                let mut events = Vec::new();
                let _ = decoder.finish(&mut events);
                for event in events {
                    waiting.push_back(event_map(event)?);
                }
            }
            Shape::Lines(lines) => {
                if !lines.begun.is_empty() {
                    waiting.push_back(lines.take());
                }
            }
            Shape::Chunks(decoder) => {
                let mut text = String::new();
                decoder.finish(|piece| text.push_str(piece));
                waiting.extend((!text.is_empty()).then(|| text.into()));
            }
        }
        Ok(())
    }
}

/// `#{event, data, id}`; what an event lacks is `()`.
fn event_map(event: sse::Event) -> ScriptResult<Dynamic> {
    let sse::Event { event, data, id } = event;
    convert::to_dynamic(json!({"event": event, "data": data, "id": id}))
}

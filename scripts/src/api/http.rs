//! `http(#{url, method, headers, body, timeout_ms})` answers `#{status, headers, body}`; any status
//! is an answer, only a failure to get one is thrown. `http_all([…])` sends several at once and
//! answers in their order; there a failure is `#{code, message}` in its place.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::{Host, HttpRequest};
use rhai::{Array, Dynamic, Engine, Map};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::call::{Call, ScriptResult, fail};
use crate::convert;
use crate::engine::MAX_STRING;

const FIELDS: [&str; 5] = ["url", "method", "headers", "body", "timeout_ms"];

#[derive(Deserialize)]
#[serde(default)]
struct Request {
    url: String,
    method: Option<String>,
    headers: BTreeMap<String, String>,
    body: Value,
    timeout_ms: u64,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            url: String::new(),
            method: None,
            headers: BTreeMap::new(),
            body: Value::Null,
            timeout_ms: 30_000,
        }
    }
}

pub(super) fn install(engine: &mut Engine) {
    engine.register_fn("http", http);
    engine.register_fn("http_all", http_all);
}

fn http(request: Map) -> ScriptResult<Dynamic> {
    let call = Call::current()?;
    let request = read("http", request)?;
    let response = call.wait(send(call.host(), request))?;
    convert::to_dynamic(response)
}

fn http_all(requests: Array) -> ScriptResult<Dynamic> {
    let call = Call::current()?;
    let requests: Vec<Request> = requests
        .into_iter()
        .map(|request| match request.try_cast::<Map>() {
            Some(request) => read("http_all", request),
            None => Err(fail("http_all takes a list of maps, as http takes one")),
        })
        .collect::<ScriptResult<_>>()?;
    let sent = requests.into_iter().map(|request| async {
        send(call.host(), request)
            .await
            .unwrap_or_else(|error| json!({"code": error.code, "message": error.message}))
    });
    let responses = call.wait(async { Ok(join_all(sent).await) })?;
    convert::to_dynamic(responses)
}

fn read(function: &str, request: Map) -> ScriptResult<Request> {
    let request: Request = super::options(function, request, &FIELDS)?;
    match request.url.is_empty() {
        true => Err(fail(format!("{function}: `url` is missing"))),
        false => Ok(request),
    }
}

/// The time limit covers the whole answer, not only its head.
async fn send(host: &Host, request: Request) -> Result<Value, Error> {
    let url = request.url.clone();
    let limit = Duration::from_millis(request.timeout_ms);
    match tokio::time::timeout(limit, exchange(host, request)).await {
        Ok(response) => response,
        Err(_) => Err(Error::new(
            code::TIMEOUT,
            format!("{url} did not answer within {} ms", limit.as_millis()),
        )),
    }
}

async fn exchange(host: &Host, request: Request) -> Result<Value, Error> {
    let (body, json) = body_of(request.body)?;
    let method = request
        .method
        .unwrap_or_else(|| if body.is_empty() { "GET" } else { "POST" }.to_owned());
    let request = HttpRequest {
        method,
        url: request.url,
        headers: headers_of(request.headers, json),
        timeout_ms: Some(request.timeout_ms),
        // A script sees a failure at once, and decides itself.
        max_retries: Some(0),
        ..HttpRequest::default()
    };
    let mut response = host.http(request, &body).await?;
    let body = response.body.read_to_end(MAX_STRING).await?;
    Ok(json!({
        "status": response.status,
        "headers": join_headers(response.headers),
        "body": super::text_within_limit(&body),
    }))
}

/// A body, and whether it is JSON: a text is sent as it is.
pub(super) fn body_of(body: Value) -> Result<(Vec<u8>, bool), Error> {
    Ok(match body {
        Value::Null => (Vec::new(), false),
        Value::String(text) => (text.into_bytes(), false),
        value => (serde_json::to_vec(&value)?, true),
    })
}

/// The headers of a request; of one with JSON its type, if it is not said.
pub(super) fn headers_of(
    headers: BTreeMap<String, String>,
    json: bool,
) -> Vec<(String, Option<String>)> {
    let headers = headers.into_iter().map(|(name, value)| (name, Some(value)));
    let mut headers: Vec<(String, Option<String>)> = headers.collect();
    let typed = |(name, _): &(String, _)| name.eq_ignore_ascii_case("content-type");
    if json && !headers.iter().any(typed) {
        headers.push(("content-type".into(), Some("application/json".into())));
    }
    headers
}

/// Headers as a map; repeated ones are joined as HTTP allows.
pub(super) fn join_headers(list: Vec<(String, String)>) -> BTreeMap<String, String> {
    let mut headers: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in list {
        headers
            .entry(name)
            .and_modify(|all| {
                all.push_str(", ");
                all.push_str(&value);
            })
            .or_insert(value);
    }
    headers
}

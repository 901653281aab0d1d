//! HTTP for plugins and the kernel: an [`HttpRequest`], its secret and its body come in, a stream
//! goes out whose first chunk is the head of the response, as JSON `{status, headers}`, followed by
//! the body as it arrives.
//!
//! Here are the rules that hold for every request: the secret's header, pliant's user agent, proxies,
//! time limits, and (when asked for) attempts after the first. What is not here: whose secret it is,
//! what an error status means, and turns that are tried again.
//!
//! Failures are worded so that the patterns of turn retry match them (`providers.md` §7.2). No text
//! made here holds a header value, a body that was sent, or more of an address than its origin.

mod body;
mod proxy;
mod retry;
mod tls;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::{ByteStream, HttpRequest};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use reqwest::{Client, Method, Proxy, Request, Response, Url, redirect};
use rustls::ClientConfig;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use body::Body;
pub use proxy::ProxyRules;
pub(crate) use retry::{MAX_RETRY_DELAY_MS, asked_delay};

/// Limit for one attempt to connect; the limit for headers may be much longer.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// Redirects followed, within one origin.
const REDIRECTS: usize = 5;

/// What holds for every request.
#[derive(Clone)]
pub struct HttpSettings {
    /// Limit for waiting on headers and between body chunks (`httpIdleTimeoutMs`); 0 = none.
    pub idle_timeout_ms: u64,
    /// Which requests go through a proxy.
    pub proxies: ProxyRules,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            idle_timeout_ms: 300_000,
            proxies: ProxyRules::default(),
        }
    }
}

/// Sends requests. Connections are kept and reused per proxy decision; nothing is opened, read or
/// loaded before a request needs it.
pub struct HttpClient {
    user_agent: String,
    settings: HttpSettings,
    clients: Mutex<HashMap<Route, Client>>,
    tls: OnceCell<ClientConfig>,
}

/// What makes two requests share a client.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Route {
    proxy: Option<Url>,
    tls: bool,
}

impl HttpClient {
    /// A client that has done nothing yet.
    #[must_use]
    pub fn new(user_agent: impl Into<String>, settings: HttpSettings) -> Self {
        Self {
            user_agent: user_agent.into(),
            settings,
            clients: Mutex::default(),
            tls: OnceCell::new(),
        }
    }

    /// Sends a request and answers when the response headers are there. An error status is a
    /// response like any other. `secret` belongs to the request's credential.
    ///
    /// Dropping the future or the stream drops the connection.
    ///
    /// # Errors
    /// `invalid` for what cannot be sent, `network` when no response came, `timeout`; `failed` when
    /// the server asks for a longer delay before the next attempt than the request allows.
    pub async fn stream(
        &self,
        request: HttpRequest,
        secret: Option<String>,
        body: impl Into<Bytes>,
    ) -> Result<ByteStream, Error> {
        let url = parse_url(&request.url)?;
        let proxy = self.settings.proxies.proxy_for(&url)?;
        let target = match &proxy {
            Some(proxy) => format!("{} through the proxy {}", origin(&url), origin(proxy)),
            None => origin(&url),
        };
        let client = self.client(&url, proxy).await?;
        let mut message = Request::new(parse_method(&request.method)?, url);
        *message.headers_mut() = headers(&self.user_agent, &request, secret)?;
        let body: Bytes = body.into();
        if !body.is_empty() {
            *message.body_mut() = Some(body.into());
        }
        let limit = limit_of(request.timeout_ms.unwrap_or(self.settings.idle_timeout_ms));
        // An async closure that borrows makes the future not `Send` for callers that box it.
        let send = || send(&client, &message, limit, &target);
        let response = retry::with_retries(&request, send).await?;
        let idle = limit_of(self.settings.idle_timeout_ms);
        Ok(ByteStream::new(Body::new(response, idle, target)))
    }

    /// Loads the system's certificates, which the first `https:` request would otherwise wait for.
    ///
    /// # Errors
    /// `io` when the system has no usable certificates.
    pub async fn warm_tls(&self) -> Result<(), Error> {
        self.tls().await.map(drop)
    }

    async fn client(&self, url: &Url, proxy: Option<Url>) -> Result<Client, Error> {
        let is_tls = |url: &Url| url.scheme() == "https";
        let route = Route {
            tls: is_tls(url) || proxy.as_ref().is_some_and(is_tls),
            proxy,
        };
        if let Some(client) = self.known_clients().get(&route) {
            return Ok(client.clone());
        }
        let tls = if route.tls {
            self.tls().await?.clone()
        } else {
            tls::without_roots()?
        };
        let client = build(tls, route.proxy.as_ref())?;
        Ok(self.known_clients().entry(route).or_insert(client).clone())
    }

    fn known_clients(&self) -> MutexGuard<'_, HashMap<Route, Client>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn tls(&self) -> Result<&ClientConfig, Error> {
        let load = async || match tokio::task::spawn_blocking(tls::with_system_roots).await {
            Ok(loaded) => loaded,
            Err(cause) => Err(tls::unusable(&cause)),
        };
        self.tls.get_or_try_init(load).await
    }
}

fn build(tls: ClientConfig, proxy: Option<&Url>) -> Result<Client, Error> {
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .referer(false)
        .redirect(redirect::Policy::custom(within_origin))
        .connect_timeout(CONNECT_LIMIT);
    if let Some(proxy) = proxy {
        builder = builder.proxy(Proxy::all(proxy.clone()).map_err(unusable_client)?);
    }
    builder.build().map_err(unusable_client)
}

/// Other origins must not be handed the secret, whatever header carries it, and the older kinds of
/// redirect turn a POST into a GET, whose answer is to another question. Both are the caller's
/// response.
fn within_origin(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let previous = attempt.previous();
    let from = previous.last().map(Url::origin);
    let same_method = matches!(attempt.status().as_u16(), 307 | 308);
    if same_method && from == Some(attempt.url().origin()) && previous.len() <= REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

fn unusable_client(cause: reqwest::Error) -> Error {
    let cause = deepest(cause);
    Error::invalid(format!("The HTTP client cannot be set up: {cause}."))
}

fn parse_url(text: &str) -> Result<Url, Error> {
    let url = Url::parse(text).map_err(|cause| {
        Error::invalid(format!("The address of the request is unusable: {cause}."))
    })?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(Error::invalid(format!(
            "Addresses that start with {other}: cannot be requested; use http: or https:."
        ))),
    }
}

fn parse_method(text: &str) -> Result<Method, Error> {
    match text {
        "" => Ok(Method::GET),
        text => Method::from_bytes(text.as_bytes())
            .map_err(|_| Error::invalid(format!("\"{text}\" is not an HTTP method."))),
    }
}

/// Scheme, host and port; the rest of an address may hold secrets.
fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// From weak to strong: the user agent, the secret, the headers in their order.
fn headers(agent: &str, request: &HttpRequest, secret: Option<String>) -> Result<HeaderMap, Error> {
    let mut map = HeaderMap::new();
    map.insert(USER_AGENT, header_value("user-agent", agent)?);
    if let (Some(credential), Some(secret)) = (&request.credential, secret) {
        let text = format!("{}{secret}", credential.prefix);
        let mut value = header_value(&credential.header, &text)?;
        value.set_sensitive(true);
        map.insert(header_name(&credential.header)?, value);
    }
    for (name, value) in &request.headers {
        let key = header_name(name)?;
        match value {
            Some(_) if frames_the_body(name) => {
                return Err(Error::invalid(format!(
                    "The header {name} cannot be set: the length of the body decides it. Leave it out."
                )));
            }
            Some(value) => drop(map.insert(key, header_value(name, value)?)),
            None => drop(map.remove(key)),
        }
    }
    Ok(map)
}

/// Whether a header says where the body ends. With another end than the real one, what is left of the
/// body is read as the next request of the connection.
pub(crate) fn frames_the_body(name: &str) -> bool {
    ["content-length", "transfer-encoding"]
        .iter()
        .any(|framing| name.eq_ignore_ascii_case(framing))
}

fn header_name(name: &str) -> Result<HeaderName, Error> {
    HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| Error::invalid(format!("\"{name}\" is not the name of an HTTP header.")))
}

fn header_value(name: &str, value: &str) -> Result<HeaderValue, Error> {
    HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
        Error::invalid(format!(
            "The value for the header {name} holds a line break or another control character; \
             remove it from the key or the configured header."
        ))
    })
}

fn limit_of(ms: u64) -> Option<Duration> {
    (ms > 0).then(|| Duration::from_millis(ms))
}

/// One attempt, up to the response headers.
async fn send(
    client: &Client,
    message: &Request,
    limit: Option<Duration>,
    target: &str,
) -> Result<Response, Error> {
    // Bodies are in memory, so every request can be cloned.
    let Some(message) = message.try_clone() else {
        return Err(Error::failed("The request cannot be sent twice."));
    };
    let answer = client.execute(message);
    let answer = match limit {
        None => answer.await,
        Some(limit) => timeout(limit, answer).await.map_err(|_| {
            let ms = limit.as_millis();
            timed_out(&format!(
                "{target} sent no response headers within {ms} ms."
            ))
        })?,
    };
    answer.map_err(|cause| {
        if cause.is_timeout() {
            let seconds = CONNECT_LIMIT.as_secs();
            timed_out(&format!(
                "{target} could not be reached within {seconds} s."
            ))
        } else if cause.is_connect() || cause.is_request() {
            let cause = deepest(cause);
            Error::new(
                code::NETWORK,
                format!("Connection error.: {cause} ({target})"),
            )
        } else {
            let cause = deepest(cause);
            Error::new(code::NETWORK, format!("fetch failed: {cause} ({target})"))
        }
    })
}

fn timed_out(what: &str) -> Error {
    Error::new(code::TIMEOUT, format!("Request timed out. {what}"))
}

/// The innermost cause, without the address: the ones around it only say that something was tried.
fn deepest(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    use pliant_sdk::host::HttpCredential;
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::JoinHandle;
    use tokio::time::{Instant, sleep};

    const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

    /// Answers one connection after the other with one text each; the requests come out.
    async fn server(answers: Vec<String>) -> (String, JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let serve = tokio::spawn(async move {
            let mut requests = Vec::new();
            for answer in answers {
                let (mut socket, _) = listener.accept().await.expect("a connection");
                requests.push(request_of(&mut socket).await);
                let _ = socket.write_all(answer.as_bytes()).await;
            }
            requests
        });
        (url, serve)
    }

    /// A server whose side of the only connection the test plays.
    async fn connection() -> (String, JoinHandle<TcpStream>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let accept = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.expect("a connection");
            request_of(&mut socket).await;
            socket
        });
        (url, accept)
    }

    async fn request_of(socket: &mut TcpStream) -> String {
        let mut text = String::new();
        let mut buffer = [0; 4096];
        loop {
            let read = socket.read(&mut buffer).await.expect("a request");
            text.push_str(&String::from_utf8_lossy(&buffer[..read]));
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            let length = head
                .lines()
                .find_map(|l| l.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |l| l.parse().expect("a length")) {
                return text;
            }
        }
    }

    fn client(idle_timeout_ms: u64) -> HttpClient {
        client_with(HttpSettings {
            idle_timeout_ms,
            ..HttpSettings::default()
        })
    }

    fn client_with(settings: HttpSettings) -> HttpClient {
        HttpClient::new("pliant/test", settings)
    }

    fn post(url: &str) -> HttpRequest {
        HttpRequest {
            method: "POST".to_owned(),
            url: url.to_owned(),
            ..HttpRequest::default()
        }
    }

    async fn open(client: &HttpClient, request: HttpRequest) -> Result<ByteStream, Error> {
        client
            .stream(request, Some("s3cret".to_owned()), "{}")
            .await
    }

    async fn head(stream: &mut ByteStream) -> Value {
        let chunk = stream.next().await.expect("a head").expect("no error");
        serde_json::from_slice(&chunk).expect("JSON")
    }

    async fn text(stream: &mut ByteStream) -> String {
        let body = stream.read_to_end(1 << 20).await.expect("a body");
        String::from_utf8(body).expect("text")
    }

    async fn failure(client: &HttpClient, request: HttpRequest) -> Error {
        open(client, request).await.expect_err("a failure")
    }

    #[tokio::test]
    async fn the_head_comes_first_and_then_the_body_as_it_arrives() {
        let (url, socket) = connection().await;
        let client = client(0);
        let (stream, socket) = tokio::join!(open(&client, post(&url)), async {
            let mut socket = socket.await.expect("a socket");
            let start = "HTTP/1.1 503 Busy\r\nX-One: 1\r\ncontent-length: 6\r\n\r\none";
            socket.write_all(start.as_bytes()).await.expect("sent");
            socket
        });
        let (mut stream, mut socket) = (stream.expect("a response"), socket);
        assert_eq!(
            head(&mut stream).await,
            json!({"status": 503, "headers": [["x-one", "1"], ["content-length", "6"]]})
        );
        assert_eq!(stream.next().await, Some(Ok(b"one".to_vec())));
        socket.write_all(b"two").await.expect("sent");
        assert_eq!(stream.next().await, Some(Ok(b"two".to_vec())));
        assert_eq!(stream.next().await, None);
        assert_eq!(stream.next().await, None);
    }

    #[tokio::test]
    async fn headers_go_from_weak_to_strong_and_null_removes() {
        let (url, requests) = server(vec![OK.to_owned()]).await;
        let set = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        let request = HttpRequest {
            credential: Some(HttpCredential {
                provider: "p".to_owned(),
                header: "Authorization".to_owned(),
                prefix: "Bearer ".to_owned(),
            }),
            headers: vec![
                set("X-A", "weak"),
                set("X-B", "gone"),
                set("x-a", "strong"),
                ("x-b".to_owned(), None),
            ],
            ..post(&url)
        };
        let mut stream = open(&client(1000), request).await.expect("a response");
        assert_eq!(head(&mut stream).await["status"], 200);
        assert_eq!(text(&mut stream).await, "ok");
        let request = requests.await.expect("requests").remove(0);
        let lines: Vec<&str> = request.lines().collect();
        for expected in [
            "user-agent: pliant/test",
            "authorization: Bearer s3cret",
            "x-a: strong",
        ] {
            assert!(lines.contains(&expected), "{request}");
        }
        assert!(
            !request.contains("x-b") && !request.contains("weak"),
            "{request}"
        );
        assert!(
            lines[0] == "POST / HTTP/1.1" && request.ends_with("\r\n\r\n{}"),
            "{request}"
        );
    }

    #[tokio::test]
    async fn nobody_listening_is_a_connection_error_with_its_cause() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        let error = failure(&client(1000), post(&format!("http://{address}/v1?key=k3y"))).await;
        assert!(error.is(code::NETWORK));
        let (start, end) = (
            "Connection error.: Connection refused",
            format!("(http://{address})"),
        );
        assert!(
            error.message.starts_with(start) && error.message.ends_with(&end),
            "{error}"
        );
        assert!(!error.message.contains("k3y"), "{error}");
    }

    #[tokio::test]
    async fn a_connection_closed_without_an_answer_is_a_connection_error() {
        let (url, _requests) = server(vec![String::new()]).await;
        let error = failure(&client(1000), post(&url)).await;
        assert!(error.is(code::NETWORK));
        assert!(error.message.starts_with("Connection error.: "), "{error}");
    }

    #[tokio::test]
    async fn a_body_cut_short_is_told_after_what_arrived() {
        let cut = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npart";
        let (url, _requests) = server(vec![cut.to_owned()]).await;
        let mut stream = open(&client(1000), post(&url)).await.expect("a response");
        head(&mut stream).await;
        assert_eq!(stream.next().await, Some(Ok(b"part".to_vec())));
        let error = stream
            .next()
            .await
            .expect("an error")
            .expect_err("an error");
        assert!(error.is(code::NETWORK));
        assert!(error.message.starts_with("Connection lost: "), "{error}");
        assert_eq!(stream.next().await, None);
    }

    #[tokio::test]
    async fn waiting_for_headers_is_limited() {
        let (url, _socket) = connection().await;
        let request = HttpRequest {
            timeout_ms: Some(50),
            ..post(&url)
        };
        let error = failure(&client(10_000), request).await;
        assert!(error.is(code::TIMEOUT));
        assert!(error.message.starts_with("Request timed out. "), "{error}");
    }

    #[tokio::test]
    async fn the_idle_limit_starts_again_with_every_chunk() {
        let (url, socket) = connection().await;
        let serve = tokio::spawn(async move {
            let mut socket = socket.await.expect("a socket");
            let start = b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n";
            socket.write_all(start).await.expect("sent");
            for _ in 0..5 {
                socket.write_all(b"x").await.expect("sent");
                sleep(Duration::from_millis(80)).await;
            }
            sleep(Duration::from_secs(5)).await;
        });
        let mut stream = open(&client(200), post(&url)).await.expect("a response");
        head(&mut stream).await;
        for _ in 0..5 {
            assert_eq!(stream.next().await, Some(Ok(b"x".to_vec())));
        }
        let error = stream
            .next()
            .await
            .expect("an error")
            .expect_err("an error");
        assert!(error.is(code::TIMEOUT));
        assert!(error.message.starts_with("Request timed out. "), "{error}");
        serve.abort();
    }

    #[tokio::test]
    async fn dropping_the_stream_closes_the_connection() {
        let (url, socket) = connection().await;
        let client = client(0);
        let (stream, mut socket) = tokio::join!(open(&client, post(&url)), async {
            let mut socket = socket.await.expect("a socket");
            let start = b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nx";
            socket.write_all(start).await.expect("sent");
            socket
        });
        drop(stream.expect("a response"));
        let closed = timeout(Duration::from_secs(1), socket.read(&mut [0; 8])).await;
        assert_eq!(closed.expect("in time").expect("read"), 0);
    }

    #[tokio::test]
    async fn one_attempt_is_made_unless_more_are_asked_for() {
        let busy = "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n".to_owned();
        let (url, _requests) = server(vec![busy, OK.to_owned()]).await;
        let mut stream = open(&client(1000), post(&url)).await.expect("a response");
        assert_eq!(head(&mut stream).await["status"], 503);
    }

    #[tokio::test]
    async fn attempts_repeat_the_whole_request_until_an_answer_is_final() {
        let busy = "HTTP/1.1 429 Busy\r\nretry-after-ms: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        let (url, requests) = server(vec![busy.to_owned(), busy.to_owned(), OK.to_owned()]).await;
        let request = HttpRequest {
            max_retries: Some(5),
            ..post(&url)
        };
        let mut stream = open(&client(1000), request).await.expect("a response");
        assert_eq!(head(&mut stream).await["status"], 200);
        let requests = requests.await.expect("requests");
        assert!(requests.len() == 3 && requests.iter().all(|r| r.ends_with("\r\n\r\n{}")));
    }

    #[tokio::test]
    async fn the_last_attempt_is_answered_as_it_is() {
        let busy =
            "HTTP/1.1 500 Oh\r\nretry-after: 0\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno";
        let (url, _requests) = server(vec![busy.to_owned(), busy.to_owned()]).await;
        let request = HttpRequest {
            max_retries: Some(1),
            ..post(&url)
        };
        let mut stream = open(&client(1000), request).await.expect("a response");
        assert_eq!(head(&mut stream).await["status"], 500);
        assert_eq!(text(&mut stream).await, "no");
    }

    #[tokio::test]
    async fn a_delay_above_the_cap_fails_at_once_and_quotes_the_body() {
        let busy = "HTTP/1.1 429 Busy\r\nretry-after: 90.5\r\ncontent-length: 9\r\n\r\nslow down";
        let (url, _requests) = server(vec![busy.to_owned()]).await;
        let request = HttpRequest {
            max_retries: Some(2),
            ..post(&url)
        };
        let error = failure(&client(1000), request).await;
        assert_eq!(
            error.message,
            "Server requested 91s retry delay (max: 60s). 429 slow down"
        );
        assert_eq!(error.details, Some(Box::new(json!({"status": 429}))));
    }

    #[tokio::test]
    async fn dropping_the_future_ends_the_wait_for_the_next_attempt() {
        let busy = "HTTP/1.1 429 Busy\r\nretry-after: 30\r\ncontent-length: 0\r\n\r\n";
        let (url, _requests) = server(vec![busy.to_owned()]).await;
        let request = HttpRequest {
            max_retries: Some(2),
            ..post(&url)
        };
        let started = Instant::now();
        let client = client(1000);
        let opened = timeout(Duration::from_millis(100), open(&client, request)).await;
        assert!(opened.is_err() && started.elapsed() < Duration::from_secs(1));
    }

    #[tokio::test]
    async fn redirects_stay_within_the_origin() {
        let moved = |to: &str| {
            format!(
                "HTTP/1.1 307 Moved\r\nlocation: {to}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            )
        };
        let elsewhere = moved("http://127.0.0.1:1/steal");
        let (url, requests) = server(vec![moved("/there"), elsewhere]).await;
        let mut stream = open(&client(1000), post(&url)).await.expect("a response");
        assert_eq!(head(&mut stream).await["status"], 307);
        let requests = requests.await.expect("requests");
        assert!(requests[1].starts_with("POST /there "), "{requests:?}");
    }

    #[tokio::test]
    async fn requests_go_through_the_proxy_that_the_rules_name() {
        let refused = "HTTP/1.1 502 No\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        let (proxy, requests) = server(vec![OK.to_owned(), refused.to_owned()]).await;
        let proxies = ProxyRules::from_lookup(|name| (name == "http_proxy").then(|| proxy.clone()))
            .or_setting(Some(&proxy));
        let client = client_with(HttpSettings {
            proxies,
            ..HttpSettings::default()
        });
        let mut stream = open(&client, post("http://a.test/x"))
            .await
            .expect("a response");
        assert_eq!(head(&mut stream).await["status"], 200);
        let error = failure(&client, post("https://a.test/x")).await;
        assert!(error.message.starts_with("Connection error.: "), "{error}");
        assert!(
            error
                .message
                .contains("https://a.test through the proxy http://127"),
            "{error}"
        );
        let requests = requests.await.expect("requests");
        assert!(
            requests[0].starts_with("POST http://a.test/x "),
            "{requests:?}"
        );
        assert!(
            requests[1].starts_with("CONNECT a.test:443 "),
            "{requests:?}"
        );
    }

    #[tokio::test]
    async fn what_cannot_be_sent_is_named_without_its_value() {
        let credential = HttpCredential {
            provider: "p".to_owned(),
            header: "x-api-key".to_owned(),
            prefix: String::new(),
        };
        let request = HttpRequest {
            credential: Some(credential),
            ..post("http://127.0.0.1:1/")
        };
        let secret = Some("s3cret\n".to_owned());
        let error = client(0)
            .stream(request, secret, "")
            .await
            .expect_err("invalid");
        assert!(
            error.is(code::INVALID) && error.message.contains("x-api-key"),
            "{error}"
        );
        assert!(!error.message.contains("s3cret"), "{error}");
        for (url, word) in [("nowhere", "address"), ("ftp://a/", "ftp:")] {
            let error = failure(&client(0), post(url)).await;
            assert!(
                error.is(code::INVALID) && error.message.contains(word),
                "{error}"
            );
        }
    }
}

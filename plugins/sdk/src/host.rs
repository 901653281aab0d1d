//! The services the kernel lends to a plugin: HTTP, processes, files, time, configuration, log.
//!
//! A plugin links no async runtime and no TLS; what it needs from outside it asks for here, and
//! every effect passes one place where policy, tracing and cancellation apply.
//!
//! Payloads are JSON. Services that carry bulk bytes take one line of JSON, a line feed, then the
//! bytes as they are ([`framed`]).

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::task::{Context, Poll};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{Error, code};
use crate::guard;

/// A future that may move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where service calls go. The export macro's glue implements it over the ABI; tests implement it
/// in a few lines ([`Host::from_services`]).
pub trait Services: Send + Sync {
    /// One request, one answer.
    fn call(&self, service: &str, payload: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>>;
    /// Opens a stream.
    fn open(
        &self,
        service: &str,
        payload: Vec<u8>,
    ) -> BoxFuture<'static, Result<ByteStream, Error>>;
    /// Fire and forget.
    fn notify(&self, service: &str, payload: &[u8]);
}

/// No services at all, for a plugin that is only looked at: every call and stream is answered
/// `unsupported`, a note goes nowhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoServices;

impl Services for NoServices {
    fn call(&self, service: &str, _: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, Error>> {
        Box::pin(std::future::ready(Err(Error::unsupported(service))))
    }

    fn open(&self, service: &str, _: Vec<u8>) -> BoxFuture<'static, Result<ByteStream, Error>> {
        Box::pin(std::future::ready(Err(Error::unsupported(service))))
    }

    fn notify(&self, _: &str, _: &[u8]) {}
}

/// Source of a [`ByteStream`].
pub trait PollBytes: Send {
    /// Next chunk; `None` at the end.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>>;
}

/// Chunks of bytes, read one after the other. Dropping it closes the stream.
pub struct ByteStream(Box<dyn PollBytes>);

impl ByteStream {
    /// Wraps a source.
    pub fn new(source: impl PollBytes + 'static) -> Self {
        Self(Box::new(source))
    }

    /// A stream of chunks that are already there.
    #[must_use]
    pub fn from_chunks(chunks: Vec<Vec<u8>>) -> Self {
        struct Chunks(std::vec::IntoIter<Vec<u8>>);
        impl PollBytes for Chunks {
            fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
                Poll::Ready(self.0.next().map(Ok))
            }
        }
        Self::new(Chunks(chunks.into_iter()))
    }

    /// Next chunk; `None` at the end.
    ///
    /// # Errors
    /// What the service reports; the stream is over then.
    pub async fn next(&mut self) -> Option<Result<Vec<u8>, Error>> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// As [`ByteStream::next`], for code that is polled itself.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        self.0.poll_next(cx)
    }

    /// Reads to the end.
    ///
    /// # Errors
    /// What the service reports, and when more than `limit` bytes arrive.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, Error> {
        let mut all = Vec::new();
        while let Some(chunk) = self.next().await {
            all.extend_from_slice(&chunk?);
            if all.len() > limit {
                return Err(Error::failed(format!("more than {limit} bytes arrived")));
            }
        }
        Ok(all)
    }
}

impl fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByteStream")
    }
}

/// A JSON header line followed by raw bytes.
#[must_use]
pub fn framed(header: &impl Serialize, body: &[u8]) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(header).unwrap_or_default();
    bytes.reserve_exact(body.len() + 1);
    bytes.push(b'\n');
    bytes.extend_from_slice(body);
    bytes
}

/// An HTTP request with its body behind it, as they cross to the host. A body is written into its place,
/// because it may be large.
#[derive(Debug, Clone)]
pub struct FramedRequest {
    request: HttpRequest,
    bytes: Vec<u8>,
    body_at: usize,
}

impl FramedRequest {
    /// Lets `write` append a body of about so many bytes.
    #[must_use]
    pub fn new(request: HttpRequest, size: usize, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        let header = framed(&request, &[]);
        let body_at = header.len();
        let mut bytes = Vec::with_capacity(body_at + size);
        bytes.extend_from_slice(&header);
        write(&mut bytes);
        Self {
            request,
            bytes,
            body_at,
        }
    }

    /// The request.
    #[must_use]
    pub fn request(&self) -> &HttpRequest {
        &self.request
    }

    /// Its body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.bytes.get(self.body_at..).unwrap_or_default()
    }
}

/// Splits what [`framed`] joined.
///
/// # Errors
/// When the first line is not the JSON expected.
pub fn unframed<T: DeserializeOwned>(payload: &[u8]) -> Result<(T, &[u8]), Error> {
    let end = payload
        .iter()
        .position(|b| *b == b'\n')
        .unwrap_or(payload.len());
    let header = serde_json::from_slice(&payload[..end])?;
    Ok((header, payload.get(end + 1..).unwrap_or_default()))
}

/// The services, with types.
#[derive(Clone)]
pub struct Host {
    services: Arc<dyn Services>,
    tasks: Arc<Tasks>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Host")
    }
}

impl Host {
    pub(crate) fn new(services: Arc<dyn Services>, tasks: Arc<Tasks>) -> Self {
        Self { services, tasks }
    }

    /// A host over other services, for tests. Blocking work runs in place.
    pub fn from_services(services: impl Services + 'static) -> Self {
        Self::from_shared(Arc::new(services))
    }

    /// As [`Host::from_services`], over services that others hold too.
    #[must_use]
    pub fn from_shared(services: Arc<dyn Services>) -> Self {
        // One for all: a host is made for every call of a handler, and their work waits for nobody.
        static IN_PLACE: LazyLock<Arc<Tasks>> = LazyLock::new(Arc::default);
        Self::new(services, Arc::clone(&IN_PLACE))
    }

    /// What the calls go to; the kernel passes it across the ABI.
    #[must_use]
    pub fn services(&self) -> &Arc<dyn Services> {
        &self.services
    }

    /// Calls a service by name with JSON both ways.
    ///
    /// # Errors
    /// What the service reports; `unsupported` for an unknown one; `invalid` for an answer of
    /// another shape.
    pub async fn call<R: DeserializeOwned>(
        &self,
        service: &str,
        payload: &impl Serialize,
    ) -> Result<R, Error> {
        let answer = self
            .call_bytes(service, serde_json::to_vec(payload)?)
            .await?;
        Ok(serde_json::from_slice(&answer)?)
    }

    /// Calls a service with bytes both ways.
    ///
    /// # Errors
    /// What the service reports.
    pub async fn call_bytes(&self, service: &str, payload: Vec<u8>) -> Result<Vec<u8>, Error> {
        self.services.call(service, payload).await
    }

    /// Opens a stream by name.
    ///
    /// # Errors
    /// What the service reports.
    pub async fn open(&self, service: &str, payload: Vec<u8>) -> Result<ByteStream, Error> {
        self.services.open(service, payload).await
    }

    /// Writes a line to the kernel's log.
    pub fn log(&self, level: LogLevel, message: &str) {
        let line = json!({"level": level, "message": message}).to_string();
        self.services.notify("log.write", line.as_bytes());
    }

    /// Sends an HTTP request (`http.stream`) and answers when the response headers are there.
    ///
    /// # Errors
    /// `network` when no response came, `timeout`, `invalid` for a bad URL or header.
    pub async fn http(&self, request: HttpRequest, body: &[u8]) -> Result<HttpResponse, Error> {
        let write = |bytes: &mut Vec<u8>| bytes.extend_from_slice(body);
        self.http_framed(FramedRequest::new(request, body.len(), write))
            .await
    }

    /// As [`Host::http`], for a body that is not copied.
    ///
    /// # Errors
    /// As [`Host::http`].
    pub async fn http_framed(&self, request: FramedRequest) -> Result<HttpResponse, Error> {
        let mut stream = self.open("http.stream", request.bytes).await?;
        let head = match stream.next().await {
            Some(head) => head?,
            None => {
                return Err(Error::new(
                    code::NETWORK,
                    "Connection error.: the response had no head",
                ));
            }
        };
        let HttpHead { status, headers } = serde_json::from_slice(&head)?;
        Ok(HttpResponse {
            status,
            headers,
            body: stream,
        })
    }

    /// Starts a process (`exec.stream`).
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn exec(&self, request: &ExecRequest) -> Result<Process, Error> {
        Ok(Process(
            self.open("exec.stream", serde_json::to_vec(request)?)
                .await?,
        ))
    }

    /// Facts about a path (`fs.stat`).
    ///
    /// # Errors
    /// `not_found`, `io`.
    pub async fn stat(&self, path: &str) -> Result<FileStat, Error> {
        self.call("fs.stat", &json!({"path": path})).await
    }

    /// Streams a file's bytes (`fs.read`), from `offset` on.
    ///
    /// # Errors
    /// `not_found`, `io`.
    pub async fn read(&self, path: &str, offset: u64) -> Result<ByteStream, Error> {
        self.open(
            "fs.read",
            json!({"path": path, "offset": offset})
                .to_string()
                .into_bytes(),
        )
        .await
    }

    /// Replaces a file's content (`fs.write`); makes parent directories if asked.
    ///
    /// # Errors
    /// `not_found`, `io`.
    pub async fn write(&self, path: &str, create_dirs: bool, content: &[u8]) -> Result<(), Error> {
        let header = json!({"path": path, "createDirs": create_dirs});
        self.call_bytes("fs.write", framed(&header, content))
            .await
            .map(drop)
    }

    /// The entries of a directory (`fs.list`), unsorted.
    ///
    /// # Errors
    /// `not_found`, `io`.
    pub async fn list(&self, path: &str) -> Result<Vec<DirEntry>, Error> {
        self.call("fs.list", &json!({"path": path})).await
    }

    /// Waits until nobody else holds this file, by its real path, and holds it until the guard is
    /// dropped (`fs.lock`). `edit`, `write` and every tool that changes a file take it.
    ///
    /// # Errors
    /// `io`.
    pub async fn lock_file(&self, path: &str) -> Result<FileLock, Error> {
        let mut stream = self
            .open("fs.lock", json!({"path": path}).to_string().into_bytes())
            .await?;
        match stream.next().await {
            Some(Ok(_)) => Ok(FileLock(stream)),
            Some(Err(error)) => Err(error),
            None => Err(Error::cancelled()),
        }
    }

    /// Waits (`time.sleep`).
    ///
    /// # Errors
    /// When the call is cancelled.
    pub async fn sleep_ms(&self, ms: u64) -> Result<(), Error> {
        self.call::<Value>("time.sleep", &json!({"ms": ms}))
            .await
            .map(drop)
    }

    /// A value of the settings, by dotted key (`config.get`); null when unset.
    ///
    /// # Errors
    /// What the service reports.
    pub async fn config(&self, key: &str) -> Result<Value, Error> {
        self.call("config.get", &json!({"key": key})).await
    }

    /// What this plugin has kept under a key (`state.get`), also in an earlier process; null when
    /// nothing.
    ///
    /// # Errors
    /// `unavailable` in a program that keeps nothing; when the file cannot be read.
    pub async fn state(&self, key: &str) -> Result<Value, Error> {
        self.call("state.get", &json!({"key": key})).await
    }

    /// Keeps a value under a key (`state.put`), for as long as the user's directory is there; null takes
    /// it away. It is in the file when this returns. A megabyte of JSON is the most for all keys.
    ///
    /// # Errors
    /// As [`Host::state`], and when there is too much.
    pub async fn keep_state(&self, key: &str, value: &Value) -> Result<(), Error> {
        let payload = json!({"key": key, "value": value});
        self.call::<Value>("state.put", &payload).await.map(drop)
    }

    /// Runs blocking work on the kernel's blocking pool and waits for it. If the waiting future is
    /// dropped the work still ends by itself; long loops should look at `cancelled()`.
    ///
    /// # Errors
    /// `panic` when the work panicked.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let slot = Arc::new(Mutex::new(None));
        let filled = Arc::clone(&slot);
        let id = self.tasks.put(Box::new(move || {
            let value = work();
            if let Ok(mut slot) = filled.lock() {
                *slot = Some(value);
            }
        }));
        let _unclaimed = Unclaimed {
            tasks: &self.tasks,
            id,
        };
        match self.call::<Value>("task.spawn", &json!({"id": id})).await {
            Ok(_) => {}
            Err(error) if error.is(code::UNSUPPORTED) => self.tasks.run(id)?,
            Err(error) => return Err(error),
        }
        let value = slot.lock().ok().and_then(|mut slot| slot.take());
        value.ok_or_else(|| Error::failed("the background task ended without a value"))
    }
}

/// Blocking work waiting for a thread of the kernel's pool.
#[derive(Default)]
pub(crate) struct Tasks {
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Box<dyn FnOnce() + Send>>>,
}

impl Tasks {
    fn put(&self, work: Box<dyn FnOnce() + Send>) -> u64 {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        if let Ok(mut waiting) = self.waiting.lock() {
            waiting.insert(id, work);
        }
        id
    }

    fn take(&self, id: u64) -> Option<Box<dyn FnOnce() + Send>> {
        self.waiting.lock().ok()?.remove(&id)
    }

    /// Runs one task on the calling thread.
    pub(crate) fn run(&self, id: u64) -> Result<(), Error> {
        match self.take(id) {
            Some(work) => guard::catch(work),
            None => Ok(()),
        }
    }
}

/// Forgets work whose caller went away before it began.
struct Unclaimed<'a> {
    tasks: &'a Tasks,
    id: u64,
}

impl Drop for Unclaimed<'_> {
    fn drop(&mut self) {
        drop(self.tasks.take(self.id));
    }
}

/// Severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Something failed.
    Error,
    /// Something is odd.
    Warn,
    /// Worth knowing.
    Info,
    /// For developers.
    Debug,
    /// For developers, much of it.
    Trace,
}

/// An HTTP request. The host adds the user agent and, if a credential is named, the secret.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpRequest {
    /// `GET`, `POST`, …
    pub method: String,
    /// Absolute URL.
    pub url: String,
    /// Name and value; a null value removes a header set by a weaker layer.
    pub headers: Vec<(String, Option<String>)>,
    /// Whose secret to add, and where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<HttpCredential>,
    /// Limit for the time to response headers, milliseconds; absent = the host's idle limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Attempts after the first, before the response began (`providers.md` §7.1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Longest delay a server may ask for between attempts, milliseconds; 0 = no cap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retry_delay_ms: Option<u64>,
}

/// The host puts `prefix + secret` into a header; the plugin never sees the secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpCredential {
    /// Provider whose credential it is.
    pub provider: String,
    /// Header name.
    pub header: String,
    /// E.g. `Bearer `.
    pub prefix: String,
}

#[derive(Deserialize)]
struct HttpHead {
    status: u16,
    headers: Vec<(String, String)>,
}

/// An HTTP response whose body is still coming.
#[derive(Debug)]
pub struct HttpResponse {
    /// Status code.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: ByteStream,
}

impl HttpResponse {
    /// First value of a header, by lower-case name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }
}

/// A process to run. Its own process group, stdin closed, stdout and stderr merged in arrival order.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExecRequest {
    /// Program and arguments. Empty with `shell_command` set: the configured shell.
    pub argv: Vec<String>,
    /// A command line for the configured shell, with the configured prefix line before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell_command: Option<String>,
    /// Working directory; empty = the session's.
    pub cwd: String,
    /// Added to the environment.
    pub env: Vec<(String, String)>,
    /// Adds `PLIANT_SESSION_ID` and its relatives (model's shell tools only).
    pub session_env: bool,
    /// Kill the group after this time, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// How a process ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExecExit {
    /// Exit code; 128 + n for death by signal n; absent when killed by time-out before it exited.
    pub code: Option<i32>,
    /// The time limit passed and the group was killed.
    pub timed_out: bool,
    /// The shell had exited earlier, but descendants kept the output open.
    pub background: bool,
    /// Wall time, milliseconds.
    pub wall_ms: u64,
}

/// What a process does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessEvent {
    /// Raw output.
    Output(Vec<u8>),
    /// The last event.
    Exit(ExecExit),
}

/// A running process. Dropping it kills the whole group.
#[derive(Debug)]
pub struct Process(ByteStream);

impl Process {
    /// Next piece of output, or the exit. The first byte of a chunk tells which: `o` or `x`.
    ///
    /// # Errors
    /// When the host lost the process.
    pub async fn next(&mut self) -> Result<ProcessEvent, Error> {
        match self.0.next().await {
            Some(Ok(mut chunk)) if chunk.first() == Some(&b'o') => {
                chunk.remove(0);
                Ok(ProcessEvent::Output(chunk))
            }
            Some(Ok(chunk)) if chunk.first() == Some(&b'x') => {
                Ok(ProcessEvent::Exit(serde_json::from_slice(&chunk[1..])?))
            }
            Some(Ok(_)) | None => Err(Error::failed("the process ended without a status")),
            Some(Err(error)) => Err(error),
        }
    }
}

/// Facts about a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileStat {
    /// What it is, links followed.
    pub kind: FileKind,
    /// Bytes.
    pub size: u64,
    /// Without links and dots.
    pub real_path: String,
}

/// Kind of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Anything else.
    Other,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirEntry {
    /// Name without the directory.
    pub name: String,
    /// What it is, links followed; absent when it cannot be inspected.
    pub kind: Option<FileKind>,
}

/// Holds a file for one writer until dropped.
#[derive(Debug)]
#[must_use = "the file is released when the lock is dropped"]
pub struct FileLock(#[expect(dead_code, reason = "held for its drop")] ByteStream);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_is_written_behind_its_request_crosses_as_one_that_is_joined_with_it() {
        let request = HttpRequest {
            url: "http://h.test/\n".to_owned(),
            ..HttpRequest::default()
        };
        let body = b"{\"n\": 1}\n\n";
        let write = |bytes: &mut Vec<u8>| bytes.extend_from_slice(body);
        let written = FramedRequest::new(request.clone(), 4, write);
        assert_eq!(written.body(), body);
        assert_eq!(written.bytes, framed(&request, body));
        let (crossed, rest) = unframed::<HttpRequest>(&written.bytes).unwrap();
        assert_eq!((crossed.url, rest), (request.url, &body[..]));
    }
}

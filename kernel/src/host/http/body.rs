//! A response as the stream that callers read: the head as JSON, then the body as it arrives, each
//! wait limited.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::PollBytes;
use reqwest::Response;
use serde_json::json;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{deepest, timed_out};

/// Body chunks that are already there are joined up to this size.
const CHUNK_BYTES: usize = 64 * 1024;

/// A response as a stream: its head, then its body.
pub(super) struct Body {
    head: Option<Vec<u8>>,
    /// `None` when the body is over.
    chunks: Option<Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>>,
    /// Met with data in hand; told after it.
    failure: Option<Error>,
    idle: Option<Idle>,
    target: String,
}

/// A time limit for each wait.
struct Idle {
    limit: Duration,
    timer: Pin<Box<Sleep>>,
    waiting: bool,
}

impl Body {
    pub(super) fn new(response: Response, idle: Option<Duration>, target: String) -> Self {
        Self {
            head: Some(head_of(&response)),
            chunks: Some(Box::pin(response.bytes_stream())),
            failure: None,
            idle: idle.map(|limit| Idle {
                limit,
                timer: Box::pin(sleep_until(Instant::now())),
                waiting: false,
            }),
            target,
        }
    }

    /// What is there now, joined, so that a burst of small chunks crosses to a plugin at once.
    fn poll_available(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        let mut data = Vec::new();
        while let Some(chunks) = &mut self.chunks
            && data.len() < CHUNK_BYTES
        {
            match chunks.as_mut().poll_next(cx) {
                Poll::Ready(Some(Ok(bytes))) if data.is_empty() => data = bytes.into(),
                Poll::Ready(Some(Ok(bytes))) => data.extend_from_slice(&bytes),
                Poll::Ready(Some(Err(cause))) => {
                    self.chunks = None;
                    let lost = format!("Connection lost: {} ({})", deepest(cause), self.target);
                    self.failure = Some(Error::new(code::NETWORK, lost));
                }
                Poll::Ready(None) => self.chunks = None,
                Poll::Pending if data.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        Poll::Ready(match data.is_empty() {
            true => self.failure.take().map(Err),
            false => Some(Ok(data)),
        })
    }
}

impl PollBytes for Body {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        if let Some(head) = self.head.take() {
            return Poll::Ready(Some(Ok(head)));
        }
        let available = self.poll_available(cx);
        let Some(idle) = &mut self.idle else {
            return available;
        };
        if available.is_ready() {
            idle.waiting = false;
            return available;
        }
        if idle.is_over(cx) {
            self.chunks = None;
            let ms = idle.limit.as_millis();
            let what = format!(
                "{} sent nothing for {ms} ms (httpIdleTimeoutMs).",
                self.target
            );
            return Poll::Ready(Some(Err(timed_out(&what))));
        }
        Poll::Pending
    }
}

impl Idle {
    /// Starts the timer at the first look of a wait, so that a slow reader is not held against the
    /// server.
    fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.waiting {
            self.timer.as_mut().reset(Instant::now() + self.limit);
            self.waiting = true;
        }
        self.timer.as_mut().poll(cx).is_ready()
    }
}

fn head_of(response: &Response) -> Vec<u8> {
    let headers: Vec<(&str, String)> = response
        .headers()
        .iter()
        .map(|(name, value)| {
            (
                name.as_str(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect();
    let head = json!({"status": response.status().as_u16(), "headers": headers});
    head.to_string().into_bytes()
}

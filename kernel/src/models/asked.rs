//! How long a service that refuses a request asks to be left alone (`providers.md` §7.1). Wires do not
//! tell of it, so it is heard where their responses pass.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use pliant_sdk::Error;
use pliant_sdk::host::{ByteStream, PollBytes};
use pliant_sdk::message::{AssistantMessage, StopReason};
use serde::Deserialize;

use crate::host::{MAX_RETRY_DELAY_MS, asked_delay};

/// What the last response to a request asked for.
#[derive(Debug, Clone, Default)]
pub struct AskedDelay(Arc<Mutex<Option<Duration>>>);

impl AskedDelay {
    /// The delay, if one was asked for.
    #[must_use]
    pub fn get(&self) -> Option<Duration> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another request is made.
    pub(super) fn forget(&self) {
        self.set(None);
    }

    fn set(&self, delay: Option<Duration>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = delay;
    }

    /// Hears the head of a response and gives it back in front of the rest.
    pub(super) async fn heard(&self, mut response: ByteStream) -> ByteStream {
        let head = response.next().await;
        self.set(match &head {
            Some(Ok(head)) => asked(head),
            _ => None,
        });
        ByteStream::new(Whole {
            head: Some(head),
            rest: response,
        })
    }

    /// Says in an answer that failed that the service asks for more than `most_ms`; nobody waits for that
    /// long. Zero is no limit.
    pub(super) fn told_in(&self, answer: &mut AssistantMessage, most_ms: Option<u64>) {
        if answer.stop_reason == StopReason::Error
            && let Some(text) = &mut answer.error_message
        {
            self.told_in_text(text, most_ms);
        }
    }

    /// The same in the text of a failure.
    pub(super) fn told_in_text(&self, text: &mut String, most_ms: Option<u64>) {
        let most = most_ms.unwrap_or(MAX_RETRY_DELAY_MS);
        if let Some(delay) = self.get()
            && most > 0
            && delay > Duration::from_millis(most)
        {
            let (asked, most) = (delay.as_secs_f64().ceil(), most.div_ceil(1000));
            *text = format!("Server requested {asked}s retry delay (max: {most}s). {text}");
        }
    }
}

/// What the head of a refusal asks for.
fn asked(head: &[u8]) -> Option<Duration> {
    #[derive(Deserialize)]
    struct Head {
        status: u16,
        headers: Vec<(String, String)>,
    }
    let head: Head = serde_json::from_slice(head).ok()?;
    if head.status < 400 {
        return None;
    }
    let header = |name: &str| {
        let mut headers = head.headers.iter();
        let found = headers.find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    };
    asked_delay(header, SystemTime::now())
}

/// A stream whose first item has been looked at.
struct Whole {
    head: Option<Option<Result<Vec<u8>, Error>>>,
    rest: ByteStream,
}

impl PollBytes for Whole {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        match self.head.take() {
            Some(head) => Poll::Ready(head),
            None => self.rest.poll_next(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(head: &str, most_ms: Option<u64>) -> String {
        let delay = AskedDelay::default();
        delay.set(asked(head.as_bytes()));
        let mut answer = AssistantMessage {
            stop_reason: StopReason::Error,
            error_message: Some("429: slow down".to_owned()),
            ..AssistantMessage::default()
        };
        delay.told_in(&mut answer, most_ms);
        answer.error_message.unwrap_or_default()
    }

    #[test]
    fn a_delay_that_nobody_waits_for_is_told_in_the_failure() {
        // providers §7.1
        let head = r#"{"status": 429, "headers": [["Retry-After", "89.5"]]}"#;
        let long = "Server requested 90s retry delay (max: 60s). 429: slow down";
        assert_eq!(told(head, None), long);
        assert_eq!(told(head, Some(90_000)), "429: slow down");
        assert_eq!(told(head, Some(0)), "429: slow down");
        let fine = r#"{"status": 200, "headers": [["retry-after", "90"]]}"#;
        for other in [fine, r#"{"status": 503, "headers": []}"#, "no head"] {
            assert_eq!(told(other, None), "429: slow down");
        }
    }
}

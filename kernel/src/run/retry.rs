//! Which failed answers are asked for again, and after how long (`kernel.md` §6.3, `providers.md`
//! §7.2). A failure is known by its text: it is what sessions store and all wires share.

use std::sync::OnceLock;
use std::time::Duration;

use pliant_sdk::message::{AssistantMessage, StopReason};
use regex::{RegexSet, RegexSetBuilder};

/// The settings `retry.*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Whether failed answers are asked for again.
    pub enabled: bool,
    /// Attempts after the first.
    pub max_retries: u32,
    /// Before the first of them; doubled for each further one.
    pub base_delay_ms: u64,
    /// The longest delay.
    pub max_delay_ms: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            max_retries: 3,
            base_delay_ms: 2_000,
            max_delay_ms: 60_000,
        }
    }
}

impl RetryPolicy {
    /// How long to wait before the attempt of that number, counted from 1; at least as long as the service
    /// asks for, which is not too long: such a failure is not retried.
    #[must_use]
    pub fn delay(&self, attempt: u32, asked: Option<Duration>) -> Duration {
        let factor = 1_u64
            .checked_shl(attempt.saturating_sub(1))
            .unwrap_or(u64::MAX);
        let delay = self.base_delay_ms.saturating_mul(factor);
        let delay = Duration::from_millis(delay.min(self.max_delay_ms));
        delay.max(asked.unwrap_or_default())
    }

    /// Whether an attempt follows so many earlier ones (R7).
    #[must_use]
    pub fn allows(&self, attempts: u32, answer: &AssistantMessage) -> bool {
        self.enabled && attempts < self.max_retries && is_retryable(answer)
    }
}

/// A failure that may not happen again (R6).
#[must_use]
pub fn is_retryable(answer: &AssistantMessage) -> bool {
    let text = answer.error_message.as_deref().unwrap_or_default();
    answer.stop_reason == StopReason::Error
        && !text.is_empty()
        && !is_overflow(text)
        && !matches(&TOO_LONG, text)
        && !matches(&EXHAUSTED, text)
        && matches(&TRANSIENT, text)
}

/// The request was larger than the model takes (R20 a).
#[must_use]
pub fn is_overflow(text: &str) -> bool {
    matches(&OVERFLOW, text) && !matches(&THROTTLED, text)
}

/// Patterns as data, compiled when a failure is first looked at.
pub(super) struct Patterns {
    sources: &'static [&'static str],
    compiled: OnceLock<RegexSet>,
}

impl Patterns {
    pub(super) const fn of(sources: &'static [&'static str]) -> Self {
        Self {
            sources,
            compiled: OnceLock::new(),
        }
    }

    /// All of them are patterns.
    #[cfg(test)]
    pub(super) fn check(&self) {
        matches(self, "");
        assert_eq!(self.compiled.get().unwrap().len(), self.sources.len());
    }
}

pub(super) fn matches(patterns: &Patterns, text: &str) -> bool {
    let compiled = patterns.compiled.get_or_init(|| {
        RegexSetBuilder::new(patterns.sources)
            .case_insensitive(true)
            .build()
            // A test compiles them all.
            .unwrap_or_else(|_| RegexSet::empty())
    });
    compiled.is_match(text)
}

/// Wordings of plans, quotas and bills: the same request would be refused again.
pub(super) static EXHAUSTED: Patterns = Patterns::of(&[
    "GoUsageLimitError|FreeUsageLimitError|Monthly usage limit reached",
    "available balance|insufficient_quota|out of budget|quota exceeded|billing",
    "subscription_sharing_(usage|workplace_individual_usage)_limit_exceeded",
    r#""code"\s*:\s*"?1308\b"#,
]);

/// The service wants to be left alone for longer than anybody waits (`providers.md` §7.1).
pub(super) static TOO_LONG: Patterns =
    Patterns::of(&[r"server requested [\d.]+s retry delay \(max:"]);

/// Wordings of load, gateways, networks and cut streams.
pub(super) static TRANSIENT: Patterns = Patterns::of(&[
    // Load and status.
    "overloaded|server_busy|servers are currently busy|currently experiencing high demand",
    "model is at capacity|rate.?limit|too many requests|throttl",
    r"(^|[^0-9A-Za-z_.])(429|500|502|503|504|520|524|529)($|[^0-9A-Za-z_.]|\.($|\s))",
    "service (is )?(temporarily )?unavailable|server.?error|internal.?error|ResourceExhausted",
    "server had an error",
    // Gateways.
    "provider returned (an )?error|exceeded request buffer limit while retrying upstream",
    "unable to forward upstream|upstream request failed|upstream_stream_read_error|upstream connect",
    "stream was interrupted|http/2 stream failed|cut short after the reply had begun",
    "stream disconnected before completion",
    // Network.
    "network error|connection (error|refused|lost|closed)|other side closed|fetch failed",
    r"request to .* failed, reason:|getaddrinfo|ENOTFOUND|EAI_AGAIN",
    r"\b(ECONNRESET|ECONNABORTED|ECONNREFUSED|ETIMEDOUT|EPIPE)\b",
    "connection reset by peer|reset before headers|socket hang up|socket connection was closed",
    "timed out|timeout|terminated|websocket (closed|error)|websocket connection limit reached",
    "http2 request did not get a response|pending stream has been canceled",
    // Streams that did not end as they should.
    "ended without|ended before message_stop|ended before a terminal response event",
    // Advice.
    "retry delay|you can retry your request|try your request again|please retry your request",
    "subscription_sharing_(usage|user)_unavailable",
]);

/// Wordings of requests that are too large (`providers.md` §7.4).
static OVERFLOW: Patterns = Patterns::of(&[
    "(prompt|input|request|context) (is )?too (long|large)|prompt exceeds max length",
    "exceeds? (the )?(model'?s? )?(maximum )?(context|available context)",
    "maximum (context|prompt) length|context (window|length|size) (exceeded|is)|input token limit",
    "exceeds (the )?maximum allowed input length|input token count.*exceeds the maximum",
    "longer than the model'?s context length|greater than the context length",
    r"exceeds the limit of \d|context window exceeds limit|exceeded model token limit",
    "context_length_exceeded|model_context_window_exceeded|request_too_large",
    "token limit exceeded|too many (input )?tokens|reduce the length of",
    "range of input length should be",
    r"^\s*413($|[\s:])|API error \(413\):",
]);

/// What sounds like [`OVERFLOW`] and is load.
static THROTTLED: Patterns =
    Patterns::of(&["rate.?limit|too many requests|throttl|service ?unavailable"]);

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(text: &str) -> AssistantMessage {
        AssistantMessage {
            stop_reason: StopReason::Error,
            error_message: Some(text.to_owned()),
            ..AssistantMessage::default()
        }
    }

    #[test]
    fn every_pattern_is_a_pattern() {
        let all = [&EXHAUSTED, &TOO_LONG, &TRANSIENT, &OVERFLOW, &THROTTLED];
        all.iter().for_each(|patterns| patterns.check());
    }

    #[test]
    fn load_networks_and_cut_streams_are_retried() {
        // R6, providers 7.2, P07
        for text in [
            "529: overloaded_error",
            "503 status code (no body)",
            "429: {\"message\":\"slow down\"}",
            "Rate limit reached",
            "rate_limit_error",
            "500 Internal Server Error",
            "Connection error.: connection refused",
            "fetch failed: dns",
            "Request timed out.",
            "read ECONNRESET",
            "Stream ended without finish_reason",
            "Provider returned error",
            "Your request can be sent again after a retry delay",
            "The server had an error processing your request",
            "Throttling error: Too many tokens, please wait before trying again.",
            "got 502.",
        ] {
            assert!(is_retryable(&failed(text)), "{text}");
        }
    }

    #[test]
    fn bills_mistakes_and_sizes_are_not() {
        for text in [
            "",
            "429: You exceeded your current quota: insufficient_quota",
            "402: billing",
            "Server requested 90s retry delay (max: 60s). 429: slow down",
            "429 {\"code\": \"1308\"}",
            "401: the key is wrong",
            "400: max_tokens must be at most 4290",
            "model gpt-500x not found",
            "port 15002 is closed",
            "400: This model's maximum context length is 8192 tokens",
            "413 {\"error\":\"request_too_large\"}",
            "prompt is too long: 210000 tokens > 200000 maximum",
        ] {
            assert!(!is_retryable(&failed(text)), "{text}");
        }
        let mut answer = failed("503");
        answer.stop_reason = StopReason::Aborted;
        assert!(!is_retryable(&answer));
    }

    #[test]
    fn what_services_say_of_requests_that_are_too_large_is_known() {
        // R20, providers 7.4
        for text in [
            "400: prompt is too long: 210000 tokens > 200000 maximum",
            "prompt too long; exceeded max context length",
            "prompt exceeds max length",
            "413 {\"error\":\"request_too_large\"}",
            "413 status code (no body)",
            "Mistral API error (413): too much",
            "input is too long for requested model",
            "Your input exceeds the context window of this model",
            "context length exceeded",
            "exceeds the model's maximum context length of 8192 tokens",
            "context window exceeded",
            "The input token count (1200000) exceeds the maximum number of tokens allowed",
            "This model's maximum prompt length is 131072",
            "Please reduce the length of the messages",
            "maximum context length is 8192 tokens",
            "exceeds the maximum allowed input length of 8192 tokens",
            "the input (9000 tokens) is longer than the model's context length (8192 tokens)",
            "prompt token count of 9000 exceeds the limit of 8192",
            "the request exceeds the available context size",
            "the prompt is greater than the context length",
            "context window exceeds limit",
            "exceeded model token limit",
            "too large for model with 8192 maximum context length",
            "prompt has 9000 tokens, but the configured context size is 8192 tokens",
            "model_context_window_exceeded",
            "Range of input length should be [1, 8192]",
            "too many tokens",
        ] {
            assert!(is_overflow(text), "{text}");
        }
        for text in [
            "",
            "Throttling error: Too many tokens, please wait before trying again.",
            "Service unavailable: prompt is too long",
            "429: rate limit: too many tokens per minute",
            "too many requests, input token limit",
            "4130: something else",
            "the limit of 5 calls exceeds nothing",
        ] {
            assert!(!is_overflow(text), "{text}");
        }
    }

    #[test]
    fn delays_double_up_to_a_limit_and_attempts_are_counted() {
        // R5, R7
        let policy = RetryPolicy::default();
        let seconds = |attempt| policy.delay(attempt, None).as_secs();
        assert_eq!([1, 2, 3, 6, 70].map(seconds), [2, 4, 8, 60, 60]);
        let asked = |seconds| {
            policy
                .delay(2, Some(Duration::from_secs(seconds)))
                .as_secs()
        };
        assert_eq!([0, 3, 9].map(asked), [4, 4, 9]);
        let answer = failed("503");
        assert!(policy.allows(2, &answer) && !policy.allows(3, &answer));
        let off = RetryPolicy {
            enabled: false,
            ..policy
        };
        assert!(!off.allows(0, &answer));
    }

    #[test]
    fn the_failures_that_tests_of_the_whole_program_use_are_of_their_kind() {
        // R6, R20
        for (service, text) in pliant_tests::failures::OVERFLOWS {
            let text = format!("400: {text}");
            assert!(
                is_overflow(&text) && !is_retryable(&failed(&text)),
                "{service}: {text}"
            );
        }
    }
}

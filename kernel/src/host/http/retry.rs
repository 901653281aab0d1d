//! Attempts after the first, before a response began (`providers.md` §7.1). Nothing is sent again once
//! a body has been handed out.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, SystemTime};

use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::HttpRequest;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Response, StatusCode};
use serde_json::json;
use tokio::time::{sleep, timeout};

/// Default for [`HttpRequest::max_retry_delay_ms`].
pub(crate) const MAX_RETRY_DELAY_MS: u64 = 60_000;

/// Characters of an error body that are quoted.
const QUOTED_CHARS: usize = 4000;

/// Runs attempts until one is final (`providers.md` §7.1).
pub(super) async fn with_retries<F>(
    request: &HttpRequest,
    send: impl Fn() -> F,
) -> Result<Response, Error>
where
    F: Future<Output = Result<Response, Error>>,
{
    let cap = request.max_retry_delay_ms.unwrap_or(MAX_RETRY_DELAY_MS);
    let mut attempt = 0;
    loop {
        let outcome = send().await;
        if attempt >= request.max_retries.unwrap_or(0) || !is_retryable(&outcome) {
            return outcome;
        }
        let asked = outcome
            .as_ref()
            .ok()
            .and_then(|r| asked_by(r.headers(), SystemTime::now()));
        match (asked, outcome) {
            (Some(delay), Ok(response)) if cap > 0 && delay > Duration::from_millis(cap) => {
                return Err(too_long(delay, cap, response).await);
            }
            // The response is dropped before the wait, its connection with it.
            (asked, _) => sleep(asked.unwrap_or_else(|| backoff(attempt, random_unit()))).await,
        }
        attempt += 1;
    }
}

fn is_retryable(outcome: &Result<Response, Error>) -> bool {
    match outcome {
        Ok(response) => is_retryable_status(response.status(), response.headers()),
        Err(error) => error.is(code::NETWORK) || error.is(code::TIMEOUT),
    }
}

fn is_retryable_status(status: StatusCode, headers: &HeaderMap) -> bool {
    match headers.get("x-should-retry").map(HeaderValue::as_bytes) {
        Some(b"true") => true,
        Some(b"false") => false,
        _ => matches!(status.as_u16(), 408 | 409 | 429 | 500..),
    }
}

fn asked_by(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    asked_delay(|name| headers.get(name)?.to_str().ok(), now)
}

/// The delay a server asks for by the headers of its response. A date that has passed asks for nothing.
pub(crate) fn asked_delay<'a>(
    header: impl Fn(&str) -> Option<&'a str>,
    now: SystemTime,
) -> Option<Duration> {
    let text = |name| header(name).map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok();
    if let Some(ms) = text("retry-after-ms").and_then(number) {
        return Duration::try_from_secs_f64(ms / 1000.0).ok();
    }
    let after = text("retry-after")?;
    match number(after) {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        None => httpdate::parse_http_date(after)
            .ok()?
            .duration_since(now)
            .ok(),
    }
}

/// Half a second, doubled per attempt up to 8 s, of which a random part between 3/4 and all.
fn backoff(attempt: u32, random: f64) -> Duration {
    let longest = 0.5 * 2_f64.powi(attempt.min(4).cast_signed());
    Duration::from_secs_f64(longest * (0.75 + 0.25 * random))
}

/// Between 0 and 1; good enough to keep clients from knocking in step.
fn random_unit() -> f64 {
    let bits = RandomState::new().hash_one(0_u8);
    f64::from((bits >> 32) as u32) / f64::from(u32::MAX)
}

async fn too_long(delay: Duration, cap_ms: u64, response: Response) -> Error {
    let status = response.status().as_u16();
    let body = timeout(Duration::from_secs(5), response.text()).await;
    let body = body
        .unwrap_or_else(|_| Ok(String::new()))
        .unwrap_or_default();
    let quoted: String = body.chars().take(QUOTED_CHARS).collect();
    let (asked, cap) = (delay.as_secs_f64().ceil(), cap_ms.div_ceil(1000));
    Error::failed(format!(
        "Server requested {asked}s retry delay (max: {cap}s). {status} {quoted}"
    ))
    .with_details(json!({"status": status}))
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::time::UNIX_EPOCH;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (
                reqwest::header::HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        list.iter().map(pair).collect()
    }

    #[test]
    fn the_server_decides_whether_to_try_again_and_else_the_status() {
        for (status, header, retryable) in [
            (200, None, false),
            (400, None, false),
            (408, None, true),
            (409, None, true),
            (429, None, true),
            (500, None, true),
            (529, None, true),
            (400, Some("true"), true),
            (503, Some("false"), false),
            (503, Some("maybe"), true),
        ] {
            let headers: HeaderMap = header
                .map(|value| headers(&[("x-should-retry", value)]))
                .unwrap_or_default();
            let status = StatusCode::from_u16(status).expect("a status");
            assert_eq!(
                is_retryable_status(status, &headers),
                retryable,
                "{status} {header:?}"
            );
        }
    }

    #[test]
    fn the_server_asks_for_a_delay_in_milliseconds_seconds_or_as_a_date() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (list, ms) in [
            (
                vec![("retry-after-ms", "250.5"), ("retry-after", "9")],
                Some(250),
            ),
            (vec![("retry-after", "1.5")], Some(1500)),
            (vec![("retry-after", " 0 ")], Some(0)),
            (
                vec![("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT")],
                Some(3000),
            ),
            (vec![("retry-after", "Sun, 06 Nov 1994 08:49:30 GMT")], None),
            (
                vec![("retry-after-ms", "soon"), ("retry-after", "2")],
                Some(2000),
            ),
            (vec![("retry-after", "-1")], None),
            (vec![("retry-after", "NaN")], None),
            (vec![("retry-after", "1e300")], None),
            (vec![], None),
        ] {
            let delay = asked_by(&headers(&list), now).map(|delay| delay.as_millis());
            assert_eq!(delay, ms, "{list:?}");
        }
    }

    #[test]
    fn the_own_delay_doubles_up_to_eight_seconds() {
        let delays = [0, 1, 2, 3, 4, 5, 99].map(|attempt| backoff(attempt, 1.0).as_millis());
        assert_eq!(delays, [500, 1000, 2000, 4000, 8000, 8000, 8000]);
        assert_eq!(backoff(1, 0.0).as_millis(), 750);
        assert!((0.0..=1.0).contains(&random_unit()));
    }
}

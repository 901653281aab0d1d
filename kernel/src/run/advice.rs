//! What a user can do about an answer that failed. A failure is known by its text, as for `retry`: it is
//! what all wires share.

use pliant_sdk::message::{AssistantMessage, StopReason};

use super::retry::{EXHAUSTED, Patterns, TOO_LONG, TRANSIENT, is_overflow, matches};

/// The next step, as a sentence; `None` where there is none to know.
#[must_use]
pub fn advice(answer: &AssistantMessage) -> Option<&'static str> {
    let text = answer.error_message.as_deref().unwrap_or_default();
    (answer.stop_reason == StopReason::Error)
        .then(|| after(text))
        .flatten()
}

fn after(text: &str) -> Option<&'static str> {
    if is_overflow(text) {
        return Some(
            "Start a new session, take a model with a larger context window, or send less at once.",
        );
    }
    let known = ADVICE.iter().find(|(failure, _)| matches(failure, text));
    known.map(|(_, advice)| *advice)
}

/// A text that another sentence follows.
pub(super) fn ended(text: &str) -> String {
    let text = text.trim_end();
    let mark = if text.ends_with(['.', '!', '?']) {
        ""
    } else {
        "."
    };
    format!("{text}{mark}")
}

/// The first that fits.
static ADVICE: [(&Patterns, &str); 6] = [
    (
        &TOO_LONG,
        "Ask again when that time is over; the setting retry.provider.maxRetryDelayMs lets pliant wait longer.",
    ),
    (
        &EXHAUSTED,
        "See what the account at the service has left, or choose another model.",
    ),
    (
        &REFUSED,
        "Check the key of the provider, and that it may use this model.",
    ),
    (
        &UNKNOWN,
        "`pliant --list-models` shows the models there are; their names and addresses may be corrected in models.json.",
    ),
    (
        &UNREACHED,
        "Check the network, the proxy, and the address of the provider.",
    ),
    (
        &TRANSIENT,
        "Ask again later; the setting retry.maxRetries allows more attempts.",
    ),
];

/// Wordings of keys that do not fit.
static REFUSED: Patterns = Patterns::of(&[
    r"(^|[^0-9A-Za-z_.])(401|403)($|[^0-9A-Za-z_.])",
    "unauthori[sz]ed|forbidden|permission.?denied|authentication.?(error|failed)",
    "(invalid|incorrect|missing|expired|no) (x-)?api.?key",
]);

/// Wordings of models and addresses that are not there.
static UNKNOWN: Patterns = Patterns::of(&[
    r"(^|[^0-9A-Za-z_.])404($|[^0-9A-Za-z_.])",
    "model.{0,60}(not found|does not exist|is not (available|supported))",
    "no such (model|deployment)|model_not_found|not_found_error",
]);

/// Wordings of services that were not reached.
static UNREACHED: Patterns = Patterns::of(&[
    "connection (error|refused)|getaddrinfo|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|fetch failed",
    "network error|network is unreachable|no route to host",
]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_done_about_a_failure_is_said_behind_it() {
        for (text, words) in [
            ("401: the key is wrong", "Check the key"),
            ("403 Forbidden", "Check the key"),
            ("Incorrect API key provided: sk-…", "Check the key"),
            ("404: The model `x` does not exist", "--list-models"),
            ("429: insufficient_quota", "the account"),
            ("Connection error.: connection refused", "the network"),
            ("529: overloaded", "retry.maxRetries"),
            (
                "400: prompt is too long: 9 tokens > 8 maximum",
                "new session",
            ),
            (
                "Server requested 90s retry delay (max: 60s). 429: slow down",
                "retry.provider.maxRetryDelayMs",
            ),
        ] {
            let said = after(text);
            assert!(
                said.is_some_and(|said| said.contains(words)),
                "{text}: {said:?}"
            );
        }
        for text in [
            "",
            "400: max_tokens must be at most 4010",
            "port 4040 is closed",
        ] {
            assert_eq!(after(text), None, "{text}");
        }
    }

    #[test]
    fn a_text_is_ended_once() {
        assert_eq!([ended("a"), ended("a. "), ended("a?")], ["a.", "a.", "a?"]);
    }

    #[test]
    fn every_pattern_is_a_pattern() {
        let patterns = ADVICE.iter().map(|(patterns, _)| patterns);
        patterns.for_each(|patterns| patterns.check());
    }

    #[test]
    fn an_answer_that_has_not_failed_needs_no_advice() {
        let answer = AssistantMessage {
            error_message: Some("401".to_owned()),
            ..AssistantMessage::default()
        };
        assert_eq!(advice(&answer), None);
    }
}

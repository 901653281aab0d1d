//! Failures in the words of the services that say them, as replies: which pass when the model is asked
//! again, which stay, and which mean that the request was too large (`providers.md` §7.2–7.4).

use serde_json::json;

use crate::reply::{self, Reply};

/// Failures after which asking again helps, by name.
pub fn passing() -> Vec<(&'static str, Reply)> {
    let overloaded =
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let limit = r#"{"error":{"message":"Rate limit reached for requests","type":"requests","code":"rate_limit_exceeded"}}"#;
    let in_stream =
        json!({"error": {"message": "The server had an error", "type": "server_error"}});
    vec![
        (
            "overloaded",
            reply::response(529, "application/json", overloaded),
        ),
        (
            "rate limit",
            reply::response(429, "application/json", limit).header("retry-after", "0"),
        ),
        ("server error", reply::error(500, "Internal server error")),
        (
            "gateway",
            reply::response(502, "text/html", "<html><h1>502 Bad Gateway</h1></html>"),
        ),
        ("unavailable", reply::response(503, "text/plain", "")),
        ("timeout", reply::error(504, "upstream request timeout")),
        (
            "error in the stream",
            reply::raw(&format!("data: {in_stream}\n\n")),
        ),
        ("hang-up", reply::hang_up()),
        ("nothing in the stream", reply::raw("")),
        (
            "cut between events",
            reply::text("half of an answer").cut_after(3),
        ),
        (
            "cut within an event",
            reply::text("half of an answer").cut_within(2, 30),
        ),
        (
            "cut within a call",
            reply::tool_call("bash", json!({"command": "echo never"})).cut_after(3),
        ),
        (
            "no finish reason",
            reply::text("half of an answer").without_finish(),
        ),
    ]
}

/// Failures that would come again, by name, each with a word of what the user is told.
pub fn lasting() -> Vec<(&'static str, Reply, &'static str)> {
    let key = r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#;
    let quota =
        r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#;
    vec![
        (
            "key",
            reply::response(401, "application/json", key),
            "Incorrect API key",
        ),
        (
            "bill",
            reply::error(402, "billing: add credits"),
            "add credits",
        ),
        (
            "region",
            reply::response(403, "text/html", "<html>Forbidden here</html>"),
            "Forbidden here",
        ),
        (
            "model",
            reply::error(404, "model not found"),
            "model not found",
        ),
        (
            "mistake",
            reply::error(400, "max_tokens must be positive"),
            "must be positive",
        ),
        (
            "quota",
            reply::response(429, "application/json", quota),
            "insufficient_quota",
        ),
    ]
}

/// What services say of a request that is too large, by service.
pub fn overflows() -> Vec<(&'static str, Reply)> {
    let of_message =
        |(service, message): (&'static str, &str)| (service, reply::error(400, message));
    let anthropic = r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#;
    let openai = r#"{"error":{"message":"Too big.","type":"invalid_request_error","code":"context_length_exceeded"}}"#;
    OVERFLOWS
        .map(of_message)
        .into_iter()
        .chain([
            (
                "Anthropic, size",
                reply::response(413, "application/json", anthropic),
            ),
            (
                "OpenAI, code",
                reply::response(400, "application/json", openai),
            ),
            (
                "a proxy",
                reply::response(413, "text/html", "<html>Payload Too Large</html>"),
            ),
        ])
        .collect()
}

/// Wordings of `providers.md` §7.4.
pub const OVERFLOWS: [(&str, &str); 21] = [
    (
        "Anthropic",
        "prompt is too long: 213462 tokens > 200000 maximum",
    ),
    (
        "Ollama",
        "prompt too long; exceeded max context length by 4 tokens",
    ),
    ("z.ai", "Prompt exceeds max length"),
    ("Bedrock", "Input is too long for requested model."),
    (
        "OpenAI",
        "Your input exceeds the context window of this model.",
    ),
    (
        "LiteLLM",
        "The request exceeds the model's maximum context length of 131072 tokens.",
    ),
    ("LiteLLM, other", "Context window exceeded for this model."),
    (
        "Google",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    ),
    (
        "xAI",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    ),
    (
        "Groq",
        "Please reduce the length of the messages or completion.",
    ),
    (
        "OpenRouter",
        "This endpoint's maximum context length is 163840 tokens. However, you requested more.",
    ),
    (
        "Poolside",
        "The prompt exceeds the maximum allowed input length of 131072 tokens.",
    ),
    (
        "Together",
        "The input (516368 tokens) is longer than the model's context length (262144 tokens).",
    ),
    (
        "Copilot",
        "prompt token count of 133000 exceeds the limit of 128000",
    ),
    (
        "llama.cpp",
        "the request exceeds the available context size, try increasing it",
    ),
    (
        "LM Studio",
        "The number of tokens to keep from the initial prompt is greater than the context length.",
    ),
    ("MiniMax", "invalid params, context window exceeds limit"),
    ("Kimi", "Your request exceeded model token limit: 262144"),
    (
        "Mistral",
        "Prompt contains 139000 tokens, too large for model with 131072 maximum context length",
    ),
    (
        "DS4",
        "The prompt has 300000 tokens, but the configured context size is 262144 tokens",
    ),
    ("DashScope", "Range of input length should be [1, 129024]"),
];

//! What the scripted model says, one value per request: `text("…")`, `tool_call("read", …)`,
//! `error(529, "…")`. A reply knows its chat-completions form; it does not know sockets.

use std::time::Duration;

use serde_json::{Value, json};

/// One answer of the scripted model.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(crate) kind: Kind,
    pub(crate) ending: Ending,
    pub(crate) pause: Duration,
    usage: (u64, u64),
    finish_reason: Option<&'static str>,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Parts(Vec<Part>),
    Raw(String),
    Error { status: u16, message: String },
    Silence,
}

/// How the stream ends. The numbers count server-sent events.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ending {
    Complete,
    CutAfter(usize),
    HoldAfter(usize),
}

#[derive(Debug, Clone)]
pub(crate) enum Part {
    Text(String),
    Thinking(String),
    Call { name: String, arguments: String },
}

/// A text.
pub fn text(text: &str) -> Reply {
    Reply::of(Kind::Parts(vec![Part::Text(text.to_owned())]))
}

/// A thought; usually followed by [`Reply::and_text`] or [`Reply::and_call`].
pub fn thinking(thought: &str) -> Reply {
    Reply::of(Kind::Parts(vec![Part::Thinking(thought.to_owned())]))
}

/// One tool call.
pub fn tool_call(tool: &str, arguments: Value) -> Reply {
    tool_calls([(tool, arguments)])
}

/// Several tool calls in one reply.
pub fn tool_calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Reply {
    let nothing = Reply::of(Kind::Parts(Vec::new()));
    calls.into_iter().fold(nothing, |reply, (tool, arguments)| {
        reply.and_call(tool, arguments)
    })
}

/// A tool call whose arguments are this text, JSON or not.
pub fn tool_call_text(tool: &str, arguments: &str) -> Reply {
    let (name, arguments) = (tool.to_owned(), arguments.to_owned());
    Reply::of(Kind::Parts(vec![Part::Call { name, arguments }]))
}

/// An HTTP error with the usual JSON body.
pub fn error(status: u16, message: &str) -> Reply {
    let message = message.to_owned();
    Reply::of(Kind::Error { status, message })
}

/// A stream of exactly these bytes, one server-sent event after the other.
pub fn raw(stream: &str) -> Reply {
    Reply::of(Kind::Raw(stream.to_owned()))
}

/// Nothing, not even a status line, until the server is dropped.
pub fn hold() -> Reply {
    Reply::of(Kind::Silence)
}

impl Reply {
    fn of(kind: Kind) -> Self {
        Self {
            kind,
            ending: Ending::Complete,
            pause: Duration::ZERO,
            usage: (100, 10),
            finish_reason: None,
        }
    }

    /// Adds a text.
    #[must_use]
    pub fn and_text(self, text: &str) -> Self {
        self.and(Part::Text(text.to_owned()))
    }

    /// Adds a tool call.
    #[must_use]
    pub fn and_call(self, tool: &str, arguments: Value) -> Self {
        let (name, arguments) = (tool.to_owned(), arguments.to_string());
        self.and(Part::Call { name, arguments })
    }

    /// Drops the connection after that many server-sent events.
    #[must_use]
    pub fn cut_after(mut self, events: usize) -> Self {
        self.ending = Ending::CutAfter(events);
        self
    }

    /// Falls silent after that many server-sent events, until the server is dropped.
    #[must_use]
    pub fn hold_after(mut self, events: usize) -> Self {
        self.ending = Ending::HoldAfter(events);
        self
    }

    /// Waits before each server-sent event.
    #[must_use]
    pub fn slow(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Tokens of the prompt and of the answer.
    #[must_use]
    pub fn usage(mut self, prompt: u64, completion: u64) -> Self {
        self.usage = (prompt, completion);
        self
    }

    /// Another finish reason than `stop` or `tool_calls`.
    #[must_use]
    pub fn finish_reason(mut self, reason: &'static str) -> Self {
        self.finish_reason = Some(reason);
        self
    }

    fn and(mut self, part: Part) -> Self {
        match &mut self.kind {
            Kind::Parts(parts) => parts.push(part),
            other => panic!("{other:?} has no parts"),
        }
        self
    }

    /// The server-sent events of the stream. Calls are numbered from `first_call` on.
    pub(crate) fn stream(&self, model: &str, first_call: usize) -> Vec<String> {
        let parts = match &self.kind {
            Kind::Parts(parts) => parts,
            Kind::Raw(stream) => {
                return stream
                    .split_inclusive("\n\n")
                    .map(ToOwned::to_owned)
                    .collect();
            }
            Kind::Error { .. } | Kind::Silence => return Vec::new(),
        };
        let mut calls = 0;
        let mut deltas = vec![json!({"role": "assistant", "content": ""})];
        for part in parts {
            match part {
                Part::Text(text) => {
                    deltas.extend(pieces(text).map(|piece| json!({"content": piece})));
                }
                Part::Thinking(thought) => {
                    deltas.extend(pieces(thought).map(|piece| json!({"reasoning_content": piece})));
                }
                Part::Call { name, arguments } => {
                    deltas.push(json!({"tool_calls": [{
                        "index": calls, "id": call_id(first_call + calls), "type": "function",
                        "function": {"name": name, "arguments": ""},
                    }]}));
                    deltas.extend(pieces(arguments).map(|piece| {
                        json!({"tool_calls": [{"index": calls, "function": {"arguments": piece}}]})
                    }));
                    calls += 1;
                }
            }
        }
        let usual = if calls > 0 { "tool_calls" } else { "stop" };
        let finish = self.finish_reason.unwrap_or(usual);
        let (prompt, completion) = self.usage;
        deltas
            .into_iter()
            .map(|delta| json!([{"index": 0, "delta": delta, "finish_reason": null}]))
            .chain([json!([{"index": 0, "delta": {}, "finish_reason": finish}])])
            .map(|choices| chunk(model, choices, None))
            .chain([chunk(
                model,
                json!([]),
                Some(
                    json!({"prompt_tokens": prompt, "completion_tokens": completion,
                    "total_tokens": prompt + completion}),
                ),
            )])
            .map(|chunk| format!("data: {chunk}\n\n"))
            .chain(["data: [DONE]\n\n".to_owned()])
            .collect()
    }

    /// How many tools it calls.
    pub(crate) fn calls(&self) -> usize {
        match &self.kind {
            Kind::Parts(parts) => {
                let is_call = |part: &&Part| matches!(part, Part::Call { .. });
                parts.iter().filter(is_call).count()
            }
            _ => 0,
        }
    }

    /// The reply as a later request must repeat it; nothing when it is none that counts.
    pub(crate) fn said(&self, first_call: usize) -> Option<Said> {
        let Kind::Parts(parts) = &self.kind else {
            return None;
        };
        let mut said = Said::default();
        for part in parts {
            match part {
                Part::Text(text) => said.text.push_str(text),
                Part::Thinking(_) => {}
                Part::Call { name, arguments } => {
                    let id = call_id(first_call + said.calls.len());
                    said.calls.push((id, name.clone(), arguments.clone()));
                }
            }
        }
        (self.ending == Ending::Complete).then_some(said)
    }
}

/// A complete reply: its text, and each call as id, name, arguments.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) calls: Vec<(String, String, String)>,
}

/// Id of the n-th tool call that a server made, counted from 1.
pub fn call_id(number: usize) -> String {
    format!("call_{number}")
}

fn chunk(model: &str, choices: Value, usage: Option<Value>) -> Value {
    let mut chunk = json!({
        "id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1,
        "model": model, "choices": choices,
    });
    if let Some(usage) = usage {
        chunk["usage"] = usage;
    }
    chunk
}

/// Splits a text as models stream it: in small pieces that know nothing of words.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    const PIECE: usize = 5;
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = characters.chunks(PIECE).map(String::from_iter).collect();
    pieces.into_iter()
}

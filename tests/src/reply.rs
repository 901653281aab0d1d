//! What the scripted model says, one value per request: `text("…")`, `tool_call("read", …)`,
//! `error(529, "…")`. A reply knows its chat-completions form, and in `messages` that of
//! anthropic-messages; it does not know sockets.

mod messages;

use std::time::Duration;

use serde_json::{Value, json};

use crate::gate::Gate;
use crate::wires::Dialect;

/// One answer of the scripted model.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(crate) kind: Kind,
    pub(crate) ending: Ending,
    pub(crate) pause: Duration,
    /// Where the stream waits: before that event.
    pub(crate) gates: Vec<(usize, Gate)>,
    /// Beside those that every response has.
    pub(crate) headers: Vec<(String, String)>,
    usage: Option<Usage>,
    finish: Finish,
    interleaved: bool,
    /// Bytes before that event.
    garbage: Vec<(usize, String)>,
}

/// Tokens, as the service counts them.
#[derive(Debug, Clone, Copy)]
struct Usage {
    prompt: u64,
    completion: u64,
    cached: u64,
    reasoning: u64,
}

/// What a stream says of its end.
#[derive(Debug, Clone, Copy)]
enum Finish {
    /// What fits.
    Usual,
    Reason(&'static str),
    /// Nothing at all.
    Missing,
    /// A reason, but no `[DONE]`.
    WithoutDone,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Parts(Vec<Part>),
    Raw(String),
    Response {
        status: u16,
        content_type: String,
        body: String,
    },
    HangUp,
    Silence,
}

/// How the stream ends. The numbers count server-sent events.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ending {
    Complete,
    CutAfter(usize),
    CutWithin(usize, usize),
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
    let error = json!({"message": message, "type": "scripted_error"});
    let body = json!({"type": "error", "error": error});
    response(status, "application/json", &body.to_string())
}

/// A whole response that is no stream; more of its kind are in [`crate::failures`].
pub fn response(status: u16, content_type: &str, body: &str) -> Reply {
    let (content_type, body) = (content_type.to_owned(), body.to_owned());
    Reply::of(Kind::Response {
        status,
        content_type,
        body,
    })
}

/// No response: the connection is closed when the request has been read.
pub fn hang_up() -> Reply {
    Reply::of(Kind::HangUp)
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
            gates: Vec::new(),
            headers: Vec::new(),
            usage: Some(Usage {
                prompt: 100,
                completion: 10,
                cached: 0,
                reasoning: 0,
            }),
            finish: Finish::Usual,
            interleaved: false,
            garbage: Vec::new(),
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

    /// Drops the connection within the event that comes after so many, after some of its bytes.
    #[must_use]
    pub fn cut_within(mut self, events: usize, bytes: usize) -> Self {
        self.ending = Ending::CutWithin(events, bytes);
        self
    }

    /// Waits at the gate after that many server-sent events; with none, the response has not begun.
    #[must_use]
    pub fn gated_after(mut self, events: usize, gate: &Gate) -> Self {
        self.gates.push((events, gate.clone()));
        self
    }

    /// Adds a header to the response.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Tokens of the prompt and of the answer.
    #[must_use]
    pub fn usage(mut self, prompt: u64, completion: u64) -> Self {
        self.counted(|usage| (usage.prompt, usage.completion) = (prompt, completion));
        self
    }

    /// Tokens of the prompt that were read from a cache.
    #[must_use]
    pub fn cached(mut self, tokens: u64) -> Self {
        self.counted(|usage| usage.cached = tokens);
        self
    }

    /// Tokens of the answer that were thoughts.
    #[must_use]
    pub fn reasoned(mut self, tokens: u64) -> Self {
        self.counted(|usage| usage.reasoning = tokens);
        self
    }

    /// Says nothing of tokens.
    #[must_use]
    pub fn without_usage(mut self) -> Self {
        self.usage = None;
        self
    }

    /// Another finish reason than `stop` or `tool_calls`.
    #[must_use]
    pub fn finish_reason(mut self, reason: &'static str) -> Self {
        self.finish = Finish::Reason(reason);
        self
    }

    /// Ends without a finish reason, and without `[DONE]`.
    #[must_use]
    pub fn without_finish(mut self) -> Self {
        self.finish = Finish::Missing;
        self
    }

    /// Ends without `[DONE]`.
    #[must_use]
    pub fn without_done(mut self) -> Self {
        self.finish = Finish::WithoutDone;
        self
    }

    /// Sends the pieces of its calls by turns, as services do that make them side by side.
    #[must_use]
    pub fn interleaved(mut self) -> Self {
        self.interleaved = true;
        self
    }

    /// Sends these bytes after that many server-sent events.
    #[must_use]
    pub fn garbage_after(mut self, events: usize, bytes: &str) -> Self {
        self.garbage.push((events, bytes.to_owned()));
        self
    }

    fn counted(&mut self, count: impl FnOnce(&mut Usage)) {
        count(self.usage.as_mut().expect("the reply speaks of tokens"));
    }

    fn and(mut self, part: Part) -> Self {
        match &mut self.kind {
            Kind::Parts(parts) => parts.push(part),
            other => panic!("{other:?} has no parts"),
        }
        self
    }

    /// The server-sent events of the stream. Calls are numbered from `first_call` on.
    pub(crate) fn stream(&self, dialect: Dialect, model: &str, first_call: usize) -> Vec<String> {
        let mut events = match (&self.kind, dialect) {
            (Kind::Parts(parts), Dialect::Completions) => self.chunks(parts, model, first_call),
            (Kind::Parts(parts), Dialect::Messages) => self.messages(parts, model, first_call),
            (Kind::Raw(stream), _) => {
                let events = stream.split_inclusive("\n\n");
                return events.map(ToOwned::to_owned).collect();
            }
            (Kind::Response { .. } | Kind::HangUp | Kind::Silence, _) => return Vec::new(),
        };
        // From the end, so that the numbers keep their meaning.
        let mut garbage: Vec<_> = self.garbage.iter().collect();
        garbage.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        for (at, bytes) in garbage {
            events.insert((*at).min(events.len()), bytes.clone());
        }
        events
    }

    fn chunks(&self, parts: &[Part], model: &str, first_call: usize) -> Vec<String> {
        let mut calls = 0;
        let mut deltas = vec![json!({"role": "assistant", "content": ""})];
        let mut of_calls: Vec<Vec<Value>> = Vec::new();
        for part in parts {
            match part {
                Part::Text(text) => {
                    deltas.extend(pieces(text).map(|piece| json!({"content": piece})));
                }
                Part::Thinking(thought) => {
                    deltas.extend(pieces(thought).map(|piece| json!({"reasoning_content": piece})));
                }
                Part::Call { name, arguments } => {
                    let of_call = call_deltas(calls, &call_id(first_call + calls), name, arguments);
                    match self.interleaved {
                        true => of_calls.push(of_call),
                        false => deltas.extend(of_call),
                    }
                    calls += 1;
                }
            }
        }
        deltas.extend(by_turns(of_calls));
        let usual = if calls > 0 { "tool_calls" } else { "stop" };
        let (reason, done) = match self.finish {
            Finish::Usual => (Some(usual), true),
            Finish::Reason(reason) => (Some(reason), true),
            Finish::Missing => (None, false),
            Finish::WithoutDone => (Some(usual), false),
        };
        let finish = reason.map(|reason| {
            chunk(
                model,
                json!([{"index": 0, "delta": {}, "finish_reason": reason}]),
                None,
            )
        });
        let usage = self.usage.filter(|_| reason.is_some());
        let usage = usage.map(|usage| chunk(model, json!([]), Some(usage.to_json())));
        deltas
            .into_iter()
            .map(|delta| json!([{"index": 0, "delta": delta, "finish_reason": null}]))
            .map(|choices| chunk(model, choices, None))
            .chain(finish)
            .chain(usage)
            .map(|chunk| format!("data: {chunk}\n\n"))
            .chain(done.then(|| "data: [DONE]\n\n".to_owned()))
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
        let complete = self.ending == Ending::Complete && !matches!(self.finish, Finish::Missing);
        complete.then_some(said)
    }
}

/// A complete reply: its text, and each call as id, name, arguments.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) calls: Vec<(String, String, String)>,
}

/// What a service that speaks anthropic-messages sends in the middle of a stream when it cannot go on; for
/// [`Reply::garbage_after`].
pub fn error_event(kind: &str, message: &str) -> String {
    messages::event(&json!({"type": "error", "error": {"type": kind, "message": message}}))
}

/// With what the service of anthropic-messages signs the n-th thought of an answer, counted from 0.
pub fn signature(thought: usize) -> String {
    format!("c2lnbmVk{thought}")
}

/// Id of the n-th tool call that a server made, counted from 1.
pub fn call_id(number: usize) -> String {
    format!("call_{number}")
}

/// The call opens, then its arguments come.
fn call_deltas(index: usize, id: &str, name: &str, arguments: &str) -> Vec<Value> {
    let opening = json!({"tool_calls": [{
        "index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""},
    }]});
    let piece = |piece| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]});
    std::iter::once(opening)
        .chain(pieces(arguments).map(piece))
        .collect()
}

/// The first of each list, then the second of each, and so on.
fn by_turns(lists: Vec<Vec<Value>>) -> Vec<Value> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or_default();
    let turn = |at| {
        lists
            .iter()
            .filter_map(move |list: &Vec<Value>| list.get(at).cloned())
    };
    (0..longest).flat_map(turn).collect()
}

impl Usage {
    fn to_json(self) -> Value {
        let Self {
            prompt,
            completion,
            cached,
            reasoning,
        } = self;
        json!({
            "prompt_tokens": prompt, "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        })
    }
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

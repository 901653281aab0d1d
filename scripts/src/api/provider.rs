//! What a provider's `stream` closure gets: `request` to read, `out` to write the answer.
//!
//! Messages become script values one at a time, when they are looked at: a request carries the whole
//! conversation, and a provider rarely needs more than its end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use pliant_sdk::message::{AssistantMessage, Message, StopReason, Tool, ToolCall, Usage};
use pliant_sdk::model::Model;
use pliant_sdk::provider::StreamRequest;
use pliant_sdk::stream::{EventSink, MessageWriter, StreamEvent};
use rhai::{Array, Dynamic, Engine, INT, Map};

use crate::call::{Call, ScriptResult, fail};
use crate::convert;

/// One request to a model.
#[derive(Clone)]
pub(crate) struct Request(Arc<StreamRequest>);

/// The conversation, read message by message.
#[derive(Clone)]
pub(crate) struct Messages(Arc<StreamRequest>);

impl Request {
    pub(crate) fn new(request: StreamRequest) -> Self {
        Self(Arc::new(request))
    }

    fn last_user_text(&self) -> String {
        let user = self
            .0
            .messages
            .iter()
            .rev()
            .find_map(|message| match &**message {
                Message::User(user) => Some(user.content.joined_text("\n")),
                _ => None,
            });
        user.unwrap_or_default()
    }

    /// The tools in force: declarations of the system messages, in order, less the withdrawn ones.
    fn tools(&self) -> Vec<&Tool> {
        let mut tools: Vec<&Tool> = Vec::new();
        for message in self.0.messages.iter() {
            let Message::System(system) = &**message else {
                continue;
            };
            for gone in system.tools_removed.iter().flatten() {
                tools.retain(|tool| tool.name != gone.name);
            }
            for added in system.tools_added.iter().flatten() {
                match tools.iter_mut().find(|tool| tool.name == added.name) {
                    Some(tool) => *tool = added,
                    None => tools.push(added),
                }
            }
        }
        tools
    }
}

impl Messages {
    fn get(&self, index: INT) -> ScriptResult<Dynamic> {
        let all = &self.0.messages;
        let from_start = match index {
            0.. => usize::try_from(index).ok(),
            _ => usize::try_from(index.unsigned_abs())
                .ok()
                .and_then(|back| all.len().checked_sub(back)),
        };
        match from_start.and_then(|index| all.get(index)) {
            Some(message) => convert::to_dynamic(&**message),
            None => Ok(Dynamic::UNIT),
        }
    }

    fn last_few(&self, count: INT) -> ScriptResult<Array> {
        let all = &self.0.messages;
        let count = usize::try_from(count).unwrap_or(0).min(all.len());
        all[all.len() - count..]
            .iter()
            .map(|message| convert::to_dynamic(&**message))
            .collect()
    }

    fn len(&self) -> INT {
        INT::try_from(self.0.messages.len()).unwrap_or(INT::MAX)
    }
}

/// Where the answer is written. Clones write the same answer.
#[derive(Clone)]
pub(crate) struct Out(Arc<Answer>);

struct Answer {
    call: Arc<Call>,
    model: Model,
    state: Mutex<State>,
}

enum State {
    /// Nothing was written, so nobody was told of an answer.
    Blank(Box<AssistantMessage>),
    Writing(Box<MessageWriter<Sink>>),
    Finished(Box<AssistantMessage>),
}

/// Sends events to the caller.
struct Sink(Arc<Call>);

impl EventSink for Sink {
    fn event(&mut self, event: StreamEvent) {
        if let Ok(json) = serde_json::to_vec(&event) {
            // When nobody listens the stop sign is up, and the script's next step ends it.
            let _ = self.0.emit(&json);
        }
    }
}

impl Out {
    pub(crate) fn new(call: Arc<Call>, request: &StreamRequest) -> Self {
        Self(Arc::new(Answer {
            call,
            model: request.model.clone(),
            state: Mutex::new(State::Blank(Box::new(request.answer()))),
        }))
    }

    /// The answer, finished if the script did not.
    pub(crate) fn into_message(self) -> ScriptResult<AssistantMessage> {
        let finished = matches!(*self.state(), State::Finished(_));
        if !finished {
            self.finish(None)?;
        }
        match &mut *self.state() {
            State::Finished(message) => Ok(std::mem::take(&mut **message)),
            _ => Err(fail("the answer was not finished")),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes; the first time, says that the answer begins.
    fn write(&self, write: impl FnOnce(&mut MessageWriter<Sink>)) -> ScriptResult<()> {
        self.0.call.ensure_open()?;
        let mut state = self.state();
        if let State::Blank(message) = &mut *state {
            let sink = Sink(Arc::clone(&self.0.call));
            let writer = MessageWriter::new(std::mem::take(&mut **message), sink);
            *state = State::Writing(Box::new(writer));
        }
        match &mut *state {
            State::Writing(writer) => {
                write(writer);
                Ok(())
            }
            _ => Err(fail("the answer is finished; nothing can be added to it")),
        }
    }

    fn tool_call(&self, name: &str, arguments: Map, id: String) -> ScriptResult<()> {
        let call = ToolCall {
            id,
            name: name.to_owned(),
            arguments: convert::to_typed(&Dynamic::from(arguments))?,
            ..ToolCall::default()
        };
        self.write(|writer| writer.tool_call(call))
    }

    /// Sets the usage. What follows from it, sum and price, is added where it was left out.
    fn usage(&self, given: Map) -> ScriptResult<()> {
        let priced = given.contains_key("cost");
        let mut usage: Usage = convert::to_typed(&Dynamic::from(given))?;
        usage.total_tokens = usage.context_tokens();
        if !priced {
            self.0.model.price(&mut usage);
        }
        self.write(|writer| writer.message_mut().usage = usage)
    }

    fn finish(&self, reason: Option<StopReason>) -> ScriptResult<()> {
        self.write(|_| ())?;
        let mut state = self.state();
        let nothing = State::Finished(Box::default());
        if let State::Writing(writer) = std::mem::replace(&mut *state, nothing) {
            *state = State::Finished(Box::new(writer.finish(reason)));
        }
        Ok(())
    }
}

fn stop_reason(name: &str) -> ScriptResult<StopReason> {
    Ok(match name {
        "stop" => StopReason::Stop,
        "length" => StopReason::Length,
        "toolUse" => StopReason::ToolUse,
        _ => {
            return Err(fail(format!(
                "finish has no reason \"{name}\"; it takes stop, length, toolUse; throw to report \
                 a failure"
            )));
        }
    })
}

/// An id that no other call has, also in a session continued later.
fn new_call_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let us = since.map_or(0, |time| time.as_micros());
    format!("call_{us:x}_{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

pub(super) fn install(engine: &mut Engine) {
    install_request(engine);
    install_messages(engine);
    install_out(engine);
}

fn install_request(engine: &mut Engine) {
    engine.register_type_with_name::<Request>("Request");
    engine.register_get("messages", |request: &mut Request| {
        Messages(Arc::clone(&request.0))
    });
    engine.register_get("model", |request: &mut Request| {
        convert::to_dynamic(&request.0.model)
    });
    engine.register_get("options", |request: &mut Request| {
        convert::to_dynamic(&request.0.options)
    });
    engine.register_get("tools", |request: &mut Request| {
        convert::to_dynamic(request.tools())
    });
    engine.register_get("last_user_text", |request: &mut Request| {
        request.last_user_text()
    });
    engine.register_get("session_id", |request: &mut Request| {
        match &request.0.options.session_id {
            Some(id) => id.as_str().into(),
            None => Dynamic::UNIT,
        }
    });
}

fn install_messages(engine: &mut Engine) {
    engine.register_type_with_name::<Messages>("Messages");
    engine.register_fn("len", |messages: &mut Messages| messages.len());
    engine.register_get("len", |messages: &mut Messages| messages.len());
    engine.register_fn("get", |messages: &mut Messages, index: INT| {
        messages.get(index)
    });
    engine.register_indexer_get(|messages: &mut Messages, index: INT| messages.get(index));
    engine.register_fn("last", |messages: &mut Messages| messages.get(-1));
    engine.register_fn("last", |messages: &mut Messages, count: INT| {
        messages.last_few(count)
    });
}

fn install_out(engine: &mut Engine) {
    engine.register_type_with_name::<Out>("Out");
    engine.register_fn("text", |out: &mut Out, piece: &str| {
        out.write(|writer| writer.text(piece))
    });
    engine.register_fn("thinking", |out: &mut Out, piece: &str| {
        out.write(|writer| writer.thinking(piece))
    });
    engine.register_fn("tool_call", |out: &mut Out, name: &str, arguments: Map| {
        out.tool_call(name, arguments, new_call_id())
    });
    engine.register_fn(
        "tool_call",
        |out: &mut Out, name: &str, arguments: Map, id: &str| {
            out.tool_call(name, arguments, id.to_owned())
        },
    );
    engine.register_fn("usage", |out: &mut Out, usage: Map| out.usage(usage));
    engine.register_fn("finish", |out: &mut Out| out.finish(None));
    engine.register_fn("finish", |out: &mut Out, reason: &str| {
        out.finish(Some(stop_reason(reason)?))
    });
}

//! Which result answers which call, in a conversation that is prepared part by part.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::damage::{Damage, Tally};
use super::open::OpenCalls;
use super::repair::{NO_RESULT, sent_answer};
use crate::message::{AssistantMessage, Message, ToolCall, ToolResultMessage};

/// A call that will be sent.
pub(super) struct Call<'a> {
    pub(super) message: usize,
    pub(super) block: usize,
    pub(super) call: &'a ToolCall,
    /// The id it is sent under.
    pub(super) id: String,
    /// Where its result is.
    pub(super) result: Option<usize>,
    /// A stored [`NO_RESULT`] answers it, unless a real result does.
    pub(super) has_placeholder: bool,
}

impl Call<'_> {
    pub(super) fn is_open(&self) -> bool {
        self.result.is_none()
    }
}

/// What later parts of a conversation may have to do with.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// Ids, as stored, of calls that no later result answered.
    unanswered: HashSet<String>,
    /// Ids of calls that were left out; their results belong to no other call.
    unsent: HashSet<String>,
    /// Ids of results that no call claimed.
    unclaimed: HashSet<String>,
    /// Ids, as stored, of calls that were sent.
    called: HashSet<String>,
}

impl Past {
    /// Whether a result belongs to a call that is prepared already, or a call to such a result.
    /// Ids alone do not tell: some services begin to count anew with every answer.
    pub(super) fn is_changed_by(&self, messages: &[Arc<Message>]) -> bool {
        if self.unanswered.is_empty() && self.unclaimed.is_empty() {
            return false;
        }
        let mut open: HashMap<&str, usize> = HashMap::new();
        for message in messages {
            if let Some(answer) = sent_answer(message) {
                for (_, call) in distinct_calls(answer) {
                    *open.entry(&call.id).or_default() += 1;
                }
            } else if let Message::ToolResult(result) = &**message {
                match open.get_mut(result.tool_call_id.as_str()) {
                    Some(calls) if *calls > 0 => {
                        *calls -= usize::from(!is_placeholder(result));
                    }
                    _ if self.unanswered.contains(&result.tool_call_id) => return true,
                    _ => {}
                }
            }
        }
        let mut left = open.iter().filter(|(_, calls)| **calls > 0);
        left.any(|(id, _)| self.unclaimed.contains(*id))
    }
}

/// The matching of one part.
pub(super) struct Matching<'p, 'a> {
    past: &'p mut Past,
    tally: &'p mut Tally,
    calls: &'p mut [Call<'a>],
    open: OpenCalls<'a>,
    without_call: Vec<WithoutCall<'a>>,
    /// The last message of the user or the model.
    last_said: Option<usize>,
}

/// A result that no call before it waits for.
struct WithoutCall<'a> {
    at: usize,
    id: &'a str,
    /// A call before it has that id, and its result.
    is_second: bool,
}

impl<'p, 'a> Matching<'p, 'a> {
    /// The calls stand in the order of their messages.
    pub(super) fn new(past: &'p mut Past, tally: &'p mut Tally, calls: &'p mut [Call<'a>]) -> Self {
        Self {
            past,
            tally,
            calls,
            open: OpenCalls::default(),
            without_call: Vec::new(),
            last_said: None,
        }
    }

    /// Gives every call its result.
    pub(super) fn run(mut self, messages: &'a [Arc<Message>]) {
        let mut next = 0;
        for (at, message) in messages.iter().enumerate() {
            match &**message {
                Message::User(_) => self.last_said = Some(at),
                Message::Assistant(_) if sent_answer(message).is_some() => {
                    self.last_said = Some(at);
                    while let Some(call) = self.calls.get(next).filter(|call| call.message == at) {
                        self.past.called.insert(call.call.id.clone());
                        self.open.add(next, call);
                        next += 1;
                    }
                }
                Message::Assistant(answer) => {
                    let ids = answer.tool_calls().map(|call| call.id.clone());
                    self.past.unsent.extend(ids);
                }
                Message::ToolResult(result) => self.result(at, result),
                _ => {}
            }
        }
        let unanswered = self.open.ids().map(str::to_owned);
        self.past.unanswered.extend(unanswered);
        self.claim_early();
        for call in self.calls.iter().filter(|call| call.is_open()) {
            if !call.has_placeholder {
                self.tally.add(Damage::CallWithoutResult);
            }
        }
    }

    fn result(&mut self, at: usize, result: &'a ToolResultMessage) {
        let id = result.tool_call_id.as_str();
        let Some(answered) = self.open.answered_by(self.calls, id, &result.tool_name) else {
            if !is_placeholder(result) && !self.past.unsent.contains(id) {
                let is_second = self.past.called.contains(id);
                self.without_call.push(WithoutCall { at, id, is_second });
            }
            return;
        };
        let call = &mut self.calls[answered];
        if is_placeholder(result) {
            call.has_placeholder = true;
            return;
        }
        call.result = Some(at);
        self.open.remove(answered, call);
        if self.last_said != Some(call.message) {
            self.tally.add(Damage::DisplacedResult);
        }
    }

    /// Gives results that stand before their call to it.
    fn claim_early(&mut self) {
        for WithoutCall { at, id, is_second } in std::mem::take(&mut self.without_call) {
            if let Some(later) = self.open.after(self.calls, at, id) {
                let call = &mut self.calls[later];
                call.result = Some(at);
                self.open.remove(later, call);
                self.tally.add(Damage::DisplacedResult);
                continue;
            }
            self.past.unclaimed.insert(id.to_owned());
            self.tally.add(match is_second {
                true => Damage::SurplusResult,
                false => Damage::ResultWithoutCall,
            });
        }
    }
}

/// The calls of an answer and where they are. Models and proxies that repeat a call do so word for
/// word; it ran once.
pub(super) fn distinct_calls(
    answer: &AssistantMessage,
) -> impl Iterator<Item = (usize, &ToolCall)> {
    let blocks = answer.content.iter().enumerate();
    let calls = blocks.filter_map(|(block, content)| Some((block, content.as_tool_call()?)));
    let mut first: HashMap<&str, &ToolCall> = HashMap::new();
    // Arguments may be long: they are hashed only where an id is not enough.
    let mut others = HashSet::new();
    calls.filter(move |(_, call)| {
        let words = (&call.id, &call.name, &call.arguments);
        match first.entry(&call.id) {
            _ if call.id.is_empty() => true,
            Entry::Vacant(none) => {
                none.insert(call);
                true
            }
            Entry::Occupied(first) => !repeats(first.get(), call) && others.insert(words),
        }
    })
}

fn repeats(one: &ToolCall, other: &ToolCall) -> bool {
    one.id == other.id && one.name == other.name && one.arguments == other.arguments
}

/// A stored [`NO_RESULT`] is no result: it would keep a real one out.
fn is_placeholder(result: &ToolResultMessage) -> bool {
    let only = match result.content.as_slice() {
        [only] => only.as_text(),
        _ => None,
    };
    result.is_error && only == Some(NO_RESULT)
}

//! Pairing: which answers and results are sent, where, and under which id (M18).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::edit::{prepare_answer, prepare_result, prepare_user};
use super::ids::{IdRule, short_hash, tool_name};
use crate::message::{AssistantMessage, Content, Message, StopReason, ToolCall, ToolResultMessage};
use crate::model::Model;

/// Text of the result that stands for a missing one.
pub const NO_RESULT: &str = "No result provided";

/// Makes a transcript sendable to a model: [`Preparer`] for one request.
#[must_use]
pub fn prepare(messages: &[Arc<Message>], model: &Model, ids: &dyn IdRule) -> Vec<Arc<Message>> {
    let mut whole = Preparer::default();
    whole.extend(messages, model, ids).unwrap_or_default()
}

/// Makes a growing transcript sendable, part by part. A message that needs no change stays the
/// same `Arc`.
///
/// - Failed and unfinished answers are left out, with their calls.
/// - Every result stands directly behind its call's message, real ones in the order they had, then
///   [`NO_RESULT`] for calls without one; so a system message between them comes after. The first
///   real result of a call counts. Results without a call are dropped.
/// - Answers of another model (provider, api or id differ) lose thinking, signatures, and ids that
///   do not fit; of the same model, only empty unsigned thinking and ids that no service takes.
///   Ids are unique; calls and results are renamed together. A call repeated word for word in one
///   message is one call.
/// - Images become a placeholder for a model that sees none. Blocks and roles that a model cannot
///   get are dropped. Tool names fit `[A-Za-z0-9_-]{1,64}`.
///
/// Preparing parts gives what preparing the whole would, or nothing: see [`Preparer::extend`].
#[derive(Debug, Default)]
pub struct Preparer {
    /// Ids that were sent.
    sent: HashSet<String>,
    /// Ids, as stored, of calls that no later result answered.
    unanswered: HashSet<String>,
    /// Ids of calls that were left out; their results belong to no other call.
    unsent: HashSet<String>,
    /// Ids of results that no call claimed.
    unclaimed: HashSet<String>,
}

impl Preparer {
    /// Prepares the messages after the ones already prepared, for the same model and rule.
    ///
    /// `None` when they change what was prepared before: a late result for an earlier call, or a
    /// call for an earlier result. Prepare the whole with a new preparer then, which always works.
    pub fn extend(
        &mut self,
        messages: &[Arc<Message>],
        model: &Model,
        ids: &dyn IdRule,
    ) -> Option<Vec<Arc<Message>>> {
        if messages.iter().any(|message| self.reaches_back(message)) {
            return None;
        }
        let mut calls = self.name_calls(messages, model, ids);
        self.match_results(messages, &mut calls);
        Some(emit(messages, model, &calls))
    }

    fn reaches_back(&self, message: &Message) -> bool {
        match message {
            Message::ToolResult(result) => self.unanswered.contains(&result.tool_call_id),
            Message::Assistant(answer) if !self.unclaimed.is_empty() => answer
                .tool_calls()
                .any(|call| self.unclaimed.contains(&call.id)),
            _ => false,
        }
    }

    fn name_calls<'a>(
        &mut self,
        messages: &'a [Arc<Message>],
        model: &Model,
        ids: &dyn IdRule,
    ) -> Vec<Call<'a>> {
        let mut calls: Vec<Call<'a>> = Vec::new();
        for (message, answer) in answers(messages) {
            let first = calls.len();
            for (block, content) in answer.content.iter().enumerate() {
                let Content::ToolCall(call) = content else {
                    continue;
                };
                if calls[first..].iter().any(|other| other.repeats(call)) {
                    continue;
                }
                calls.push(Call {
                    message,
                    block,
                    call,
                    id: self.new_id(&call.id, answer, model, ids),
                    result: None,
                });
            }
        }
        calls
    }

    /// Depends on earlier messages only, so that the bytes sent for a message never change.
    fn new_id(
        &mut self,
        id: &str,
        answer: &AssistantMessage,
        model: &Model,
        ids: &dyn IdRule,
    ) -> String {
        let keep = is_same_model(answer, model) && ids.accepts(id);
        let mut new = if keep {
            id.to_owned()
        } else {
            ids.foreign(id, answer)
        };
        if !ids.accepts(&new) {
            new = ids.foreign(&format!("call_{}", short_hash(id)), answer);
        }
        // The bound only matters for a rule that maps everything to a few ids.
        for attempt in 2..self.sent.len() + 3 {
            if !self.sent.contains(&new) {
                break;
            }
            let made_up = format!("call_{}", short_hash(&format!("{id}#{attempt}")));
            new = ids.foreign(&made_up, answer);
        }
        self.sent.insert(new.clone());
        new
    }

    fn match_results(&mut self, messages: &[Arc<Message>], calls: &mut [Call<'_>]) {
        let mut by_id: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, call) in calls.iter().enumerate() {
            by_id.entry(call.call.id.as_str()).or_default().push(index);
        }
        let mut without_call = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            if let Some(answer) = unsent_answer(message) {
                let ids = answer.tool_calls().map(|call| call.id.clone());
                self.unsent.extend(ids);
            }
            let Some(result) = real_result(message) else {
                continue;
            };
            let same_id = by_id.get(result.tool_call_id.as_str());
            match same_id.and_then(|same_id| call_before(calls, same_id, at, &result.tool_name)) {
                Some(index) => calls[index].result = Some(at),
                None if self.unsent.contains(&result.tool_call_id) => {}
                None => without_call.push((at, result)),
            }
        }
        let unanswered = calls.iter().filter(|call| call.result.is_none());
        self.unanswered
            .extend(unanswered.map(|call| call.call.id.clone()));
        for (at, result) in without_call {
            let mut same_id = by_id
                .get(result.tool_call_id.as_str())
                .into_iter()
                .flatten();
            match same_id.find(|index| calls[**index].message > at && calls[**index].is_open()) {
                Some(index) => calls[*index].result = Some(at),
                None => drop(self.unclaimed.insert(result.tool_call_id.clone())),
            }
        }
    }
}

/// A call that will be sent.
pub(super) struct Call<'a> {
    message: usize,
    pub(super) block: usize,
    pub(super) call: &'a ToolCall,
    /// The id it is sent under.
    pub(super) id: String,
    /// Where its result is.
    result: Option<usize>,
}

impl Call<'_> {
    fn is_open(&self) -> bool {
        self.result.is_none()
    }

    /// Models and proxies that repeat a call do so word for word; it ran once.
    fn repeats(&self, call: &ToolCall) -> bool {
        !call.id.is_empty()
            && self.call.id == call.id
            && self.call.name == call.name
            && self.call.arguments == call.arguments
    }
}

/// The open call that a result at `at` answers: of the last message that has one, and there the
/// first, or the first of the result's tool.
fn call_before(calls: &[Call<'_>], same_id: &[usize], at: usize, tool: &str) -> Option<usize> {
    let open = |index: &&usize| calls[**index].message < at && calls[**index].is_open();
    let last = same_id.iter().rev().find(open)?;
    let message = calls[*last].message;
    let mut candidates = same_id
        .iter()
        .filter(open)
        .filter(|index| calls[**index].message == message);
    let first = candidates.clone().next();
    let of_tool = candidates.find(|index| calls[**index].call.name == tool);
    of_tool.or(first).copied()
}

/// The answers that are sent. One that is still `pending` is the rest of a crash.
fn answers(messages: &[Arc<Message>]) -> impl Iterator<Item = (usize, &AssistantMessage)> {
    let answers = messages.iter().enumerate();
    answers.filter_map(|(index, message)| Some((index, sent_answer(message)?)))
}

pub(super) fn sent_answer(message: &Message) -> Option<&AssistantMessage> {
    message.as_assistant().filter(|answer| {
        !answer.stop_reason.is_failure() && answer.stop_reason != StopReason::Pending
    })
}

fn unsent_answer(message: &Message) -> Option<&AssistantMessage> {
    let sent = sent_answer(message).is_some();
    message.as_assistant().filter(|_| !sent)
}

/// A stored [`NO_RESULT`] is no result: it would keep a real one out.
fn real_result(message: &Message) -> Option<&ToolResultMessage> {
    match message {
        Message::ToolResult(result) if !is_placeholder(result) => Some(result),
        _ => None,
    }
}

fn is_placeholder(result: &ToolResultMessage) -> bool {
    let only = match result.content.as_slice() {
        [only] => only.as_text(),
        _ => None,
    };
    result.is_error && only == Some(NO_RESULT)
}

pub(super) fn is_same_model(answer: &AssistantMessage, model: &Model) -> bool {
    answer.provider == model.provider && answer.api == model.api && answer.model == model.id
}

fn emit(messages: &[Arc<Message>], model: &Model, calls: &[Call<'_>]) -> Vec<Arc<Message>> {
    let mut out = Vec::with_capacity(messages.len());
    let mut rest = calls;
    for (index, message) in messages.iter().enumerate() {
        match &**message {
            Message::System(_) => out.push(Arc::clone(message)),
            Message::User(user) => out.push(prepare_user(message, user, model)),
            Message::Assistant(answer) if sent_answer(message).is_some() => {
                let own = rest.iter().take_while(|call| call.message == index).count();
                let (own, others) = rest.split_at(own);
                rest = others;
                out.push(prepare_answer(message, answer, model, own));
                emit_results(messages, model, own, answer, &mut out);
            }
            _ => {}
        }
    }
    out
}

fn emit_results(
    messages: &[Arc<Message>],
    model: &Model,
    calls: &[Call<'_>],
    answer: &AssistantMessage,
    out: &mut Vec<Arc<Message>>,
) {
    let mut answered: Vec<(usize, &Call<'_>)> = calls
        .iter()
        .filter_map(|call| Some((call.result?, call)))
        .collect();
    answered.sort_unstable_by_key(|(at, _)| *at);
    for (at, call) in answered {
        if let Message::ToolResult(result) = &*messages[at] {
            out.push(prepare_result(&messages[at], result, model, call));
        }
    }
    for call in calls.iter().filter(|call| call.is_open()) {
        out.push(Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: call.id.clone(),
            tool_name: tool_name(&call.call.name).into_owned(),
            content: vec![Content::text(NO_RESULT)],
            is_error: true,
            timestamp: answer.timestamp,
            ..ToolResultMessage::default()
        })));
    }
}

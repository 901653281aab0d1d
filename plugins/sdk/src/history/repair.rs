//! Pairing: which answers and results are sent, where, and under which id (M18).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::damage::{Damage, Repair, Tally};
use super::edit::{count_damage, prepare_answer, prepare_result, prepare_user};
use super::ids::{AnyId, IdRule, short_hash, tool_name};
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

/// What [`prepare`] repairs of a transcript whatever the model is, each kind of damage once. A
/// prepared transcript needs no repair.
#[must_use]
pub fn repairs(messages: &[Arc<Message>]) -> Vec<Repair> {
    let mut whole = Preparer::default();
    whole.plan(messages, &Model::default(), &AnyId);
    whole.repairs()
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
/// - Images become a placeholder for a model that sees none, damaged ones for every model. Blocks
///   and roles that a model cannot get are dropped. Tool names fit `[A-Za-z0-9_-]{1,64}`.
///
/// Preparing parts gives what preparing the whole would, or nothing: see [`Preparer::extend`].
#[derive(Debug, Default)]
pub struct Preparer {
    /// Ids that were sent.
    sent: HashSet<String>,
    /// How often a new id was made up for an id as stored.
    renamed: HashMap<String, usize>,
    /// Ids, as stored, of calls that no later result answered.
    unanswered: HashSet<String>,
    /// Ids of calls that were left out; their results belong to no other call.
    unsent: HashSet<String>,
    /// Ids of results that no call claimed.
    unclaimed: HashSet<String>,
    /// Ids, as stored, of calls that were sent.
    called: HashSet<String>,
    tally: Tally,
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
        if self.reaches_back(messages) {
            return None;
        }
        let calls = self.plan(messages, model, ids);
        Some(emit(messages, model, &calls))
    }

    /// What was repaired of all the messages so far, each kind of damage once.
    #[must_use]
    pub fn repairs(&self) -> Vec<Repair> {
        self.tally.repairs()
    }

    /// Which calls are sent, under which ids and with which results.
    fn plan<'a>(
        &mut self,
        messages: &'a [Arc<Message>],
        model: &Model,
        ids: &dyn IdRule,
    ) -> Vec<Call<'a>> {
        let mut calls = self.name_calls(messages, model, ids);
        self.match_results(messages, &mut calls);
        for message in messages {
            count_damage(message, &mut self.tally);
        }
        calls
    }

    /// Whether a result belongs to a call that is prepared already, or a call to such a result.
    /// Ids alone do not tell: some services begin to count anew with every answer.
    fn reaches_back(&self, messages: &[Arc<Message>]) -> bool {
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

    fn name_calls<'a>(
        &mut self,
        messages: &'a [Arc<Message>],
        model: &Model,
        ids: &dyn IdRule,
    ) -> Vec<Call<'a>> {
        let mut calls: Vec<Call<'a>> = Vec::new();
        for (message, answer) in answers(messages) {
            let first = calls.len();
            for (block, call) in distinct_calls(answer) {
                if tool_name(&call.name) != call.name {
                    self.tally.add(Damage::UnusableToolName);
                }
                calls.push(Call {
                    message,
                    block,
                    call,
                    id: self.new_id(&call.id, answer, model, ids),
                    result: None,
                    has_placeholder: false,
                });
            }
            for _ in calls[first..].len()..answer.tool_calls().count() {
                self.tally.add(Damage::RepeatedCall);
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
        let same_model = is_same_model(answer, model);
        let keep = same_model && ids.accepts(id);
        let mut new = if keep {
            id.to_owned()
        } else {
            ids.foreign(id, answer)
        };
        let mut is_usable = keep || !same_model;
        if !ids.accepts(&new) {
            is_usable = false;
            new = ids.foreign(&format!("call_{}", short_hash(id)), answer);
        }
        // The bound only matters for a rule that maps everything to a few ids.
        for _ in 0..=self.sent.len() {
            if !self.sent.contains(&new) {
                break;
            }
            is_usable = false;
            let attempt = self.renamed.entry(id.to_owned()).or_insert(1);
            *attempt += 1;
            let made_up = format!("call_{}", short_hash(&format!("{id}#{attempt}")));
            new = ids.foreign(&made_up, answer);
        }
        if !is_usable {
            self.tally.add(Damage::UnusableId);
        }
        self.sent.insert(new.clone());
        new
    }

    fn match_results<'a>(&mut self, messages: &[Arc<Message>], calls: &mut [Call<'a>]) {
        let mut open: HashMap<&'a str, Vec<usize>> = HashMap::new();
        let mut without_call = Vec::new();
        let mut last_said = None;
        let mut next = 0;
        for (at, message) in messages.iter().enumerate() {
            match &**message {
                Message::User(_) => last_said = Some(at),
                Message::Assistant(_) if sent_answer(message).is_some() => {
                    last_said = Some(at);
                    while let Some(call) = calls.get(next).filter(|call| call.message == at) {
                        open.entry(&call.call.id).or_default().push(next);
                        self.called.insert(call.call.id.clone());
                        next += 1;
                    }
                }
                Message::Assistant(answer) => {
                    let ids = answer.tool_calls().map(|call| call.id.clone());
                    self.unsent.extend(ids);
                }
                Message::ToolResult(result) => {
                    let same_id = open.get_mut(result.tool_call_id.as_str());
                    let same_id = same_id.filter(|same_id| !same_id.is_empty());
                    match (same_id, is_placeholder(result)) {
                        (Some(same_id), true) => {
                            let answered = answered_call(calls, same_id, &result.tool_name);
                            calls[same_id[answered]].has_placeholder = true;
                        }
                        (Some(same_id), false) => {
                            let answered = answered_call(calls, same_id, &result.tool_name);
                            let call = &mut calls[same_id.remove(answered)];
                            call.result = Some(at);
                            if last_said != Some(call.message) {
                                self.tally.add(Damage::DisplacedResult);
                            }
                        }
                        (None, true) => {}
                        (None, false) if self.unsent.contains(&result.tool_call_id) => {}
                        (None, false) => {
                            without_call.push(WithoutCall {
                                at,
                                id: &result.tool_call_id,
                                is_second: self.called.contains(&result.tool_call_id),
                            });
                        }
                    }
                }
                _ => {}
            }
        }
        let unanswered = open.iter().filter(|(_, calls)| !calls.is_empty());
        self.unanswered
            .extend(unanswered.map(|(id, _)| (*id).to_owned()));
        self.claim_early(calls, &mut open, without_call);
        for index in open.into_values().flatten() {
            if !calls[index].has_placeholder {
                self.tally.add(Damage::CallWithoutResult);
            }
        }
    }

    /// Gives results that stand before their call to it.
    fn claim_early(
        &mut self,
        calls: &mut [Call<'_>],
        open: &mut HashMap<&str, Vec<usize>>,
        without_call: Vec<WithoutCall<'_>>,
    ) {
        for WithoutCall { at, id, is_second } in without_call {
            let same_id = open.get_mut(id);
            let later = same_id.and_then(|same_id| {
                let later = same_id
                    .iter()
                    .position(|index| calls[*index].message > at)?;
                Some(same_id.remove(later))
            });
            match later {
                Some(index) => {
                    calls[index].result = Some(at);
                    self.tally.add(Damage::DisplacedResult);
                }
                None => {
                    self.unclaimed.insert(id.to_owned());
                    self.tally.add(match is_second {
                        true => Damage::SurplusResult,
                        false => Damage::ResultWithoutCall,
                    });
                }
            }
        }
    }
}

/// A result that no call before it waits for.
struct WithoutCall<'a> {
    at: usize,
    id: &'a str,
    /// A call before it has that id, and its result.
    is_second: bool,
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
    /// A stored [`NO_RESULT`] answers it, unless a real result does.
    has_placeholder: bool,
}

impl Call<'_> {
    fn is_open(&self) -> bool {
        self.result.is_none()
    }
}

/// The calls of an answer and where they are. Models and proxies that repeat a call do so word for
/// word; it ran once.
fn distinct_calls(answer: &AssistantMessage) -> impl Iterator<Item = (usize, &ToolCall)> {
    let blocks = answer.content.iter().enumerate();
    let calls = blocks.filter_map(|(block, content)| Some((block, content.as_tool_call()?)));
    calls.filter(|(block, call)| {
        let mut before = answer.content[..*block]
            .iter()
            .filter_map(Content::as_tool_call);
        call.id.is_empty() || !before.any(|other| repeats(other, call))
    })
}

fn repeats(one: &ToolCall, other: &ToolCall) -> bool {
    one.id == other.id && one.name == other.name && one.arguments == other.arguments
}

/// Which of the open calls with its id a result answers: of the last message that has one the
/// first, or the first of the result's tool.
fn answered_call(calls: &[Call<'_>], open: &[usize], tool: &str) -> usize {
    let last = open.last().map_or(0, |index| calls[*index].message);
    let first = open.partition_point(|index| calls[*index].message < last);
    let mut of_last = open[first..].iter();
    first
        + of_last
            .position(|index| calls[*index].call.name == tool)
            .unwrap_or(0)
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

/// A stored [`NO_RESULT`] is no result: it would keep a real one out.
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

//! Repair: which answers and results are sent, where, and under which id (M18).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::damage::{Damage, Repair, Tally};
use super::edit::{count_damage, prepare_answer, prepare_result, prepare_user};
use super::ids::{AnyId, IdRule, short_hash, tool_name};
use super::matching::{Call, Matching, Past, distinct_calls};
use crate::message::{AssistantMessage, Content, Message, StopReason, ToolResultMessage};
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
    past: Past,
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
        if self.past.is_changed_by(messages) {
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
        Matching::new(&mut self.past, &mut self.tally, &mut calls).run(messages);
        for message in messages {
            count_damage(message, &mut self.tally);
        }
        calls
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
            let mut own = HashSet::new();
            for (block, call) in distinct_calls(answer) {
                // Some services count anew with every answer, and that is no damage.
                if !own.insert(call.id.as_str()) && !call.id.is_empty() {
                    self.tally.add(Damage::UnusableId);
                }
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

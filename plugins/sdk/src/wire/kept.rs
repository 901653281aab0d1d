//! The converted conversation, kept between its requests, so that a turn costs what the turn adds.
//!
//! Messages that were part of the previous request are the same `Arc`s; what was made of them stays.
//! Everything else follows from them in order, so a request is the same as one built at once, byte
//! for byte. When something earlier changed, the whole is built anew.

use std::sync::Arc;

use crate::history::{ContextEstimate, IdRule, Preparer};
use crate::message::{Message, SystemMessage};
use crate::model::Model;

/// How a wire converts a conversation that grows.
pub trait Convert: Default {
    /// What the conversion depends on besides the messages.
    type Target: IdRule + PartialEq;

    /// Takes all system messages so far: at the start, and when one was added. Answers false when
    /// they change what the messages before became; it is then called once more, on a new value.
    fn lead(&mut self, systems: &[&SystemMessage], target: &Self::Target) -> bool;

    /// Converts what [`Preparer`] made of the next messages.
    fn append(&mut self, messages: &[Arc<Message>], target: &Self::Target);
}

/// What is kept of a conversation.
#[derive(Debug)]
pub struct Kept<C: Convert> {
    target: Option<C::Target>,
    sources: Vec<Arc<Message>>,
    systems: Vec<Arc<Message>>,
    preparer: Preparer,
    converted: C,
    estimate: ContextEstimate,
}

impl<C: Convert> Default for Kept<C> {
    fn default() -> Self {
        Self {
            target: None,
            sources: Vec::new(),
            systems: Vec::new(),
            preparer: Preparer::default(),
            converted: C::default(),
            estimate: ContextEstimate::default(),
        }
    }
}

impl<C: Convert> Kept<C> {
    /// Makes this the conversion of exactly these messages.
    pub fn update(&mut self, model: &Model, target: C::Target, messages: &[Arc<Message>]) {
        if self.target.as_ref() == Some(&target) && self.begins(messages) {
            let new = &messages[self.sources.len()..];
            if self.append(model, &target, new) {
                return;
            }
        }
        *self = Self::default();
        // A conversion from the start has nothing before it to change.
        self.append(model, &target, messages);
        self.target = Some(target);
    }

    /// What the messages became.
    #[must_use]
    pub fn converted(&self) -> &C {
        &self.converted
    }

    /// How full the request is.
    #[must_use]
    pub fn estimate(&self) -> ContextEstimate {
        self.estimate
    }

    fn begins(&self, messages: &[Arc<Message>]) -> bool {
        let common = self.sources.iter().zip(messages);
        self.sources.len() <= messages.len() && common.into_iter().all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// Converts the next messages; false when they change what was converted before.
    fn append(&mut self, model: &Model, target: &C::Target, new: &[Arc<Message>]) -> bool {
        let known = self.systems.len();
        let added = new.iter().filter(|message| as_system(message).is_some());
        self.systems.extend(added.cloned());
        if self.systems.len() > known || self.sources.is_empty() {
            let systems: Vec<_> = self.systems.iter().filter_map(|m| as_system(m)).collect();
            let stays = self.converted.lead(&systems, target);
            if !stays && !self.sources.is_empty() {
                return false;
            }
        }
        let Some(prepared) = self.preparer.extend(new, model, target) else {
            return false;
        };
        self.converted.append(&prepared, target);
        for message in new {
            self.estimate.add(message);
        }
        self.sources.extend_from_slice(new);
        true
    }
}

fn as_system(message: &Message) -> Option<&SystemMessage> {
    match message {
        Message::System(system) => Some(system),
        _ => None,
    }
}

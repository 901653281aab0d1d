//! The converted conversation, kept between its requests, so that a turn costs what the turn adds.
//!
//! Messages that were part of the previous request are the same `Arc`s; their bytes are copied.
//! Everything else follows from them in order, so the body is the same as one built at once, byte
//! for byte. When something earlier changed, the whole is built anew.

use std::sync::Arc;

use pliant_sdk::Model;
use pliant_sdk::history::{self, ContextEstimate, Preparer};
use pliant_sdk::message::{Message, SystemMessage, Tool};
use serde_json::{Value, json};

use crate::messages::{Items, Plan, Target};
use crate::quirks::Quirks;
use crate::tools::{declare, grammars, is_declarable};

/// What is kept of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Prefix {
    target: Option<Target>,
    sources: Vec<Arc<Message>>,
    systems: Vec<Arc<Message>>,
    preparer: Preparer,
    pub(crate) plan: Plan,
    pub(crate) head: Head,
    pub(crate) items: Items,
    pub(crate) estimate: ContextEstimate,
}

/// What stands before the messages: prompt and tools.
#[derive(Debug, Default)]
pub(crate) struct Head {
    /// The leading system message, unless its text is empty.
    pub(crate) system: Option<Value>,
    /// The declarations.
    pub(crate) tools: Vec<Value>,
    /// The declarations as JSON.
    pub(crate) tools_bytes: Vec<u8>,
    /// Why a tool cannot be declared; fails the request.
    pub(crate) refused: Option<String>,
}

impl Prefix {
    /// Makes this the conversion of exactly these messages.
    pub(crate) fn update(&mut self, model: &Model, quirks: &Quirks, messages: &[Arc<Message>]) {
        let target = Target {
            provider: model.provider.clone(),
            api: model.api.clone(),
            model: model.id.clone(),
            reasoning: model.reasoning,
            images: model.takes_images(),
            quirks: quirks.clone(),
        };
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

    fn begins(&self, messages: &[Arc<Message>]) -> bool {
        let common = self.sources.iter().zip(messages);
        self.sources.len() <= messages.len() && common.into_iter().all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// Converts the next messages; false when they change what was converted before.
    fn append(&mut self, model: &Model, target: &Target, new: &[Arc<Message>]) -> bool {
        let known = self.systems.len();
        let added = new.iter().filter(|message| as_system(message).is_some());
        self.systems.extend(added.cloned());
        if self.systems.len() > known || self.sources.is_empty() {
            let (plan, head) = lead(&self.systems, target);
            if plan != self.plan && !self.sources.is_empty() {
                return false;
            }
            (self.plan, self.head) = (plan, head);
        }
        let Some(prepared) = self.preparer.extend(new, model, target) else {
            return false;
        };
        self.items.append(&prepared, target, &self.plan);
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

/// What leads, and what may stand in place. Without support for it nothing may: the prompt is then
/// the replay of all system messages (M11).
fn lead(systems: &[Arc<Message>], target: &Target) -> (Plan, Head) {
    let systems: Vec<&SystemMessage> = systems.iter().filter_map(|m| as_system(m)).collect();
    let quirks = &target.quirks;
    let all = systems.len();
    let prompts = if quirks.system_in_place {
        all.min(1)
    } else {
        all
    };
    let folded_until = match quirks.tools_in_place {
        true => last_fold(&systems),
        false => usize::MAX,
    };
    let mut tools = Vec::new();
    let mut declared_tools = Vec::new();
    for (index, system) in systems.iter().enumerate() {
        history::patch_tools(&mut tools, system);
        if index <= folded_until {
            history::patch_tools(&mut declared_tools, system);
        }
    }
    tools.retain(is_declarable);
    declared_tools.retain(is_declarable);
    let prompt = history::replay(systems[..prompts].iter().copied());
    let text = prompt
        .map(|prompt| history::render(&prompt))
        .unwrap_or_default();
    let (values, refused) = declare_all(&declared_tools, &tools, quirks);
    let head = Head {
        system: (!text.is_empty()).then(|| json!({"role": target.system_role(), "content": text})),
        tools_bytes: serde_json::to_vec(&values).unwrap_or_default(),
        tools: values,
        refused,
    };
    let plan = Plan {
        folded_until,
        grammars: grammars(&tools, quirks),
    };
    (plan, head)
}

/// The declarations of the leading tools, and what is wrong with any tool.
fn declare_all(leading: &[Tool], all: &[Tool], quirks: &Quirks) -> (Vec<Value>, Option<String>) {
    let declared = leading.iter().filter_map(|tool| declare(tool, quirks).ok());
    let refused = all.iter().find_map(|tool| declare(tool, quirks).err());
    (declared.collect(), refused)
}

/// The last system message that withdraws a tool or declares one again: everything up to it must be
/// folded into the leading list, because a service only takes additions in place.
fn last_fold(systems: &[&SystemMessage]) -> usize {
    let mut declared = Vec::new();
    let mut fold = 0;
    for (index, system) in systems.iter().enumerate() {
        let mut added = system.tools_added.iter().flatten();
        let removes = system.tools_removed.iter().flatten().count() > 0;
        if removes || added.any(|tool| declared.contains(&tool.name.as_str())) {
            fold = index;
        }
        let added = system.tools_added.iter().flatten();
        declared.extend(added.map(|tool| tool.name.as_str()));
    }
    fold
}

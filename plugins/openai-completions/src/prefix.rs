//! The converted conversation: what leads it, which the system messages decide, and its messages.

use std::sync::Arc;

use pliant_sdk::history;
use pliant_sdk::message::{Message, SystemMessage, Tool};
use pliant_sdk::wire::tools::is_declarable;
use pliant_sdk::wire::{Convert, Kept};
use serde_json::{Value, json};

use crate::messages::{Items, Plan, Target};
use crate::quirks::Quirks;
use crate::tools::{declare, grammars};

/// What is kept of a conversation.
pub(crate) type Prefix = Kept<Conversation>;

/// A conversation in the words of the wire.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) plan: Plan,
    pub(crate) head: Head,
    pub(crate) items: Items,
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

impl Convert for Conversation {
    type Target = Target;

    fn lead(&mut self, systems: &[&SystemMessage], target: &Target) -> bool {
        let (plan, head) = lead(systems, target);
        let stays = plan == self.plan;
        (self.plan, self.head) = (plan, head);
        stays
    }

    fn append(&mut self, messages: &[Arc<Message>], target: &Target) {
        self.items.append(messages, target, &self.plan);
    }
}

/// What leads, and what may stand in place. Without support for it nothing may: the prompt is then
/// the replay of all system messages (M11).
fn lead(systems: &[&SystemMessage], target: &Target) -> (Plan, Head) {
    let quirks = &target.quirks;
    let all = systems.len();
    let prompts = if quirks.system_in_place {
        all.min(1)
    } else {
        all
    };
    let folded_until = match quirks.tools_in_place {
        true => last_fold(systems),
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

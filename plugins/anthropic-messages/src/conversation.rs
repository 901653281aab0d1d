//! The converted conversation: what leads it, which the system messages decide, and its messages.

use std::sync::Arc;

use pliant_sdk::history;
use pliant_sdk::message::{Message, SystemMessage, Tool};
use pliant_sdk::wire::Convert;
use pliant_sdk::wire::tools::is_declarable;
use serde_json::{Value, json};

use crate::messages::{Items, Target};
use crate::tools::declare;

/// A tool that is declared and never there. A service that takes tools between the messages puts a
/// text of its own before them once there is one that comes later; with this, the text is there from
/// the first request on, and the cache holds when a tool really comes.
const PLACEHOLDER: &str = "__pliant_deferred_placeholder__";

/// A conversation in the words of the wire.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) head: Head,
    pub(crate) items: Items,
}

/// What stands before the messages: prompt and tools.
#[derive(Debug, Default)]
pub(crate) struct Head {
    /// The prompt; empty when there is none.
    pub(crate) system: String,
    /// The declarations.
    pub(crate) tools: Vec<Value>,
    /// Declarations that stand behind the others and are not cached.
    pub(crate) deferred: Option<Value>,
    /// Some tool is strict, and need not be.
    pub(crate) prefers_strict: bool,
    /// Why a tool cannot be declared; fails the request.
    pub(crate) refused: Option<String>,
    /// Later tools stand where they were added.
    pub(crate) tools_in_place: bool,
}

impl Convert for Conversation {
    type Target = Target;

    fn lead(&mut self, systems: &[&SystemMessage], target: &Target) -> bool {
        let before = self.head.tools_in_place;
        self.head = lead(systems, target);
        self.head.tools_in_place == before
    }

    fn append(&mut self, messages: &[Arc<Message>], target: &Target) {
        let tools_in_place = self.head.tools_in_place;
        self.items.append(messages, target, tools_in_place);
    }
}

/// What leads. Without support for system messages in place, the prompt is the replay of all (M11).
fn lead(systems: &[&SystemMessage], target: &Target) -> Head {
    let quirks = &target.quirks;
    let all = systems.len();
    let prompts = match quirks.system_in_place {
        true => all.min(1),
        false => all,
    };
    let prompt = history::replay(systems[..prompts].iter().copied());
    let system = prompt.map(|prompt| history::render(&prompt));
    // A list of later tools only is refused, so there must be one to begin with.
    let mut initial = Vec::new();
    if let Some(first) = systems.first() {
        history::patch_tools(&mut initial, first);
    }
    initial.retain(is_declarable);
    let tools_in_place = quirks.tools_in_place && !initial.is_empty();
    let (tools, later) = match tools_in_place {
        true => (initial, added_later(systems)),
        false => {
            let mut current = Vec::new();
            for system in systems {
                history::patch_tools(&mut current, system);
            }
            current.retain(is_declarable);
            (current, Vec::new())
        }
    };
    let mut head = Head {
        system: system
            .filter(|text| !text.trim().is_empty())
            .unwrap_or_default(),
        tools_in_place,
        deferred: tools_in_place.then(placeholder),
        ..Head::default()
    };
    for tool in &tools {
        if let Some(value) = head.declare(tool, target) {
            head.tools.push(value);
        }
    }
    for tool in later {
        head.declare(tool, target);
    }
    head
}

impl Head {
    fn declare(&mut self, tool: &Tool, target: &Target) -> Option<Value> {
        match declare(tool, target.style) {
            Ok(declared) => {
                self.prefers_strict |= declared.prefers_strict;
                Some(declared.value)
            }
            Err(reason) => {
                self.refused.get_or_insert(reason);
                None
            }
        }
    }
}

fn added_later<'a>(systems: &[&'a SystemMessage]) -> Vec<&'a Tool> {
    let later = systems.iter().skip(1);
    let added = later.flat_map(|system| system.tools_added.iter().flatten());
    added.filter(|tool| is_declarable(tool)).collect()
}

fn placeholder() -> Value {
    json!({
        "name": PLACEHOLDER,
        "description": "Reserved. There is no such tool; it cannot be called.",
        "input_schema": {"type": "object", "properties": {}, "required": []},
        "defer_loading": true,
    })
}

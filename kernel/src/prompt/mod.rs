//! The system prompt as named sections, and the difference between what a transcript says and what
//! is wanted (`kernel.md` §1.3–1.4). A change is a patch by section name, never a new prompt, so that
//! the cached prefix of a conversation stays valid.

mod edits;
mod files;
mod inputs;
mod sections;
mod source;

use std::sync::Arc;

use pliant_sdk::history::replay;
use pliant_sdk::message::{Message, MessageContent, SystemMessage, Tool};
use serde_json::{Map, Value};

use crate::resources::Resources;

pub use edits::PromptEdits;
pub use files::{PromptFiles, context_files};
pub use inputs::{ContextFile, PromptInputs, SkillInput};
pub use sections::{rendered, sections};
pub use source::PromptSource;

/// The prompt and tool state that a transcript adds up to (M9). Fed message by message.
#[derive(Debug, Clone, Default)]
pub struct PromptState {
    replayed: Option<SystemMessage>,
}

impl PromptState {
    /// Takes the next message of the transcript.
    pub fn take(&mut self, message: &Message) {
        if let Message::System(patch) = message {
            let messages: Vec<&SystemMessage> = self.replayed.iter().chain([patch]).collect();
            self.replayed = replay(messages);
        }
    }

    /// Tools declared so far.
    #[must_use]
    pub fn tools(&self) -> &[Tool] {
        self.replayed
            .as_ref()
            .and_then(|state| state.tools_added.as_deref())
            .unwrap_or_default()
    }

    /// The patch that makes the sections the wanted ones; `None` when nothing changed (M15).
    #[must_use]
    pub fn patch(&self, wanted: &[(String, String)], now_ms: i64) -> Option<Message> {
        let empty = Map::new();
        let said = self
            .replayed
            .as_ref()
            .and_then(|state| state.sections.as_ref())
            .unwrap_or(&empty);
        let mut changes = Map::new();
        for (name, text) in wanted {
            if said.get(name).and_then(Value::as_str) != Some(text) {
                changes.insert(name.clone(), Value::String(text.clone()));
            }
        }
        for (name, text) in said {
            if text.is_string() && !wanted.iter().any(|(wanted, _)| wanted == name) {
                changes.insert(name.clone(), Value::Null);
            }
        }
        (!changes.is_empty()).then(|| {
            Message::System(SystemMessage {
                content: MessageContent::Text(String::new()),
                sections: Some(changes),
                timestamp: now_ms,
                ..SystemMessage::default()
            })
        })
    }
}

/// What the prompt is built from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PromptOptions {
    /// Replaces the built-in introduction; tools, rules and docs are left out then (M13).
    pub custom: Option<String>,
    /// Added at the end of the built-in part.
    pub addendum: Option<String>,
    /// Context files: path and content.
    pub context_files: Vec<(String, String)>,
    /// Skills that the model may be told of; prompts name them and templates too.
    pub resources: Arc<Resources>,
    /// Working directory.
    pub cwd: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect()
    }

    #[test]
    fn a_patch_names_only_what_changed_and_nulls_what_vanished() {
        // M15
        let mut state = PromptState::default();
        let first = state
            .patch(
                &wanted(&[("preamble", "p"), ("rules", "r"), ("cwd", "/a")]),
                1,
            )
            .unwrap();
        state.take(&first);
        assert_eq!(
            state.patch(
                &wanted(&[("preamble", "p"), ("rules", "r"), ("cwd", "/a")]),
                2
            ),
            None
        );
        let Some(Message::System(patch)) =
            state.patch(&wanted(&[("preamble", "p"), ("cwd", "/b")]), 3)
        else {
            panic!("no patch")
        };
        assert_eq!(
            serde_json::to_value(patch.sections).unwrap(),
            serde_json::json!({"cwd": "/b", "rules": null})
        );
    }
}

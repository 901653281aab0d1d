//! Looking at the session's tree, for front ends.

use std::path::Path;
use std::sync::Arc;

use pliant_sdk::message::{Content, Message};

use super::Session;
use crate::tree::{Entry, EntryId, Nodes, Projection, Settings};

impl Session {
    /// Where the session works.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.0.cwd
    }

    /// All entries in the order of the file.
    #[must_use]
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        self.0.tree().entries().to_vec()
    }

    /// The entry of that name.
    #[must_use]
    pub fn entry(&self, id: &EntryId) -> Option<Arc<Entry>> {
        self.0.tree().entry(id).cloned()
    }

    /// From the root to an entry, or to where the session stands.
    #[must_use]
    pub fn branch(&self, from: Option<&EntryId>) -> Vec<Arc<Entry>> {
        let tree = self.0.tree();
        match from {
            Some(from) => tree.get_branch(from),
            None => tree.path_to_leaf().to_vec(),
        }
    }

    /// The whole tree.
    #[must_use]
    pub fn nodes(&self) -> Nodes {
        self.0.tree().nodes()
    }

    /// What the next entry will follow.
    #[must_use]
    pub fn leaf(&self) -> Option<EntryId> {
        self.0.tree().leaf().cloned()
    }

    /// The name of an entry.
    #[must_use]
    pub fn label(&self, id: &EntryId) -> Option<String> {
        let tree = self.0.tree();
        tree.label(id).map(|label| label.text.clone())
    }

    /// The context of the next request, and which entries it comes from (S32).
    #[must_use]
    pub fn projection(&self) -> Projection {
        self.0.tree().projection().clone()
    }

    /// The text of the last answer that says something, without white space around it.
    #[must_use]
    pub fn last_assistant_text(&self) -> Option<String> {
        let messages = self.messages();
        let answers = messages
            .iter()
            .rev()
            .filter_map(|message| message.as_assistant());
        let mut texts = answers.map(|answer| {
            let texts = answer.content.iter().filter_map(Content::as_text);
            texts.collect::<String>().trim().to_owned()
        });
        texts.find(|text| !text.is_empty())
    }

    /// What the user said, on every branch, in the order of the file: where the session can be forked.
    #[must_use]
    pub fn user_messages(&self) -> Vec<(EntryId, String)> {
        let entries = self.entries();
        let said = entries.iter().filter_map(|entry| {
            let message = entry.message()?;
            let Message::User(user) = &**message else {
                return None;
            };
            let text = user.content.joined_text("");
            (!text.is_empty()).then(|| (entry.id().clone(), text))
        });
        said.collect()
    }

    /// Model and thinking level that the branch says.
    #[must_use]
    pub fn branch_settings(&self) -> Settings {
        self.0.tree().settings().clone()
    }
}

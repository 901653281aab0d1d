//! Names of places in the tree, going to them, and letting the conversation be compacted.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Session;
use crate::error::Error;

/// How to go to another place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NavigateOptions {
    /// The model tells at the new place what happened on the branch that is left.
    pub summarize: bool,
    /// What the summary should keep in mind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
    /// The instructions replace what the model is asked otherwise.
    pub replace_instructions: bool,
    /// Names the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Navigated {
    /// The session is where it was: the user or a handler did not want it.
    pub cancelled: bool,
    /// What the user said at that place, to be said better.
    pub editor_text: Option<String>,
    /// The entry that tells of the branch that was left.
    pub summary_entry_id: Option<String>,
}

impl Session<'_> {
    /// Names the session; nothing takes the name away.
    ///
    /// # Errors
    /// As [`Session::info`], and when the session cannot be written.
    pub async fn set_name(&self, name: Option<&str>) -> Result<(), Error> {
        self.host
            .call("session.set_name", &json!({"name": name}))
            .await
    }

    /// Names an entry; nothing takes the name away.
    ///
    /// # Errors
    /// As [`Session::info`]; `not_found` when there is no such entry.
    pub async fn set_label(&self, entry_id: &str, label: Option<&str>) -> Result<(), Error> {
        let payload = json!({"entryId": entry_id, "label": label});
        self.host.call("session.set_label", &payload).await
    }

    /// Goes to an entry: what is said next follows it, or takes its place if the user said it. For
    /// commands only.
    ///
    /// # Errors
    /// As [`Session::info`]; `unavailable` in a handler or tool and while the session is at work,
    /// `not_found` when there is no such entry.
    pub async fn navigate(
        &self,
        entry_id: &str,
        options: &NavigateOptions,
    ) -> Result<Navigated, Error> {
        let mut payload = serde_json::to_value(options)?;
        payload["targetId"] = json!(entry_id);
        self.host.call("session.navigate", &payload).await
    }

    /// Stops the active run and has the conversation summarised. Answers at once; events tell how it
    /// ends.
    ///
    /// # Errors
    /// As [`Session::info`].
    pub async fn compact(&self, custom_instructions: Option<&str>) -> Result<(), Error> {
        let payload = json!({"customInstructions": custom_instructions});
        self.host.call("session.compact", &payload).await
    }
}

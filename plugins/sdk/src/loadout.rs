//! The tools in force, as a tool that orders others sees them, and what it may change of what the model
//! is told of them (`extensions.md` §4.3). It changes neither which tools are active nor what they do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::tool::{Exposure, ToolSpec};

/// The tools in force. Names are in the order of declaration or registration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadoutView {
    /// Told to the model: the active tools.
    pub declared: Vec<String>,
    /// May be called by other tools.
    pub callable: Vec<String>,
    /// All there are, hidden ones included.
    pub registered: Vec<ToolSpec>,
}

impl LoadoutView {
    /// The registration of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&ToolSpec> {
        self.registered.iter().find(|tool| tool.name == name)
    }

    /// Who may see and call the tool of that name.
    #[must_use]
    pub fn exposure(&self, name: &str) -> Option<Exposure> {
        self.get(name).map(|tool| tool.exposure)
    }
}

/// What the model is told otherwise. Of several tools that say something the later one counts, name by
/// name; hidden names are those of all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadoutChanges {
    /// Other descriptions, by name of the tool.
    pub descriptions: BTreeMap<String, String>,
    /// Tools that are left out of requests. They stay active and callable.
    pub hidden_declarations: Vec<String>,
}

impl LoadoutChanges {
    /// Describes a tool otherwise.
    #[must_use]
    pub fn describe(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.descriptions.insert(name.into(), text.into());
        self
    }

    /// Leaves a tool out of requests.
    #[must_use]
    pub fn hide(mut self, name: impl Into<String>) -> Self {
        self.hidden_declarations.push(name.into());
        self
    }
}

//! What the system prompt is built from, as handlers of `before_agent_start` see and edit it
//! (`extensions.md` §3.6).

use std::collections::BTreeSet;

use pliant_sdk::Error;
use pliant_sdk::tool::ToolSpec;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::PromptOptions;

/// Everything the prompt depends on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PromptInputs {
    /// Replaces the built-in introduction; tools, rules and docs are left out then (M13).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_prompt: Option<String>,
    /// Stands for the whole prompt in requests (P42).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_system_prompt: Option<String>,
    /// The active tools, in order.
    pub selected_tools: Vec<String>,
    /// Those of them that the model is not told of.
    pub hidden_tools: Vec<String>,
    /// A line for a tool.
    #[serde(deserialize_with = "texts")]
    pub tool_snippets: Map<String, Value>,
    /// Rules that go with a tool.
    #[serde(deserialize_with = "lists_of_texts")]
    pub tool_guidelines: Map<String, Value>,
    /// Other rules.
    pub prompt_guidelines: Vec<String>,
    /// Sections of plugins; one with the name of a built-in section takes its place.
    #[serde(deserialize_with = "texts")]
    pub sections: Map<String, Value>,
    /// Added at the end of the built-in part; nothing if empty.
    pub append_system_prompt: String,
    /// Working directory.
    pub cwd: String,
    /// Instructions of the user and the project.
    pub context_files: Vec<ContextFile>,
    /// The skills there are.
    pub skills: Vec<SkillInput>,
}

/// A file with instructions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextFile {
    /// Where it is.
    pub path: String,
    /// What it says.
    pub content: String,
}

/// A skill as the prompt speaks of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SkillInput {
    /// What it is called by.
    pub name: String,
    /// When it is good to use.
    pub description: String,
    /// Where it is.
    pub file_path: String,
    /// Only the user calls it.
    pub disable_model_invocation: bool,
}

impl PromptInputs {
    /// What options and active tools come to.
    #[must_use]
    pub fn new(options: &PromptOptions, active: &[&ToolSpec], hidden: &BTreeSet<String>) -> Self {
        let snippet = |tool: &&ToolSpec| {
            let snippet = tool.prompt_snippet.clone()?;
            Some((tool.name.clone(), Value::String(snippet)))
        };
        let guidelines = |tool: &&ToolSpec| {
            let rules = &tool.prompt_guidelines;
            (!rules.is_empty()).then(|| (tool.name.clone(), Value::from(rules.clone())))
        };
        let file = |(path, content): &(String, String)| ContextFile {
            path: path.clone(),
            content: content.clone(),
        };
        let skills = options.resources.skills().iter().map(|skill| SkillInput {
            name: skill.name.clone(),
            description: skill.description.clone(),
            file_path: skill.file.display().to_string(),
            disable_model_invocation: skill.hidden,
        });
        Self {
            custom_prompt: options.custom.clone(),
            selected_tools: active.iter().map(|tool| tool.name.clone()).collect(),
            hidden_tools: hidden.iter().cloned().collect(),
            tool_snippets: active.iter().filter_map(snippet).collect(),
            tool_guidelines: active.iter().filter_map(guidelines).collect(),
            append_system_prompt: options.addendum.clone().unwrap_or_default(),
            cwd: options.cwd.clone(),
            context_files: options.context_files.iter().map(file).collect(),
            skills: skills.collect(),
            ..Self::default()
        }
    }

    /// Checks the names of the sections that plugins bring (M14).
    ///
    /// # Errors
    /// Names the first that cannot be one.
    pub fn check_sections(&self) -> Result<(), Error> {
        match self.sections.keys().find(|name| !is_section_name(name)) {
            None => Ok(()),
            Some(name) => Err(Error::invalid(format!(
                "\"{name}\" cannot be the name of a prompt section: it begins with a small letter, goes on with small letters, digits, \"-\" and \"_\", and is not \"preamble\""
            ))),
        }
    }

    /// The active tools that the model is told of.
    pub(super) fn shown_tools(&self) -> impl Iterator<Item = &String> {
        let hidden = &self.hidden_tools;
        self.selected_tools
            .iter()
            .filter(move |name| !hidden.contains(name))
    }
}

fn is_section_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(fits)
        && name != "preamble"
}

fn texts<'de, D: Deserializer<'de>>(given: D) -> Result<Map<String, Value>, D::Error> {
    map_of(given, Value::is_string, "a text")
}

fn lists_of_texts<'de, D: Deserializer<'de>>(given: D) -> Result<Map<String, Value>, D::Error> {
    let is_list = |value: &Value| {
        let list = value.as_array();
        list.is_some_and(|list| list.iter().all(Value::is_string))
    };
    map_of(given, is_list, "a list of texts")
}

fn map_of<'de, D: Deserializer<'de>>(
    given: D,
    fits: impl Fn(&Value) -> bool,
    wanted: &str,
) -> Result<Map<String, Value>, D::Error> {
    let map = Map::deserialize(given)?;
    match map.iter().find(|(_, value)| !fits(value)) {
        None => Ok(map),
        Some((name, _)) => Err(D::Error::custom(format!("\"{name}\" is not {wanted}"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_section_has_a_plain_name_other_than_the_preambles() {
        // M14
        for (name, fits) in [
            ("a", true),
            ("style_2-b", true),
            ("docs", true),
            ("preamble", false),
            ("2a", false),
            ("_a", false),
            ("A", false),
            ("a b", false),
            ("ä", false),
            ("", false),
        ] {
            let inputs = PromptInputs {
                sections: Map::from_iter([(name.to_owned(), json!("x"))]),
                ..PromptInputs::default()
            };
            assert_eq!(inputs.check_sections().is_ok(), fits, "{name:?}");
        }
    }

    #[test]
    fn fields_of_a_wrong_type_cannot_be_read() {
        for wrong in [
            json!({"sections": {"a": 5}}),
            json!({"toolGuidelines": {"read": "x"}}),
            json!({"selectedTools": [1]}),
            json!({"cwd": []}),
        ] {
            let read: Result<PromptInputs, _> = serde_json::from_value(wrong.clone());
            assert!(read.is_err(), "{wrong}");
        }
    }
}

//! Which files the summarised part of a conversation read and changed (R36).

use std::collections::BTreeSet;
use std::sync::Arc;

use pliant_sdk::message::Message;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Paths as the model named them, each in one list only, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FileLists {
    /// Read and never changed.
    pub read_files: BTreeSet<String>,
    /// Written or edited.
    pub modified_files: BTreeSet<String>,
}

impl FileLists {
    /// What an earlier compaction noted, and what the calls of these messages name.
    pub(super) fn of<'a>(
        noted: Option<&Value>,
        messages: impl Iterator<Item = &'a Arc<Message>>,
    ) -> Self {
        let mut files = noted
            .and_then(|noted| Self::deserialize(noted).ok())
            .unwrap_or_default();
        for message in messages {
            match &**message {
                Message::Assistant(answer) => {
                    for call in answer.tool_calls() {
                        files.take(&call.name, call.arguments.get("path"));
                    }
                }
                Message::ToolResult(result) => files.take_nested(result.nested_calls.as_ref()),
                _ => {}
            }
        }
        let Self {
            read_files,
            modified_files,
        } = &mut files;
        read_files.retain(|path| !modified_files.contains(path));
        files
    }

    /// Calls that were made inside a call (T21).
    fn take_nested(&mut self, record: Option<&Value>) {
        let calls = record.and_then(|record| record.get("calls"));
        for call in calls.and_then(Value::as_array).into_iter().flatten() {
            let name = call.get("name").and_then(Value::as_str).unwrap_or_default();
            let arguments = call.get("arguments");
            self.take(name, arguments.and_then(|given| given.get("path")));
        }
    }

    fn take(&mut self, tool: &str, path: Option<&Value>) {
        let list = match tool {
            "read" => &mut self.read_files,
            "write" | "edit" => &mut self.modified_files,
            _ => return,
        };
        if let Some(path) = path.and_then(Value::as_str).filter(|path| !path.is_empty()) {
            list.insert(path.to_owned());
        }
    }

    /// The lists as the end of a summary; empty ones are left out.
    #[must_use]
    pub fn appendix(&self) -> String {
        let lists = [
            ("read-files", &self.read_files),
            ("modified-files", &self.modified_files),
        ];
        let mut text = String::new();
        for (tag, paths) in lists.into_iter().filter(|(_, paths)| !paths.is_empty()) {
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            text.push_str(&format!("\n\n<{tag}>\n{}\n</{tag}>", paths.join("\n")));
        }
        text
    }
}

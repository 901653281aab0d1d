//! Which files the summarised part of a conversation read and changed (R36).

use std::collections::BTreeSet;
use std::sync::Arc;

use pliant_sdk::message::Message;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Paths as the model named them, by what was done to them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FileOps {
    /// Read.
    pub read: BTreeSet<String>,
    /// Written whole.
    pub written: BTreeSet<String>,
    /// Changed in part.
    pub edited: BTreeSet<String>,
}

/// The same as it is stored and told: each path in one list only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FileLists {
    /// Read and never changed.
    pub read_files: BTreeSet<String>,
    /// Written or edited.
    pub modified_files: BTreeSet<String>,
}

impl FileOps {
    /// What the calls of these messages name.
    pub(super) fn of<'a>(messages: impl IntoIterator<Item = &'a Arc<Message>>) -> Self {
        let mut files = Self::default();
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
        files
    }

    /// Takes in what an earlier summary of ours noted.
    pub(super) fn take_noted(&mut self, noted: &Value) {
        let noted = FileLists::deserialize(noted).unwrap_or_default();
        self.read.extend(noted.read_files);
        self.edited.extend(noted.modified_files);
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
            "read" => &mut self.read,
            "write" => &mut self.written,
            "edit" => &mut self.edited,
            _ => return,
        };
        if let Some(path) = path.and_then(Value::as_str).filter(|path| !path.is_empty()) {
            list.insert(path.to_owned());
        }
    }

    /// Each path in one list only.
    #[must_use]
    pub fn lists(&self) -> FileLists {
        let modified_files = &self.written | &self.edited;
        FileLists {
            read_files: &self.read - &modified_files,
            modified_files,
        }
    }
}

impl FileLists {
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

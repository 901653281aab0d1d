//! The prompt and the tools in force: all system messages of a context folded into one
//! (`kernel.md` M9, M10).

use std::sync::Arc;

use pliant_sdk::message::{Message, MessageContent, SystemMessage, Tool, indexed::Sections};

/// Folds the system messages in order; `None` when there are none.
#[must_use]
pub fn replay(messages: &[Arc<Message>]) -> Option<SystemMessage> {
    let mut patches = messages.iter().filter_map(|message| match &**message {
        Message::System(system) => Some(system),
        _ => None,
    });
    let first = patches.next()?;
    let mut state = State::default();
    state.patch(first);
    patches.for_each(|system| state.patch(system));
    Some(SystemMessage {
        content: MessageContent::Text(state.texts.join("\n\n")),
        sections: Some(state.sections).filter(|sections| !sections.is_empty()),
        tools_added: Some(state.tools).filter(|tools| !tools.is_empty()),
        timestamp: first.timestamp,
        ..SystemMessage::default()
    })
}

#[derive(Default)]
struct State {
    texts: Vec<String>,
    sections: Sections,
    tools: Vec<Tool>,
}

impl State {
    fn patch(&mut self, system: &SystemMessage) {
        let text = system.content.joined_text("\n");
        if !text.is_empty() {
            self.texts.push(text);
        }
        for (name, value) in system.sections.iter().flatten() {
            // Only a string sets; a section of another type is no section (M8).
            if value.is_string() {
                self.sections.insert(name.clone(), value.clone());
            } else {
                self.sections.shift_remove(name);
            }
        }
        for removed in system.tools_removed.iter().flatten() {
            self.tools.retain(|tool| tool.name != removed.name);
        }
        for added in system.tools_added.iter().flatten() {
            match self.tools.iter_mut().find(|tool| tool.name == added.name) {
                Some(tool) => *tool = added.clone(),
                None => self.tools.push(added.clone()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn replayed(messages: Value) -> Value {
        let messages: Vec<Arc<Message>> = serde_json::from_value(messages).unwrap();
        serde_json::to_value(replay(&messages)).unwrap()
    }

    #[test]
    fn system_messages_fold_into_one_with_the_first_timestamp() {
        // M9, M10
        let tool =
            |name: &str, text: &str| json!({"name": name, "description": text, "parameters": {}});
        let folded = replayed(json!([
            {"role": "user", "content": "hi", "timestamp": 1},
            {"role": "system", "content": "one", "sections": {"a": "A", "b": "B", "c": "C"},
             "toolsAdded": [tool("x", "old"), tool("y", "y")], "timestamp": 2},
            {"role": "system", "content": "", "sections": {"a": null, "b": "B2"}, "timestamp": 3},
            {"role": "system", "content": [{"type": "text", "text": "two"}], "sections": {"a": "A3"},
             "toolsRemoved": [{"name": "y"}, {"name": "z"}], "toolsAdded": [tool("x", "new"), tool("z", "z")], "timestamp": 4},
        ]));
        let want = json!({"content": "one\n\ntwo", "sections": {"b": "B2", "c": "C", "a": "A3"},
            "toolsAdded": [tool("x", "new"), tool("z", "z")], "timestamp": 2});
        assert_eq!(folded.to_string(), want.to_string());
    }

    #[test]
    fn without_system_messages_there_is_no_result() {
        assert_eq!(
            replayed(json!([{"role": "user", "content": "hi", "timestamp": 1}])),
            Value::Null
        );
    }
}

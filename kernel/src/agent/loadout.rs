//! Tool declarations as messages: what the model was told is brought in line with what can be
//! executed before a batch enters the transcript (`kernel.md` L24–L26).

use pliant_sdk::message::{Message, SystemMessage, Tool, ToolName};

/// Adds the difference between the tools declared so far and the executable ones to a batch: to its
/// last system message if it has one, else as a system message of its own before the first message.
#[must_use]
pub fn declare_tools(
    declared: &[Tool],
    executable: &[Tool],
    mut batch: Vec<Message>,
    now_ms: i64,
) -> Vec<Message> {
    let changed = |tool: &&Tool| !declared.contains(tool);
    let added: Vec<Tool> = executable.iter().filter(changed).cloned().collect();
    let removed: Vec<ToolName> = declared
        .iter()
        .filter(|tool| !executable.contains(tool))
        .map(|tool| ToolName {
            name: tool.name.clone(),
        })
        .collect();
    let last_system = batch.iter_mut().rev().find_map(|message| match message {
        Message::System(system) => Some(system),
        _ => None,
    });
    let (added, removed) = (none_if_empty(added), none_if_empty(removed));
    match last_system {
        Some(system) => {
            system.tools_added = added;
            system.tools_removed = removed;
        }
        None if added.is_some() || removed.is_some() => {
            let patch = SystemMessage {
                content: pliant_sdk::message::MessageContent::Text(String::new()),
                tools_added: added,
                tools_removed: removed,
                timestamp: now_ms,
                ..SystemMessage::default()
            };
            batch.insert(0, Message::System(patch));
        }
        None => {}
    }
    batch
}

fn none_if_empty<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> Tool {
        Tool {
            name: name.into(),
            description: description.into(),
            ..Tool::default()
        }
    }

    #[test]
    fn a_changed_definition_is_removed_by_name_and_added_whole() {
        // L26
        let batch = declare_tools(
            &[tool("read", "old"), tool("ls", "same")],
            &[tool("read", "new"), tool("ls", "same")],
            vec![Message::user("hi", 1)],
            2,
        );
        let Message::System(patch) = &batch[0] else {
            panic!("no patch")
        };
        assert_eq!(
            patch.tools_removed,
            Some(vec![ToolName {
                name: "read".into()
            }])
        );
        assert_eq!(patch.tools_added, Some(vec![tool("read", "new")]));
        assert_eq!(batch.len(), 2);
    }

    #[test]
    fn nothing_is_said_when_nothing_changed() {
        let same = [tool("read", "r")];
        assert_eq!(
            declare_tools(&same, &same, vec![Message::user("hi", 1)], 2).len(),
            1
        );
    }
}

//! Tool declarations as messages: what the model was told is brought in line with what can be
//! executed before a batch enters the transcript (`kernel.md` L24–L26).

use std::borrow::Cow;

use pliant_sdk::history::patch_tools;
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
    let last = batch
        .iter()
        .rposition(|message| matches!(message, Message::System(_)));
    let mut declared = Cow::Borrowed(declared);
    // Earlier system messages of the batch are heard too; what the last one says of tools is replaced.
    for message in &batch[..last.unwrap_or(0)] {
        if let Message::System(earlier) = message
            && (earlier.tools_added.is_some() || earlier.tools_removed.is_some())
        {
            patch_tools(declared.to_mut(), earlier);
        }
    }
    let changed = |tool: &&Tool| !declared.contains(tool);
    let added: Vec<Tool> = executable.iter().filter(changed).cloned().collect();
    let removed: Vec<ToolName> = declared
        .iter()
        .filter(|tool| !executable.contains(tool))
        .map(|tool| ToolName {
            name: tool.name.clone(),
        })
        .collect();
    let last_system = last.and_then(|at| match &mut batch[at] {
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

    fn patch(message: &Message) -> (Vec<String>, Vec<String>) {
        let Message::System(patch) = message else {
            return (Vec::new(), Vec::new());
        };
        let added = patch.tools_added.iter().flatten();
        let removed = patch.tools_removed.iter().flatten();
        (
            added.map(|tool| tool.name.clone()).collect(),
            removed.map(|tool| tool.name.clone()).collect(),
        )
    }

    #[test]
    fn the_last_system_message_of_a_batch_says_what_the_others_do_not() {
        // L25
        let system = |added: Option<Vec<Tool>>| {
            Message::System(SystemMessage {
                tools_added: added,
                ..SystemMessage::default()
            })
        };
        let (read, ls) = (tool("read", ""), tool("ls", ""));
        let batch = vec![
            system(Some(vec![read.clone(), tool("gone", "")])),
            Message::user("hi", 1),
            system(Some(vec![tool("wrong", "")])),
        ];
        let batch = declare_tools(&[], &[read.clone(), ls.clone()], batch, 2);
        assert_eq!(batch.len(), 3);
        assert_eq!(
            patch(&batch[2]),
            (vec!["ls".to_owned()], vec!["gone".to_owned()])
        );
        // Nothing to say: it says nothing of tools.
        let same = [read];
        let batch = declare_tools(&same, &same, vec![system(Some(vec![ls]))], 2);
        assert_eq!(patch(&batch[0]), (Vec::new(), Vec::new()));
    }
}

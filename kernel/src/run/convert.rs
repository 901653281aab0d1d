//! From the messages of a session to the messages a model can be sent (`kernel.md` §1.5). Never
//! fails, never reorders (M16).

use std::sync::Arc;

use pliant_sdk::message::{
    BashExecutionMessage, Content, Extra, Message, MessageContent, UserMessage,
};

use super::images;

const COMPACTED: &str =
    "The earlier part of this conversation was compacted. This summary stands for it:";
const RETURNED: &str =
    "The conversation came back here from another branch. This summary tells what happened there:";

/// Converted messages, kept from request to request. A message that stays the same value converts to
/// the same value, which is how later layers know that nothing before it changed.
#[derive(Debug, Default)]
pub(super) struct Converted {
    from: Vec<Arc<Message>>,
    to: Vec<Arc<Message>>,
    /// For each source, how many converted messages there are up to it.
    ends: Vec<usize>,
    /// Images are left out.
    images_blocked: bool,
}

impl Converted {
    /// Brings the conversion up to date with the projection. Answers how many of the converted
    /// messages are those of the last time.
    pub(super) fn update(&mut self, projection: &[Arc<Message>]) -> usize {
        let common = self.from.iter().zip(projection);
        let same = common.take_while(|(a, b)| Arc::ptr_eq(a, b)).count();
        let kept = same.checked_sub(1).map_or(0, |last| self.ends[last]);
        self.from.truncate(same);
        self.ends.truncate(same);
        self.to.truncate(kept);
        for message in &projection[same..] {
            self.from.push(Arc::clone(message));
            let converted = convert(message);
            self.to.extend(match self.images_blocked {
                true => converted.map(images::without),
                false => converted,
            });
            self.ends.push(self.to.len());
        }
        kept
    }

    /// Whether images are left out from now on. A change of it converts everything anew.
    pub(super) fn block_images(&mut self, blocked: bool) {
        if self.images_blocked != blocked {
            *self = Self {
                images_blocked: blocked,
                ..Self::default()
            };
        }
    }

    /// The converted messages.
    pub(super) fn messages(&self) -> &[Arc<Message>] {
        &self.to
    }
}

/// One message as a model sees it; `None` when it sees nothing of it.
#[must_use]
pub(super) fn convert(message: &Arc<Message>) -> Option<Arc<Message>> {
    let (blocks, timestamp) = match &**message {
        Message::System(_) | Message::User(_) | Message::Assistant(_) | Message::ToolResult(_) => {
            return Some(Arc::clone(message));
        }
        Message::BashExecution(bash) if bash.exclude_from_context == Some(true) => return None,
        Message::BashExecution(bash) => (vec![Content::text(bash_text(bash))], bash.timestamp),
        Message::Custom(custom) => (custom.content.to_blocks(), custom.timestamp),
        Message::CompactionSummary(compaction) => {
            let text = format!(
                "{COMPACTED}\n\n<summary>\n{}\n</summary>",
                compaction.summary
            );
            (vec![Content::text(text)], compaction.timestamp)
        }
        Message::BranchSummary(branch) => {
            let text = format!("{RETURNED}\n\n<summary>\n{}</summary>", branch.summary);
            (vec![Content::text(text)], branch.timestamp)
        }
        Message::Other(_) => return None,
    };
    let content = MessageContent::Blocks(blocks);
    Some(Arc::new(Message::User(UserMessage {
        content,
        timestamp,
        extra: Extra::new(),
    })))
}

fn bash_text(bash: &BashExecutionMessage) -> String {
    let mut text = format!("Ran `{}`\n", bash.command);
    if bash.output.is_empty() {
        text.push_str("(no output)");
    } else {
        text.push_str(&format!("```\n{}\n```", bash.output));
    }
    if bash.cancelled {
        text.push_str("\n\n(command cancelled)");
    } else if let Some(code) = bash.exit_code.filter(|code| *code != 0) {
        text.push_str(&format!("\n\nCommand exited with code {code}"));
    }
    if let (true, Some(path)) = (bash.truncated, &bash.full_output_path) {
        text.push_str(&format!("\n\n[Output truncated. Full output: {path}]"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(message: Message) -> Option<String> {
        match &*convert(&Arc::new(message))? {
            Message::User(user) => Some(user.content.joined_text("")),
            other => panic!("converted to {}", other.role()),
        }
    }

    #[test]
    fn a_command_of_the_user_becomes_text_with_its_outcome() {
        let bash = BashExecutionMessage {
            command: "make".into(),
            output: "no rule".into(),
            exit_code: Some(2),
            ..Default::default()
        };
        assert_eq!(
            text_of(Message::BashExecution(bash.clone())).unwrap(),
            "Ran `make`\n```\nno rule\n```\n\nCommand exited with code 2"
        );
        let quiet = BashExecutionMessage {
            output: String::new(),
            cancelled: true,
            exit_code: None,
            ..bash.clone()
        };
        assert_eq!(
            text_of(Message::BashExecution(quiet)).unwrap(),
            "Ran `make`\n(no output)\n\n(command cancelled)"
        );
        let hidden = BashExecutionMessage {
            exclude_from_context: Some(true),
            ..bash
        };
        assert_eq!(text_of(Message::BashExecution(hidden)), None);
    }

    #[test]
    fn messages_that_stay_convert_to_the_same_values() {
        let mut converted = Converted::default();
        let bash = Message::BashExecution(BashExecutionMessage {
            command: "ls".into(),
            ..Default::default()
        });
        let mut projection = vec![Arc::new(Message::user("a", 1)), Arc::new(bash)];
        assert_eq!(converted.update(&projection), 0);
        let first = converted.messages().to_vec();
        // What a model sees nothing of takes no place.
        projection.push(Arc::new(Message::Other(serde_json::Value::Null)));
        projection.push(Arc::new(Message::user("b", 2)));
        assert_eq!(converted.update(&projection), 2);
        let second = converted.messages().to_vec();
        assert!(first.iter().zip(&second).all(|(a, b)| Arc::ptr_eq(a, b)));
        assert_eq!(second.len(), 3);
        assert_eq!(converted.update(&projection[..3]), 2);
        assert_eq!(converted.messages().len(), 2);
    }
}

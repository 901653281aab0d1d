//! Images that the user keeps from models: a text stands for each (M17).

use std::sync::Arc;

use pliant_sdk::message::{Content, Message, MessageContent};

/// Stands for an image, and for a run of them.
const BLOCKED: &str = "(image omitted: the user's settings keep images from models)";

/// The message without its images; the same value if it has none.
pub(super) fn without(message: Arc<Message>) -> Arc<Message> {
    let blocks = match &*message {
        Message::User(user) => match &user.content {
            MessageContent::Blocks(blocks) => blocks,
            MessageContent::Text(_) => return message,
        },
        Message::ToolResult(result) => &result.content,
        _ => return message,
    };
    if !blocks.iter().any(is_image) {
        return message;
    }
    let blocks = replaced(blocks);
    let mut edited = Message::clone(&message);
    match &mut edited {
        Message::User(user) => user.content = MessageContent::Blocks(blocks),
        Message::ToolResult(result) => result.content = blocks,
        _ => {}
    }
    Arc::new(edited)
}

fn replaced(blocks: &[Content]) -> Vec<Content> {
    let mut texts: Vec<Content> = Vec::with_capacity(blocks.len());
    for block in blocks {
        let block = match block {
            Content::Image(_) => Content::text(BLOCKED),
            other => other.clone(),
        };
        let repeats = |last: &Content| is_placeholder(last) && is_placeholder(&block);
        if !texts.last().is_some_and(repeats) {
            texts.push(block);
        }
    }
    texts
}

fn is_image(block: &Content) -> bool {
    matches!(block, Content::Image(_))
}

fn is_placeholder(block: &Content) -> bool {
    block.as_text() == Some(BLOCKED)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_stands_for_a_run_of_images_in_user_messages_and_results() {
        // M17
        let image = json!({"type": "image", "data": "QQ==", "mimeType": "image/png"});
        let text = json!({"type": "text", "text": "t"});
        for role in ["user", "toolResult"] {
            let content = json!([image, image, text, image]);
            let message = Message::from(json!({"role": role, "content": content}));
            let edited = serde_json::to_value(without(Arc::new(message))).unwrap();
            let blocked = json!({"type": "text", "text": BLOCKED});
            assert_eq!(edited["content"], json!([blocked, text, blocked]));
        }
    }

    #[test]
    fn a_message_without_images_stays_the_same_value() {
        for content in [json!("t"), json!([{"type": "text", "text": "t"}])] {
            let message = Arc::new(Message::from(json!({"role": "user", "content": content})));
            assert!(Arc::ptr_eq(&without(Arc::clone(&message)), &message));
        }
    }
}

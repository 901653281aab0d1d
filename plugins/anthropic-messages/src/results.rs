//! A run of tool results → the blocks of one message of the user (`providers.md` §3.1).

use std::sync::Arc;

use pliant_sdk::message::{Content, Message, ToolResultMessage, joined_text};
use serde_json::{Value, json};

use crate::messages::{image_block, text_block, visible_block};

/// Stands for an image of a failed call: services take nothing but text there.
const MOVED: &str = "(image attached after the tool results)";

const ONLY_IMAGES: &str = "(see attached image)";

/// The blocks of the results that the messages begin with, and how many those are.
pub(crate) fn blocks(messages: &[Arc<Message>]) -> (Vec<Value>, usize) {
    let mut blocks = Vec::new();
    let mut moved = Vec::new();
    let mut taken = 0;
    for message in messages {
        let Message::ToolResult(result) = &**message else {
            break;
        };
        taken += 1;
        let content = match has_image(result) {
            true if result.is_error => {
                moved.extend(images_of(result));
                json!(text_instead(result))
            }
            true => json!(with_images(result)),
            false => json!(joined_text(&result.content, "\n")),
        };
        blocks.push(json!({
            "type": "tool_result", "tool_use_id": result.tool_call_id, "content": content,
            "is_error": result.is_error,
        }));
    }
    blocks.extend(moved);
    (blocks, taken)
}

fn has_image(result: &ToolResultMessage) -> bool {
    let mut blocks = result.content.iter();
    blocks.any(|block| matches!(block, Content::Image(_)))
}

fn with_images(result: &ToolResultMessage) -> Vec<Value> {
    let mut blocks: Vec<Value> = result.content.iter().filter_map(visible_block).collect();
    if blocks.iter().all(|block| block["type"] == "image") {
        blocks.insert(0, text_block(ONLY_IMAGES));
    }
    blocks
}

/// The texts, with a note for each run of images.
fn text_instead(result: &ToolResultMessage) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for block in &result.content {
        match block {
            Content::Text(text) => lines.push(&text.text),
            Content::Image(_) if lines.last() != Some(&MOVED) => lines.push(MOVED),
            _ => {}
        }
    }
    lines.join("\n")
}

fn images_of(result: &ToolResultMessage) -> Vec<Value> {
    let ToolResultMessage {
        tool_call_id: id,
        tool_name: tool,
        ..
    } = result;
    let caption = format!("Images from the error result of tool call {id} ({tool}):");
    let images = result.content.iter().filter_map(|block| match block {
        Content::Image(image) => Some(image_block(image)),
        _ => None,
    });
    std::iter::once(text_block(&caption))
        .chain(images)
        .collect()
}

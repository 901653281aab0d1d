//! Blocks: what of a message the target model can get (`providers.md` §6).

use std::sync::Arc;

use super::damage::{Damage, Tally};
use super::ids::tool_name;
use super::image::{self, DAMAGED, OMITTED, OMITTED_OF_TOOL};
use super::matching::Call;
use super::repair::{is_same_model, sent_answer};
use crate::message::{
    AssistantMessage, Content, Message, MessageContent, ToolCall, ToolResultMessage, UserMessage,
};
use crate::model::Model;

/// What becomes of a block.
enum Edit {
    Keep,
    Drop,
    Replace(Box<Content>),
}

impl Edit {
    fn replace(block: Content) -> Self {
        Self::Replace(Box::new(block))
    }
}

/// The edited blocks; `None` when all are kept as they are.
fn edit<'a>(
    blocks: &'a [Content],
    mut rule: impl FnMut(usize, &'a Content) -> Edit,
) -> Option<Vec<Content>> {
    let edits: Vec<Edit> = blocks
        .iter()
        .enumerate()
        .map(|(index, block)| rule(index, block))
        .collect();
    if edits.iter().all(|edit| matches!(edit, Edit::Keep)) {
        return None;
    }
    let edited = blocks
        .iter()
        .zip(edits)
        .filter_map(|(block, edit)| match edit {
            Edit::Keep => Some(block.clone()),
            Edit::Drop => None,
            Edit::Replace(block) => Some(*block),
        });
    Some(edited.collect())
}

/// Text and images only. An image that cannot be seen becomes a placeholder, a run of them one.
fn edit_visible(blocks: &[Content], model: &Model, omitted: &str) -> Option<Vec<Content>> {
    let takes_images = model.takes_images();
    let mut before = None;
    edit(blocks, |_, block| match block {
        Content::Text(text) => {
            before = Some(text.text.as_str());
            Edit::Keep
        }
        Content::Image(image) => {
            let placeholder = match takes_images {
                true if image::is_usable(image) => {
                    before = None;
                    return Edit::Keep;
                }
                true => DAMAGED,
                false => omitted,
            };
            match before.replace(placeholder) == Some(placeholder) {
                true => Edit::Drop,
                false => Edit::replace(Content::text(placeholder)),
            }
        }
        Content::Thinking(_) | Content::ToolCall(_) | Content::Other(_) => Edit::Drop,
    })
}

/// Counts the blocks that are dropped or replaced for what they are.
pub(super) fn count_damage(message: &Message, tally: &mut Tally) {
    match message {
        Message::User(UserMessage {
            content: MessageContent::Blocks(blocks),
            ..
        }) => count_visible(blocks, tally),
        Message::ToolResult(result) => count_visible(&result.content, tally),
        _ => {
            let blocks = sent_answer(message).map(|answer| answer.content.iter());
            for block in blocks.into_iter().flatten() {
                if matches!(block, Content::Other(_)) {
                    tally.add(Damage::UnreadableBlock);
                }
            }
        }
    }
}

fn count_visible(blocks: &[Content], tally: &mut Tally) {
    for block in blocks {
        match block {
            Content::Text(_) => {}
            Content::Image(image) if image::is_usable(image) => {}
            Content::Image(_) => tally.add(Damage::UnusableImage),
            _ => tally.add(Damage::UnreadableBlock),
        }
    }
}

pub(super) fn prepare_user(
    message: &Arc<Message>,
    user: &UserMessage,
    model: &Model,
) -> Arc<Message> {
    let edited = match &user.content {
        MessageContent::Text(_) => None,
        MessageContent::Blocks(blocks) => edit_visible(blocks, model, OMITTED),
    };
    match edited {
        None => Arc::clone(message),
        Some(blocks) => Arc::new(Message::User(UserMessage {
            content: MessageContent::Blocks(blocks),
            timestamp: user.timestamp,
            extra: user.extra.clone(),
        })),
    }
}

pub(super) fn prepare_result(
    message: &Arc<Message>,
    result: &ToolResultMessage,
    model: &Model,
    call: &Call<'_>,
) -> Arc<Message> {
    let content = edit_visible(&result.content, model, OMITTED_OF_TOOL);
    let name = tool_name(&call.call.name);
    if content.is_none() && result.tool_call_id == call.id && result.tool_name == name {
        return Arc::clone(message);
    }
    Arc::new(Message::ToolResult(ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: name.into_owned(),
        content: content.unwrap_or_else(|| result.content.clone()),
        is_error: result.is_error,
        timestamp: result.timestamp,
        ..ToolResultMessage::default()
    }))
}

pub(super) fn prepare_answer(
    message: &Arc<Message>,
    answer: &AssistantMessage,
    model: &Model,
    calls: &[Call<'_>],
) -> Arc<Message> {
    let same_model = is_same_model(answer, model);
    // In the order of the blocks, as the calls are.
    let mut rest = calls.iter().peekable();
    let edited = edit(&answer.content, |index, block| match block {
        Content::ToolCall(call) => match rest.next_if(|sent| sent.block == index) {
            Some(sent) => edit_call(call, &sent.id, same_model),
            None => Edit::Drop,
        },
        Content::Text(text) if !same_model && text.text_signature.is_some() => {
            Edit::replace(Content::text(text.text.clone()))
        }
        Content::Text(_) => Edit::Keep,
        Content::Thinking(thinking) => {
            let signed = thinking.thinking_signature.as_ref();
            let carries = signed.is_some_and(|signature| !signature.is_empty())
                || thinking.redacted == Some(true)
                || !thinking.thinking.trim().is_empty();
            if same_model && carries {
                Edit::Keep
            } else {
                Edit::Drop
            }
        }
        Content::Image(_) | Content::Other(_) => Edit::Drop,
    });
    match edited {
        None => Arc::clone(message),
        Some(content) => Arc::new(Message::Assistant(AssistantMessage {
            content,
            api: answer.api.clone(),
            provider: answer.provider.clone(),
            model: answer.model.clone(),
            usage: answer.usage.clone(),
            stop_reason: answer.stop_reason,
            timestamp: answer.timestamp,
            response_id: answer.response_id.clone(),
            provider_thinking_level: answer.provider_thinking_level.clone(),
            thinking_level: answer.thinking_level,
            ..AssistantMessage::default()
        })),
    }
}

fn edit_call(call: &ToolCall, id: &str, same_model: bool) -> Edit {
    let name = tool_name(&call.name);
    let keeps_signature = same_model || call.thought_signature.is_none();
    if keeps_signature && call.id == id && call.name == name {
        return Edit::Keep;
    }
    Edit::replace(Content::ToolCall(ToolCall {
        id: id.to_owned(),
        name: name.into_owned(),
        thought_signature: call.thought_signature.clone().filter(|_| same_model),
        ..call.clone()
    }))
}

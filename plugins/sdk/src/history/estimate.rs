//! How full a request is, and how much room that leaves for the answer.

use super::repair::sent_answer;
use crate::message::{Content, Message, MessageContent};

/// No context holds more; a usage that says so is damaged.
const MOST_TOKENS: u64 = 1_000_000_000;

/// How many tokens a request will hold (`providers.md` §1.3), message by message: what the newest
/// trustworthy answer reported, plus 3.5 characters per token for everything after it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ContextEstimate {
    tokens: u64,
    newest: i64,
}

impl ContextEstimate {
    /// A count that is known.
    #[must_use]
    pub fn of_tokens(tokens: u64) -> Self {
        Self {
            tokens: tokens.min(MOST_TOKENS),
            newest: 0,
        }
    }

    /// Counts the next message of the transcript.
    pub fn add(&mut self, message: &Message) {
        let reported = sent_answer(message).map(|answer| answer.usage.context_tokens());
        match reported.filter(|tokens| (1..=MOST_TOKENS).contains(tokens)) {
            // An answer older than what stands before it was made for another context.
            Some(tokens) if timestamp(message) >= self.newest => self.tokens = tokens,
            _ => self.tokens += (message_chars(message) * 2).div_ceil(7),
        }
        self.newest = self.newest.max(timestamp(message));
    }

    /// The estimate.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The output limit that leaves the input its place in the model's window.
    #[must_use]
    pub fn clamp_output(&self, cap: u64, window: u64) -> u64 {
        const MARGIN: u64 = 4096;
        const SMALL_ROOM: u64 = 32_768;
        if window == 0 {
            return cap;
        }
        let room = |margin| window.saturating_sub(self.tokens).saturating_sub(margin);
        let margin = MARGIN.max((self.tokens * 15).div_ceil(100));
        let room = match room(margin) {
            small if small < SMALL_ROOM => SMALL_ROOM.min(room(MARGIN)),
            large => large,
        };
        cap.min(room.max(1))
    }
}

fn timestamp(message: &Message) -> i64 {
    match message {
        Message::System(message) => message.timestamp,
        Message::User(message) => message.timestamp,
        Message::Assistant(message) => message.timestamp,
        Message::ToolResult(message) => message.timestamp,
        _ => 0,
    }
}

/// Characters that a message adds to a request, in UTF-16 units, as services count them when they
/// count characters (`kernel.md` R17). An image counts as if it had 4800.
#[must_use]
pub fn message_chars(message: &Message) -> u64 {
    match message {
        Message::System(message) => {
            let sections = message.sections.iter().flatten();
            let sections: u64 = sections
                .filter_map(|(_, value)| value.as_str())
                .map(utf16_len)
                .sum();
            let tools = message.tools_added.iter().map(json_chars).sum::<u64>();
            content_chars(&message.content) + sections + tools
        }
        Message::User(message) => content_chars(&message.content),
        Message::Assistant(message) => message.content.iter().map(block_chars).sum(),
        Message::ToolResult(message) => message.content.iter().map(block_chars).sum(),
        Message::BashExecution(bash) => utf16_len(&bash.command) + utf16_len(&bash.output),
        Message::Custom(message) => content_chars(&message.content),
        Message::CompactionSummary(message) => utf16_len(&message.summary),
        Message::BranchSummary(message) => utf16_len(&message.summary),
        Message::Other(_) => 0,
    }
}

fn content_chars(content: &MessageContent) -> u64 {
    match content {
        MessageContent::Text(text) => utf16_len(text),
        MessageContent::Blocks(blocks) => blocks.iter().map(block_chars).sum(),
    }
}

fn block_chars(block: &Content) -> u64 {
    const IMAGE_CHARS: u64 = 4800;
    match block {
        Content::Text(block) => utf16_len(&block.text),
        Content::Image(_) => IMAGE_CHARS,
        Content::Thinking(block) => utf16_len(&block.thinking),
        Content::ToolCall(call) => utf16_len(&call.name) + json_chars(&call.arguments),
        Content::Other(_) => 0,
    }
}

fn json_chars(value: &impl serde::Serialize) -> u64 {
    serde_json::to_string(value).map_or(0, |json| utf16_len(&json))
}

fn utf16_len(text: &str) -> u64 {
    let units = if text.is_ascii() {
        text.len()
    } else {
        text.encode_utf16().count()
    };
    u64::try_from(units).unwrap_or(u64::MAX)
}

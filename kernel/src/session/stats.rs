//! What a session has come to: numbers over its whole file, whatever branch they are on
//! (`interfaces.md` §8.2).

use std::path::PathBuf;

use pliant_sdk::message::{Message, Usage};
use pliant_sdk::session::ContextUsage;
use serde::Serialize;

use super::Session;

/// Counts, tokens and cost of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStats {
    /// Where it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_file: Option<PathBuf>,
    /// Its id.
    pub session_id: String,
    /// Messages of the user.
    pub user_messages: usize,
    /// Answers.
    pub assistant_messages: usize,
    /// Calls in the answers.
    pub tool_calls: usize,
    /// Results of them.
    pub tool_results: usize,
    /// All messages.
    pub total_messages: usize,
    /// Tokens of everything that was asked of models, summaries included.
    pub tokens: TokenStats,
    /// What that cost, USD.
    pub cost: f64,
    /// How full the context is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_usage: Option<ContextUsage>,
}

/// Tokens by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenStats {
    /// Sent, without what a cache held.
    pub input: u64,
    /// Answered.
    pub output: u64,
    /// Read from a cache.
    pub cache_read: u64,
    /// Written to a cache.
    pub cache_write: u64,
    /// All of them.
    pub total: u64,
}

impl From<&Usage> for TokenStats {
    fn from(usage: &Usage) -> Self {
        Self {
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            total: usage.input + usage.output + usage.cache_read + usage.cache_write,
        }
    }
}

impl Session {
    /// The numbers as of now.
    pub async fn stats(&self) -> SessionStats {
        let context_usage = self.context_usage().await;
        let mut stats = SessionStats {
            session_file: self.file(),
            session_id: self.header().id.to_string(),
            context_usage,
            ..SessionStats::default()
        };
        let entries = self.entries();
        for message in entries.iter().filter_map(|entry| entry.message()) {
            stats.count(message);
        }
        let tree = self.0.tree();
        let usage = tree.usage_totals();
        stats.tokens = usage.into();
        stats.cost = usage.cost.total;
        drop(tree);
        stats
    }
}

impl SessionStats {
    fn count(&mut self, message: &Message) {
        match message {
            Message::User(_) => self.user_messages += 1,
            Message::Assistant(answer) => {
                self.assistant_messages += 1;
                self.tool_calls += answer.tool_calls().count();
            }
            Message::ToolResult(_) => self.tool_results += 1,
            _ => {}
        }
        self.total_messages += 1;
    }
}

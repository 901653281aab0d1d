//! What an append costs: the write alone, and with the context of the next request behind it in a
//! session that grows to 10,000 turns.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pliant_kernel::tree::{Ids, SessionTree};
use pliant_sdk::message::{
    AssistantMessage, Content, Message, StopReason, ToolCall, ToolResultMessage,
};

const APPENDS: usize = 5_000;
const TURNS: usize = 10_050;
/// Around the 10th and the 10,000th.
const EARLY: std::ops::Range<usize> = 5..55;
const LATE: std::ops::Range<usize> = TURNS - 50..TURNS;

/// Appends results of 2 KB to a session; microseconds of each.
pub fn append(path: &Path) -> Vec<f64> {
    let mut tree = open(path);
    let text = "a line of what a tool found in a file\n".repeat(50);
    let append = |number| {
        let message = result(number, &text);
        let start = Instant::now();
        tree.append_message(message).expect("there is room");
        us(start.elapsed())
    };
    (0..APPENDS).map(append).collect()
}

/// Microseconds of turns.
pub struct Turns {
    /// Around the 10th.
    pub early_us: Vec<f64>,
    /// Around the 10,000th.
    pub late_us: Vec<f64>,
}

/// Appends whole turns, asking for the context after each message as a run does.
pub fn turns(path: &Path) -> Turns {
    let mut tree = open(path);
    let mut turn = |number| {
        let messages = messages_of_turn(number);
        let count = messages.len();
        let start = Instant::now();
        for message in messages {
            tree.append_message(message).expect("there is room");
            assert!(!tree.context().is_empty());
        }
        #[expect(clippy::cast_precision_loss, reason = "four")]
        let count = count as f64;
        us(start.elapsed()) / count
    };
    let all: Vec<f64> = (0..TURNS).map(&mut turn).collect();
    Turns {
        early_us: all[EARLY].to_vec(),
        late_us: all[LATE].to_vec(),
    }
}

fn open(path: &Path) -> SessionTree {
    SessionTree::open(path, Path::new("/work/demo"), Ids::system()).expect("the path is ours")
}

fn messages_of_turn(number: usize) -> [Arc<Message>; 4] {
    let call = Content::ToolCall(ToolCall {
        id: format!("call_{number}"),
        name: "read".into(),
        ..ToolCall::default()
    });
    [
        Arc::new(Message::user("and what is in the next file?", 1)),
        answer(call, StopReason::ToolUse),
        result(number, "a few words\n"),
        answer(Content::text("the same again"), StopReason::Stop),
    ]
}

fn answer(content: Content, stop_reason: StopReason) -> Arc<Message> {
    Arc::new(Message::Assistant(AssistantMessage {
        content: vec![content],
        api: "openai-completions".into(),
        provider: "oai".into(),
        model: "plain".into(),
        stop_reason,
        ..AssistantMessage::default()
    }))
}

fn result(number: usize, text: &str) -> Arc<Message> {
    Arc::new(Message::ToolResult(ToolResultMessage {
        tool_call_id: format!("call_{number}"),
        tool_name: "read".into(),
        content: vec![Content::text(text)],
        ..ToolResultMessage::default()
    }))
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

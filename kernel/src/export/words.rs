//! Short forms of what is long: times, amounts, and the first words of an entry for the tree.

use pliant_sdk::message::{
    AssistantMessage, Content, Message, MessageContent, SystemMessage, ToolCall,
};
use serde_json::Value;

use crate::tree::{Entry, EntryBody, Replacement, iso_from_ms, ms_from_iso};

/// Characters of a line of the tree.
const MOST: usize = 120;

/// One line of the tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Gist {
    /// What kind of line it is; filters go by it.
    pub(super) class: &'static str,
    pub(super) words: String,
}

/// The line of an entry. What nobody reads in a conversation is `quiet`.
pub(super) fn gist(entry: &Entry) -> Gist {
    let (class, words) = match entry.body() {
        EntryBody::Message(message) => of_message(message),
        EntryBody::CustomMessage(custom) => {
            let class = if custom.display { "custom" } else { "quiet" };
            (
                class,
                format!("{}: {}", custom.custom_type, of_content(&custom.content)),
            )
        }
        EntryBody::Compaction(compaction) => (
            "summary",
            format!("Compaction: {}", first_words(&compaction.summary, MOST)),
        ),
        EntryBody::BranchSummary(summary) => (
            "summary",
            format!("Branch summary: {}", first_words(&summary.summary, MOST)),
        ),
        EntryBody::ContextEdit(edit) => match &edit.replacement {
            Replacement::Omit => ("quiet", format!("{} is left out", edit.target_id)),
            Replacement::Content(_) => ("quiet", format!("{} is replaced", edit.target_id)),
        },
        EntryBody::ModelChange(change) => (
            "note",
            format!("model: {}/{}", change.provider, change.model_id),
        ),
        EntryBody::ThinkingLevelChange(change) => {
            ("quiet", format!("thinking: {}", change.thinking_level))
        }
        EntryBody::Usage(usage) => ("quiet", format!("usage: {}", usage.kind)),
        EntryBody::Custom(custom) => ("quiet", format!("data: {}", custom.custom_type)),
        EntryBody::Label(change) => (
            "quiet",
            format!("label: {}", change.label.as_deref().unwrap_or("none")),
        ),
        EntryBody::SessionInfo(info) => ("quiet", format!("name: {}", info.name)),
        EntryBody::Other(other) => ("quiet", other.type_name.clone()),
    };
    let words = match class {
        "answer" | "summary" | "custom" => without_marks(&words),
        _ => words,
    };
    Gist {
        class,
        words: first_words(&words, MOST),
    }
}

/// Marks of Markdown say nothing on a line of the tree.
fn without_marks(words: &str) -> String {
    let words = words
        .split_whitespace()
        .filter(|word| !word.bytes().all(|byte| byte == b'#'));
    let words: Vec<_> = words.collect();
    words.join(" ").replace("**", "").replace('`', "")
}

fn of_message(message: &Message) -> (&'static str, String) {
    match message {
        Message::System(system) => ("quiet", format!("system: {}", of_system(system))),
        Message::User(user) => ("user", of_content(&user.content)),
        Message::Assistant(answer) => of_answer(answer),
        Message::ToolResult(result) => {
            let sign = if result.is_error { "✗" } else { "✓" };
            (
                "result",
                format!(
                    "{sign} {}: {}",
                    result.tool_name,
                    of_blocks(&result.content)
                ),
            )
        }
        Message::BashExecution(run) => {
            ("command", format!("$ {}", first_words(&run.command, MOST)))
        }
        Message::Custom(custom) => {
            let class = if custom.display { "custom" } else { "quiet" };
            (
                class,
                format!("{}: {}", custom.custom_type, of_content(&custom.content)),
            )
        }
        Message::CompactionSummary(summary) => ("summary", first_words(&summary.summary, MOST)),
        Message::BranchSummary(summary) => ("summary", first_words(&summary.summary, MOST)),
        Message::Other(_) => ("quiet", message.role().to_owned()),
    }
}

/// What a system message changes.
fn of_system(system: &SystemMessage) -> String {
    let mut parts = vec![of_content(&system.content)];
    parts.extend(
        system
            .sections
            .iter()
            .flat_map(|sections| sections.keys().cloned()),
    );
    let added = system.tools_added.iter().flatten();
    parts.extend(added.map(|tool| format!("+{}", tool.name)));
    let removed = system.tools_removed.iter().flatten();
    parts.extend(removed.map(|tool| format!("-{}", tool.name)));
    parts.join(" ")
}

fn of_answer(answer: &AssistantMessage) -> (&'static str, String) {
    let said = of_blocks(&answer.content);
    let calls: Vec<String> = answer
        .tool_calls()
        .take(4)
        .map(|call| format!("→ {} {}", call.name, of_call(call, 60)))
        .collect();
    let calls = calls.join(" ");
    let failed = match &answer.error_message {
        Some(cause) if answer.stop_reason.is_failure() => {
            format!(" ✗ {}", first_words(cause, MOST))
        }
        _ if answer.stop_reason.is_failure() => format!(" ✗ {}", answer.stop_reason.as_str()),
        _ => String::new(),
    };
    let class = if said.is_empty() && failed.is_empty() && !calls.is_empty() {
        "calls"
    } else {
        "answer"
    };
    // Both are wanted on the line.
    let said = if calls.is_empty() {
        said
    } else {
        first_words(&said, MOST / 2)
    };
    (class, format!("{said} {calls}{failed}"))
}

pub(super) fn of_content(content: &MessageContent) -> String {
    match content {
        MessageContent::Text(text) => first_words(text, MOST),
        MessageContent::Blocks(blocks) => of_blocks(blocks),
    }
}

fn of_blocks(blocks: &[Content]) -> String {
    let mut words = String::new();
    for block in blocks.iter().take(MOST) {
        let more = match block {
            Content::Text(text) => first_words(&text.text, MOST),
            Content::Image(_) => "(image)".to_owned(),
            _ => continue,
        };
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(&more);
    }
    words
}

/// What a call is about: the argument that says it, else all of them.
pub(super) fn of_call(call: &ToolCall, most: usize) -> String {
    let text = |name: &str| call.arguments.get(name).and_then(Value::as_str);
    let about = match &*call.name {
        "bash" => text("command").map(|command| {
            let mut lines = command.trim().lines();
            let first = lines.next().unwrap_or_default().to_owned();
            if lines.next().is_some() {
                first + " …"
            } else {
                first
            }
        }),
        "grep" | "find" => text("pattern").map(|pattern| match text("path") {
            Some(path) => format!("{pattern} in {path}"),
            None => pattern.to_owned(),
        }),
        _ => ["path", "file_path", "url", "query", "name", "description"]
            .iter()
            .find_map(|name| text(name))
            .map(str::to_owned),
    };
    let all = || {
        let parts = call
            .arguments
            .iter()
            .take(8)
            .map(|(name, value)| match value {
                Value::String(text) => format!("{name}: {}", first_words(text, most)),
                value => format!("{name}: {}", first_words(&value.to_string(), most)),
            });
        parts.collect::<Vec<_>>().join(", ")
    };
    first_words(&about.unwrap_or_else(all), most)
}

/// The first words of a text on one line, without what is meant for a terminal.
pub(super) fn first_words(text: &str, most: usize) -> String {
    let mut line = String::new();
    // A little more than fits is enough to see that it does not fit.
    for word in text.split_whitespace().take(most + 1) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().filter(|c| !c.is_control()).take(most + 1));
        if line.len() > 4 * most + 4 {
            break;
        }
    }
    match line.char_indices().nth(most) {
        Some(_) => line.chars().take(most - 1).chain(['…']).collect(),
        None => line,
    }
}

/// `2026-11-30 21:04`, or the words that stand there if it is no time.
pub(super) fn minute(timestamp: &str) -> String {
    match ms_from_iso(timestamp) {
        Some(ms) => {
            let time = iso_from_ms(ms);
            time.get(..16).unwrap_or(&time).replace('T', " ")
        }
        None => first_words(timestamp, 30),
    }
}

/// `950`, `12.3k`, `4.5M`.
#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
pub(super) fn amount(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..1_000_000 => format!("{:.1}k", count as f64 / 1e3),
        _ => format!("{:.1}M", count as f64 / 1e6),
    }
}

/// `$0.0123`, `$4.56`.
pub(super) fn dollars(cost: f64) -> String {
    if cost.abs() < 1.0 {
        format!("${cost:.4}")
    } else {
        format!("${cost:.2}")
    }
}

/// `350 ms`, `12.3 s`, `4 min 10 s`.
#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
pub(super) fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{:.1} s", ms as f64 / 1e3),
        _ => format!("{} min {} s", ms / 60_000, ms / 1000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_are_short() {
        assert_eq!(first_words(" a\n\tb\u{1b}[1m  c ", 20), "a b[1m c");
        assert_eq!(first_words("abcdefg", 6), "abcde…");
        assert_eq!(first_words(&"é ".repeat(1_000_000), 5), "é é …");
        assert_eq!(
            [amount(999), amount(12_345), amount(4_500_000)],
            ["999", "12.3k", "4.5M"]
        );
        assert_eq!([dollars(0.01234), dollars(4.561)], ["$0.0123", "$4.56"]);
        assert_eq!(
            [duration(350), duration(12_340), duration(250_000)],
            ["350 ms", "12.3 s", "4 min 10 s"]
        );
        assert_eq!(minute("2026-11-30T21:04:05.000Z"), "2026-11-30 21:04");
        assert_eq!(minute("at\nnoon"), "at noon");
    }
}

//! What the plain prompt shows: the answer as it comes, everything else in a line.

use std::io::Write;

use pliant_sdk::event::CompactionReason;
use pliant_sdk::message::Message;
use pliant_sdk::{Event, StreamEvent};

use crate::modes::changes::lines;
use crate::modes::failure_of;
use crate::say::printable;

/// Stdout, and whether something stands in its last line. A terminal that cannot be written is gone;
/// the end of its input says so.
#[derive(Default)]
pub(super) struct Screen {
    in_line: bool,
}

impl Screen {
    pub(super) fn write(&mut self, text: &str) {
        let Some(last) = text.chars().next_back() else {
            return;
        };
        self.in_line = last != '\n';
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(printable(text).as_bytes());
        let _ = out.flush();
    }

    /// The user typed the end of the line.
    pub(super) fn typed_enter(&mut self) {
        self.in_line = false;
    }

    /// The terminal has shown something of its own, `^C`.
    pub(super) fn is_marked(&mut self) {
        self.in_line = true;
    }

    pub(super) fn end_line(&mut self) {
        if self.in_line {
            self.write("\n");
        }
    }

    /// Shows an event, if it is one to show.
    pub(super) fn show(&mut self, event: &Event) {
        match rendered(event) {
            Some(Shown::Text(text)) => self.write(&text),
            Some(Shown::Line(line)) => self.write_lines(&line),
            None => {}
        }
    }

    /// Writes lines of their own.
    pub(super) fn write_lines(&mut self, lines: &str) {
        self.end_line();
        self.write(lines);
        self.end_line();
    }
}

/// How an event is shown.
enum Shown {
    /// As it comes.
    Text(String),
    /// On a line of its own; an empty one ends the last.
    Line(String),
}

fn rendered(event: &Event) -> Option<Shown> {
    let line = match event {
        Event::MessageUpdate {
            assistant_message_event,
            ..
        } => match assistant_message_event {
            StreamEvent::TextDelta { delta, .. } => return Some(Shown::Text(delta.clone())),
            StreamEvent::TextEnd { .. } => String::new(),
            _ => return None,
        },
        Event::BashExecutionUpdate { delta, .. } => return Some(Shown::Text(delta.clone())),
        Event::MessageEnd { message } if matches!(**message, Message::Assistant(_)) => {
            format!("[{}]", failure_of(message)?)
        }
        Event::ToolExecutionStart {
            tool_name, args, ..
        } => format!("· {tool_name} {}", brief(args)),
        Event::ToolExecutionEnd {
            tool_name,
            is_error: true,
            result,
            ..
        } => {
            let text = pliant_sdk::message::joined_text(&result.content, " ");
            format!("· {tool_name} failed: {}", cut(&text, 200))
        }
        Event::Notice { message } => format!("[{message}]"),
        Event::ResourcesChanged { changes } => format!("[{}]", lines(changes).join("; ")),
        Event::AutoRetryStart {
            attempt,
            max_attempts,
            delay_ms,
            error_message,
        } => format!(
            "[attempt {attempt} of {max_attempts} in {} s, because the last one failed: {}]",
            delay_ms.div_ceil(1000),
            cut(error_message, 200)
        ),
        Event::CompactionStart { reason } => {
            format!(
                "[compacting the conversation, because {}]",
                because(*reason)
            )
        }
        // Whoever asked for it is answered the error.
        Event::CompactionEnd {
            reason: CompactionReason::Manual,
            error_message: Some(_),
            ..
        } => return None,
        Event::CompactionEnd {
            result,
            error_message,
            ..
        } => match (result, error_message) {
            (Some(done), _) => format!(
                "[compacted: about {} tokens instead of {}]",
                done.estimated_tokens_after, done.tokens_before
            ),
            (None, Some(message)) => format!("[{message}]"),
            (None, None) => "[the compaction was stopped]".to_owned(),
        },
        Event::SummarizationRetryScheduled {
            attempt,
            max_attempts,
            delay_ms,
            error_message,
        } => format!(
            "[attempt {attempt} of {max_attempts} at the summary in {} s, because the last one failed: {}]",
            delay_ms.div_ceil(1000),
            cut(error_message, 200)
        ),
        Event::ExtensionError {
            extension_path,
            event,
            error,
        } => format!("[{extension_path} failed at {event}: {error}]"),
        _ => return None,
    };
    Some(Shown::Line(line))
}

fn because(reason: CompactionReason) -> &'static str {
    match reason {
        CompactionReason::Manual => "you asked for it",
        CompactionReason::Threshold => "it fills the model's context window",
        CompactionReason::Overflow => "the request did not fit into the model's context window",
    }
}

/// The arguments in one short line: their values, strings bare.
fn brief(args: &serde_json::Value) -> String {
    let values = args.as_object().into_iter().flat_map(|map| map.values());
    let shown = values.map(|value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    });
    cut(&shown.collect::<Vec<_>>().join(" "), 120)
}

fn cut(text: &str, chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_in_one_short_line() {
        assert_eq!(
            brief(&serde_json::json!({"path": "a b", "limit": 3})),
            "a b 3"
        );
        assert_eq!(cut(&"x ".repeat(100), 5), "x x x…");
    }
}

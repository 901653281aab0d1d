//! A branch as a Markdown document, for people to read: what was said, as it was said, root to leaf.
//! What edits and compactions changed in later requests is noted, and nothing is left out for it.
//! Prompts, tool declarations and data of extensions are not in it; the JSONL export has everything.

mod quote;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::sync::Arc;

use pliant_sdk::message::{
    AssistantMessage, BashExecutionMessage, Content, Image, Message, MessageContent, StopReason,
    ToolCall, ToolResultMessage,
};

use quote::{code, fenced, quote, words};

use super::body::{EntryBody, Replacement};
use super::{Entry, EntryId, SessionTree};

impl SessionTree {
    /// The branch of the leaf as a Markdown document.
    #[must_use]
    pub fn export_markdown(&self) -> String {
        let mut document = String::new();
        // A string takes everything.
        let _ = self.write_markdown(&mut document);
        document
    }

    fn write_markdown(&self, out: &mut String) -> fmt::Result {
        let header = self.header();
        writeln!(out, "# {}\n", words(self.name().unwrap_or("Session")))?;
        writeln!(out, "- Session: {}", code(header.id.as_str()))?;
        writeln!(out, "- Begun: {}", when(&header.timestamp))?;
        writeln!(out, "- Directory: {}", code(&header.cwd.to_string_lossy()))?;
        if let Some(parent) = &header.parent_session {
            writeln!(out, "- Forked from: {}", code(&parent.to_string_lossy()))?;
        }
        let path = self.path_to_leaf();
        let edits = edits(path);
        for entry in path {
            let edit = edits.get(entry.id()).copied();
            let label = self.label(entry.id()).map(|label| &*label.text);
            Section { entry, edit, label }.write(out)?;
        }
        Ok(())
    }
}

/// The latest edit of each entry.
fn edits(path: &[Arc<Entry>]) -> HashMap<&EntryId, &Replacement> {
    let edits = path.iter().filter_map(|entry| match entry.body() {
        EntryBody::ContextEdit(edit) => Some((&edit.target_id, &edit.replacement)),
        _ => None,
    });
    edits.collect()
}

/// `2026-11-30 21:04 UTC`, or the words that stand there if it is no time.
fn when(timestamp: &str) -> String {
    match super::ms_from_iso(timestamp) {
        Some(ms) => {
            let time = super::iso_from_ms(ms);
            format!("{} {} UTC", &time[..10], &time[11..16])
        }
        None => words(timestamp),
    }
}

/// One entry with what is known of it elsewhere.
struct Section<'a> {
    entry: &'a Entry,
    edit: Option<&'a Replacement>,
    label: Option<&'a str>,
}

impl Section<'_> {
    fn write(&self, out: &mut String) -> fmt::Result {
        match self.entry.body() {
            EntryBody::Message(message) => self.message(out, message),
            EntryBody::CustomMessage(custom) => {
                self.heading(out, &format!("Extension {}", code(&custom.custom_type)))?;
                content(out, &custom.content)
            }
            EntryBody::Compaction(compaction) => {
                self.heading(out, "Summary of what was said before")?;
                said(out, &compaction.summary)
            }
            EntryBody::BranchSummary(summary) => {
                self.heading(out, "Summary of a branch that was left")?;
                said(out, &summary.summary)
            }
            EntryBody::ModelChange(change) => {
                let model = code(&format!("{}/{}", change.provider, change.model_id));
                write!(out, "\n*The model is {model} from here on.*\n")
            }
            EntryBody::ThinkingLevelChange(change) => {
                let level = code(&change.thinking_level);
                write!(out, "\n*The thinking level is {level} from here on.*\n")
            }
            _ => Ok(()),
        }
    }

    fn message(&self, out: &mut String, message: &Message) -> fmt::Result {
        match message {
            Message::User(user) => {
                self.heading(out, "User")?;
                content(out, &user.content)
            }
            Message::Assistant(answer) => {
                self.heading(out, "Assistant")?;
                write_answer(out, answer)
            }
            Message::ToolResult(result) => self.result(out, result),
            Message::BashExecution(run) => {
                self.heading(out, "Command of the user")?;
                write_command(out, run)
            }
            Message::Custom(custom) => {
                self.heading(out, &format!("Extension {}", code(&custom.custom_type)))?;
                content(out, &custom.content)
            }
            Message::CompactionSummary(summary) => {
                self.heading(out, "Summary of what was said before")?;
                said(out, &summary.summary)
            }
            Message::BranchSummary(summary) => {
                self.heading(out, "Summary of a branch that was left")?;
                said(out, &summary.summary)
            }
            Message::System(_) => Ok(()),
            Message::Other(value) => {
                self.heading(out, &format!("Message of role {}", code(message.role())))?;
                json(out, value)
            }
        }
    }

    fn heading(&self, out: &mut String, title: &str) -> fmt::Result {
        let time = when(self.entry.timestamp());
        write!(out, "\n## {title} · {time}")?;
        if let Some(label) = self.label {
            write!(out, " · {}", words(label))?;
        }
        out.push('\n');
        match self.edit {
            Some(Replacement::Omit) => out.write_str("\n*Left out of the context later on.*\n"),
            Some(Replacement::Content(_)) => {
                out.write_str("\n*Replaced in the context later on.*\n")
            }
            None => Ok(()),
        }
    }

    fn result(&self, out: &mut String, result: &ToolResultMessage) -> fmt::Result {
        let what = if result.is_error { "Error" } else { "Result" };
        self.heading(out, &format!("{what} of {}", code(&result.tool_name)))?;
        for block in &result.content {
            match block {
                Content::Text(text) => write!(out, "\n{}", fenced("", &text.text))?,
                other => write_block(out, other)?,
            }
        }
        Ok(())
    }
}

fn write_answer(out: &mut String, answer: &AssistantMessage) -> fmt::Result {
    let mut after_other = false;
    for block in &answer.content {
        let text = block.as_text();
        if text.is_some_and(str::is_empty) {
            continue;
        }
        if text.is_some() && after_other {
            out.write_str("\n### Answer\n")?;
        }
        after_other = text.is_none();
        write_block(out, block)?;
    }
    let cause = answer.error_message.as_deref().unwrap_or("no reason given");
    match answer.stop_reason {
        StopReason::Error => write!(out, "\n*The answer failed: {}*\n", code(cause)),
        StopReason::Aborted => out.write_str("\n*The answer was aborted.*\n"),
        StopReason::Length => out.write_str("\n*The answer was cut off at its limit.*\n"),
        _ => Ok(()),
    }
}

fn write_command(out: &mut String, run: &BashExecutionMessage) -> fmt::Result {
    write!(out, "\n{}", fenced("sh", &run.command))?;
    write!(out, "\n{}", fenced("", &run.output))?;
    match run.exit_code {
        Some(0) => Ok(()),
        Some(status) => write!(out, "\n*It ended with status {status}.*\n"),
        None => out.write_str("\n*It was cancelled.*\n"),
    }
}

fn content(out: &mut String, content: &MessageContent) -> fmt::Result {
    match content {
        MessageContent::Text(text) => said(out, text),
        MessageContent::Blocks(blocks) => {
            blocks.iter().try_for_each(|block| write_block(out, block))
        }
    }
}

fn write_block(out: &mut String, block: &Content) -> fmt::Result {
    match block {
        Content::Text(text) => said(out, &text.text),
        Content::Image(image) => write_image(out, image),
        Content::Thinking(thinking) if thinking.thinking.is_empty() => {
            out.write_str("\n*Thinking that the service keeps to itself.*\n")
        }
        Content::Thinking(thinking) => {
            out.write_str("\n### Thinking\n")?;
            said(out, &thinking.thinking)
        }
        Content::ToolCall(call) => write_call(out, call),
        Content::Other(value) => json(out, value),
    }
}

fn write_call(out: &mut String, call: &ToolCall) -> fmt::Result {
    write!(out, "\n### Call of {}\n", code(&call.name))?;
    let arguments = serde_json::to_string_pretty(&call.arguments).map_err(|_| fmt::Error)?;
    write!(out, "\n{}", fenced("json", &arguments))
}

fn write_image(out: &mut String, image: &Image) -> fmt::Result {
    // Four characters of Base64 hold three bytes.
    let kilobytes = (image.data.len() / 4 * 3).div_ceil(1000);
    let kind = code(&image.mime_type);
    write!(out, "\n*An image, {kind}, {kilobytes} kB*\n")
}

fn json(out: &mut String, value: &serde_json::Value) -> fmt::Result {
    let text = serde_json::to_string_pretty(value).map_err(|_| fmt::Error)?;
    write!(out, "\n{}", fenced("json", &text))
}

fn said(out: &mut String, text: &str) -> fmt::Result {
    match text.trim() {
        "" => Ok(()),
        _ => write!(out, "\n{}", quote(text)),
    }
}

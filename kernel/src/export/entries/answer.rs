//! What a model answered: thinking to open, words as Markdown, each call with its result.

use pliant_sdk::message::{AssistantMessage, Content, StopReason, Thinking};

use super::{Told, block, tool};
use crate::export::markup::Html;
use crate::export::words::{amount, dollars, duration};
use crate::export::{image, markdown};

pub(super) fn write(out: &mut Html, told: &Told<'_>, answer: &AssistantMessage) {
    told.open(out, "answer", "Assistant");
    for content in &answer.content {
        match content {
            Content::Text(text) if text.text.trim().is_empty() => {}
            Content::Text(text) => markdown::write(out, &text.text),
            Content::Thinking(thinking) => write_thinking(out, thinking),
            Content::ToolCall(call) => tool::write(out, call, told.results),
            Content::Image(picture) => image::write(out, picture),
            Content::Other(value) => block::json(out, value),
        }
    }
    ending(out, answer);
    cost(out, answer);
    told.close(out);
}

fn write_thinking(out: &mut Html, thinking: &Thinking) {
    if thinking.thinking.trim().is_empty() {
        // A signature alone, or what the service keeps to itself: there is nothing to open.
        if thinking.redacted == Some(true) {
            out.raw("<p class=\"remark\">Thinking that the service keeps to itself.</p>");
        }
        return;
    }
    out.raw("<details class=\"thinking\"><summary>Thinking</summary>");
    markdown::write(out, &thinking.thinking);
    out.raw("</details>");
}

/// Why it ended, unless it was done.
fn ending(out: &mut Html, answer: &AssistantMessage) {
    let (sentence, cause) = match answer.stop_reason {
        StopReason::Error => ("The answer failed", answer.error_message.as_deref()),
        StopReason::Aborted => ("The answer was aborted", None),
        StopReason::Length => ("The answer was cut off at its limit", None),
        StopReason::Deferred => ("The answer was to come later", None),
        _ => return,
    };
    out.raw("<p class=\"failure\">").raw(sentence);
    match cause {
        Some(cause) => drop(out.raw(": ").text(cause)),
        None => drop(out.raw(".")),
    }
    out.raw("</p>");
}

/// Who answered, and what it took.
fn cost(out: &mut Html, answer: &AssistantMessage) {
    let usage = &answer.usage;
    out.raw("<p class=\"cost\">").text(&answer.model);
    if let Some(level) = answer.thinking_level {
        out.raw(" · ").text(level.as_str());
    }
    let read = usage.input + usage.cache_read + usage.cache_write;
    if read + usage.output > 0 {
        out.raw(" · ")
            .text(&amount(read))
            .raw(" in · ")
            .text(&amount(usage.output))
            .raw(" out");
    }
    if usage.cost.total > 0.0 {
        out.raw(" · ").text(&dollars(usage.cost.total));
    }
    if let Some(ms) = answer.duration_ms {
        out.raw(" · ").text(&duration(ms));
    }
    out.raw("</p>");
}

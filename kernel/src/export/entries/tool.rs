//! A call of a tool and what came of it: one line that says what was done, with everything inside.

use pliant_sdk::message::{Content, ToolCall, ToolResultMessage};
use serde_json::Value;

use super::{Told, anchor, block};
use crate::export::markup::Html;
use crate::export::words::{duration, first_words, of_call};
use crate::export::{diff, highlight, image, markdown};

/// Characters of the line.
const MOST: usize = 160;

/// Characters that it has room for everywhere.
const FIT: usize = 40;

/// A difference of so many lines is shown without being asked for.
const SHORT: usize = 60;

/// A call, with the result that its answer has among its results.
pub(super) fn write(out: &mut Html, call: &ToolCall, results: &[(Told<'_>, &ToolResultMessage)]) {
    let found = results
        .iter()
        .find(|(_, result)| result.tool_call_id == call.id);
    let result = found.map(|(_, result)| *result);
    out.raw("<details class=\"tool");
    out.raw(if result.is_some_and(|result| result.is_error) {
        " failed"
    } else {
        ""
    });
    out.raw("\"")
        .raw(if is_open(call, result) { " open>" } else { ">" });
    out.raw("<summary><b>")
        .text(&call.name)
        .raw("</b> <span class=\"about\">");
    out.text(&of_call(call, MOST)).raw("</span>");
    status(out, call, result);
    out.raw("</summary>");
    arguments(out, call, result);
    match found {
        Some((told, result)) => {
            out.raw("<div class=\"result\" id=\"");
            anchor(out, told.entry.id());
            out.raw("\">");
            told.marks(out);
            told.edited(out);
            outcome(out, Some(call), result);
            out.raw("</div>");
        }
        None => drop(out.raw("<p class=\"remark\">It has no result on this branch.</p>")),
    }
    out.raw("</details>");
}

/// A result whose call is somewhere else.
pub(super) fn lone_result(out: &mut Html, told: &Told<'_>, result: &ToolResultMessage) {
    told.open(out, "lone", "Tool result");
    out.raw("<details class=\"tool");
    out.raw(if result.is_error {
        " failed\" open"
    } else {
        "\""
    });
    out.raw("><summary><b>").text(&result.tool_name).raw("</b>");
    out.raw(" <span class=\"about\">")
        .text(&result.tool_call_id)
        .raw("</span></summary>");
    outcome(out, None, result);
    out.raw("</details>");
    told.close(out);
}

/// Changes of files are what one wants to see; so are pictures and failures.
fn is_open(call: &ToolCall, result: Option<&ToolResultMessage>) -> bool {
    let Some(result) = result else {
        return false;
    };
    let pictures = result
        .content
        .iter()
        .any(|block| matches!(block, Content::Image(_)));
    let small_change =
        call.name == "edit" && change(result).is_none_or(|diff| diff.lines().count() <= SHORT);
    pictures || result.is_error || small_change
}

/// The difference that `edit` tells.
fn change(result: &ToolResultMessage) -> Option<&str> {
    result.details.as_ref()?.get("diff")?.as_str()
}

fn status(out: &mut Html, call: &ToolCall, result: Option<&ToolResultMessage>) {
    out.raw("<span class=\"status\">");
    let Some(result) = result else {
        out.raw("no result</span>");
        return;
    };
    if let Some(diff) = change(result).filter(|_| call.name == "edit") {
        let (added, removed) = diff::counts(diff);
        out.raw("<span class=\"plus\">+")
            .number(added)
            .raw("</span> <span class=\"minus\">−");
        out.number(removed).raw("</span> ");
    }
    if let Some(ms) = result.duration_ms {
        out.text(&duration(ms)).raw(" ");
    }
    out.raw(if result.is_error { "✗" } else { "✓" })
        .raw("</span>");
}

/// What it was called with, as far as the line has not said it.
fn arguments(out: &mut Html, call: &ToolCall, result: Option<&ToolResultMessage>) {
    let text = |name: &str| call.arguments.get(name).and_then(Value::as_str);
    if let Some(error) = &call.arguments_error {
        out.raw("<p class=\"failure\">").text(error).raw("</p>");
    }
    match (&*call.name, text("path")) {
        ("bash", _) if text("command").is_some() => {
            command(out, text("command").unwrap_or_default());
            rest(out, call, &["command"]);
        }
        ("write", Some(path)) => {
            place(out, path, call);
            markdown::block(
                out,
                highlight::of_path(path),
                text("content").unwrap_or_default(),
            );
            rest(out, call, &["path", "content"]);
        }
        ("edit", Some(path)) => {
            place(out, path, call);
            if result.and_then(change).is_none() {
                replacements(out, call);
            }
            rest(out, call, &["path", "edits", "oldText", "newText"]);
        }
        ("read" | "ls", Some(path)) => {
            place(out, path, call);
            rest(out, call, &["path", "offset", "limit"]);
        }
        _ => rest(out, call, &[]),
    }
}

/// The command, if the line had no room for it.
fn command(out: &mut Html, command: &str) {
    if command.len() > FIT || command.contains('\n') {
        out.raw("<pre class=\"command\"><code>")
            .text(command)
            .raw("</code></pre>");
    }
}

/// The path, if the line had no room for it, and the lines of it that were asked for.
fn place(out: &mut Html, path: &str, call: &ToolCall) {
    let asked = call.arguments.contains_key("offset") || call.arguments.contains_key("limit");
    if path.len() <= FIT && !asked {
        return;
    }
    let number = |name: &str| call.arguments.get(name).and_then(Value::as_u64);
    out.raw("<p class=\"path\">").text(path);
    match (number("offset"), number("limit")) {
        (None, None) => {}
        (from, None) => drop(out.raw(" from line ").number(from.unwrap_or(1))),
        (from, Some(count)) => {
            let from = from.unwrap_or(1);
            out.raw(" lines ")
                .number(from)
                .raw("–")
                .number(from.saturating_add(count).saturating_sub(1));
        }
    }
    out.raw("</p>");
}

fn replacements(out: &mut Html, call: &ToolCall) {
    let list = call.arguments.get("edits").and_then(Value::as_array);
    let text = |value: &Value, name: &str| {
        value
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    for edit in list.into_iter().flatten() {
        diff::write_replacement(out, &text(edit, "oldText"), &text(edit, "newText"));
    }
    let own = |name: &str| call.arguments.get(name).and_then(Value::as_str);
    if let (Some(old), Some(new)) = (own("oldText"), own("newText")) {
        diff::write_replacement(out, old, new);
    }
}

/// Arguments that were not shown yet: short ones as a list, long ones each in a block of its own.
fn rest(out: &mut Html, call: &ToolCall, shown: &[&str]) {
    let others = || {
        call.arguments
            .iter()
            .filter(|(name, _)| !shown.contains(&name.as_str()))
    };
    let is_short = |value: &Value| match value {
        Value::String(text) => text.len() < 100 && !text.contains('\n'),
        Value::Array(_) | Value::Object(_) => false,
        _ => true,
    };
    let mut short = others().filter(|(_, value)| is_short(value)).peekable();
    if short.peek().is_some() {
        out.raw("<dl class=\"arguments\">");
        for (name, value) in short {
            out.raw("<dt>").text(name).raw("</dt><dd>");
            match value {
                Value::String(text) => out.text(text),
                value => out.text(&value.to_string()),
            };
            out.raw("</dd>");
        }
        out.raw("</dl>");
    }
    for (name, value) in others().filter(|(_, value)| !is_short(value)) {
        out.raw("<p class=\"remark\">").text(name).raw("</p>");
        match value {
            Value::String(text) => markdown::block(out, "", text),
            value => block::json(out, value),
        }
    }
}

/// What came of it.
fn outcome(out: &mut Html, call: Option<&ToolCall>, result: &ToolResultMessage) {
    nested(out, result);
    let path = call
        .and_then(|call| call.arguments.get("path"))
        .and_then(Value::as_str);
    let name = call.map_or("", |call| &*call.name);
    let mut changed = false;
    if let Some(diff) = change(result).filter(|_| !result.is_error) {
        diff::write(out, diff);
        changed = true;
    }
    for content in &result.content {
        match content {
            // That it was done is seen already.
            Content::Text(_) if changed && name == "edit" => {}
            Content::Text(text) if name == "read" && !result.is_error => {
                markdown::block(out, path.map_or("", highlight::of_path), &text.text);
            }
            Content::Text(text) => block::output(out, &text.text),
            Content::Image(picture) => image::write(out, picture),
            Content::Other(value) => block::json(out, value),
            Content::Thinking(_) | Content::ToolCall(_) => {}
        }
    }
    let whole = result
        .details
        .as_ref()
        .and_then(|details| details.get("fullOutputPath"));
    if let Some(whole) = whole.and_then(Value::as_str) {
        out.raw("<p class=\"remark\">Cut here; the whole output was in <code>")
            .text(whole)
            .raw("</code>.</p>");
    }
}

/// Calls that were made inside this one (T21).
fn nested(out: &mut Html, result: &ToolResultMessage) {
    let calls = result
        .nested_calls
        .as_ref()
        .and_then(|nested| nested.get("calls")?.as_array());
    let Some(calls) = calls.filter(|calls| !calls.is_empty()) else {
        return;
    };
    out.raw("<ul class=\"nested\">");
    for call in calls {
        let text = |name: &str| call.get(name).and_then(Value::as_str).unwrap_or_default();
        out.raw("<li><b>")
            .text(text("name"))
            .raw("</b> <span class=\"about\">");
        if let Some(arguments) = call.get("arguments") {
            out.text(&first_words(&arguments.to_string(), MOST));
        }
        out.raw("</span><span class=\"status\">");
        if let Some(ms) = call.get("durationMs").and_then(Value::as_u64) {
            out.text(&duration(ms)).raw(" ");
        }
        match text("status") {
            "ok" => out.raw("✓"),
            "error" => out.raw("✗ ").text(&first_words(text("error"), MOST)),
            status => out.text(status),
        };
        out.raw("</span></li>");
    }
    out.raw("</ul>");
}

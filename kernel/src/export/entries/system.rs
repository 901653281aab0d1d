//! The system prompt and the tools that a model was told of, or how they changed.

use pliant_sdk::message::{SystemMessage, Tool};
use serde_json::Value;

use super::Told;
use super::block::{self, Texts};
use crate::export::markup::Html;

pub(super) fn write(out: &mut Html, told: &Told<'_>, system: &SystemMessage) {
    told.open(out, "system", "System prompt");
    let sections = system.sections.iter().flatten();
    let added = system.tools_added.as_deref().unwrap_or_default();
    let removed = system.tools_removed.as_deref().unwrap_or_default();
    out.raw("<details class=\"more\"><summary>");
    counted(out, sections.clone().count(), "section", "sections");
    out.raw(", ");
    counted(out, added.len(), "tool", "tools");
    if !removed.is_empty() {
        out.raw(", ");
        counted(out, removed.len(), "tool less", "tools less");
    }
    out.raw("</summary>");
    block::content(out, &system.content, Texts::Plain);
    for (name, text) in sections {
        out.raw("<details class=\"part\"><summary>")
            .text(name)
            .raw("</summary>");
        match text {
            Value::String(text) => drop(out.raw("<div class=\"plain\">").text(text).raw("</div>")),
            _ => drop(out.raw("<p class=\"remark\">Removed from the prompt.</p>")),
        }
        out.raw("</details>");
    }
    added.iter().for_each(|tool| declared(out, tool));
    for tool in removed {
        out.raw("<p class=\"remark\">The tool <code>")
            .text(&tool.name)
            .raw("</code> is gone.</p>");
    }
    out.raw("</details>");
    told.close(out);
}

fn declared(out: &mut Html, tool: &Tool) {
    out.raw("<details class=\"part\"><summary><b>")
        .text(&tool.name)
        .raw("</b></summary>");
    out.raw("<div class=\"plain\">")
        .text(&tool.description)
        .raw("</div>");
    if !tool.parameters.is_null() {
        block::json(out, &tool.parameters);
    }
    out.raw("</details>");
}

fn counted(out: &mut Html, count: usize, one: &'static str, many: &'static str) {
    out.number(count as u64)
        .raw(" ")
        .raw(if count == 1 { one } else { many });
}

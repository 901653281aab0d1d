//! What changed beside the conversation, a line each.

use serde_json::Value;

use super::block::{self, Texts};
use super::{Told, anchor, link};
use crate::export::markup::Html;
use crate::export::words::{amount, dollars};
use crate::tree::{EntryBody, Replacement};

pub(super) fn write(out: &mut Html, told: &Told<'_>, body: &EntryBody) {
    let loud = matches!(
        body,
        EntryBody::ModelChange(_) | EntryBody::ThinkingLevelChange(_)
    );
    open(out, told, if loud { "note" } else { "note quiet" });
    match body {
        EntryBody::ModelChange(change) => {
            out.raw("The model is <b>")
                .text(&change.model_id)
                .raw("</b> of ")
                .text(&change.provider)
                .raw(".");
        }
        EntryBody::ThinkingLevelChange(change) => {
            out.raw("The thinking level is <b>")
                .text(&change.thinking_level)
                .raw("</b>.");
        }
        EntryBody::ContextEdit(edit) => {
            out.raw("The context ");
            match &edit.replacement {
                Replacement::Omit => {
                    out.raw("leaves ");
                    link(out, &edit.target_id);
                    out.raw(" out.");
                }
                Replacement::Content(content) => {
                    out.raw("says something else for ");
                    link(out, &edit.target_id);
                    out.raw(".");
                    block::content(out, content, Texts::Plain);
                }
            }
        }
        EntryBody::Usage(usage) => {
            let spent = &usage.usage;
            let read = spent.input + spent.cache_read + spent.cache_write;
            out.text(&usage.kind)
                .raw(" with ")
                .text(&usage.model)
                .raw(": ")
                .text(&amount(read));
            out.raw(" tokens in, ")
                .text(&amount(spent.output))
                .raw(" out, ")
                .text(&dollars(spent.cost.total))
                .raw(".");
            if let Some(note) = &usage.note {
                out.raw(" ").text(note);
            }
        }
        EntryBody::Custom(custom) => {
            data(
                out,
                "Data of the extension ",
                &custom.custom_type,
                custom.data.as_ref(),
            );
        }
        EntryBody::Label(change) => {
            link(out, &change.target_id);
            match &change.label {
                Some(label) => drop(out.raw(" is called <b>").text(label).raw("</b>.")),
                None => drop(out.raw(" has no label any more.")),
            }
        }
        EntryBody::SessionInfo(info) if info.name.is_empty() => {
            out.raw("The session has no name any more.");
        }
        EntryBody::SessionInfo(info) => {
            out.raw("The session is called <b>")
                .text(&info.name)
                .raw("</b>.");
        }
        EntryBody::Other(unknown) => {
            let fields = Value::Object(unknown.fields.clone());
            data(out, "An entry of type ", &unknown.type_name, Some(&fields));
        }
        // These have files of their own.
        EntryBody::Message(_)
        | EntryBody::CustomMessage(_)
        | EntryBody::Compaction(_)
        | EntryBody::BranchSummary(_) => {}
    }
    out.raw("</div>");
}

/// A message whose role is not known.
pub(super) fn other(out: &mut Html, told: &Told<'_>, role: &str, value: &Value) {
    open(out, told, "note quiet");
    data(out, "A message of role ", role, Some(value));
    out.raw("</div>");
}

fn open(out: &mut Html, told: &Told<'_>, class: &'static str) {
    out.raw("<div class=\"entry ").raw(class).raw("\" id=\"");
    anchor(out, told.entry.id());
    out.raw("\">");
    told.time(out);
    told.marks(out);
    told.edited(out);
}

fn data(out: &mut Html, what: &'static str, name: &str, value: Option<&Value>) {
    out.raw("<details><summary>")
        .raw(what)
        .raw("<b>")
        .text(name)
        .raw("</b></summary>");
    if let Some(value) = value {
        block::json(out, value);
    }
    out.raw("</details>");
}

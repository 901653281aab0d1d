//! Summaries: of what was said before, and of a branch that was left.

use serde_json::Value;

use super::{Told, block, link};
use crate::export::markdown;
use crate::export::markup::Html;
use crate::export::words::amount;
use crate::tree::Compaction;

pub(super) fn compaction(out: &mut Html, told: &Told<'_>, compaction: &Compaction) {
    told.open(out, "summary", "Compaction");
    out.raw("<p class=\"remark\">From here on a summary stands for what was said before, ");
    out.text(&amount(compaction.tokens_before)).raw(" tokens");
    match &compaction.first_kept_entry_id {
        Some(kept) if kept != told.entry.id() => {
            out.raw("; everything since ");
            link(out, kept);
            out.raw(" is kept.</p>");
        }
        _ => drop(out.raw(".</p>")),
    }
    summary(out, &compaction.summary, compaction.details.as_ref());
    told.close(out);
}

pub(super) fn branch(out: &mut Html, told: &Told<'_>, text: &str, details: Option<&Value>) {
    told.open(out, "summary", "Branch summary");
    summary(out, text, details);
    told.close(out);
}

fn summary(out: &mut Html, text: &str, details: Option<&Value>) {
    out.raw("<details class=\"more\"><summary>Summary</summary>");
    markdown::write(out, text);
    if let Some(details) = details {
        block::json(out, details);
    }
    out.raw("</details>");
}

//! How each kind of entry looks, one kind a file. An entry is an `article` that can be linked to; what
//! only keeps the books is one line.

mod answer;
mod block;
mod command;
mod custom;
mod note;
mod said;
mod summary;
mod system;
mod tool;

use pliant_sdk::message::{Message, ToolResultMessage};

use super::markup::Html;
use super::words::minute;
use crate::tree::{Entry, EntryBody, EntryId, Label};

/// An entry with what is known of it elsewhere.
pub(super) struct Told<'a> {
    pub(super) entry: &'a Entry,
    pub(super) label: Option<&'a Label>,
    /// The edit that changes what requests say of it, and whether it is left out.
    pub(super) edit: Option<(&'a EntryId, bool)>,
    /// Results of the calls in it, each with its entry.
    pub(super) results: &'a [(Told<'a>, &'a ToolResultMessage)],
    /// The session stands here.
    pub(super) is_leaf: bool,
}

/// Writes an entry.
pub(super) fn write(out: &mut Html, told: &Told<'_>) {
    match told.entry.body() {
        EntryBody::Message(message) => write_message(out, told, message),
        EntryBody::CustomMessage(custom) => {
            custom::write(
                out,
                told,
                &custom.custom_type,
                &custom.content,
                custom.display,
            );
        }
        EntryBody::Compaction(compaction) => summary::compaction(out, told, compaction),
        EntryBody::BranchSummary(branch) => {
            summary::branch(out, told, &branch.summary, branch.details.as_ref());
        }
        body => note::write(out, told, body),
    }
}

fn write_message(out: &mut Html, told: &Told<'_>, message: &Message) {
    match message {
        Message::System(system) => system::write(out, told, system),
        Message::User(user) => said::user(out, told, user),
        Message::Assistant(answer) => answer::write(out, told, answer),
        Message::ToolResult(result) => tool::lone_result(out, told, result),
        Message::BashExecution(run) => command::write(out, told, run),
        Message::Custom(custom) => {
            custom::write(
                out,
                told,
                &custom.custom_type,
                &custom.content,
                custom.display,
            );
        }
        Message::CompactionSummary(summary) => {
            summary::branch(out, told, &summary.summary, None);
        }
        Message::BranchSummary(summary) => summary::branch(out, told, &summary.summary, None),
        Message::Other(value) => note::other(out, told, message.role(), value),
    }
}

/// The name under which an entry can be linked to. What is no letter, digit, `-` or `_` in an id is
/// written as a number.
pub(super) fn anchor(out: &mut Html, id: &EntryId) {
    out.raw("e-");
    for c in id.as_str().chars() {
        match c {
            '-' => out.raw("-"),
            '_' => out.raw("_"),
            c if c.is_ascii_alphanumeric() => out.letters(c.encode_utf8(&mut [0; 4])),
            c => out.raw(".").number(u32::from(c)),
        };
    }
}

/// A link to an entry, as the words that name it.
pub(super) fn link(out: &mut Html, id: &EntryId) {
    out.raw("<a href=\"#");
    anchor(out, id);
    out.raw("\"><code>").text(id.as_str()).raw("</code></a>");
}

impl Told<'_> {
    /// Opens the entry's element and writes its head: who, what is known of it, when.
    fn open(&self, out: &mut Html, class: &'static str, who: &'static str) {
        out.raw("<article class=\"entry ")
            .raw(class)
            .raw("\" id=\"");
        anchor(out, self.entry.id());
        out.raw("\"><header><a class=\"who\" href=\"#");
        anchor(out, self.entry.id());
        out.raw("\">").raw(who).raw("</a>");
        self.marks(out);
        self.time(out);
        out.raw("</header>");
        self.edited(out);
    }

    fn close(&self, out: &mut Html) {
        out.raw("</article>");
    }

    /// Label, and whether the session stands here.
    fn marks(&self, out: &mut Html) {
        if let Some(label) = self.label {
            out.raw(" <span class=\"label\">")
                .text(&label.text)
                .raw("</span>");
        }
        if self.is_leaf {
            out.raw(" <span class=\"leaf\">the session stands here</span>");
        }
    }

    fn time(&self, out: &mut Html) {
        let timestamp = self.entry.timestamp();
        out.raw("<time").attr("datetime", timestamp).raw(">");
        out.text(&minute(timestamp)).raw("</time>");
    }

    /// What requests say of it instead.
    fn edited(&self, out: &mut Html) {
        let Some((edit, omitted)) = self.edit else {
            return;
        };
        out.raw("<p class=\"remark\">");
        out.raw(if omitted {
            "Left out of"
        } else {
            "Replaced in"
        });
        out.raw(" the context later on, by ");
        link(out, edit);
        out.raw(".</p>");
    }
}

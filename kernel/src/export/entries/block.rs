//! Blocks of content that several kinds of entries have.

use pliant_sdk::message::{Content, MessageContent};
use serde_json::Value;

use crate::export::markup::Html;
use crate::export::{ansi, image, markdown};

/// Lines of a text that are shown at once; who wants more opens it.
const AT_ONCE: usize = 40;

/// How texts in a content are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Texts {
    /// As it was typed.
    Plain,
    /// As what it means.
    Markdown,
}

/// Writes a content.
pub(super) fn content(out: &mut Html, content: &MessageContent, texts: Texts) {
    match content {
        MessageContent::Text(said) => text(out, said, texts),
        MessageContent::Blocks(blocks) => {
            blocks.iter().for_each(|block| write(out, block, texts));
        }
    }
}

fn write(out: &mut Html, block: &Content, texts: Texts) {
    match block {
        Content::Text(said) => text(out, &said.text, texts),
        Content::Image(picture) => image::write(out, picture),
        Content::Thinking(thinking) => text(out, &thinking.thinking, texts),
        Content::ToolCall(call) => json(out, &Value::Object(call.arguments.clone())),
        Content::Other(value) => json(out, value),
    }
}

fn text(out: &mut Html, text: &str, texts: Texts) {
    match texts {
        _ if text.trim().is_empty() => {}
        Texts::Markdown => markdown::write(out, text),
        Texts::Plain => plain(out, text),
    }
}

/// A text as it was typed; the rest of a long one has to be opened.
fn plain(out: &mut Html, text: &str) {
    let text = text.trim_end();
    let cut = text.match_indices('\n').nth(AT_ONCE).map(|(at, _)| at);
    let lines = |text: &str| text.matches('\n').count() as u64;
    match cut {
        // A few more lines are no reason to hide them.
        Some(cut) if lines(&text[cut..]) > AT_ONCE as u64 / 2 => {
            out.raw("<div class=\"plain\" dir=\"auto\">")
                .text(&text[..cut])
                .raw("</div>");
            out.raw("<details class=\"more\"><summary>")
                .number(lines(&text[cut..]));
            out.raw(" more lines</summary><div class=\"plain\" dir=\"auto\">");
            out.text(&text[cut + 1..]).raw("</div></details>");
        }
        _ => drop(
            out.raw("<div class=\"plain\" dir=\"auto\">")
                .text(text)
                .raw("</div>"),
        ),
    }
}

/// What a program printed. With colours it stands on the ground that they were chosen for.
pub(super) fn output(out: &mut Html, text: &str) {
    let text = text.trim_end_matches(['\n', '\r']);
    if text.is_empty() {
        return;
    }
    out.raw("<pre class=\"output");
    out.raw(if text.contains("\u{1b}[") {
        " term"
    } else {
        ""
    });
    out.raw("\"><code>");
    ansi::write(out, text);
    out.raw("</code></pre>");
}

/// A value, laid out.
pub(super) fn json(out: &mut Html, value: &Value) {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    markdown::block(out, "json", &text);
}

//! A message of an extension. One that was not shown in the conversation has to be opened.

use pliant_sdk::message::MessageContent;

use super::Told;
use super::block::{self, Texts};
use crate::export::markup::Html;

pub(super) fn write(
    out: &mut Html,
    told: &Told<'_>,
    custom_type: &str,
    content: &MessageContent,
    display: bool,
) {
    if display {
        told.open(out, "custom", "Extension");
        out.raw("<p class=\"kind\">").text(custom_type).raw("</p>");
        block::content(out, content, Texts::Markdown);
    } else {
        told.open(out, "custom quiet", "Extension");
        out.raw("<details><summary>").text(custom_type);
        out.raw(", which only the model was told</summary>");
        block::content(out, content, Texts::Plain);
        out.raw("</details>");
    }
    told.close(out);
}

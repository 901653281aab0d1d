//! A command that the user ran.

use pliant_sdk::message::BashExecutionMessage;

use super::{Told, block};
use crate::export::markup::Html;

pub(super) fn write(out: &mut Html, told: &Told<'_>, run: &BashExecutionMessage) {
    told.open(out, "ran", "User ran");
    if run.exclude_from_context == Some(true) {
        out.raw("<p class=\"remark\">No model has seen this.</p>");
    }
    out.raw("<pre class=\"command\"><code>")
        .text(&run.command)
        .raw("</code></pre>");
    block::output(out, &run.output);
    if run.truncated {
        out.raw("<p class=\"remark\">The output was cut");
        if let Some(path) = &run.full_output_path {
            out.raw("; the whole of it was in <code>")
                .text(path)
                .raw("</code>");
        }
        out.raw(".</p>");
    }
    match run.exit_code {
        Some(0) => {}
        Some(status) => {
            out.raw("<p class=\"failure\">It ended with status ")
                .text(&status.to_string())
                .raw(".</p>");
        }
        None => drop(out.raw("<p class=\"failure\">It was cancelled.</p>")),
    }
    told.close(out);
}

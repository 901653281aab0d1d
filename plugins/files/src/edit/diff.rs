//! What an edit changed, for people (`diff`) and for programs (`patch`).

use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;
use similar::{ChangeTag, DiffOp, DiffTag, TextDiff};

/// Lines shown around a change.
const CONTEXT: usize = 4;
/// After this time a coarser difference has to do.
const MAX_TIME: Duration = Duration::from_secs(1);

/// The details of an edit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Diff {
    /// Sign, line number and text of each line: removed and unchanged lines have their old number,
    /// added ones their new.
    diff: String,
    /// Unified, as `patch` takes it.
    patch: String,
    /// In the new file, from 1.
    first_changed_line: Option<usize>,
}

/// Describes the difference of two texts.
pub(crate) fn describe(path: &str, old: &str, new: &str) -> Diff {
    let lines = TextDiff::configure().timeout(MAX_TIME).diff_lines(old, new);
    let changed = lines.ops().iter().find(|op| op.tag() != DiffTag::Equal);
    let mut patch = lines.unified_diff();
    Diff {
        diff: display(&lines),
        patch: patch.context_radius(CONTEXT).header(path, path).to_string(),
        first_changed_line: changed.map(|op| op.new_range().start + 1),
    }
}

fn display(lines: &TextDiff<'_, '_, str>) -> String {
    let width = lines.old_len().max(lines.new_len()).to_string().len();
    let mut rows = Vec::new();
    let mut shown = 0;
    for group in lines.grouped_ops(CONTEXT) {
        let start = group.first().map_or(shown, |op| op.old_range().start);
        if start > shown {
            rows.push(skipped(width));
        }
        shown = group.last().map_or(shown, |op| op.old_range().end);
        for op in &group {
            push_rows(&mut rows, lines, op, width);
        }
    }
    if shown < lines.old_len() {
        rows.push(skipped(width));
    }
    rows.join("\n")
}

fn skipped(width: usize) -> String {
    format!(" {:width$} ...", "")
}

fn push_rows(rows: &mut Vec<String>, lines: &TextDiff<'_, '_, str>, op: &DiffOp, width: usize) {
    for change in lines.iter_changes(op) {
        let (sign, index) = match change.tag() {
            ChangeTag::Equal => (' ', change.old_index()),
            ChangeTag::Delete => ('-', change.old_index()),
            ChangeTag::Insert => ('+', change.new_index()),
        };
        let number = index.map_or(0, |index| index + 1);
        let text = change.value();
        let text = text.strip_suffix('\n').unwrap_or(text);
        let mut row = String::new();
        // Writing to a string cannot fail.
        let _ = write!(row, "{sign}{number:>width$} {text}");
        rows.push(row);
    }
}

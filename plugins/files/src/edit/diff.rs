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

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(count: usize) -> String {
        (1..=count).map(|n| format!("{n}\n")).collect()
    }

    #[test]
    fn a_change_has_signs_numbers_and_four_lines_around() {
        // extensions §8.4, details
        let old = numbered(20);
        let new = old.replace("10\n", "ten\nten and a half\n");
        let diff = describe("f", &old, &new);
        assert_eq!(
            diff.diff,
            "    ...\n  6 6\n  7 7\n  8 8\n  9 9\n-10 10\n+10 ten\n+11 ten and a half\n \
             11 11\n 12 12\n 13 13\n 14 14\n    ..."
        );
        assert_eq!(diff.first_changed_line, Some(10));
        assert_eq!(
            diff.patch,
            "--- f\n+++ f\n@@ -6,9 +6,10 @@\n 6\n 7\n 8\n 9\n-10\n+ten\n+ten and a half\n \
             11\n 12\n 13\n 14\n"
        );
    }

    #[test]
    fn changes_far_apart_have_a_gap_and_near_ones_do_not() {
        let old = numbered(30);
        let gaps = |new: &str| describe("f", &old, new).diff.matches("...").count();
        assert_eq!(
            gaps(&old.replacen("1\n", "x\n", 1).replace("30\n", "y\n")),
            1
        );
        assert_eq!(
            gaps(&old.replacen("1\n", "x\n", 1).replacen("9\n", "y\n", 1)),
            1
        );
    }

    #[test]
    fn the_first_changed_line_is_that_of_the_new_file() {
        let first = |old: &str, new: &str| describe("f", old, new).first_changed_line;
        assert_eq!(first("a\nb\n", "a\nx\n"), Some(2));
        assert_eq!(first("a\nb\nc\n", "b\nC\n"), Some(1));
        assert_eq!(first("", "a\n"), Some(1));
        assert_eq!(first("a", "a"), None);
    }

    #[test]
    fn a_missing_line_break_at_the_end_is_marked_in_the_patch() {
        let diff = describe("f", "a", "b");
        assert_eq!(diff.diff, "-1 a\n+1 b");
        assert!(diff.patch.contains("\\ No newline at end of file"));
    }
}

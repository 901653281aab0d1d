//! A view as plain text, for places that lay nothing out.

use super::View;

/// The lines of a view, without a line feed at the end.
pub(super) fn of(view: &View) -> String {
    lines(view).join("\n")
}

fn lines(view: &View) -> Vec<String> {
    match view {
        View::Text { text, .. } | View::Markdown { text } => split(text),
        View::Box {
            title, children, ..
        } => {
            let inside = column(children, 0).into_iter().map(|line| match &*line {
                "" => line,
                _ => format!("  {line}"),
            });
            title
                .iter()
                .flat_map(|title| split(title))
                .chain(inside)
                .collect()
        }
        View::Row { gap, children } => row(*gap, children),
        View::Column { gap, children } => column(children, *gap),
        View::Spacer { lines } => vec![String::new(); usize::from(*lines).min(100)],
        View::Image { alt, mime_type, .. } => vec![match &**alt {
            "" => format!("[{mime_type}]"),
            alt => format!("[{alt}]"),
        }],
        View::Diff {
            path,
            before,
            after,
        } => path.iter().cloned().chain(diff(before, after)).collect(),
    }
}

fn split(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

fn column(children: &[View], gap: u16) -> Vec<String> {
    let mut all = Vec::new();
    for (at, child) in children.iter().enumerate() {
        if at > 0 {
            all.extend(vec![String::new(); usize::from(gap).min(100)]);
        }
        all.extend(lines(child));
    }
    all
}

/// Lines of the same height side by side, each part as wide as its widest line.
fn row(gap: u16, children: &[View]) -> Vec<String> {
    let gap = " ".repeat(usize::from(gap).min(100));
    let parts: Vec<Vec<String>> = children.iter().map(lines).collect();
    let height = parts.iter().map(Vec::len).max().unwrap_or(0);
    let width = |part: &[String]| part.iter().map(|line| line.chars().count()).max();
    let line = |at: usize| {
        let cells = parts.iter().map(|part| {
            let cell = part.get(at).map_or("", String::as_str);
            let width = width(part).unwrap_or(0);
            format!("{cell:width$}")
        });
        cells.collect::<Vec<_>>().join(&gap).trim_end().to_owned()
    };
    (0..height).map(line).collect()
}

/// What both begin and end with is left out.
fn diff(before: &str, after: &str) -> Vec<String> {
    let (before, after): (Vec<&str>, Vec<&str>) =
        (before.lines().collect(), after.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = before.iter().zip(&after).take_while(same).count();
    let (before, after) = (&before[head..], &after[head..]);
    let tail = before.iter().rev().zip(after.iter().rev());
    let tail = tail.take_while(same).count();
    let signed = |sign: char, lines: &[&str]| {
        let kept = &lines[..lines.len() - tail];
        kept.iter()
            .map(|line| format!("{sign} {line}"))
            .collect::<Vec<_>>()
    };
    [signed('-', before), signed('+', after)].concat()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(view: Value, plain: &str) {
        let view: View = serde_json::from_value(view).unwrap();
        assert_eq!(of(&view), plain);
    }

    #[test]
    fn a_view_is_said_in_lines() {
        check(json!("a\nb"), "a\nb");
        check(json!(["a", {"type": "spacer"}, "b"]), "a\n\nb");
        check(
            json!({"type": "column", "gap": 1, "children": ["a", "b"]}),
            "a\n\nb",
        );
        check(
            json!({"type": "row", "gap": 2, "children": ["a\nlong", "x\ny\nz"]}),
            "a     x\nlong  y\n      z",
        );
        check(
            json!({"type": "box", "title": "T", "children": ["a", {"type": "box", "children": ["b"]}]}),
            "T\n  a\n    b",
        );
        check(
            json!({"type": "image", "data": "", "mimeType": "image/png"}),
            "[image/png]",
        );
        check(
            json!({"type": "diff", "path": "f", "before": "1\n2\n3\n", "after": "1\n4\n3\n"}),
            "f\n- 2\n+ 4",
        );
        check(
            json!({"type": "diff", "before": "a\n", "after": "a\na\n"}),
            "+ a",
        );
        check(json!([]), "");
    }
}

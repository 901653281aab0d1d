//! Differences, line by line in their colours.

use super::markup::Html;

/// Writes what the tool `edit` says of its change, or any other text whose lines begin with a sign.
pub(super) fn write(out: &mut Html, diff: &str) {
    out.raw("<pre class=\"diff\"><code>");
    for line in diff.split_inclusive('\n') {
        write_line(out, class(line), line);
    }
    out.raw("</code></pre>");
}

/// Writes texts that were to be replaced, where nothing better is known of the change.
pub(super) fn write_replacement(out: &mut Html, old: &str, new: &str) {
    out.raw("<pre class=\"diff\"><code>");
    for (class, sign, text) in [("del", "-", old), ("add", "+", new)] {
        for line in text.lines() {
            out.raw("<span class=\"")
                .raw(class)
                .raw("\">")
                .raw(sign)
                .text(line)
                .raw("\n</span>");
        }
    }
    out.raw("</code></pre>");
}

/// How many lines were added and removed.
pub(super) fn counts(diff: &str) -> (u64, u64) {
    diff.lines()
        .fold((0, 0), |(added, removed), line| match class(line) {
            "add" => (added + 1, removed),
            "del" => (added, removed + 1),
            _ => (added, removed),
        })
}

fn class(line: &str) -> &'static str {
    match line.as_bytes() {
        [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => "file",
        [b'+', ..] => "add",
        [b'-', ..] => "del",
        [b'@', b'@', ..] => "hunk",
        _ => "",
    }
}

fn write_line(out: &mut Html, class: &'static str, line: &str) {
    if class.is_empty() {
        out.text(line);
    } else {
        out.raw("<span class=\"")
            .raw(class)
            .raw("\">")
            .text(line)
            .raw("</span>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_colour_of_their_sign() {
        let mut out = Html::default();
        write(&mut out, " 1 a\n-2 <b>\n+2 c");
        assert_eq!(
            out.take(),
            "<pre class=\"diff\"><code> 1 a\n<span class=\"del\">-2 &lt;b&gt;\n</span>\
             <span class=\"add\">+2 c</span></code></pre>"
        );
        assert_eq!(counts(" 1 a\n-2 b\n+2 c\n+3 d\n+++ f"), (2, 1));
    }
}

//! Text that somebody else wrote, put into Markdown so that it stays where it is put: whatever it
//! holds, what follows it reads as before.

use super::super::one_line;

/// Text that is Markdown itself, as a quotation: what it leaves open ends with the quotation. HTML
/// in it is shown, not obeyed. Code in fences is put into fences of our own at the margin, so that
/// nobody need know which list or table the text may be in to tell where code begins and ends.
pub fn quote(text: &str) -> String {
    let text = plain(text);
    let mut quoted = String::with_capacity(text.len() + text.len() / 16);
    let mut lines = text.lines();
    let mut doubtful = false;
    while let Some(line) = lines.next() {
        if let Some(fence) = Fence::opened_by(line) {
            let inside = lines.by_ref().take_while(|line| !fence.is_closed_by(line));
            let inside: String = inside.flat_map(|line| [fence.within(line), "\n"]).collect();
            let fenced = fenced(&fence.info, &inside);
            fenced
                .lines()
                .for_each(|line| push_quoted(&mut quoted, line));
            doubtful = false;
        } else {
            // Backticks whose partner is not on their line may have one further down in the paragraph.
            doubtful &= !line.trim().is_empty();
            let (line, unmatched) = without_html(line, doubtful);
            doubtful |= unmatched;
            push_quoted(&mut quoted, &line);
        }
    }
    quoted
}

fn push_quoted(quoted: &mut String, line: &str) {
    quoted.push_str(if line.is_empty() { ">" } else { "> " });
    quoted.push_str(line);
    quoted.push('\n');
}

/// Text as it is, in a fence that nothing inside can close.
pub fn fenced(language: &str, text: &str) -> String {
    let text = plain(text);
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{fence}{language}\n{text}{end}{fence}\n")
}

/// One line as it is, within a sentence.
pub fn code(text: &str) -> String {
    let text = one_line(&plain(text)).replace('\t', " ");
    let ticks = "`".repeat(longest_run(&text) + 1);
    match &*text {
        "" => "` `".to_owned(),
        // Spaces keep backticks apart; a reader takes one away at both ends.
        text if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) => {
            format!("{ticks} {text} {ticks}")
        }
        text => format!("{ticks}{text}{ticks}"),
    }
}

/// Words within a sentence or heading, on one line and without any meaning to Markdown.
pub fn words(text: &str) -> String {
    let mut words = String::new();
    for c in one_line(&plain(text)).chars() {
        if "\\`*_[]<>#|~&!".contains(c) {
            words.push('\\');
        }
        words.push(if c == '\t' { ' ' } else { c });
    }
    words
}

/// Without control characters; lines end in LF.
fn plain(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let kept = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().filter(kept).collect()
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or(0)
}

/// How code in a text is fenced.
struct Fence {
    mark: char,
    length: usize,
    indent: usize,
    info: String,
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let rest = line.trim_start();
        let mark = rest.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = rest.trim_start_matches(mark);
        let length = rest.len() - info.len();
        (length >= 3 && (mark == '~' || !info.contains('`'))).then(|| Self {
            mark,
            length,
            indent: line.len() - rest.len(),
            info: info.trim().replace('`', ""),
        })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.chars().all(|c| c == self.mark)
    }

    /// A line of the code, without the indentation of the fence.
    fn within<'a>(&self, line: &'a str) -> &'a str {
        let spaces = line.len() - line.trim_start_matches([' ', '\t']).len();
        &line[spaces.min(self.indent)..]
    }
}

/// A line of text, with `<` written out wherever it could begin HTML, but not in code that begins and
/// ends on this line; and whether backticks are left without a partner.
fn without_html(line: &str, mut doubtful: bool) -> (String, bool) {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['<', '`', '\\']) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let taken = match found.as_bytes()[0] {
            b'<' => {
                let html = found[1..]
                    .starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'));
                out.push_str(if html { "&lt;" } else { "<" });
                1
            }
            b'`' => {
                let run = found.len() - found.trim_start_matches('`').len();
                let span = if doubtful { None } else { span(found, run) };
                doubtful |= span.is_none();
                let taken = span.unwrap_or(run);
                out.push_str(&found[..taken]);
                taken
            }
            _ => {
                // A backslash takes the meaning of what follows, of `<` only until it is written out.
                let next = found[1..].chars().next().filter(|c| *c != '<');
                let taken = 1 + next.map_or(0, char::len_utf8);
                out.push_str(&found[..taken]);
                taken
            }
        };
        rest = &found[taken..];
    }
    out.push_str(rest);
    (out, doubtful)
}

/// The length of the code span that begins with so many backticks. A bar may end it early, in a table.
fn span(text: &str, run: usize) -> Option<usize> {
    let mut at = run;
    loop {
        let next = at + text[at..].find('`')?;
        let length = text[next..].len() - text[next..].trim_start_matches('`').len();
        at = next + length;
        if length == run {
            return (!text[..at].contains('|')).then_some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_keeps_its_lines_and_holds_what_they_leave_open() {
        assert_eq!(
            quote("# A\n\n```rust\nfn f<T>() {}"),
            "> # A\n>\n> ```rust\n> fn f<T>() {}\n> ```\n"
        );
        assert_eq!(quote("a\r\nb\rc\n"), "> a\n> b\n> c\n");
        assert_eq!(quote(""), "");
    }

    #[test]
    fn html_is_shown_unless_it_is_code_already() {
        for (text, quoted) in [
            ("<!-- open", "> &lt;!-- open\n"),
            ("a <b>x</b> 1 < 2 <3", "> a &lt;b>x&lt;/b> 1 < 2 <3\n"),
            ("`Vec<u8>` and ``<`i>``", "> `Vec<u8>` and ``<`i>``\n"),
            ("\\<b> \\\\<b>", "> \\&lt;b> \\\\&lt;b>\n"),
            ("\\`<b>`", "> \\`&lt;b>`\n"),
            // The first backtick's partner is on the second line.
            (
                "a ` b\nc ` <i> ` d ` <i> `",
                "> a ` b\n> c ` &lt;i> ` d ` &lt;i> `\n",
            ),
            ("a ` b\n\n`<i>`", "> a ` b\n>\n> `<i>`\n"),
            ("| ` | <i> ` |", "> | ` | &lt;i> ` |\n"),
            ("<", "> <\n"),
            ("é<é `", "> é<é `\n"),
        ] {
            assert_eq!(quote(text), quoted, "{text}");
        }
    }

    #[test]
    fn code_in_fences_is_code_wherever_it_stands_and_what_follows_is_not() {
        for (text, quoted) in [
            (
                "~~~ `x`\n<i>\n```\n~~~~\n<i>",
                "> ````x\n> <i>\n> ```\n> ````\n> &lt;i>\n",
            ),
            (
                "1.  a\n    ```sh\n      <i>\n  <j>\n\n      ```\n    <i>",
                "> 1.  a\n> ```sh\n>   <i>\n> <j>\n>\n> ```\n>     &lt;i>\n",
            ),
            (
                "````\n```\n<i>\n````\n<i>",
                "> ````\n> ```\n> <i>\n> ````\n> &lt;i>\n",
            ),
            ("``` a`\n<i>", "> ``` a`\n> &lt;i>\n"),
            ("- ```\n  <i>", "> - ```\n>   &lt;i>\n"),
            ("```", "> ```\n> ```\n"),
        ] {
            assert_eq!(quote(text), quoted, "{text}");
        }
    }

    #[test]
    fn nothing_inside_closes_a_fence() {
        assert_eq!(fenced("json", "{}"), "```json\n{}\n```\n");
        assert_eq!(fenced("", "a\n````\nb\n"), "`````\na\n````\nb\n`````\n");
        assert_eq!(fenced("", ""), "```\n```\n");
        assert_eq!(fenced("", "\u{1b}[31mred\u{7}\0"), "```\n[31mred\n```\n");
    }

    #[test]
    fn code_and_words_are_one_line_without_meaning() {
        assert_eq!(code("read"), "`read`");
        assert_eq!(code("a`b\n``"), "``` a`b `` ```");
        assert_eq!(code("\u{1b}\n"), "` `");
        assert_eq!(words("# <b>*x*\n`y`\u{1b}"), "\\# \\<b\\>\\*x\\* \\`y\\`");
    }
}

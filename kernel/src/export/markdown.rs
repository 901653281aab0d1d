//! Markdown of answers and summaries. Markup in it is text, links lead to the web or to mail or
//! nowhere, and pictures are named instead of loaded.

use pulldown_cmark::{Alignment, CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag};

use super::highlight;
use super::markup::Html;

/// Longer texts are shown as they are written: no answer has that many.
const MOST_BYTES: usize = 1 << 20;

/// What is nested deeper stands at this depth. Browsers give up at some depth too.
const DEEPEST: usize = 32;

/// Writes a text as the blocks it is made of.
pub(super) fn write(out: &mut Html, text: &str) {
    if text.len() > MOST_BYTES {
        out.raw("<div class=\"plain\">").text(text).raw("</div>");
        return;
    }
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer {
        out,
        open: Vec::new(),
        code: None,
        head: false,
        column: 0,
        aligned: Vec::new(),
        in_link: 0,
    };
    out_div(writer.out);
    for event in Parser::new_ext(text, options) {
        writer.event(event);
    }
    writer.out.raw("</div>");
}

fn out_div(out: &mut Html) {
    out.raw("<div class=\"md\" dir=\"auto\">");
}

/// A link that may be followed: one to the web, or to mail.
pub(super) fn safe_url(url: &str) -> Option<&str> {
    let url = url.trim();
    let begins = |scheme: &&str| {
        url.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    let known = ["http://", "https://", "mailto:"].iter().any(begins);
    let strange = |c: char| c.is_whitespace() || c.is_control() || super::markup::is_unseen(c);
    (known && !url.contains(strange)).then_some(url)
}

struct Writer<'a> {
    out: &'a mut Html,
    /// How to close what is open; nothing for what was not opened.
    open: Vec<&'static str>,
    /// The language and text of the code block that is being read.
    code: Option<(String, String)>,
    /// The head of a table is being read.
    head: bool,
    column: usize,
    aligned: Vec<Alignment>,
    /// Links cannot be in links: how many are open, pictures in them included.
    in_link: usize,
}

impl Writer<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(_) => self.end(),
            Event::Text(text) => self.text(&text),
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.out.raw("<code>").text(&text).raw("</code>");
            }
            Event::SoftBreak => drop(self.out.raw("\n")),
            Event::HardBreak => drop(self.out.raw("<br>\n")),
            Event::Rule => drop(self.out.raw("<hr>")),
            Event::TaskListMarker(true) => drop(self.out.raw("<span class=\"task\">☑</span> ")),
            Event::TaskListMarker(false) => drop(self.out.raw("<span class=\"task\">☐</span> ")),
            Event::FootnoteReference(name) => drop(self.out.raw("[").text(&name).raw("]")),
        }
    }

    fn text(&mut self, text: &CowStr<'_>) {
        match &mut self.code {
            Some((_, code)) => code.push_str(text),
            None => drop(self.out.text(text)),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let deep = self.open.len() >= DEEPEST;
        let (open, close) = match tag {
            Tag::Paragraph => ("<p>", "</p>"),
            Tag::Heading { level, .. } => heading(level),
            Tag::BlockQuote(_) if !deep => ("<blockquote>", "</blockquote>"),
            Tag::CodeBlock(kind) => {
                let name = match &kind {
                    CodeBlockKind::Fenced(info) => {
                        info.split([' ', ',', '{', '\t']).next().unwrap_or_default()
                    }
                    CodeBlockKind::Indented => "",
                };
                self.code = Some((name.to_owned(), String::new()));
                ("", CODE)
            }
            Tag::List(None) if !deep => ("<ul>", "</ul>"),
            Tag::List(Some(first)) if !deep => {
                if first == 1 {
                    self.out.raw("<ol");
                } else {
                    self.out.raw("<ol start=\"").number(first).raw("\"");
                }
                (">", "</ol>")
            }
            Tag::Item if !deep => ("<li>", "</li>"),
            Tag::Table(aligned) => {
                self.aligned = aligned;
                ("<div class=\"scroll\"><table>", "</tbody></table></div>")
            }
            Tag::TableHead => {
                (self.head, self.column) = (true, 0);
                ("<thead><tr>", HEAD)
            }
            Tag::TableRow => {
                self.column = 0;
                ("<tr>", "</tr>")
            }
            Tag::TableCell => self.cell(),
            Tag::Emphasis if !deep => ("<em>", "</em>"),
            Tag::Strong if !deep => ("<strong>", "</strong>"),
            Tag::Strikethrough if !deep => ("<del>", "</del>"),
            Tag::Link { dest_url, .. } => self.link(&dest_url, ""),
            Tag::Image { dest_url, .. } => {
                self.link(&dest_url, "<span class=\"pic\">image</span> ")
            }
            // What else there is has no mark of its own, and its content stands for itself.
            _ => ("", ""),
        };
        self.out.raw(open);
        self.open.push(close);
    }

    fn cell(&mut self) -> (&'static str, &'static str) {
        let aligned = self.aligned.get(self.column).copied();
        self.column += 1;
        let open = match (self.head, aligned) {
            (true, Some(Alignment::Right)) => "<th class=\"right\">",
            (true, Some(Alignment::Center)) => "<th class=\"mid\">",
            (true, _) => "<th>",
            (false, Some(Alignment::Right)) => "<td class=\"right\">",
            (false, Some(Alignment::Center)) => "<td class=\"mid\">",
            (false, _) => "<td>",
        };
        (open, if self.head { "</th>" } else { "</td>" })
    }

    /// Opens a link if it leads somewhere and is not inside another one; else its text stands alone,
    /// with where it wanted to lead.
    fn link(&mut self, url: &str, before: &'static str) -> (&'static str, &'static str) {
        self.in_link += 1;
        if self.in_link > 1 {
            return (before, LINK_INSIDE);
        }
        match safe_url(url) {
            Some(url) => {
                self.out
                    .raw("<a target=\"_blank\" rel=\"noopener noreferrer nofollow\"");
                self.out.attr("href", url).attr("title", url).raw(">");
                (before, LINK)
            }
            None => {
                self.out
                    .raw("<span class=\"nolink\"")
                    .attr("title", url)
                    .raw(">");
                (before, NO_LINK)
            }
        }
    }

    fn end(&mut self) {
        let close = self.open.pop().unwrap_or_default();
        match close {
            CODE => {
                let (name, code) = self.code.take().unwrap_or_default();
                block(self.out, &name, &code);
            }
            HEAD => {
                self.head = false;
                self.out.raw("</tr></thead><tbody>");
            }
            LINK | NO_LINK | LINK_INSIDE => {
                self.in_link -= 1;
                self.out.raw(close.trim_end());
            }
            close => drop(self.out.raw(close)),
        }
    }
}

// Ends that have to be told apart.
const CODE: &str = "</code>";
const HEAD: &str = "</thead>";
const LINK: &str = "</a>";
const NO_LINK: &str = "</span>";
const LINK_INSIDE: &str = " ";

/// A block of code with its language's name and a button to copy it.
pub(super) fn block(out: &mut Html, name: &str, code: &str) {
    out.raw("<div class=\"code\"");
    if !name.is_empty() {
        out.attr("data-lang", name);
    }
    out.raw("><button class=\"copy js\" type=\"button\">copy</button>");
    highlight::write(out, name, code.strip_suffix('\n').unwrap_or(code));
    out.raw("</div>");
}

/// The page's own headings are above those of a text.
fn heading(level: HeadingLevel) -> (&'static str, &'static str) {
    match level {
        HeadingLevel::H1 => ("<h3>", "</h3>"),
        HeadingLevel::H2 => ("<h4>", "</h4>"),
        HeadingLevel::H3 => ("<h5>", "</h5>"),
        _ => ("<h6>", "</h6>"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut out = Html::default();
        write(&mut out, text);
        let html = out.take();
        html.replace("<div class=\"md\" dir=\"auto\">", "")
            .strip_suffix("</div>")
            .expect("it is closed")
            .to_owned()
    }

    #[test]
    fn text_has_its_blocks() {
        assert_eq!(
            shown("# A\n\n*b* **c** `d<` ~~e~~\n\n> q\n\n3. x\n4. y\n\n- [x] z"),
            "<h3>A</h3><p><em>b</em> <strong>c</strong> <code>d&lt;</code> <del>e</del></p>\
             <blockquote><p>q</p></blockquote><ol start=\"3\"><li>x</li><li>y</li></ol>\
             <ul><li><span class=\"task\">☑</span> z</li></ul>"
        );
        assert_eq!(
            shown("|a|b|\n|-|-:|\n|1|2|"),
            "<div class=\"scroll\"><table><thead><tr><th>a</th><th class=\"right\">b</th></tr></thead>\
             <tbody><tr><td>1</td><td class=\"right\">2</td></tr></tbody></table></div>"
        );
        assert_eq!(
            shown("```x\"y z\na < b\n```"),
            "<div class=\"code\" data-lang=\"x&quot;y\"><button class=\"copy js\" type=\"button\">copy\
             </button><pre><code>a &lt; b</code></pre></div>"
        );
    }

    #[test]
    fn markup_is_text() {
        assert_eq!(
            shown("<script>alert(1)</script>\n\na <b onclick=\"x\">b</b>"),
            "&lt;script&gt;alert(1)&lt;/script&gt;\n<p>a &lt;b onclick=&quot;x&quot;&gt;b&lt;/b&gt;</p>"
        );
    }

    #[test]
    fn links_lead_to_the_web_or_to_mail_or_nowhere() {
        let link = "<p><a target=\"_blank\" rel=\"noopener noreferrer nofollow\" href=\"HTTPS://x.y/?a&amp;b\" \
                    title=\"HTTPS://x.y/?a&amp;b\">t</a></p>";
        assert_eq!(shown("[t](HTTPS://x.y/?a&b)"), link);
        for url in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "&#106;avascript:alert(1)",
            "java&#10;script:alert(1)",
            "data:text/html,x",
            "vbscript:x",
            "file:///etc/passwd",
            "//x.y",
            "a/b.rs",
            "#tree",
        ] {
            for text in [
                format!("[t]({url})"),
                format!("![t]({url})"),
                format!("[t]\n\n[t]: {url}"),
            ] {
                let html = shown(&text);
                assert!(
                    !html.contains("href=") && !html.contains("src="),
                    "{text}: {html}"
                );
            }
        }
        assert_eq!(safe_url("https://x\u{202e}y"), None);
    }

    #[test]
    fn pictures_are_named_and_no_link_is_in_another() {
        let html = shown("[a ![b](https://x/p.png) c](https://y)");
        assert_eq!(html.matches("<a ").count(), 1);
        assert_eq!(html.matches("</a>").count(), 1);
        assert!(!html.contains("<img"), "{html}");
        assert!(
            html.contains("a <span class=\"pic\">image</span> b c</a>"),
            "{html}"
        );
    }

    #[test]
    fn nesting_ends_somewhere() {
        for start in ["> ", "- ", "1. ", "*a ", "**b _"] {
            let html = shown(&start.repeat(3000));
            let depth = |tag: &str| html.matches(tag).count();
            assert!(
                depth("<blockquote>") + depth("<ul>") + depth("<ol>") <= DEEPEST,
                "{start}"
            );
        }
    }
}

//! The page: what is known of the session, every entry in the order of [`Order`], and the tree to find
//! them by. It is written entry by entry; only the tree's lines are kept until the end.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::LazyLock;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use pliant_sdk::message::{Message, ToolResultMessage};
use ring::digest;

use super::ansi;
use super::entries::{self, Told, anchor};
use super::markup::Html;
use super::order::{Branch, Order, Row};
use super::view::View;
use super::words::{self, Gist, amount, dollars, gist, minute};
use crate::tree::{Entry, EntryBody, EntryId, EntryKind, Replacement};

const SHEET: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Branchings are indented so often; a tree that goes deeper is still shown whole.
const DEEPEST: usize = 12;

/// How far the first question is looked for, where a session has no name.
const SEARCHED: usize = 100;

/// Other ways from an entry that are named there.
const MOST_WAYS: usize = 12;

/// Writes the page.
pub(super) fn write(view: &View, out: &mut dyn Write) -> io::Result<()> {
    let path: Vec<EntryId> = view.path.iter().map(|entry| entry.id().clone()).collect();
    let order = Order::new(&view.nodes, &path);
    let mut page = Page {
        view,
        order: &order,
        edits: edits(view),
        html: Html::default(),
        rows: (0..view.nodes.all.len()).map(|_| None).collect(),
        out,
    };
    let branches = order.branches();
    page.head(branches.len());
    page.html.raw("<main id=\"conversation\">");
    for (number, branch) in branches.iter().enumerate() {
        page.branch(number, branch)?;
    }
    page.html.raw("</main>");
    page.tree()?;
    page.foot();
    page.flush()
}

struct Page<'a> {
    view: &'a View,
    order: &'a Order<'a>,
    /// By target.
    edits: HashMap<EntryId, (EntryId, bool)>,
    html: Html,
    /// What the tree says of each node, once it was written; and whether it stands in another one.
    rows: Vec<Option<(Gist, bool)>>,
    out: &'a mut dyn Write,
}

/// The latest edit of each entry, and whether it leaves the entry out.
fn edits(view: &View) -> HashMap<EntryId, (EntryId, bool)> {
    let mut edits = HashMap::new();
    for node in view
        .nodes
        .all
        .iter()
        .filter(|node| node.entry.kind() == EntryKind::ContextEdit)
    {
        let entry = node.entry.unread();
        if let EntryBody::ContextEdit(edit) = entry.body() {
            let omitted = edit.replacement == Replacement::Omit;
            edits.insert(edit.target_id.clone(), (entry.id().clone(), omitted));
        }
    }
    edits
}

impl Page<'_> {
    fn flush(&mut self) -> io::Result<()> {
        let out = &mut *self.out;
        self.html.drain(|text| out.write_all(text.as_bytes()))
    }

    fn head(&mut self, branches: usize) {
        let title = title(self.view);
        let style = style();
        let html = &mut self.html;
        html.raw("<!DOCTYPE html>\n<html lang=\"en\" data-filter=\"default\">\n<head>\n<meta charset=\"utf-8\">\n");
        // Nothing is loaded, and nothing runs but what stands here.
        html.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src 'sha256-");
        html.letters(&hash(style))
            .raw("'; script-src 'sha256-")
            .letters(&hash(SCRIPT));
        html.raw("'; base-uri 'none'; form-action 'none'\">\n");
        html.raw("<meta name=\"referrer\" content=\"no-referrer\">\n");
        html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
        html.raw("<meta name=\"color-scheme\" content=\"light dark\">\n");
        html.raw("<meta name=\"generator\" content=\"pliant ")
            .raw(env!("CARGO_PKG_VERSION"))
            .raw("\">\n");
        // Without it browsers ask the server for one.
        html.raw("<link rel=\"icon\" href=\"data:,\">\n<title>")
            .flat(&title)
            .raw("</title>\n<style>");
        html.raw(style).raw("</style>\n</head>\n<body>\n");
        html.raw("<a class=\"skip\" href=\"#tree\">To the tree of entries</a>\n");
        html.raw("<header class=\"top\"><div class=\"bar\"><button class=\"menu\" type=\"button\" popovertarget=\"tree\" aria-label=\"Tree of entries\">☰</button>");
        html.raw("<h1 dir=\"auto\">")
            .text(&title)
            .raw("</h1><div class=\"js buttons\">");
        html.raw("<button type=\"button\" id=\"all\" title=\"Open or close everything (e)\">open all</button>");
        html.raw("<button type=\"button\" id=\"theme\" title=\"Light or dark (t)\">light/dark</button></div></div>");
        facts(html, self.view, branches);
        html.raw("</header>\n<p class=\"elsewhere\" id=\"elsewhere\" hidden>This is a branch that was left. <a href=\"#\" id=\"back\">Back to the active one</a></p>\n");
    }

    fn branch(&mut self, number: usize, branch: &Branch) -> io::Result<()> {
        let html = &mut self.html;
        html.raw("<section class=\"branch\" id=\"b-")
            .number(number as u64)
            .raw("\"");
        if let Some(from) = branch.from {
            html.raw(" data-from=\"");
            anchor(html, self.view.nodes.all[from].entry.id());
            html.raw("\"");
        }
        html.raw(">");
        if number > 0 {
            html.raw("<h2>Another ");
            match branch.from {
                Some(from) => {
                    html.raw("branch</h2><p class=\"from\">It leaves the conversation after ");
                    entries::link(html, self.view.nodes.all[from].entry.id());
                    html.raw(".</p>");
                }
                None => drop(html.raw("beginning</h2>")),
            }
        }
        let mut at = 0;
        while at < branch.nodes.len() {
            at += self.entry(&branch.nodes[at..]);
            self.flush()?;
        }
        self.html.raw("</section>\n");
        Ok(())
    }

    /// Writes the first of these nodes, and the results of its calls if they follow. Answers how many
    /// nodes that were.
    fn entry(&mut self, nodes: &[usize]) -> usize {
        let entry = self.view.nodes.all[nodes[0]].entry.unread();
        let results = self.results(&entry, &nodes[1..]);
        self.rows[nodes[0]] = Some((gist(&entry), false));
        let mut html = std::mem::take(&mut self.html);
        let told: Vec<_> = nodes[1..]
            .iter()
            .zip(&results)
            .filter_map(|(node, entry)| Some((self.told(*node, entry, &[]), as_result(entry)?)))
            .collect();
        entries::write(&mut html, &self.told(nodes[0], &entry, &told));
        drop(told);
        self.html = html;
        for (node, result) in nodes[1..].iter().zip(&results) {
            self.rows[*node] = Some((gist(result), true));
        }
        let written = 1 + results.len();
        for node in &nodes[..written] {
            self.ways(*node);
        }
        written
    }

    /// The entries among those that follow which hold results of an answer's calls.
    fn results(&self, entry: &Entry, following: &[usize]) -> Vec<Entry> {
        let answer = entry.message().and_then(|message| message.as_assistant());
        let mut calls: Vec<&str> = answer
            .into_iter()
            .flat_map(|answer| answer.tool_calls())
            .map(|call| &*call.id)
            .collect();
        let mut results = Vec::new();
        for node in following {
            if calls.is_empty() {
                break;
            }
            let entry = self.view.nodes.all[*node].entry.unread();
            let call = as_result(&entry)
                .and_then(|result| calls.iter().position(|id| *id == result.tool_call_id));
            let Some(call) = call else { break };
            calls.swap_remove(call);
            results.push(entry);
        }
        results
    }

    fn told<'t>(
        &'t self,
        node: usize,
        entry: &'t Entry,
        results: &'t [(Told<'t>, &'t ToolResultMessage)],
    ) -> Told<'t> {
        Told {
            entry,
            label: self.view.nodes.all[node].label.as_ref(),
            edit: self
                .edits
                .get(entry.id())
                .map(|(edit, omitted)| (edit, *omitted)),
            results,
            is_leaf: self.order.is_leaf(node),
        }
    }

    /// Where the conversation also went from here.
    fn ways(&mut self, node: usize) {
        let mut others = self.order.others(node).peekable();
        if others.peek().is_none() {
            return;
        }
        let html = &mut self.html;
        html.raw("<p class=\"ways\">Also from here: ");
        for other in others.by_ref().take(MOST_WAYS) {
            let entry = self.view.nodes.all[other].entry.unread();
            html.raw("<a href=\"#");
            anchor(html, entry.id());
            html.raw("\">").text(&gist(&entry).words).raw("</a> ");
        }
        let more = others.count() as u64;
        if more > 0 {
            html.raw("and ").number(more).raw(" more");
        }
        html.raw("</p>");
    }

    fn tree(&mut self) -> io::Result<()> {
        let html = &mut self.html;
        html.raw(
            "\n<nav id=\"tree\" popover aria-label=\"Tree of entries\"><div class=\"js find\">",
        );
        html.raw("<input type=\"search\" id=\"search\" placeholder=\"Search (/)\" aria-label=\"Search the entries\">");
        html.raw("<select id=\"filter\" aria-label=\"Which entries\">");
        for (name, words) in FILTERS {
            html.raw("<option value=\"")
                .raw(name)
                .raw("\">")
                .raw(words)
                .raw("</option>");
        }
        html.raw("</select></div><ol>");
        let order = self.order;
        for row in order.rows() {
            self.row(row);
            self.flush()?;
        }
        self.html
            .raw("</ol><p class=\"js none\" hidden>Nothing of that kind.</p>");
        self.html.raw("<p class=\"js keys\"><kbd>j</kbd> <kbd>k</kbd> entry <kbd>n</kbd> <kbd>p</kbd> question <kbd>o</kbd> open <kbd>e</kbd> open all <kbd>/</kbd> search <kbd>t</kbd> light or dark</p></nav>\n");
        Ok(())
    }

    fn row(&mut self, row: Row) {
        let node = &self.view.nodes.all[row.node];
        let Some((gist, inside)) = self.rows[row.node].take() else {
            return;
        };
        let html = &mut self.html;
        html.raw("<li class=\"")
            .raw(gist.class)
            .raw(" d")
            .number(row.depth.min(DEEPEST) as u64);
        html.raw(if inside { " inside" } else { "" });
        html.raw(if row.branches { " first" } else { "" });
        html.raw(if self.order.is_active(row.node) {
            " on"
        } else {
            ""
        });
        html.raw(if self.order.is_leaf(row.node) {
            " stands"
        } else {
            ""
        });
        html.raw(if node.label.is_some() {
            " labelled"
        } else {
            ""
        });
        html.raw("\"><a href=\"#");
        anchor(html, node.entry.id());
        html.raw("\">");
        if let Some(label) = &node.label {
            html.raw("<span class=\"label\">")
                .text(&words::first_words(&label.text, 40))
                .raw("</span> ");
        }
        html.text(if gist.words.is_empty() {
            "…"
        } else {
            &gist.words
        })
        .raw("</a></li>\n");
    }

    fn foot(&mut self) {
        let html = &mut self.html;
        html.raw("<footer><p>Exported by pliant ")
            .raw(env!("CARGO_PKG_VERSION"));
        html.raw(". The page holds everything that was said in the session, on every branch: what was read from files and printed by commands too, which may contain secrets. Look through it before you pass it on.</p>");
        if self.view.damaged > 0 {
            html.raw("<p>")
                .number(self.view.damaged as u64)
                .raw(" places of the session file could not be read and are missing here.</p>");
        }
        html.raw("</footer>\n<script>")
            .raw(SCRIPT)
            .raw("</script>\n</body>\n</html>\n");
    }
}

/// Which entries the tree shows: the values of the setting `treeFilterMode`.
const FILTERS: [(&str, &str); 5] = [
    ("default", "conversation"),
    ("no-tools", "without tools"),
    ("user-only", "questions"),
    ("labeled-only", "labelled"),
    ("all", "everything"),
];

fn as_result(entry: &Entry) -> Option<&ToolResultMessage> {
    match &**entry.message()? {
        Message::ToolResult(result) => Some(result),
        _ => None,
    }
}

/// The session's name, else its first question.
fn title(view: &View) -> String {
    if let Some(name) = &view.name {
        return words::first_words(name, 120);
    }
    let asked = view.path.iter().take(SEARCHED).find_map(|entry| {
        match entry.unread().message().map(|message| &**message) {
            Some(Message::User(user)) => Some(words::of_content(&user.content)),
            _ => None,
        }
    });
    asked
        .filter(|words| !words.is_empty())
        .unwrap_or_else(|| "Session".to_owned())
}

fn facts(html: &mut Html, view: &View, branches: usize) {
    let header = &view.header;
    let totals = &view.totals;
    html.raw("<dl class=\"facts\">");
    if let Some(model) = &view.model {
        html.raw("<div><dt>Model</dt><dd>")
            .text(&model.model_id)
            .raw(" <small>")
            .text(&model.provider)
            .raw("</small></dd></div>");
    }
    html.raw("<div><dt>Begun</dt><dd><time")
        .attr("datetime", &header.timestamp)
        .raw(">")
        .text(&minute(&header.timestamp))
        .raw("</time> UTC</dd></div>");
    if let Some(last) = view.nodes.all.last() {
        let last = last.entry.timestamp();
        html.raw("<div><dt>Last entry</dt><dd><time")
            .attr("datetime", last)
            .raw(">")
            .text(&minute(last))
            .raw("</time> UTC</dd></div>");
    }
    html.raw("<div><dt>Tokens</dt><dd>")
        .text(&amount(
            totals.input + totals.cache_read + totals.cache_write,
        ))
        .raw(" in");
    if totals.cache_read > 0 {
        html.raw(" <small>")
            .text(&amount(totals.cache_read))
            .raw(" cached</small>");
    }
    html.raw(", ")
        .text(&amount(totals.output))
        .raw(" out</dd></div>");
    if totals.cost.total > 0.0 {
        html.raw("<div><dt>Cost</dt><dd>")
            .text(&dollars(totals.cost.total))
            .raw("</dd></div>");
    }
    html.raw("<div><dt>Entries</dt><dd>")
        .number(view.nodes.all.len() as u64);
    if branches > 1 {
        html.raw(" <small>on ")
            .number(branches as u64)
            .raw(" branches</small>");
    }
    html.raw("</dd></div><div class=\"long\"><dt>Directory</dt><dd>")
        .text(&header.cwd.to_string_lossy())
        .raw("</dd></div>");
    html.raw("<div class=\"long\"><dt>Session</dt><dd>")
        .text(header.id.as_str())
        .raw("</dd></div>");
    if let Some(parent) = &header.parent_session {
        html.raw("<div class=\"long\"><dt>Forked from</dt><dd>")
            .text(&parent.to_string_lossy())
            .raw("</dd></div>");
    }
    html.raw("</dl>");
}

/// The style sheet with the colours of terminals.
fn style() -> &'static str {
    static STYLE: LazyLock<String> = LazyLock::new(|| format!("{SHEET}{}", ansi::palette()));
    &STYLE
}

fn hash(text: &str) -> String {
    BASE64_STANDARD.encode(digest::digest(&digest::SHA256, text.as_bytes()))
}

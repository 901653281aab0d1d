//! Pages of whole sessions: everything is in them, and nothing in a session is more than text.

mod hostile;
mod markup;
mod order;

use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::digest;
use serde_json::{Value, json};

use super::{View, html, jsonl};
use crate::tree::{Ids, SessionTree};

/// A session of these entries, which get ids and each the one before as its parent unless they say
/// something else.
fn session(entries: &[Value]) -> SessionTree {
    let header = json!({"type": "session", "version": 3, "id": "0199", "cwd": "/work",
        "timestamp": "2026-01-01T00:00:00.000Z"});
    let mut text = format!("{header}\n");
    let mut parent = Value::Null;
    for (number, entry) in entries.iter().enumerate() {
        let mut whole = json!({"id": format!("{number:08x}"), "parentId": parent,
            "timestamp": "2026-01-01T00:01:00.000Z"});
        for (key, value) in entry.as_object().unwrap() {
            whole[key] = value.clone();
        }
        parent = whole["id"].clone();
        text.push_str(&format!("{whole}\n"));
    }
    SessionTree::from_bytes(Path::new("x"), text.into_bytes(), Ids::system()).unwrap()
}

fn page(tree: &SessionTree) -> String {
    let mut out = Vec::new();
    html(&View::of(tree), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn read(tree: &SessionTree) -> markup::Read {
    let page = page(tree);
    markup::read(&page).unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn message(message: Value) -> Value {
    json!({"type": "message", "message": message})
}

fn says(role: &str, text: &str) -> Value {
    message(json!({"role": role, "content": [{"type": "text", "text": text}]}))
}

fn calls(id: &str, name: &str, arguments: Value) -> Value {
    let call = json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments});
    message(json!({"role": "assistant", "content": [call]}))
}

fn result(id: &str, name: &str, text: &str, details: Value) -> Value {
    message(
        json!({"role": "toolResult", "toolCallId": id, "toolName": name, "details": details,
        "content": [{"type": "text", "text": text}], "isError": false}),
    )
}

/// What stands between the tags of an entry, without its head.
fn body(html: &str, id: &str) -> String {
    let start = html
        .find(&format!("id=\"e-{id}\""))
        .expect("the entry is there");
    let rest = &html[start..];
    let rest = &rest[rest.find("</header>").expect("it has a head") + 9..];
    rest[..rest.find("</article>").expect("it ends")].to_owned()
}

#[test]
fn every_kind_of_entry_is_in_the_page() {
    let usage = json!({"input": 1000, "output": 20, "totalTokens": 1020, "cost": {"total": 0.25}});
    let tree = session(&[
        json!({"type": "model_change", "provider": "p", "modelId": "the-model"}),
        json!({"type": "thinking_level_change", "thinkingLevel": "xhigh"}),
        message(
            json!({"role": "system", "content": "free words", "sections": {"one": "section words",
            "two": null}, "toolsAdded": [{"name": "new_tool", "description": "does it"}],
            "toolsRemoved": [{"name": "old_tool"}]}),
        ),
        says("user", "the question"),
        message(json!({"role": "assistant", "model": "m", "content": [
            {"type": "thinking", "thinking": "thought words"}, {"type": "text", "text": "answer *words*"},
            {"type": "mystery", "x": "unknown block"}], "usage": usage, "stopReason": "length"})),
        message(
            json!({"role": "assistant", "content": [], "stopReason": "error",
            "errorMessage": "cause words"}),
        ),
        result("nowhere", "lonely_tool", "lone result words", Value::Null),
        message(
            json!({"role": "bashExecution", "command": "the command", "output": "the output",
            "exitCode": 3, "truncated": true, "fullOutputPath": "/whole", "excludeFromContext": true}),
        ),
        message(
            json!({"role": "custom", "customType": "old-custom", "content": "custom words",
            "display": true}),
        ),
        json!({"type": "custom_message", "customType": "shown", "content": "shown words", "display": true}),
        json!({"type": "custom_message", "customType": "unshown", "content": "unshown words"}),
        json!({"type": "compaction", "summary": "compaction words", "firstKeptEntryId": "00000003",
            "tokensBefore": 12345, "details": {"readFiles": ["read.rs"]}}),
        json!({"type": "branch_summary", "fromId": "root", "summary": "branch words"}),
        json!({"type": "context_edit", "targetId": "00000003", "replacement": {"content": "edited words"}}),
        json!({"type": "usage", "kind": "usage-kind", "model": "m", "usage": usage, "note": "note words"}),
        json!({"type": "custom", "customType": "data-kind", "data": {"a": "data words"}}),
        json!({"type": "label", "targetId": "00000003", "label": "label words"}),
        json!({"type": "session_info", "name": "name words"}),
        message(json!({"role": "future_role", "x": "future words"})),
        json!({"type": "future_type", "x": "other words"}),
    ]);
    let read = read(&tree);
    for number in 0..20 {
        let id = format!("e-{number:08x}");
        assert!(read.ids.contains(&id), "{id}");
        assert!(read.links.contains(&format!("#{id}")), "{id}");
    }
    for words in [
        "the-model",
        "xhigh",
        "free words",
        "section words",
        "new_tool",
        "does it",
        "old_tool",
        "the question",
        "thought words",
        "answer words",
        "unknown block",
        "cut off at its limit",
        "cause words",
        "lonely_tool",
        "lone result words",
        "the command",
        "the output",
        "status 3",
        "/whole",
        "No model has seen",
        "old-custom",
        "custom words",
        "shown words",
        "unshown words",
        "compaction words",
        "12.3k tokens",
        "read.rs",
        "branch words",
        "edited words",
        "usage-kind",
        "note words",
        "data-kind",
        "data words",
        "label words",
        "name words",
        "future_role",
        "future words",
        "future_type",
        "other words",
        "$0.5000",
        "2.0k in",
        "/work",
        "secrets",
    ] {
        assert!(
            read.text.contains(words),
            "{words:?} is not in {}",
            read.text
        );
    }
}

#[test]
fn results_stand_in_their_calls_and_changes_as_differences() {
    let tree = session(&[
        says("user", "x"),
        message(json!({"role": "assistant", "content": [
            {"type": "toolCall", "id": "1", "name": "bash", "arguments": {"command": "ls"}},
            {"type": "toolCall", "id": "2", "name": "edit", "arguments": {"path": "a.rs", "edits": []}}]})),
        result("1", "bash", "\u{1b}[31mred\u{1b}[0m", Value::Null),
        result("2", "edit", "Replaced.", json!({"diff": "-1 a\n+1 b"})),
        calls(
            "3",
            "read",
            json!({"path": "b.py", "offset": 5, "limit": 2}),
        ),
        result("3", "read", "import x", Value::Null),
        calls("4", "odd", json!({"n": 1, "text": "two\nlines"})),
    ]);
    let html = page(&tree);
    assert_eq!(
        body(&html, "00000001"),
        "<details class=\"tool\"><summary><b>bash</b> <span class=\"about\">ls</span>\
         <span class=\"status\">✓</span></summary>\
         <div class=\"result\" id=\"e-00000002\">\
         <pre class=\"output term\"><code><span class=\"f1 \">red</span></code></pre></div></details>\
         <details class=\"tool\" open><summary><b>edit</b> <span class=\"about\">a.rs</span>\
         <span class=\"status\"><span class=\"plus\">+1</span> <span class=\"minus\">−1</span> ✓</span></summary>\
         <div class=\"result\" id=\"e-00000003\"><pre class=\"diff\"><code>\
         <span class=\"del\">-1 a\n</span><span class=\"add\">+1 b</span></code></pre></div></details>\
         <p class=\"cost\"></p>"
    );
    let read = body(&html, "00000004");
    assert!(
        read.contains("<p class=\"path\">b.py lines 5–6</p>"),
        "{read}"
    );
    assert!(
        read.contains("<span class=\"hk\">import</span> x"),
        "{read}"
    );
    let odd = body(&html, "00000006");
    assert!(
        odd.contains("<dt>n</dt><dd>1</dd>") && odd.contains("two\nlines"),
        "{odd}"
    );
    assert!(odd.contains("no result"), "{odd}");
}

#[test]
fn words_of_users_are_shown_as_typed_and_long_ones_in_two_parts() {
    let long: String = (0..200).map(|number| format!("line {number}\n")).collect();
    let tree = session(&[says("user", "*no*\n  markdown"), says("user", &long)]);
    let html = page(&tree);
    assert_eq!(
        body(&html, "00000000"),
        "<div class=\"plain\" dir=\"auto\">*no*\n  markdown</div>"
    );
    let long = body(&html, "00000001");
    assert!(long.contains("<summary>159 more lines</summary>"), "{long}");
    assert!(
        long.contains("line 40</div>") && long.contains("line 199</div>"),
        "{long}"
    );
}

#[test]
fn the_page_allows_its_own_style_and_script_and_nothing_else() {
    let read = read(&session(&[says("user", "x")]));
    let hash =
        |text: &str| BASE64_STANDARD.encode(digest::digest(&digest::SHA256, text.as_bytes()));
    let policy = format!(
        "default-src 'none'; img-src data:; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; \
         form-action 'none'",
        hash(&read.style),
        hash(&read.script)
    );
    assert_eq!(read.policy, policy);
    assert!(!read.style.contains("url(") && !read.style.contains("@import"));
    for loading in [
        "fetch(",
        "XMLHttpRequest",
        "import(",
        "innerHTML",
        "insertAdjacentHTML",
        "eval(",
    ] {
        assert!(!read.script.contains(loading), "{loading}");
    }
}

#[test]
fn a_session_without_entries_is_a_page_too() {
    let read = read(&session(&[]));
    assert!(
        read.text.contains("Session") && read.text.contains("Entries0"),
        "{}",
        read.text
    );
}

#[test]
fn the_title_is_the_name_else_the_first_question() {
    let title = |entries: &[Value]| {
        let html = page(&session(entries));
        let (_, rest) = html.split_once("<title>").unwrap();
        rest.split_once("</title>").unwrap().0.to_owned()
    };
    let named = json!({"type": "session_info", "name": "</title><script>"});
    assert_eq!(title(&[says("user", "What?\nnow")]), "What? now");
    assert_eq!(
        title(&[says("user", "What?"), named]),
        "&lt;/title&gt;&lt;script&gt;"
    );
}

#[test]
fn writing_keeps_no_entry_in_memory_and_changes_none() {
    let tree = session(&[
        says("user", "x"),
        says("assistant", "y"),
        calls("1", "a", json!({})),
    ]);
    let before: Vec<_> = tree
        .entries()
        .iter()
        .map(|entry| entry.raw().into_owned())
        .collect();
    let view = View::of(&tree);
    let read = || {
        view.nodes
            .all
            .iter()
            .filter(|node| node.entry.is_read())
            .count()
    };
    let earlier = read();
    html(&view, &mut Vec::new()).unwrap();
    assert_eq!(read(), earlier);
    let after: Vec<_> = tree
        .entries()
        .iter()
        .map(|entry| entry.raw().into_owned())
        .collect();
    assert_eq!(before, after);
}

#[test]
fn the_branch_as_a_session_file_is_that_of_the_tree() {
    // S30
    let tree = session(&[says("user", "x"), says("assistant", "y")]);
    let mut out = Vec::new();
    jsonl(&View::of(&tree), &mut out).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        tree.export_jsonl().unwrap()
    );
}

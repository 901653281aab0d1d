//! Sessions that want to do something in the page.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{calls, message, page, read, result, says, session};

/// What breaks out of markup that is put together without care.
const ATTACKS: [&str; 12] = [
    "</script><script>document.title='owned'</script>",
    "\"><img src=x onerror=document.title='owned'>",
    "' onmouseover='document.title=1' x='",
    "<!-- --><svg onload=alert(1)>",
    "]]><a href=\"javascript:alert(1)\">",
    "[x](javascript:alert(1)) <javascript:alert(1)> ![x](javascript:alert(1))",
    "</title></style></textarea></pre></code></details></article><script>alert(1)</script>",
    "&lt;script&gt;&#60;script&#62;",
    "\u{202e}\u{2066}\u{0}\u{1b}]0;x\u{7}\u{9b}31m\u{feff}\u{e0041}",
    "{{constructor.constructor('alert(1)')()}}",
    "```\"onload=x\n</code></pre><script>\n```",
    "| a | <b onclick=x> |\n|-|-|\n| [y](data:text/html,<script>) | `</code><script>` |",
];

/// A session that says it wherever something can be said.
fn everywhere(evil: &str) -> Vec<Value> {
    let blocks = json!([{"type": "text", "text": evil}, {"type": "image", "data": evil, "mimeType": evil},
        {"type": "image", "data": evil, "mimeType": "image/png"},
        {"type": "image", "data": "PHN2Zz4=", "mimeType": "image/svg+xml"},
        {"type": evil, "x": evil}]);
    vec![
        json!({"type": "model_change", "provider": evil, "modelId": evil, "timestamp": evil}),
        json!({"type": "thinking_level_change", "thinkingLevel": evil}),
        message(
            json!({"role": "system", "content": evil, "sections": {evil: evil},
            "toolsAdded": [{"name": evil, "description": evil, "parameters": {evil: evil}}],
            "toolsRemoved": [{"name": evil}]}),
        ),
        message(json!({"role": "user", "content": blocks})),
        message(
            json!({"role": "assistant", "model": evil, "stopReason": "error", "errorMessage": evil,
            "content": [{"type": "thinking", "thinking": evil}, {"type": "text", "text": evil},
                {"type": "toolCall", "id": evil, "name": evil, "arguments": {evil: evil, "n": [evil]}},
                {"type": "toolCall", "id": "b", "name": "bash", "arguments": {"command": evil}}]}),
        ),
        result(
            "b",
            "bash",
            evil,
            json!({"diff": evil, "fullOutputPath": evil}),
        ),
        message(
            json!({"role": "toolResult", "toolCallId": evil, "toolName": evil, "content": blocks,
            "nestedCalls": {"calls": [{"name": evil, "arguments": {evil: evil}, "status": evil}]}}),
        ),
        calls(
            "e",
            "edit",
            json!({"path": evil, "oldText": evil, "newText": evil}),
        ),
        calls("w", "write", json!({"path": evil, "content": evil})),
        calls("r", "read", json!({"path": evil, "offset": 1})),
        result("r", "read", evil, Value::Null),
        message(json!({"role": "bashExecution", "command": evil, "output": evil})),
        json!({"type": "custom_message", "customType": evil, "content": evil, "display": true}),
        json!({"type": "compaction", "summary": evil, "firstKeptEntryId": evil, "details": evil}),
        json!({"type": "branch_summary", "summary": evil, "fromId": evil}),
        json!({"type": "context_edit", "targetId": evil, "replacement": {"content": evil}}),
        json!({"type": "usage", "kind": evil, "model": evil, "note": evil}),
        json!({"type": "custom", "customType": evil, "data": {evil: evil}}),
        json!({"type": "label", "targetId": "00000003", "label": evil}),
        json!({"type": "session_info", "name": evil}),
        json!({"type": evil, evil: evil}),
        json!({"type": "message", "id": evil, "message": {"role": "user", "content": evil}}),
    ]
}

#[test]
fn nothing_that_is_said_anywhere_is_markup() {
    for attack in ATTACKS {
        let read = read(&session(&everywhere(attack)));
        assert!(
            read.sources
                .iter()
                .all(|source| source.starts_with("data:image/png;base64,"))
        );
    }
    // It is still there to be read.
    let text = read(&session(&everywhere(ATTACKS[0]))).text;
    assert!(text.contains(ATTACKS[0]));
}

#[test]
fn links_from_a_session_lead_to_the_web_alone() {
    let text =
        "[a](https://a.b/c?d=\"e\") [f](javascript:x) <https://g.h> [i](#tree) [j](mailto:k@l)";
    let read = read(&session(&[says("assistant", text)]));
    let ours = |link: &&String| !link.starts_with("#") && *link != "data:,";
    let links: Vec<_> = read.links.iter().filter(ours).collect();
    assert_eq!(
        links,
        ["https://a.b/c?d=\"e\"", "https://g.h", "mailto:k@l"]
    );
}

#[test]
fn halves_of_surrogates_and_bytes_that_are_no_text_are_shown_as_such() {
    // S17
    let text = "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"t\",\"cwd\":\"/\"}\n\
        {\"type\":\"message\",\"id\":\"1\",\"parentId\":null,\"timestamp\":\"t\",\"message\":{\"role\":\"user\",\
        \"content\":\"half \\ud800 nul \\u0000\"}}\n";
    let tree = crate::tree::SessionTree::from_bytes(
        std::path::Path::new("x"),
        text.as_bytes().to_vec(),
        crate::tree::Ids::system(),
    );
    assert!(read(&tree.unwrap()).text.contains("half \u{fffd} nul ␀"));
}

#[test]
fn what_is_very_long_is_there_to_its_end() {
    let long = "<0123456789>\n".repeat(50_000) + "end";
    let tree = session(&[
        calls("1", "bash", json!({"command": "x"})),
        result("1", "bash", &long, Value::Null),
    ]);
    let html = page(&tree);
    assert!(html.len() > long.len() && html.contains("&lt;0123456789&gt;\nend</code>"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_text_is_markup_wherever_it_is_said(any in any::<String>()) {
        read(&session(&everywhere(&any)));
    }

    #[test]
    fn no_markdown_is_markup(parts in proptest::collection::vec(proptest::sample::select(vec![
        "<", ">", "\"", "'", "&", "script", "onload=", "[", "]", "(", ")", "!", "javascript:", "https://x",
        "*", "_", "`", "```", "~~", "|", "-", "\n", "\n\n", "> ", "1. ", "# ", "    ", "\\", "&#106;", "<!--",
        "[x]: ", "\t", "a", "\u{202e}", "~~~", "+", "=", ":", "[ ] ", "<a href=", "</", "/>",
    ]), 0..60)) {
        read(&session(&[says("assistant", &parts.concat())]));
    }
}

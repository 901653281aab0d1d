//! The document as text, beside the branch it tells.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};

use super::*;
use crate::tree::{
    BranchSummary, Compaction, ContextEdit, CustomEntry, CustomMessageEntry, Ids, LabelChange,
    ModelChange, SessionInfoEntry,
};

fn tree() -> SessionTree {
    let dice = AtomicI64::new(0);
    let dice = move || u128::from(dice.fetch_add(1, Ordering::Relaxed).unsigned_abs()) << 96;
    SessionTree::in_memory(
        Path::new("/work/`x`"),
        None,
        Ids::new(|| 1_767_225_600_000, dice),
    )
}

fn say(tree: &mut SessionTree, message: Value) -> EntryId {
    let entry = tree
        .append_message(Arc::new(Message::from(message)))
        .unwrap();
    entry.id().clone()
}

/// What stands below the head of the document.
fn body(tree: &SessionTree) -> String {
    let document = tree.export_markdown();
    let start = document.find("\n\n## ").unwrap() + 2;
    document[start..].to_owned()
}

#[test]
fn a_conversation_reads_in_its_order() {
    let mut tree = tree();
    say(&mut tree, json!({"role": "system", "content": "PROMPT"}));
    say(
        &mut tree,
        json!({"role": "user", "content": [
        {"type": "text", "text": "What is in\na.txt?"},
        {"type": "image", "mimeType": "image/png", "data": "AAAAAAAA"}]}),
    );
    say(
        &mut tree,
        json!({"role": "assistant", "stopReason": "toolUse", "content": [
        {"type": "thinking", "thinking": "Look."}, {"type": "text", "text": "I look."},
        {"type": "toolCall", "id": "1", "name": "read", "arguments": {"path": "a.txt"}}]}),
    );
    say(
        &mut tree,
        json!({"role": "toolResult", "toolName": "read", "toolCallId": "1",
        "content": [{"type": "text", "text": "```\nalpha"}]}),
    );
    say(
        &mut tree,
        json!({"role": "assistant", "content": "Alpha.", "stopReason": "length"}),
    );
    let text = "\
## User · 2026-01-01 00:00 UTC

> What is in
> a.txt?

*An image, `image/png`, 1 kB*

## Assistant · 2026-01-01 00:00 UTC

### Thinking

> Look.

### Answer

> I look.

### Call of `read`

```json
{
  \"path\": \"a.txt\"
}
```

## Result of `read` · 2026-01-01 00:00 UTC

````
```
alpha
````

## Assistant · 2026-01-01 00:00 UTC

> Alpha.

*The answer was cut off at its limit.*
";
    assert_eq!(body(&tree), text);
}

#[test]
fn the_head_names_the_session() {
    let mut tree = tree();
    let name = "# <b> \u{1b}[1m".to_owned();
    tree.append(EntryBody::SessionInfo(SessionInfoEntry { name }))
        .unwrap();
    let head = format!(
        "# \\# \\<b\\> \\[1m\n\n- Session: `{}`\n- Begun: 2026-01-01 00:00 UTC\n- Directory: `` /work/`x` ``\n",
        tree.id()
    );
    assert_eq!(tree.export_markdown(), head);
}

#[test]
fn only_the_branch_is_told_with_its_labels_edits_and_summaries() {
    let mut tree = tree();
    let first = say(&mut tree, json!({"role": "user", "content": "one"}));
    say(&mut tree, json!({"role": "user", "content": "left"}));
    let summary = BranchSummary {
        summary: "Went wrong.".to_owned(),
        ..BranchSummary::default()
    };
    tree.branch_with_summary(Some(&first), summary).unwrap();
    let extension = CustomMessageEntry {
        custom_type: "note".to_owned(),
        content: MessageContent::Text("Mind the gap.".to_owned()),
        ..CustomMessageEntry::default()
    };
    tree.append(EntryBody::CustomMessage(extension)).unwrap();
    let label = LabelChange {
        target_id: first.clone(),
        label: Some("*start*".to_owned()),
    };
    tree.append(EntryBody::Label(label)).unwrap();
    let edit = ContextEdit {
        target_id: first,
        replacement: Replacement::Omit,
    };
    tree.append(EntryBody::ContextEdit(edit)).unwrap();
    let model = ModelChange {
        provider: "p".to_owned(),
        model_id: "m".to_owned(),
    };
    tree.append(EntryBody::ModelChange(model)).unwrap();
    tree.append(EntryBody::Custom(CustomEntry::default()))
        .unwrap();
    let compaction = Compaction {
        summary: "All of it.".to_owned(),
        ..Compaction::default()
    };
    tree.append(EntryBody::Compaction(compaction)).unwrap();
    let text = "\
## User · 2026-01-01 00:00 UTC · \\*start\\*

*Left out of the context later on.*

> one

## Summary of a branch that was left · 2026-01-01 00:00 UTC

> Went wrong.

## Extension `note` · 2026-01-01 00:00 UTC

> Mind the gap.

*The model is `p/m` from here on.*

## Summary of what was said before · 2026-01-01 00:00 UTC

> All of it.
";
    assert_eq!(body(&tree), text);
}

#[test]
fn nothing_that_was_said_or_done_gets_out_of_its_place() {
    let hostile = "> ```\n<script>\n~~~~\n## User\n\n<!--\u{1b}]0;x\u{7}\n\n````\n- ```";
    let mut tree = tree();
    say(&mut tree, json!({"role": "user", "content": hostile}));
    say(
        &mut tree,
        json!({"role": "assistant", "stopReason": "error", "errorMessage": hostile,
        "content": [{"type": "thinking", "thinking": hostile}, {"type": "text", "text": hostile},
            {"type": "toolCall", "name": hostile, "arguments": {"a": hostile}},
            {"type": hostile, "x": hostile}]}),
    );
    say(
        &mut tree,
        json!({"role": "toolResult", "toolName": hostile, "isError": true,
        "content": [{"type": "text", "text": hostile}, {"type": "image", "mimeType": hostile}]}),
    );
    say(
        &mut tree,
        json!({"role": "bashExecution", "command": hostile, "output": hostile}),
    );
    say(&mut tree, json!({"role": hostile, "content": hostile}));
    let document = body(&tree);
    assert!(!document.contains(|c: char| c.is_control() && c != '\n'));
    let mut fence: Option<&str> = None;
    for line in document.lines() {
        match fence {
            Some(open) if line == open => fence = None,
            Some(_) => {}
            None if line.starts_with("```") => {
                fence = Some(&line[..line.len() - line.trim_start_matches('`').len()]);
            }
            None => {
                let ours = ["## ", "### ", "*", ">"]
                    .iter()
                    .any(|mark| line.starts_with(mark));
                assert!(line.is_empty() || ours, "{line}");
            }
        }
    }
    assert_eq!(fence, None);
}

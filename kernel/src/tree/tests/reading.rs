//! Reading files of other writers, old versions and damaged ones.

use serde_json::json;

use super::*;

#[test]
fn a_session_with_every_kind_of_entry_is_read_and_its_bytes_are_kept() {
    // 2.3, S17, S21, S25, M7, invariant 36
    let folder = Folder::new();
    let path = folder.fixture("v3.jsonl");
    let before = fs::read(&path).unwrap();
    let tree = open(&path);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(lines(&path)[1..], raw_lines(&tree));
    assert!(tree.damage().is_empty());

    let header = tree.header();
    assert_eq!(header.id.as_str(), "0199aaaa-0000-7000-8000-000000000001");
    assert_eq!(
        header.parent_session.as_deref(),
        Some(Path::new("/old/parent.jsonl"))
    );
    assert_eq!(header.extra()["flavour"], "plain");
    assert_eq!(tree.leaf().unwrap().as_str(), "c0000009");
    assert_eq!(tree.name(), Some("demo session"));
    assert_eq!(tree.label(&"a0000007".into()).unwrap().text, "good point");
    assert_eq!(tree.usage_totals().total_tokens, 110 + 130 + 10 + 2);
    assert_eq!(
        shown(tree.context()),
        [
            "system: preamble=\"Be brief.\" cwd=\"/work/demo\"",
            "user: What is in a.txt?",
            "assistant: ",
            "toolResult: half a surrogate \u{fffd} here",
            "assistant: Text.",
            "branchSummary: The left branch went nowhere.",
            "custom: injected words",
            "user: harmless words",
        ]
    );
    let settings = tree.settings();
    assert_eq!(
        settings.thinking_level.map(|level| level.as_str()),
        Some("high")
    );
    assert_eq!(settings.model.as_ref().unwrap().model_id, "thinker");
    let EntryBody::Other(other) = tree.entry(&"c0000009".into()).unwrap().body() else {
        panic!()
    };
    assert_eq!(
        (&*other.type_name, other.fields.len()),
        ("from_the_future", 1)
    );
    let stored = serde_json::to_string(tree.entries().last().unwrap()).unwrap();
    assert_eq!(stored, *lines(&path).last().unwrap());
}

#[test]
fn a_large_file_is_read_by_several_threads_to_the_same_tree() {
    let folder = Folder::new();
    let mut lines = chain(40_000);
    lines[30_000].truncate(60);
    lines[39_990] = "\u{feff}junk".to_owned();
    let text = lines.join("\n");
    assert!(text.len() > 4 << 20, "large enough for a second thread");
    let tree = open(&folder.file("large.jsonl", text));
    assert_eq!(tree.path_to_leaf().len(), 40_000);
    assert_eq!(tree.context().len(), 39_998);
    let damaged: Vec<usize> = tree.damage().iter().map(|damage| damage.line).collect();
    assert_eq!(damaged, [30_001, 39_991]);
    for (at, entry) in tree.entries().iter().enumerate() {
        assert_eq!(entry.id().as_str(), (at + 1).to_string());
    }
}

#[test]
fn memory_follows_the_branch_in_use() {
    let folder = Folder::new();
    let mut tree = open(&folder.file("s.jsonl", chain(6).join("\n")));
    let read = |tree: &SessionTree| -> Vec<bool> {
        tree.entries().iter().map(|entry| entry.is_read()).collect()
    };
    assert_eq!(read(&tree), [false; 6]);
    assert_eq!(tree.context().len(), 6);
    assert_eq!(read(&tree), [true; 6]);

    let kept = Arc::clone(&tree.context()[1]);
    tree.branch(&"2".into()).unwrap();
    assert_eq!(read(&tree), [true, true, false, false, false, false]);
    assert!(
        Arc::ptr_eq(&kept, &tree.context()[1]),
        "what both see stays"
    );

    tree.branch(&"6".into()).unwrap();
    assert_eq!(shown(tree.context()).len(), 6);
    let kept = "5".into();
    add(&mut tree, compaction("short", Some(&kept)));
    assert_eq!(shown(tree.context()).len(), 3);
    assert_eq!(
        read(&tree),
        [false, false, false, false, true, true, true],
        "what a compaction replaced is let go"
    );
    assert_eq!(tree.path_to_leaf().len(), 7);
}

#[test]
fn cycles_and_missing_parents_end_a_path() {
    // S20, S24
    let folder = Folder::new();
    let tree = open(&folder.fixture("cycle.jsonl"));
    assert_eq!(
        shown(tree.context()),
        ["user: a", "user: b", "user: c", "user: e"]
    );
    assert_eq!(tree.get_branch(&"0000000d".into()).len(), 1);
    let nodes = tree.nodes();
    let roots: Vec<&str> = nodes
        .roots
        .iter()
        .map(|n| nodes.all[*n].entry.id().as_str())
        .collect();
    assert_eq!(roots, ["0000000a", "0000000d"]);
    assert_eq!(
        nodes.all[2].children.len(),
        1,
        "c leads to e, no longer to a"
    );
}

#[test]
fn a_missing_path_is_a_new_session_bound_to_it() {
    // S15
    let folder = Folder::new();
    let path = folder.path("sub/mine.jsonl");
    let mut tree = open(&path);
    assert_eq!(tree.path(), Some(&*path));
    assert!(!path.exists());
    add(&mut tree, user("hi"));
    assert_eq!(snapshot(&again(&path)), snapshot(&tree));
    assert_eq!(tree.header().cwd, cwd());
}

#[test]
fn an_empty_file_gets_a_header_at_once() {
    // S15
    let folder = Folder::new();
    let path = folder.file("empty.jsonl", "");
    let mut tree = open(&path);
    assert_eq!(lines(&path).len(), 1);
    tree.set_name("no conversation yet").unwrap();
    assert_eq!(lines(&path).len(), 2);
    let again = again(&path);
    assert_eq!(again.id(), tree.id());
    assert_eq!(snapshot(&again), snapshot(&tree));
}

#[test]
fn a_file_that_is_no_session_is_refused_and_left_untouched() {
    // S15, S16
    let folder = Folder::new();
    for (name, content) in [
        ("a", "precious notes"),
        ("b", "{\"type\":\"message\",\"id\":\"x\"}"),
        ("c", "\n"),
        ("d", "\u{feff}"),
    ] {
        let path = folder.file(name, content);
        let result = SessionTree::open(&path, cwd(), ids());
        assert!(
            matches!(result, Err(TreeError::NotASession { .. })),
            "{name}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    let path = folder.fixture("not-a-session.jsonl");
    let error = SessionTree::open(&path, cwd(), ids())
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("not-a-session.jsonl") && error.contains("untouched"),
        "{error}"
    );
    assert!(matches!(
        SessionTree::open(&folder.0, cwd(), ids()),
        Err(TreeError::Read { .. })
    ));
}

#[test]
fn version_1_gets_ids_parents_and_a_kept_entry_and_is_rewritten_once() {
    // S19, invariant 6
    let folder = Folder::new();
    let path = folder.fixture("v1.jsonl");
    let tree = open(&path);
    let migrated = lines(&path);
    assert!(migrated[0].starts_with(r#"{"type":"session","version":3,"id":"old-one""#));
    assert!(migrated[0].ends_with(r#""provider":"oai"}"#));
    assert!(
        migrated[2].contains(r#""cost":{"input":0.10,"output":0.5"#),
        "bytes are kept"
    );
    let mut parent = None;
    for entry in tree.entries() {
        assert_eq!(entry.parent(), parent.as_ref());
        parent = Some(entry.id().clone());
    }
    assert_eq!(
        shown(tree.context()),
        [
            "compactionSummary: They talked.",
            "user: second question",
            "custom: from a hook"
        ]
    );
    assert!(!migrated[4].contains("firstKeptEntryIndex"));

    let inode = fs::metadata(&path).unwrap().modified().unwrap();
    let again = again(&path);
    assert_eq!(snapshot(&again), snapshot(&tree));
    assert_eq!(lines(&path), migrated);
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), inode);
    drop(tree);
    assert_eq!(
        fs::read_dir(&folder.0).unwrap().count(),
        2,
        "the old file stays beside, but no temporary file and no lease"
    );
}

#[test]
fn version_2_hook_messages_become_custom_and_the_rest_stays() {
    // S19, S16, M7
    let folder = Folder::new();
    let path = folder.fixture("v2.jsonl");
    let before = lines(&path);
    let tree = open(&path);
    assert_eq!(
        shown(tree.context()),
        ["custom: from the hook", "user: hello \u{fffd}"]
    );
    let after = lines(&path);
    assert_eq!(
        after[0],
        before[0].replace("\"version\":2", "\"version\":3")
    );
    assert_eq!(after[1], before[1].replace("hookMessage", "custom"));
    assert_eq!(after[2..], before[2..]);
}

#[cfg(unix)]
#[test]
fn migration_keeps_links_and_permissions() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new();
    let path = folder.fixture("v2.jsonl");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path("link.jsonl");
    symlink(&path, &link).unwrap();
    open(&link);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o640
    );
    assert!(lines(&path)[0].contains("\"version\":3"));
}

#[test]
fn later_versions_are_loaded_as_they_are() {
    // S19
    let folder = Folder::new();
    let path = folder.fixture("v4.jsonl");
    let before = lines(&path);
    let mut tree = open(&path);
    assert_eq!(tree.header().extra()["dialect"], "new");
    add(&mut tree, user("two"));
    assert_eq!(lines(&path)[..2], before);
    assert_eq!(shown(again(&path).context()), ["user: one", "user: two"]);
}

#[test]
fn ill_typed_fields_read_as_their_defaults() {
    // M8, M18
    let folder = Folder::new();
    let entry = |kind: &str, fields: serde_json::Value| {
        let mut line = json!({"type": kind, "id": format!("{kind}-id"), "parentId": 7, "timestamp": 1_767_225_600_000_i64});
        line.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        line.to_string()
    };
    let text = [
        json!({"type": "session", "version": 3, "id": "x", "timestamp": null, "cwd": 3}).to_string(),
        entry("message", json!({})),
        entry("message", json!({"message": {"role": "user", "content": null}})),
        entry("custom_message", json!({"content": 3, "display": "yes"})),
        entry("compaction", json!({"summary": [], "firstKeptEntryId": 3, "tokensBefore": "many", "systemMessage": 4})),
        entry("branch_summary", json!({"summary": null})),
        entry("context_edit", json!({"targetId": "x"})),
        entry("context_edit", json!({"targetId": "x", "replacement": {"content": 3}})),
        entry("usage", json!({"usage": "none"})),
        entry("label", json!({"targetId": {}, "label": 3})),
        entry("session_info", json!({"name": 3})),
        entry("thinking_level_change", json!({"thinkingLevel": "galactic"})),
    ]
    .join("\n");
    let tree = open(&folder.file("odd.jsonl", text));
    assert!(tree.damage().is_empty());
    assert_eq!(tree.entries()[0].timestamp(), "2026-01-01T00:00:00.000Z");
    for entry in tree.entries() {
        let _ = (entry.body(), entry.messages());
    }
    assert_eq!((tree.name(), tree.settings().thinking_level), (None, None));
    assert_eq!(tree.usage_totals(), &Usage::default());
}

#[test]
fn reading_without_opening_leaves_the_file_alone() {
    let folder = Folder::new();
    for name in ["v1.jsonl", "damaged.jsonl"] {
        let path = folder.fixture(name);
        let before = fs::read(&path).unwrap();
        let mut tree = SessionTree::read(&path, ids()).unwrap();
        add(&mut tree, user("only here"));
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

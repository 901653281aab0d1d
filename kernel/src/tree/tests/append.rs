//! Writing: when a file appears, what a failed write leaves, and that nothing is glued.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::*;

/// Puts a limit on the room that the tree's file has.
fn limit(tree: &mut SessionTree, can_truncate: bool) -> Arc<AtomicU64> {
    let room = Arc::new(AtomicU64::new(0));
    let Place::File(storage) = std::mem::replace(&mut tree.place, Place::Memory) else {
        panic!("not on disk")
    };
    tree.place = Place::File(Box::new(
        storage.with_log(|log| log.limit(&room, can_truncate)),
    ));
    room
}

#[test]
fn nothing_is_written_before_the_first_user_or_assistant_message() {
    // S11, reports S06, invariant 5
    let folder = Folder::new();
    let mut tree = SessionTree::create(&folder.path("deep/er"), cwd(), None, ids());
    let level = ThinkingLevelChange {
        thinking_level: "low".into(),
    };
    add(&mut tree, EntryBody::ThinkingLevelChange(level));
    add(&mut tree, system(json!({"sections": {"cwd": "/"}})));
    add(&mut tree, custom_message("note"));
    tree.set_name("named").unwrap();
    let path = tree.path().unwrap().to_owned();
    assert!(!path.exists() && !tree.is_on_disk());

    add(&mut tree, user("hi"));
    assert!(tree.is_on_disk());
    assert_eq!(lines(&path).len(), 6);
    assert_eq!(lines(&path)[1..], raw_lines(&tree));
    assert_eq!(snapshot(&again(&path)), snapshot(&tree));
}

#[test]
fn a_line_has_pis_fields_in_pis_order() {
    // 2.2, 2.3, S6
    let folder = Folder::new();
    let id = SessionId::parse("job-42").unwrap();
    let mut tree = SessionTree::create(&folder.0, cwd(), Some(id), ids());
    let first = add(&mut tree, user("hi"));
    let path = tree.path().unwrap();
    assert_eq!(
        path.file_name().unwrap(),
        "2026-01-01T00-00-00-000Z_job-42.jsonl"
    );
    assert_eq!(
        lines(path),
        [
            r#"{"type":"session","version":3,"id":"job-42","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/work/demo"}"#.to_owned(),
            format!(r#"{{"type":"message","id":"{first}","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{{"role":"user","content":[{{"type":"text","text":"hi"}}],"timestamp":1767225600000}}}}"#),
        ]
    );
    assert!(first.as_str().len() == 8 && first.as_str().bytes().all(|b| b.is_ascii_hexdigit()));
}

#[test]
fn every_kind_of_entry_is_written_with_its_fields_and_read_back_the_same() {
    // 2.3, S9, S34, invariant 6
    let usage = Usage {
        input: 1,
        total_tokens: 1,
        ..Usage::default()
    };
    let bodies = |target: &EntryId| -> Vec<(EntryBody, Value)> {
        vec![
            (
                custom_message("words"),
                json!({"customType": "ext", "content": "words", "display": true}),
            ),
            (
                EntryBody::ContextEdit(ContextEdit {
                    target_id: target.clone(),
                    replacement: Replacement::Omit,
                }),
                json!({"targetId": target, "replacement": null}),
            ),
            (
                EntryBody::ModelChange(ModelChange {
                    provider: "oai".into(),
                    model_id: "m".into(),
                }),
                json!({"provider": "oai", "modelId": "m"}),
            ),
            (
                EntryBody::ThinkingLevelChange(ThinkingLevelChange {
                    thinking_level: "xhigh".into(),
                }),
                json!({"thinkingLevel": "xhigh"}),
            ),
            (
                EntryBody::Usage(UsageEntry {
                    kind: "title".into(),
                    provider: "p".into(),
                    model: "m".into(),
                    usage: usage.clone(),
                    note: Some("n".into()),
                }),
                json!({"kind": "title", "provider": "p", "model": "m", "usage": usage, "note": "n"}),
            ),
            (
                EntryBody::Custom(CustomEntry {
                    custom_type: "ext".into(),
                    data: Some(json!([1])),
                }),
                json!({"customType": "ext", "data": [1]}),
            ),
            (
                EntryBody::Label(LabelChange {
                    target_id: target.clone(),
                    label: Some("here".into()),
                }),
                json!({"targetId": target, "label": "here"}),
            ),
            (
                EntryBody::Label(LabelChange {
                    target_id: target.clone(),
                    label: None,
                }),
                json!({"targetId": target}),
            ),
            (
                EntryBody::SessionInfo(SessionInfoEntry {
                    name: " a\r\nb\nc ".into(),
                }),
                json!({"name": "a b c"}),
            ),
            (
                EntryBody::BranchSummary(BranchSummary {
                    from_id: "root".into(),
                    summary: "s".into(),
                    details: Some(json!({})),
                    usage: Some(usage.clone()),
                    from_hook: Some(false),
                }),
                json!({"fromId": "root", "summary": "s", "details": {}, "usage": usage, "fromHook": false}),
            ),
            (
                compaction("sum", Some(target)),
                json!({"summary": "sum", "firstKeptEntryId": target, "tokensBefore": 100}),
            ),
            (
                EntryBody::Other(OtherEntry {
                    type_name: "future".into(),
                    fields: json!({"id": "ignored", "x": {"b": 1, "a": 2}})
                        .as_object()
                        .unwrap()
                        .clone(),
                }),
                json!({"x": {"b": 1, "a": 2}}),
            ),
        ]
    };
    let folder = Folder::new();
    let (mut tree, path) = stored(&folder);
    let target = tree.leaf().unwrap().clone();
    for (body, want) in bodies(&target) {
        let entry = Arc::clone(tree.append(body).unwrap());
        let mut line: serde_json::Map<String, Value> = serde_json::from_str(&entry.raw()).unwrap();
        let head: Vec<String> = line.keys().take(4).cloned().collect();
        assert_eq!(head, ["type", "id", "parentId", "timestamp"]);
        let stored = line.split_off_fields();
        assert_eq!(Value::from(stored).to_string(), want.to_string());
    }
    let again = again(&path);
    assert_eq!(snapshot(&again), snapshot(&tree));
    for (a, b) in again.entries().iter().zip(tree.entries()) {
        assert_eq!(a.body(), b.body());
    }
}

trait SplitOff {
    fn split_off_fields(&mut self) -> serde_json::Map<String, Value>;
}

impl SplitOff for serde_json::Map<String, Value> {
    fn split_off_fields(&mut self) -> serde_json::Map<String, Value> {
        std::mem::take(self).into_iter().skip(4).collect()
    }
}

#[test]
fn an_append_adds_one_line_and_leaves_earlier_bytes_alone() {
    // S8, S13, invariants 2, 3, 4
    let folder = Folder::new();
    let (mut tree, path) = stored(&folder);
    for round in 0..5 {
        let before = fs::read(&path).unwrap();
        let raw = tree
            .append(user(&format!("line\nfeeds {round}")))
            .unwrap()
            .raw()
            .into_owned();
        let after = fs::read(&path).unwrap();
        assert_eq!(after[..before.len()], before);
        assert_eq!(after[before.len()..], *format!("{raw}\n").as_bytes());
    }
}

#[test]
fn a_taken_file_name_is_not_overwritten_and_the_message_is_rolled_back() {
    // S11, S12
    let folder = Folder::new();
    let mut tree = SessionTree::create(&folder.0, cwd(), None, ids());
    tree.set_name("kept").unwrap();
    let path = tree.path().unwrap().to_owned();
    fs::write(&path, "somebody else's").unwrap();
    let before = snapshot(&tree);
    assert!(matches!(
        tree.append(user("hi")),
        Err(TreeError::Exists { .. })
    ));
    assert_eq!(snapshot(&tree), before);
    assert_eq!(fs::read_to_string(&path).unwrap(), "somebody else's");

    fs::remove_file(&path).unwrap();
    add(&mut tree, user("hi again"));
    assert_eq!(snapshot(&again(&path)), snapshot(&tree));
}

#[test]
fn a_full_disk_loses_nothing_that_is_stored_and_changes_nothing_in_memory() {
    // S12, reports S04, invariants 7 and 35
    let length = {
        let folder = Folder::new();
        let (mut tree, _) = stored(&folder);
        tree.append(user("no")).unwrap().raw().len() as u64 + 1
    };
    for can_truncate in [true, false] {
        for room in 0..=length {
            let folder = Folder::new();
            let (mut tree, path) = stored(&folder);
            let before = (snapshot(&tree), lines(&path));
            let space = limit(&mut tree, can_truncate);
            space.store(room, Ordering::Relaxed);
            let result = tree.append(user("no"));
            if room == length {
                assert!(result.is_ok());
                continue;
            }
            let error = result.unwrap_err().to_string();
            assert!(error.contains("Nothing was recorded"), "{error}");
            assert_eq!(snapshot(&tree), before.0, "room {room}");
            assert_eq!(lines(&path)[..before.1.len()], before.1);

            space.store(u64::MAX, Ordering::Relaxed);
            add(&mut tree, user("retried"));
            // All but the line end of the lost entry got through and cannot be taken back: then it
            // is there after all, as a branch of its own.
            let survived = usize::from(!can_truncate && room + 1 == length);
            let again = again(&path);
            assert_eq!(
                again.entries().len(),
                tree.entries().len() + survived,
                "room {room}"
            );
            assert_eq!(shown(again.context()), shown(tree.context()));
            assert_eq!(
                again.damage().is_empty(),
                can_truncate || room == 0 || survived == 1
            );
        }
    }
}

#[test]
fn a_disk_that_is_full_at_the_first_message_leaves_no_file() {
    // S11, S12
    let folder = Folder::new();
    let path = folder.path("new/s.jsonl");
    let created = super::log::Log::create(&path, |out| {
        out.write_all(b"{\"type\":\"session\"")?;
        Err(std::io::ErrorKind::StorageFull.into())
    });
    assert!(created.is_err() && !path.exists());
}

#[test]
fn opening_and_appending_read_no_entry() {
    let folder = Folder::new();
    let path = folder.file("s.jsonl", chain(50).join("\n"));
    let reads = || super::source::READS.with(std::cell::Cell::get);
    let before = reads();
    let mut tree = open(&path);
    add(&mut tree, user("51"));
    add(&mut tree, user("52"));
    assert_eq!(reads(), before);
    assert_eq!(tree.context().len(), 52);
    assert_eq!(reads(), before + 50, "those that were in the file, once");
    let known = tree.usage_totals().clone();
    add(&mut tree, assistant("53"));
    assert_eq!(tree.usage_totals().total_tokens, known.total_tokens + 11);
}

#[test]
fn what_was_written_is_synced_once_and_by_the_policy() {
    let folder = Folder::new();
    let (mut tree, _) = stored(&folder);
    tree.run_boundary().unwrap().sync().unwrap();
    assert!(tree.run_boundary().is_none());
    add(&mut tree, user("more"));
    assert!(tree.run_boundary().is_some());
    for policy in [SyncPolicy::Off, SyncPolicy::Entry] {
        tree.set_sync(policy);
        add(&mut tree, user("more"));
        assert!(tree.run_boundary().is_none());
    }
    assert!(tree.syncer().is_none(), "every entry was synced");
    assert!(tree.take_notices().is_empty());
}

#[test]
fn what_is_no_stored_message_is_refused() {
    // M1, M5
    let mut tree = memory();
    let refused = |tree: &mut SessionTree, json: Value| {
        let message = Arc::new(Message::from(json));
        assert!(matches!(
            tree.append_message(message),
            Err(TreeError::NotStorable { .. })
        ));
    };
    refused(
        &mut tree,
        json!({"role": "assistant", "content": [], "stopReason": "pending"}),
    );
    refused(
        &mut tree,
        json!({"role": "compactionSummary", "summary": "s", "timestamp": 1}),
    );
    refused(
        &mut tree,
        json!({"role": "branchSummary", "summary": "s", "timestamp": 1}),
    );
    for type_name in ["", "session", "message"] {
        let other = OtherEntry {
            type_name: type_name.into(),
            fields: serde_json::Map::new(),
        };
        assert!(tree.append(EntryBody::Other(other)).is_err());
    }
    assert!(tree.entries().is_empty());
}

#[test]
fn an_in_memory_session_behaves_the_same_minus_the_file() {
    // S14
    let folder = Folder::new();
    let mut on_disk = SessionTree::create(&folder.0, cwd(), None, ids());
    let mut in_memory = SessionTree::in_memory(cwd(), None, ids());
    for tree in [&mut on_disk, &mut in_memory] {
        add(tree, user("hi"));
        add(tree, assistant("hello"));
        tree.set_name("same").unwrap();
    }
    assert_eq!(snapshot(&on_disk), snapshot(&in_memory));
    assert_eq!((in_memory.path(), in_memory.is_on_disk()), (None, false));
}

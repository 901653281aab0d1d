//! Writing: when a file appears, what a failed write leaves, and that nothing is glued.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::*;

/// A session on disk with one exchange.
fn stored(folder: &Folder) -> (SessionTree, PathBuf) {
    let mut tree = SessionTree::create(&folder.0, cwd(), None, ids());
    add(&mut tree, user("hi"));
    add(&mut tree, assistant("hello"));
    let path = tree.path().unwrap().to_owned();
    (tree, path)
}

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
fn what_another_program_wrote_in_the_middle_of_our_line_stays() {
    // S12, S18
    let theirs =
        r#"{"type":"custom","id":"7e1e0001","parentId":null,"timestamp":"t","customType":"x"}"#;
    let theirs: &'static str = Box::leak(format!("{theirs}\n").into_boxed_str());
    let plans: [&[(usize, &'static str)]; 4] = [
        &[(5, ""), (3, theirs)],
        &[(5, ""), (9999, theirs)],
        &[(5, theirs), (0, "")],
        &[(0, theirs)],
    ];
    for (number, plan) in plans.iter().enumerate() {
        let folder = Folder::new();
        let (mut tree, path) = stored(&folder);
        let Place::File(storage) = std::mem::replace(&mut tree.place, Place::Memory) else {
            panic!("not on disk")
        };
        let busy = storage.with_log(|log| log.busy(plan.to_vec()));
        tree.place = Place::File(Box::new(busy));
        assert!(tree.append(user("no")).is_err(), "{number}");
        add(&mut tree, user("again"));
        add(&mut tree, user("and on"));
        let again = again(&path);
        assert!(
            again.entry(&"7e1e0001".into()).is_some(),
            "{number}: theirs is lost"
        );
        assert_eq!(shown(again.context()), shown(tree.context()), "{number}");
        assert_eq!(again.context().len(), 4);
    }
}

#[test]
fn a_line_that_another_program_is_still_writing_is_for_the_next_look() {
    // S18
    let folder = Folder::new();
    let (mut tree, path) = stored(&folder);
    let theirs =
        r#"{"type":"custom","id":"7e1e0001","parentId":null,"timestamp":"t","customType":"x"}"#;
    write_behind(&path, &theirs[..40]);
    let Place::File(storage) = &mut tree.place else {
        panic!("not on disk")
    };
    assert_eq!(storage.look().unwrap(), super::log::Fate::Same);
    write_behind(&path, &format!("{}\n", &theirs[40..]));
    add(&mut tree, user("on"));
    assert!(tree.entry(&"7e1e0001".into()).is_some());
    assert!(tree.damage().is_empty());
}

#[test]
fn a_file_that_comes_back_keeps_its_permissions_and_its_place_behind_a_link() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new();
    let real = folder.file("real.jsonl", chain(2).join("\n") + "\n");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    let link = folder.path("link.jsonl");
    symlink(&real, &link).unwrap();
    let mut tree = open(&link);
    fs::remove_file(&real).unwrap();
    add(&mut tree, user("3"));
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(snapshot(&again(&link)), snapshot(&tree));
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

/// What another program, which knows of no leases, does to a file.
fn write_behind(path: &Path, text: &str) {
    use std::io::Write;
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn what_another_program_appends_is_kept_on_a_branch_of_its_own_and_told() {
    // S18
    let folder = Folder::new();
    let (mut tree, path) = stored(&folder);
    let first = tree.entries()[0].id().clone();
    let theirs = format!(
        r#"{{"type":"message","id":"7e1e0001","parentId":"{first}","timestamp":"t","message":{{"role":"user","content":"theirs"}}}}"#
    );
    write_behind(&path, &format!("{theirs}\n{{\"torn"));
    assert!(tree.take_notices().is_empty());
    add(&mut tree, user("ours"));
    let [notice] = &tree.take_notices()[..] else {
        panic!("it is told once")
    };
    assert!(
        notice.contains("wrote 1 entry to the session file"),
        "{notice}"
    );
    assert_eq!(tree.entry(&"7e1e0001".into()).unwrap().raw(), theirs);
    assert_eq!(
        shown(tree.context()),
        ["user: hi", "assistant: hello", "user: ours"]
    );
    // It might have been the beginning of a line that was still being written.
    add(&mut tree, user("more"));
    let [damage] = &tree.take_notices()[..] else {
        panic!("it is told once")
    };
    assert!(damage.contains("6 bytes are not a whole JSON record"), "{damage}");
    let again = again(&path);
    assert_eq!(raw_lines(&again), raw_lines(&tree));
    assert_eq!(shown(again.context()), shown(tree.context()));
}

#[test]
fn a_file_that_was_removed_while_it_was_open_is_written_again() {
    let folder = Folder::new();
    let (mut tree, path) = stored(&folder);
    fs::remove_file(&path).unwrap();
    add(&mut tree, user("still here"));
    assert_eq!(snapshot(&again(&path)), snapshot(&tree));
    assert!(tree.take_notices()[0].contains("was removed"));
    add(&mut tree, user("and on"));
    assert_eq!(snapshot(&again(&path)), snapshot(&tree));
    assert!(tree.take_notices().is_empty());
}

#[test]
fn a_removed_file_comes_back_with_all_that_others_wrote_and_no_glued_line() {
    // S18, reports S03
    let folder = Folder::new();
    let path = folder.file("s.jsonl", chain(2).join("\n"));
    let mut tree = open(&path);
    fs::remove_file(&path).unwrap();
    add(&mut tree, user("3"));
    assert_eq!(snapshot(&again(&path)), snapshot(&tree));
    assert!(again(&path).damage().is_empty());

    write_behind(
        &path,
        r#"{"type":"custom","id":"7e1e0001","parentId":null,"timestamp":"t","customType":"x"}"#,
    );
    fs::remove_file(&path).unwrap();
    add(&mut tree, user("4"));
    assert!(tree.entry(&"7e1e0001".into()).is_some());
    assert_eq!(raw_lines(&again(&path)), raw_lines(&tree));
    assert_eq!(tree.take_notices().len(), 3);
}

#[test]
fn a_file_that_was_rewritten_in_place_takes_nothing() {
    let folder = Folder::new();
    for same_size in [true, false] {
        let (mut tree, path) = stored(&folder);
        let mut other = fs::read_to_string(&path)
            .unwrap()
            .replace("\"stop\"", "\"STOP\"");
        if !same_size {
            other.push_str("{\"more\":1}\n");
        }
        fs::write(&path, &other).unwrap();
        let error = tree.append(user("no")).unwrap_err();
        assert!(matches!(error, TreeError::Rewritten { .. }), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), other);
        drop(tree);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn an_entry_that_the_file_does_not_hold_any_more_is_not_taken_for_empty() {
    let folder = Folder::new();
    let path = folder.file("s.jsonl", chain(3).join("\n") + "\n");
    let mut tree = open(&path);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 60]).unwrap();
    assert!(tree.entry(&"3".into()).unwrap().is_unreadable());
    assert!(tree.export_jsonl().is_err());
    let leaf = tree.leaf().unwrap().clone();
    assert!(tree.fork(&leaf, Position::At).is_err());
    assert_eq!(session_files(&folder.0).len(), 1, "no half fork stays");

    // Another record in its place is none of its own.
    let mut other = chain(3);
    other[3] = other[3].replace("\"id\":\"3\"", "\"id\":\"9\"");
    fs::write(&path, other.join("\n") + "\n").unwrap();
    assert!(tree.entry(&"3".into()).unwrap().is_unreadable());

    fs::write(&path, whole).unwrap();
    assert!(
        !tree.entry(&"3".into()).unwrap().is_unreadable(),
        "it is back"
    );
    add(&mut tree, user("4"));
    assert_eq!(shown(tree.context()).len(), 4);
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
fn an_entry_that_another_program_writes_again_counts_from_then_on() {
    // S20, invariant 5
    let folder = Folder::new();
    let (mut tree, path) = stored(&folder);
    let answer = tree.leaf().unwrap().clone();
    assert_eq!(tree.usage_totals().total_tokens, 11);
    let line = tree.entry(&answer).unwrap().raw().into_owned();
    write_behind(&path, &(line.replace("hello", "hello again") + "\n"));
    add(&mut tree, user("on"));
    assert_eq!(snapshot(&again(&path)), snapshot(&tree));
    assert_eq!(
        shown(tree.context()),
        ["user: hi", "assistant: hello again", "user: on"]
    );
}

#[test]
fn a_file_that_was_cut_while_it_was_open_takes_nothing() {
    let folder = Folder::new();
    let (mut tree, path) = stored(&folder);
    let before = (tree.leaf().cloned(), shown(tree.context()));
    let text = fs::read(&path).unwrap();
    fs::write(&path, &text[..20]).unwrap();
    let error = tree.append(user("no")).unwrap_err();
    assert!(matches!(error, TreeError::Cut { to: 20, .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), text[..20]);
    assert_eq!((tree.leaf().cloned(), shown(tree.context())), before);
}

#[test]
fn a_conversation_whose_name_another_file_took_goes_on_under_another_name() {
    let folder = Folder::new();
    let (mut tree, path) = stored(&folder);
    fs::write(folder.path("other"), "something else\n").unwrap();
    fs::rename(folder.path("other"), &path).unwrap();
    add(&mut tree, user("on"));
    assert_eq!(fs::read(&path).unwrap(), b"something else\n");
    let aside = tree.path().unwrap().to_owned();
    assert_eq!(
        aside.file_stem().unwrap().to_str().unwrap(),
        format!("{}-1", path.file_stem().unwrap().to_str().unwrap())
    );
    let notices = tree.take_notices();
    assert!(notices[0].contains(aside.to_str().unwrap()), "{notices:?}");
    add(&mut tree, user("and on"));
    assert_eq!(snapshot(&again(&aside)), snapshot(&tree));
    assert!(
        SessionTree::open(&aside, cwd(), ids()).is_err(),
        "it is held"
    );
}

#[test]
fn a_session_has_one_writer_until_it_is_closed() {
    // S18
    let folder = Folder::new();
    let (mut tree, path) = stored(&folder);
    let Err(error) = SessionTree::open(&path, cwd(), ids()) else {
        panic!("it is open already")
    };
    let holder = match &error {
        TreeError::Held { holder, .. } => holder.as_ref().map(|holder| holder.pid),
        _ => None,
    };
    assert_eq!(holder, Some(std::process::id()), "{error}");
    assert_eq!(again(&path).entries().len(), 2, "reading is free");
    tree.close();
    assert!(matches!(
        tree.append(user("no")),
        Err(TreeError::Closed { .. })
    ));
    let mut next = open(&path);
    add(&mut next, user("hi again"));
    assert_eq!(snapshot(&again(&path)), snapshot(&next));
}

#[cfg(unix)]
#[test]
fn where_no_lease_can_be_had_the_session_is_opened_and_that_is_told() {
    // S18. A folder in the place of the lease stands for all that can be in its way.
    let folder = Folder::new();
    let (tree, path) = stored(&folder);
    drop(tree);
    let mut lease = path.clone().into_os_string();
    lease.push(".lease");
    fs::create_dir(lease).unwrap();
    let mut tree = open(&path);
    add(&mut tree, user("on"));
    assert!(tree.take_notices()[0].contains("cannot be reserved"));
    assert_eq!(snapshot(&again(&path)), snapshot(&tree));
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

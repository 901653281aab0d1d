//! Reading files of other writers, old versions and damaged ones.

use serde_json::json;

use super::*;

fn ids_of(tree: &SessionTree) -> Vec<&str> {
    tree.entries()
        .iter()
        .map(|entry| entry.id().as_str())
        .collect()
}

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
fn damaged_lines_are_skipped_reported_and_kept() {
    // S16, S20, reports S03, S05
    let folder = Folder::new();
    let path = folder.fixture("damaged.jsonl");
    let before = fs::read(&path).unwrap();
    let mut tree = open(&path);
    assert_eq!(
        shown(tree.context()),
        ["user: one", "user: two", "user: three", "user: four"]
    );
    let damaged: Vec<usize> = tree.damage().iter().map(|damage| damage.line).collect();
    assert_eq!(damaged, [1, 5, 7, 8, 9, 10]);
    let first = tree.damage()[0].to_string();
    assert_eq!(
        first,
        "Line 1 of the session file was skipped: 11 bytes are not a whole JSON record. They stay in the file."
    );
    // The same id twice: both stay in the file, the later one counts.
    assert_eq!(
        ids_of(&tree),
        ["00000001", "00000002", "00000003", "00000004", "00000004"]
    );

    // Looking changes nothing. The last line gets its end together with the next entry: only then
    // does it matter, and until then another program may still be writing it.
    assert_eq!(fs::read(&path).unwrap(), before);
    add(&mut tree, assistant("five"));
    assert_eq!(fs::read(&path).unwrap()[before.len()], b'\n');
    assert_eq!(snapshot(&again(&path)), snapshot(&tree));
    assert_eq!(fs::read(&path).unwrap()[..before.len()], before);
}

#[test]
fn an_unreadable_record_costs_a_branch_only_that_record() {
    // reports S05; S20 would end the path and lose everything before the damage
    let ways: [fn(&str) -> String; 4] = [
        |line| line[..line.len() - 3].to_owned(),
        |line| line[..10].to_owned(),
        |line| "\0".repeat(line.len()),
        |line| {
            line.replace(r#""message":{"#, r#""message":["#)
                .replace("}}", "}")
        },
    ];
    for damage in ways {
        let folder = Folder::new();
        let mut lines = chain(4);
        lines[3] = damage(&lines[3]);
        let path = folder.file("damaged.jsonl", lines.join("\n") + "\n");
        let before = fs::read(&path).unwrap();
        let mut tree = open(&path);
        assert_eq!(shown(tree.context()), ["user: 1", "user: 2", "user: 4"]);
        assert_eq!(tree.path_to_leaf().len(), 4);
        assert!(tree.entry(&"3".into()).unwrap().is_unreadable());
        assert_eq!(tree.damage()[0].line, 4);
        add(&mut tree, user("5"));
        assert_eq!(fs::read(&path).unwrap()[..before.len()], before);
        assert_eq!(shown(again(&path).context()), shown(tree.context()));

        // A fork has no gap any more, for other programs neither.
        let leaf = tree.leaf().unwrap().clone();
        let fork = tree.fork(&leaf, Position::At).unwrap().tree;
        assert_eq!(shown(fork.context()), shown(tree.context()));
        let fork = again(fork.path().unwrap());
        assert_eq!((fork.damage().len(), fork.path_to_leaf().len()), (0, 5));
    }
}

#[test]
fn several_unreadable_records_are_bridged_and_a_torn_last_one_is_no_entry() {
    let folder = Folder::new();
    let mut lines = chain(8);
    lines[3].truncate(90);
    lines[4].truncate(80);
    lines[6].truncate(5);
    lines[8].truncate(70);
    let tree = open(&folder.file("damaged.jsonl", lines.join("\n")));
    assert_eq!(
        shown(tree.context()),
        ["user: 1", "user: 2", "user: 5", "user: 7"]
    );
    let damaged: Vec<usize> = tree.damage().iter().map(|damage| damage.line).collect();
    assert_eq!(damaged, [4, 5, 7, 9]);
    assert_eq!(tree.leaf().unwrap().as_str(), "7");
}

#[test]
fn a_deleted_result_costs_a_branch_only_that_result() {
    // reports K04: behind a call there was its result, so it is known where the missing parent was.
    let folder = Folder::new();
    let mut tree = SessionTree::create(&folder.0, cwd(), None, ids());
    add(&mut tree, user("hi"));
    let call = serde_json::json!({"role": "assistant", "content": [
        {"type": "toolCall", "id": "c", "name": "read", "arguments": {}}]});
    add(&mut tree, EntryBody::Message(Arc::new(Message::from(call))));
    let result = serde_json::json!({"role": "toolResult", "toolCallId": "c", "toolName": "read"});
    let result = add(
        &mut tree,
        EntryBody::Message(Arc::new(Message::from(result))),
    );
    add(&mut tree, assistant("done"));
    let path = tree.path().unwrap().to_owned();
    drop(tree);
    let mut lines = lines(&path);
    lines.remove(3);
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let tree = open(&path);
    assert_eq!(
        shown(tree.context()),
        ["user: hi", "assistant: ", "assistant: done"]
    );
    assert!(tree.entry(&result).unwrap().is_unreadable());
}

#[test]
fn what_was_guessed_is_told_and_the_last_entry_with_a_line_is_the_leaf() {
    // S21
    let folder = Folder::new();
    let mut lines = chain(4);
    lines[2].truncate(5);
    let tree = open(&folder.file("guessed.jsonl", lines.join("\n")));
    let told = tree.damage()[0].to_string();
    assert!(
        told.ends_with("led over it as if it had followed entry 1."),
        "{told}"
    );

    let mut lines = chain(3);
    lines.swap(2, 3);
    lines[3].truncate(80);
    let tree = open(&folder.file("last.jsonl", lines.join("\n")));
    assert_eq!(tree.leaf().unwrap().as_str(), "3");
    assert_eq!(shown(tree.context()), ["user: 1", "user: 3"]);
}

#[test]
fn a_header_that_lost_its_version_costs_no_branch() {
    // S19: version 1 knew no ids, so this is none
    let folder = Folder::new();
    for version in ["", "\"version\":null,", "\"version\":0,", "\"version\":-1,"] {
        let mut lines = chain(3);
        lines.push(lines[3].replace("\"id\":\"3\"", "\"id\":\"4\""));
        lines[0] = lines[0].replace("\"version\":3,", version);
        lines.push(r#"{"type":"note","x":1}"#.to_owned());
        let text = lines.join("\n") + "\n";
        let path = folder.file("s.jsonl", &text);
        let tree = open(&path);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(tree.entries().len(), 4);
        assert_eq!(tree.path_to_leaf().len(), 3, "both branches stay");
        assert_eq!(tree.damage().len(), 1, "the note has no id");
        drop(tree);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn damage_over_the_end_of_one_record_and_the_head_of_the_next_costs_two() {
    let folder = Folder::new();
    let mut lines = chain(5);
    let two = format!("{}\0{}", &lines[3][..80], &lines[4][40..]);
    lines.splice(3..5, [two]);
    let tree = open(&folder.file("s.jsonl", lines.join("\n")));
    assert_eq!(shown(tree.context()), ["user: 1", "user: 2", "user: 5"]);
}

#[test]
fn a_record_without_a_head_before_one_with_a_head_is_led_over_too() {
    let folder = Folder::new();
    let mut lines = chain(5);
    lines[3] = "\0".repeat(60);
    lines[4].truncate(80);
    let tree = open(&folder.file("s.jsonl", lines.join("\n")));
    assert_eq!(shown(tree.context()), ["user: 1", "user: 2", "user: 5"]);
    assert_eq!(tree.path_to_leaf().len(), 5);
}

#[test]
fn a_torn_last_record_says_where_its_writer_was() {
    // Of somebody who had just gone back to another branch; S21 would leave him on the one he left.
    let folder = Folder::new();
    let mut lines = chain(3);
    lines.push(lines[3].replace(
        "\"id\":\"3\",\"parentId\":\"2\"",
        "\"id\":\"b\",\"parentId\":\"1\"",
    ));
    lines[4].truncate(75);
    let path = folder.file("s.jsonl", lines.join("\n"));
    let mut tree = open(&path);
    assert_eq!(tree.leaf().unwrap().as_str(), "1");
    let copy = SessionTree::copy_into(&path, &folder.path("c"), cwd(), None, ids()).unwrap();
    for copy in [&copy, &again(copy.path().unwrap())] {
        assert_eq!(
            shown(copy.context()),
            ["user: 1"],
            "a copy stands there too"
        );
    }
    add(&mut tree, user("on"));
    assert_eq!(shown(again(&path).context()), ["user: 1", "user: on"]);
}

#[test]
fn a_file_of_nothing_but_damage_takes_no_more_memory_than_its_lines_are_worth() {
    let folder = Folder::new();
    let lines = chain(2);
    let bad = "{\n".repeat(70_000);
    let text = format!("{}\n{}\n{bad}{}\n", lines[0], lines[1], lines[2]);
    let tree = open(&folder.file("s.jsonl", text));
    assert_eq!(shown(tree.context()), ["user: 1", "user: 2"]);
    assert_eq!(tree.damage().len(), 50_001);
    let last = tree.damage().last().unwrap();
    assert_eq!((last.line, last.bytes), (50_003, 20_000));
}

#[test]
fn a_line_of_endless_length_is_passed_over() {
    let folder = Folder::new();
    let path = folder.path("endless.jsonl");
    let lines = chain(2);
    fs::write(&path, lines[..2].join("\n") + "\n").unwrap();
    // A hole takes no place on the disk.
    let hole = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let size = hole.metadata().unwrap().len();
    hole.set_len(size + (300 << 20)).unwrap();
    {
        use std::io::Write;
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        write!(file, "\n{}\n", lines[2]).unwrap();
    }
    let tree = open(&path);
    assert_eq!(shown(tree.context()), ["user: 1", "user: 2"]);
    assert_eq!(
        (tree.damage()[0].line, tree.damage()[0].bytes),
        (3, 300 << 20)
    );
    let listed = list(&folder.0);
    assert_eq!((listed.len(), listed[0].message_count), (1, 2));
}

#[test]
fn a_body_that_is_no_json_is_an_unreadable_entry() {
    let folder = Folder::new();
    let mut lines = chain(3);
    lines[2] = lines[2].replace(r#""content":"2""#, r#""content":,nul"#);
    let tree = open(&folder.file("odd.jsonl", lines.join("\n")));
    assert!(tree.entry(&"2".into()).unwrap().is_unreadable());
    assert!(!tree.entry(&"3".into()).unwrap().is_unreadable());
    assert_eq!(tree.path_to_leaf().len(), 3);
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
fn a_lost_header_is_told_apart_from_a_file_that_is_no_session() {
    // S15: the file is never rewritten or treated as empty; recovery is offered
    let folder = Folder::new();
    let refusal = |content: &str| {
        let path = folder.file("x.jsonl", content);
        let error = SessionTree::open(&path, cwd(), ids()).err().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
        error.to_string()
    };
    let mut lines = chain(2);
    lines[0].truncate(30);
    let lost = refusal(&lines.join("\n"));
    assert!(lost.contains("line 2 is an entry"), "{lost}");
    assert!(lost.contains("session doctor"), "{lost}");
    let other = refusal("{\"name\":\"package\"}\n");
    assert!(
        other.contains("line 1, its first readable record"),
        "{other}"
    );
    assert!(refusal("\0\u{1}binary").contains("no readable record"));
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
fn a_file_cut_at_any_byte_loses_at_most_the_torn_line_and_takes_appends() {
    // S16, reports S03, invariant 7
    let folder = Folder::new();
    let all = lines(&folder.fixture("v3.jsonl"));
    // A header, a user message, an unknown type, half a surrogate: every byte of them is a cut.
    let whole = [0, 4, 17, 6]
        .map(|line| format!("{}\n", all[line]))
        .concat()
        .into_bytes();
    let ends: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] == b'\n').collect();
    for cut in 0..=whole.len() {
        let path = folder.file("cut.jsonl", &whole[..cut]);
        // A line is whole also when only its line end is missing.
        let complete = ends.iter().filter(|end| **end <= cut).count();
        let opened = SessionTree::open(&path, cwd(), ids());
        if complete == 0 && cut > 0 {
            assert!(
                matches!(opened, Err(TreeError::NotASession { .. })),
                "cut {cut}"
            );
            assert_eq!(fs::read(&path).unwrap(), whole[..cut]);
            continue;
        }
        let mut tree = opened.unwrap();
        assert_eq!(
            tree.entries().len(),
            complete.saturating_sub(1),
            "cut {cut}"
        );
        let parent = tree.leaf().cloned();
        add(&mut tree, user("after the cut"));
        let again = again(&path);
        assert_eq!(raw_lines(&again), raw_lines(&tree), "cut {cut}");
        assert_eq!(again.entries().last().unwrap().parent(), parent.as_ref());
        assert_eq!(fs::read(&path).unwrap()[..cut], whole[..cut]);
    }
}

#[test]
fn any_bytes_are_opened_or_refused_without_a_panic() {
    // invariant 7, M18
    let folder = Folder::new();
    let whole = fs::read(folder.fixture("v3.jsonl")).unwrap();
    let dice = Dice::new(3);
    for _ in 0..200 {
        let mut bytes = whole.clone();
        for _ in 0..=dice.below(8) {
            let at = dice.below(bytes.len());
            match dice.below(4) {
                0 => bytes[at] = u8::try_from(dice.below(256)).unwrap(),
                1 => drop(bytes.drain(at..(at + dice.below(200)).min(bytes.len()))),
                2 => bytes.insert(at, b"\n\"{}[],:\\"[dice.below(9)]),
                _ => {
                    let (a, b) = (dice.below(bytes.len()), dice.below(bytes.len()));
                    let piece = bytes[a.min(b)..a.max(b)].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        let path = folder.file("fuzzed.jsonl", &bytes);
        let Ok(mut tree) = SessionTree::open(&path, cwd(), ids()) else {
            assert_eq!(fs::read(&path).unwrap(), bytes);
            continue;
        };
        let before = snapshot(&tree);
        let _ = (tree.nodes(), tree.export_jsonl().unwrap());
        assert_eq!(snapshot(&again(&path)), before);
        add(&mut tree, user("still here"));
        assert_eq!(
            shown(again(&path).context()).last().unwrap(),
            "user: still here"
        );
    }
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

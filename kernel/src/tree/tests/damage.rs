//! Damaged files: what is lost, what is told, and that nothing else is.

use super::*;

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

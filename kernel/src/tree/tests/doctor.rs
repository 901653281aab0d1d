//! What the doctor says of a file, and the copy it makes.

use super::doctor::OddityKind as Kind;
use super::*;

fn here() -> CopyCwd {
    CopyCwd::IfLost(cwd().to_owned())
}

/// What is odd, by kind and lines.
fn oddities(path: &Path) -> Vec<(Kind, Vec<usize>)> {
    let found = examine(path, &ids()).unwrap();
    found.into_iter().map(|odd| (odd.kind, odd.lines)).collect()
}

/// The copy, which has nothing odd about it.
fn mended(path: &Path) -> SessionTree {
    let before = fs::read(path).unwrap();
    let copy = write_mended_copy(path, &here(), &ids()).unwrap();
    assert_eq!(fs::read(path).unwrap(), before, "the original stays");
    assert_eq!(
        oddities(&copy),
        [],
        "{}",
        fs::read_to_string(&copy).unwrap()
    );
    let copy = again(&copy);
    assert_eq!(copy.header().parent_session.as_deref(), Some(path));
    copy
}

#[test]
fn a_sound_session_has_no_oddities() {
    let folder = Folder::new();
    let mut tree = SessionTree::create(&folder.0, cwd(), None, ids());
    let first = add(&mut tree, user("hi"));
    add(&mut tree, assistant("hello"));
    tree.set_label(&first, Some("start")).unwrap();
    add(&mut tree, compaction("short", Some(&first)));
    assert_eq!(oddities(tree.path().unwrap()), []);
}

#[test]
fn every_oddity_is_told_with_its_lines() {
    let folder = Folder::new();
    let file = |lines: &[String]| folder.file("odd.jsonl", lines.join("\n") + "\n");
    let mut lines = chain(9);
    lines[2].truncate(80);
    let next = lines[5].clone();
    lines[4] += &next;
    lines[5] = lines[0].clone();
    lines[6] = lines[6].replace(r#""parentId":"5""#, r#""parentId":"nowhere""#);
    lines[7] = lines[7].replace("\"7\"}", "\"\\ud800\"}");
    lines[8] =
        r#"{"type":"label","id":"8","parentId":"7","timestamp":"t","targetId":"gone"}"#.to_owned();
    lines[9] = r#"{"type":"novel","id":"8","parentId":"7","timestamp":"2026-01-01T00:00:00.000Z"}"#
        .to_owned();
    let found = oddities(&file(&lines));
    assert_eq!(
        found,
        [
            (Kind::SecondHeader, vec![6]),
            (Kind::Damaged, vec![3]),
            (Kind::Glued, vec![5]),
            (Kind::Lenient, vec![8]),
            (Kind::DuplicateId, vec![10]),
            (Kind::LostParent, vec![4]),
            (Kind::MissingParent, vec![7]),
            (Kind::MissingTarget, vec![9]),
            (Kind::NoTime, vec![2, 4, 5, 7, 8, 9]),
            (Kind::UnknownType, vec![10]),
        ]
    );
    let text = examine(&file(&lines), &ids()).unwrap()[1].to_string();
    assert_eq!(
        text,
        "Line 3: not a whole record; it is passed over; a copy leaves it out."
    );
}

#[test]
fn files_that_cannot_be_opened_are_told_apart() {
    let folder = Folder::new();
    let kinds = |content: &[u8]| -> Vec<Kind> {
        let found = examine(&folder.file("x.jsonl", content), &ids()).unwrap();
        found.into_iter().map(|oddity| oddity.kind).collect()
    };
    assert_eq!(kinds(b""), [Kind::Empty]);
    assert_eq!(kinds(b"{\"a\":1}\n"), [Kind::NotASession]);
    assert_eq!(kinds(b"junk\n"), [Kind::NoRecords, Kind::Damaged]);
    let binary = kinds(b"\0\xff\0\n");
    assert_eq!(
        binary,
        [
            Kind::NoRecords,
            Kind::ZeroBytes,
            Kind::NotUtf8,
            Kind::Damaged
        ]
    );
    let headless = chain(2)[1..].join("\n") + "\n";
    assert_eq!(kinds(headless.as_bytes())[0], Kind::NoHeader);
    let other = chain(2).join("\n").replace("\"session\"", "\"sess\"");
    assert_eq!(
        kinds(other.as_bytes()),
        [Kind::NoHeader, Kind::NoLineEnd],
        "its entries can be saved"
    );
    assert!(examine(&folder.0, &ids()).is_err(), "a directory");
    assert!(examine(&folder.path("none"), &ids()).is_err());
}

#[test]
fn a_copy_of_a_damaged_session_has_its_conversation_and_nothing_odd() {
    let folder = Folder::new();
    let timed = |line: &String| line.replace("\"t\"", "\"2026-01-01T00:00:00.000Z\"");
    let mut lines: Vec<String> = chain(7).iter().map(timed).collect();
    lines[0].insert(0, '\u{feff}');
    lines[2].truncate(90);
    lines[4] = lines[4].replace("\"4\"}", "\"\\ud83d and \u{1}\"}");
    lines[5] += "\0\0";
    let path = folder.file("odd.jsonl", lines.join("\r\n"));
    let read = again(&path);
    let copy = mended(&path);
    assert_eq!(
        shown(copy.context()),
        [
            "user: 1",
            "user: 3",
            "user: \u{fffd} and \u{1}",
            "user: 5",
            "user: 6",
            "user: 7"
        ]
    );
    assert_eq!(shown(copy.context()), shown(read.context()));
    assert_eq!(copy.path_to_leaf().len(), 7);
}

#[test]
fn a_copy_gets_a_header_where_it_was_lost_and_ends_cycles() {
    let folder = Folder::new();
    let timed = |line: &String| line.replace("\"t\"", "\"2026-01-01T00:00:00.000Z\"");
    let mut lines: Vec<String> = chain(4).iter().map(timed).collect();
    lines[0].truncate(20);
    lines[1] = lines[1].replace("\"parentId\":null", "\"parentId\":\"4\"");
    let path = folder.file("headless.jsonl", lines.join("\n"));
    let copy = mended(&path);
    assert_eq!(copy.header().cwd, cwd());
    assert_eq!(
        shown(copy.context()),
        ["user: 1", "user: 2", "user: 3", "user: 4"]
    );
    assert!(write_mended_copy(&folder.file("junk", "junk\n"), &here(), &ids()).is_err());
}

#[test]
fn an_old_file_is_told_by_its_version_and_copied_as_version_3() {
    let folder = Folder::new();
    let path = folder.fixture("v1.jsonl");
    assert!(oddities(&path).contains(&(Kind::OldVersion, vec![1])));
    let copy = again(&write_mended_copy(&path, &here(), &ids()).unwrap());
    assert_eq!(shown(copy.context()), shown(again(&path).context()));
}

#[test]
fn a_copy_joins_what_a_deleted_line_parted() {
    let folder = Folder::new();
    let timed = |line: &String| line.replace("\"t\"", "\"2026-01-01T00:00:00.000Z\"");
    let mut lines: Vec<String> = chain(4).iter().map(timed).collect();
    lines.remove(2);
    let path = folder.file("parted.jsonl", lines.join("\n") + "\n");
    assert_eq!(oddities(&path), [(Kind::MissingParent, vec![3])]);
    assert_eq!(shown(again(&path).context()), ["user: 3", "user: 4"]);
    assert_eq!(
        shown(mended(&path).context()),
        ["user: 1", "user: 3", "user: 4"]
    );
}

#[test]
fn a_copy_names_entries_that_have_no_id() {
    let folder = Folder::new();
    let timed = |line: &String| line.replace("\"t\"", "\"2026-01-01T00:00:00.000Z\"");
    let mut lines: Vec<String> = chain(4).iter().map(timed).collect();
    lines[2] = lines[2].replace("\"id\":\"2\",", "");
    lines[3] = lines[3].replace("\"id\":\"3\"", "\"id\":3");
    lines[4] = lines[4].replace("\"id\":\"4\"", "\"id\":\"\"");
    let path = folder.file("nameless.jsonl", lines.join("\n") + "\n");
    assert!(oddities(&path).contains(&(Kind::Nameless, vec![3, 4])));
    assert_eq!(
        shown(mended(&path).context()),
        ["user: 1", "user: 2", "user: 3", "user: 4"]
    );
}

#[test]
fn a_header_without_a_version_and_an_old_file_are_told_apart() {
    let folder = Folder::new();
    let mut lines = chain(2);
    lines[0] = lines[0].replace("\"version\":3,", "");
    let path = folder.file("s.jsonl", lines.join("\n") + "\n");
    assert_eq!(oddities(&path)[0], (Kind::NoVersion, vec![1]));
    let old = oddities(&folder.fixture("v1.jsonl"));
    assert!(
        !old.iter().any(|(kind, _)| *kind == Kind::Nameless),
        "{old:?}"
    );
}

#[test]
fn a_copy_can_be_given_another_directory() {
    let folder = Folder::new();
    let path = folder.file("s.jsonl", chain(1).join("\n") + "\n");
    let other = CopyCwd::Always("/elsewhere".into());
    let copy = again(&write_mended_copy(&path, &other, &ids()).unwrap());
    assert_eq!(copy.header().cwd, Path::new("/elsewhere"));
}

#[test]
fn a_copy_says_of_an_entry_without_content_that_it_was_unreadable() {
    let folder = Folder::new();
    let timed = |line: &String| line.replace("\"t\"", "\"2026-01-01T00:00:00.000Z\"");
    let mut lines: Vec<String> = chain(3).iter().map(timed).collect();
    lines[2] = lines[2].replace(r#","message":{"role":"user","content":"2"}"#, "");
    let path = folder.file("empty.jsonl", lines.join("\n") + "\n");
    assert_eq!(oddities(&path), [(Kind::Unreadable, vec![3])]);
    assert_eq!(shown(mended(&path).context()), ["user: 1", "user: 3"]);
}

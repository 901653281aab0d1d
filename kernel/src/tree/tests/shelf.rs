//! Finding sessions in folders.

use std::time::{Duration, SystemTime};

use super::*;

/// A session file of one message, last written `age` seconds ago.
fn session(folder: &Folder, name: &str, id: &str, cwd: &str, age: u64) -> PathBuf {
    let header = format!(
        r#"{{"type":"session","version":3,"id":"{id}","timestamp":"2026-01-01T00:00:00.000Z","cwd":"{cwd}"}}"#
    );
    let entry = r#"{"type":"message","id":"00000001","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"hello","timestamp":1767225601000}}"#;
    let path = folder.file(name, format!("{header}\n{entry}\n"));
    touched(&path, age);
    path
}

fn touched(path: &Path, age: u64) {
    let time = SystemTime::now() - Duration::from_secs(age);
    fs::OpenOptions::new()
        .append(true)
        .open(path)
        .unwrap()
        .set_modified(time)
        .unwrap();
}

#[test]
fn folders_and_files_are_named_as_pi_names_them() {
    // S1
    let dir = |cwd: &str| {
        session_dir(Path::new("/a"), Path::new(cwd))
            .to_string_lossy()
            .into_owned()
    };
    assert_eq!(dir("/home/u/my.app"), "/a/sessions/--home-u-my.app--");
    assert_eq!(dir(r"C:\work\x"), "/a/sessions/--C--work-x--");
    assert_eq!(dir("/"), "/a/sessions/----");
}

#[test]
fn continue_takes_the_latest_written_readable_session_of_the_directory() {
    // S4
    let folder = Folder::new();
    session(&folder, "old.jsonl", "old", "/here", 300);
    let here = session(&folder, "here.jsonl", "here", "/here", 200);
    let other = session(&folder, "other.jsonl", "other", "/there", 100);
    touched(&folder.file("junk.jsonl", "junk"), 50);
    touched(
        &folder.file("late.jsonl", format!("{}\n{}", "x".repeat(2 << 20), "{}")),
        40,
    );
    touched(&folder.file("notes.txt", "{}"), 10);
    assert_eq!(most_recent(&folder.0, None), Some(other));
    assert_eq!(most_recent(&folder.0, Some(Path::new("/here"))), Some(here));
    assert_eq!(most_recent(&folder.0, Some(Path::new("/nowhere"))), None);
    assert_eq!(most_recent(&folder.path("missing"), None), None);
}

#[test]
fn a_list_shows_name_first_words_count_and_time() {
    // S5, reports S05
    let folder = Folder::new();
    folder.fixture("v3.jsonl");
    folder.fixture("damaged.jsonl");
    folder.fixture("not-a-session.jsonl");
    let mut unnamed = SessionTree::create(&folder.0, cwd(), None, ids());
    add(&mut unnamed, assistant("hello"));
    unnamed.set_name("x").unwrap();
    unnamed.set_name("").unwrap();
    let listed = list(&folder.0);
    let shown: Vec<_> = listed
        .iter()
        .map(|s| {
            (
                s.name.as_deref(),
                s.first_message.as_deref(),
                s.message_count,
                s.modified_ms - 1_767_225_600_000,
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            (Some("demo session"), Some("What is in a.txt?"), 7, 11_000),
            (None, Some("one"), 5, 1000),
            (None, None, 1, 0),
        ]
    );
    let empty = folder.file("z.jsonl", r#"{"type":"session","version":3,"id":"z","timestamp":"2027-01-01T00:00:00.000Z","cwd":"/"}"#);
    assert_eq!(
        (&list(&folder.0)[0].path, list(&folder.0)[0].modified_ms),
        (&empty, 1_798_761_600_000)
    );
}

#[test]
fn old_and_busy_sessions_are_listed_by_what_was_said_in_them() {
    // S5, S19
    let folder = Folder::new();
    folder.fixture("v1.jsonl");
    assert!(list(&folder.0)[0].message_count > 0);

    let mut tree = SessionTree::create(&folder.path("busy"), cwd(), None, ids());
    add(&mut tree, user("hi"));
    for _ in 0..40 {
        let bash = serde_json::json!({"role": "bashExecution", "command": "ls", "output": "",
            "timestamp": 1_900_000_000_000_i64});
        add(&mut tree, EntryBody::Message(Arc::new(Message::from(bash))));
    }
    let listed = list(&folder.path("busy"));
    assert_eq!(listed[0].modified_ms, 1_767_225_600_000);
    assert_eq!(listed[0].message_count, 41);
}

#[test]
fn a_session_is_found_by_the_beginning_of_its_id() {
    let folder = Folder::new();
    let a = session(&folder, "a.jsonl", "0199-aa", "/", 3);
    let b = session(&folder, "b.jsonl", "0199-ab", "/", 2);
    let c = session(&folder, "c.jsonl", "0199", "/", 1);
    let find = |prefix: &str| find(session_files(&folder.0), prefix);
    assert_eq!(find("0199-aa"), Found::One(a.clone()));
    assert_eq!(find("0199-a"), Found::Several(vec![b, a]));
    assert_eq!(
        find("0199"),
        Found::One(c),
        "a whole id wins over beginnings"
    );
    assert_eq!(find("feed"), Found::None);

    let damaged = folder.file("2026-01-01T00-00-00-000Z_0199-b.jsonl", "{\"type\":\"sess");
    assert_eq!(find("0199-b"), Found::One(damaged.clone()), "by its name");
    assert_eq!(unreadable_since(&folder.0, None), [damaged]);
}

#[test]
fn an_import_copies_under_a_free_name_and_refuses_what_is_no_session() {
    // S30
    let folder = Folder::new();
    let source = folder.fixture("v3.jsonl");
    let dir = folder.path("sessions");
    let first = import(&source, &dir).unwrap();
    let second = import(&source, &dir).unwrap();
    assert_eq!(
        (first.clone(), second),
        (dir.join("v3.jsonl"), dir.join("v3-1.jsonl"))
    );
    assert_eq!(fs::read(&first).unwrap(), fs::read(&source).unwrap());
    assert_eq!(
        import(&first, &dir).unwrap(),
        fs::canonicalize(&first).unwrap(),
        "it is there already"
    );
    let junk = folder.file("junk.jsonl", "junk");
    assert!(matches!(
        import(&junk, &dir),
        Err(TreeError::NotASession { .. })
    ));
    assert!(matches!(
        import(&folder.path("gone"), &dir),
        Err(TreeError::Read { .. })
    ));
}

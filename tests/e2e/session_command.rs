//! `pliant session …`: what it prints, what it writes, and what it leaves alone.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use pliant_tests::{Output, TempHome};
use serde_json::{Value, json};

use super::line::Talk;
use super::signals::bare_command;

/// The folder of a directory's sessions, in the configuration directory.
fn folder_of(cwd: &str) -> String {
    let encoded = cwd.trim_start_matches('/').replace('/', "-");
    format!("sessions/--{encoded}--")
}

/// Stores a session of this directory, one entry a line.
fn store_in(home: &TempHome, cwd: &str, id: &str, entries: &[Value]) -> PathBuf {
    let header = json!({"type": "session", "version": 3, "id": id, "cwd": cwd,
        "timestamp": "2026-01-01T00:00:00.000Z"});
    let lines = [&header].into_iter().chain(entries);
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    home.write_agent(&format!("{}/{id}.jsonl", folder_of(cwd)), text)
}

/// Stores a session of the project.
fn store(home: &TempHome, id: &str, entries: &[Value]) -> PathBuf {
    store_in(home, &home.project_dir().display().to_string(), id, entries)
}

/// An entry of the given minute.
fn entry(id: &str, parent: Option<&str>, minute: u32, body: Value) -> Value {
    let mut entry = json!({"id": id, "parentId": parent,
        "timestamp": format!("2026-01-01T00:{minute:02}:00.000Z")});
    let fields = body.as_object().expect("a body is an object");
    for (key, value) in fields {
        entry[key] = value.clone();
    }
    entry
}

fn says(role: &str, text: &str, minute: u32) -> Value {
    let content = json!([{"type": "text", "text": text}]);
    let timestamp = 1_767_225_600_000_u64 + u64::from(minute) * 60_000;
    json!({"type": "message", "message": {"role": role, "content": content, "timestamp": timestamp}})
}

/// One question of that minute.
fn question(text: &str, minute: u32) -> Vec<Value> {
    vec![entry("11111111", None, minute, says("user", text, minute))]
}

/// A question that was asked in two ways; the second is named and goes on.
fn branched() -> Vec<Value> {
    let label = json!({"type": "label", "targetId": "44444444", "label": "better"});
    vec![
        entry("11111111", None, 0, says("user", "One?", 0)),
        entry("22222222", Some("11111111"), 1, says("assistant", "1", 1)),
        entry(
            "33333333",
            Some("22222222"),
            2,
            says("user", "Two?\n\u{1b}[31m", 2),
        ),
        entry("44444444", Some("22222222"), 3, says("user", "And two?", 3)),
        entry("55555555", Some("44444444"), 4, label),
    ]
}

fn session(home: &TempHome, words: &[&str]) -> Output {
    home.pliant().args(["session"]).args(words).run()
}

fn stdout(home: &TempHome, words: &[&str]) -> String {
    session(home, words).success().stdout
}

#[test]
fn a_list_has_the_latest_session_first_and_ids_that_are_just_long_enough() {
    // S5
    let home = TempHome::new();
    let output = session(&home, &["list"]).success();
    assert!(
        output.stdout.is_empty() && output.stderr.contains("--all"),
        "{output:?}"
    );

    store(
        &home,
        "0199aaaa-0000",
        &question("An old\n question\u{1b}[31m", 1),
    );
    let mut named = question("x", 3);
    let name = json!({"type": "session_info", "name": "A name"});
    named.push(entry("22222222", Some("11111111"), 4, name));
    store(&home, "0199aaaa-1111", &named);
    store_in(&home, "/elsewhere", "0199bbbb-0000", &question("y", 2));
    let list = "\
modified (UTC)    id          messages  session
2026-01-01 00:03  0199aaaa-1         1  A name
2026-01-01 00:01  0199aaaa-0         1  An old question[31m
";
    assert_eq!(stdout(&home, &["list"]), list);
    let all = stdout(&home, &["list", "--all"]);
    assert!(
        all.contains("\n2026-01-01 00:02  0199bbbb           1  y  (/elsewhere)\n"),
        "{all}"
    );
    let json = stdout(&home, &["list", "--all", "--json"]);
    let json: Vec<Value> = json
        .lines()
        .map(|l| serde_json::from_str(l).expect("JSON"))
        .collect();
    let names: Vec<_> = json.iter().map(|session| &session["name"]).collect();
    assert_eq!(names, [&json!("A name"), &Value::Null, &Value::Null]);
    assert_eq!(json[1]["cwd"], "/elsewhere");
    assert_eq!(json[2]["firstMessage"], "An old\n question\u{1b}[31m");

    // A folder that directories share shows those of this one.
    let shared = home.agent_dir().join(folder_of("/elsewhere"));
    let mine = home
        .pliant()
        .env("PLIANT_SESSION_DIR", shared)
        .args(["session", "list"]);
    assert_eq!(mine.run().success().stdout, "");
}

#[test]
fn an_id_in_a_list_finds_its_session_among_those_of_other_directories_too() {
    // S5
    let home = TempHome::new();
    store(&home, "0199aaaa-0000", &question("Mine.", 1));
    let cwd = home.project_dir().display().to_string();
    let shared = home.agent_dir().join(folder_of(&cwd));
    let foreign = store_in(&home, "/elsewhere", "0199aaaa-1111", &question("y", 2));
    fs::rename(foreign, shared.join("0199aaaa-1111.jsonl")).expect("the folder is writable");
    let run = |words: &[&str]| {
        let command = home.pliant().env("PLIANT_SESSION_DIR", &shared);
        command.args(["session"]).args(words).run().success().stdout
    };
    let list = run(&["list"]);
    let line = list.lines().nth(1).expect("one session is listed");
    assert!(
        line.ends_with("  Mine.") && list.lines().count() == 2,
        "{list}"
    );
    let id = line.split_whitespace().nth(2).expect("it has an id");
    assert_eq!(id, "0199aaaa-0");
    assert!(run(&["show", id]).contains("0199aaaa-0000"));
}

#[test]
fn a_session_is_shown_as_a_tree_whose_active_branch_is_marked() {
    // S24, S25
    let home = TempHome::new();
    let file = store(&home, "0199aaaa-0000", &branched());
    let tree = "
* 11111111  user        One?
* 22222222  assistant   1
├─33333333  user        Two? [31m
* 44444444  user        [better] And two?
* 55555555  label       44444444: better
";
    let ways = ["0199aaaa-0000", "0199", &file.display().to_string()];
    for way in ways {
        let shown = stdout(&home, &["show", way]);
        assert!(shown.ends_with(tree), "{shown}");
        assert!(shown.starts_with("(no name)\n0199aaaa-0000, begun 2026-01-01 00:00 UTC\n"));
    }
    // From another directory it is found as well.
    let elsewhere = home.pliant().current_dir(home.home_dir());
    let shown = elsewhere.args(["session", "show", "0199"]).run().success();
    assert!(shown.stdout.ends_with(tree), "{shown:?}");
}

#[test]
fn damage_is_told_and_hides_nothing_else() {
    // S16
    let home = TempHome::new();
    let file = store(&home, "0199aaaa-0000", &branched());
    let torn = fs::read_to_string(&file).expect("it is text") + "{\"type\":\"mess";
    fs::write(&file, &torn).expect("it is writable");
    let output = session(&home, &["show", "0199"]).success();
    assert!(output.stdout.contains("* 55555555"));
    assert!(output.stderr.starts_with("Warning: Line 7 "), "{output:?}");
    session(&home, &["export", "0199"]).success();
    assert_eq!(fs::read_to_string(&file).expect("it is text"), torn);
}

#[test]
fn a_branch_is_exported_as_what_the_file_is_called_and_never_over_another_file() {
    // S30
    let home = TempHome::new();
    let own = store(&home, "0199aaaa-0000", &branched());
    let stored = fs::read(&own).expect("it is there");
    let markdown = stdout(&home, &["export", "0199"]);
    assert!(markdown.contains("\n> And two?\n") && !markdown.contains("\n> Two?\n"));

    let path = |name: &str| home.project_dir().join(name);
    let printed = stdout(&home, &["export", "0199", "x.md"]);
    assert_eq!(printed, format!("{}\n", path("x.md").display()));
    assert_eq!(home.read("x.md"), markdown);
    stdout(&home, &["export", "0199", "x.jsonl"]);
    let lines = home.read("x.jsonl");
    let ids: Vec<Value> = lines
        .lines()
        .map(|l| serde_json::from_str(l).expect("JSON"))
        .collect();
    let ids: Vec<_> = ids.iter().skip(1).map(|entry| &entry["id"]).collect();
    assert_eq!(ids, ["11111111", "22222222", "44444444", "55555555"]);
    assert_eq!(
        stdout(&home, &["export", "0199", "--format", "jsonl"]),
        lines
    );

    session(&home, &["export", "0199", "x.md", "--format", "jsonl"]).failure(&["x.md", "--force"]);
    assert_eq!(home.read("x.md"), markdown);
    stdout(
        &home,
        &["export", "0199", "x.md", "--format", "jsonl", "--force"],
    );
    assert_eq!(home.read("x.md"), lines);
    let own_name = own.display().to_string();
    session(&home, &["export", "0199", &own_name, "--force"]).failure(&["session itself"]);
    session(&home, &["export", "0199", "none/x.md"]).failure(&["none/x.md"]);
    assert_eq!(fs::read(&own).expect("it is there"), stored);
}

/// As a process that is somewhere else has it.
fn hold(session: &Path) -> File {
    let lease = session.with_extension("jsonl.lease");
    let holder = json!({"pid": 4711, "host": "elsewhere", "sinceMs": 1_767_225_600_000_u64});
    fs::write(&lease, holder.to_string()).expect("it is writable");
    let lock = File::open(&lease).expect("it is there");
    lock.lock().expect("the system has locks");
    lock
}

#[test]
fn an_export_goes_over_no_session_that_is_exported_or_written() {
    // S18, S30
    let home = TempHome::new();
    let own = store(&home, "0199aaaa-0000", &branched());
    let held = store(&home, "0199bbbb-0000", &question("x", 1));
    let stored = [&own, &held].map(|file| fs::read(file).expect("it is there"));
    let link = home.project_dir().join("linked.jsonl");
    fs::hard_link(&own, &link).expect("it is one file system");
    let export = |file: &Path| {
        let file = file.display().to_string();
        let words = ["export", "0199a", &file, "--format", "markdown", "--force"];
        session(&home, &words)
    };
    export(&link).failure(&["session itself"]);
    let _lock = hold(&held);
    export(&held).failure(&["0199bbbb-0000.jsonl", "process 4711 on host elsewhere"]);
    let symbolic = home.project_dir().join("symbolic.md");
    symlink(&held, &symbolic).expect("it is a new name");
    export(&symbolic).failure(&["symbolic.md", "process 4711 on host elsewhere"]);
    let left = [&own, &held].map(|file| fs::read(file).expect("it is there"));
    assert_eq!(left, stored);
}

#[test]
fn an_export_over_a_file_is_done_whole_or_not_at_all() {
    // S30
    let home = TempHome::new();
    store(&home, "0199aaaa-0000", &branched());
    let words = ["export", "0199", "x.md", "--force"];
    let old = "What was there. ".repeat(100);
    let real = home.write("real.md", &old);
    fs::set_permissions(&real, Permissions::from_mode(0o600)).expect("it is ours");
    symlink("real.md", home.project_dir().join("x.md")).expect("it is a new name");

    // A disk that takes nothing more.
    let full = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"";
    let command = bare_command(&home);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", full])
        .arg(command.get_program())
        .arg("session")
        .args(words)
        .current_dir(home.project_dir())
        .env("HOME", home.home_dir())
        .env("PLIANT_AGENT_DIR", home.agent_dir());
    let output = limited.output().expect("there is a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("x.md cannot be written"), "{said}");
    assert_eq!(home.read("x.md"), old);

    session(&home, &words).success();
    assert_eq!(home.read("real.md"), stdout(&home, &["export", "0199"]));
    let mode = fs::metadata(&real)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut names: Vec<_> = fs::read_dir(home.project_dir())
        .expect("it is there")
        .map(|entry| entry.expect("it can be read").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["real.md", "x.md"]);
}

#[test]
fn an_imported_file_is_a_session_of_the_directory_then() {
    // S30
    let home = TempHome::new();
    let foreign = store_in(&home, "/elsewhere", "0199aaaa-0000", &question("x", 1));
    let bytes = fs::read(&foreign).expect("it is there");
    home.write("foreign.jsonl", &bytes);
    let folder = home
        .agent_dir()
        .join(folder_of(&home.project_dir().display().to_string()));
    for name in ["foreign.jsonl", "foreign-1.jsonl"] {
        let printed = stdout(&home, &["import", "foreign.jsonl"]);
        assert_eq!(printed, format!("{}\n", folder.join(name).display()));
        assert_eq!(fs::read(folder.join(name)).expect("it is there"), bytes);
    }
    home.write("note.txt", "x");
    session(&home, &["import", "note.txt"]).failure(&["note.txt", "not a session file"]);
    session(&home, &["import", "missing"]).failure(&["missing"]);
}

#[test]
fn a_removed_session_is_in_the_trash_with_its_bytes() {
    let home = TempHome::new();
    let first = store(&home, "0199aaaa-0000", &question("x", 1));
    let second = store(&home, "0199bbbb-0000", &question("y", 1));
    let third = store(&home, "0199cccc-0000", &question("z", 1));
    let bytes = fs::read(&first).expect("it is there");
    // What a writer that was killed leaves.
    fs::write(first.with_extension("jsonl.lease"), "").expect("it is writable");
    let printed = stdout(&home, &["rm", "0199a", "0199b", "0199aaaa-0000"]);
    assert_eq!(
        printed,
        format!("{}\n{}\n", first.display(), second.display())
    );
    assert_eq!(home.session_files(), [third]);
    assert!(!first.with_extension("jsonl.lease").exists());
    let trash = home.home_dir().join(".local/share/Trash");
    let kept = fs::read(trash.join("files/0199aaaa-0000.jsonl"));
    assert_eq!(kept.expect("it is in the trash"), bytes);
    let info = fs::read_to_string(trash.join("info/0199aaaa-0000.jsonl.trashinfo"));
    let info = info.expect("the trash knows where it was");
    assert!(
        info.contains("Path=") && info.contains("DeletionDate="),
        "{info}"
    );
}

#[test]
fn a_session_that_somebody_is_writing_is_not_removed() {
    // S18
    let home = TempHome::new();
    let held = store(&home, "0199aaaa-0000", &question("x", 1));
    let other = store(&home, "0199bbbb-0000", &question("y", 1));
    let _lock = hold(&held);
    let output = session(&home, &["rm", "0199a", "0199b"]);
    let output = output.failure(&["0199aaaa-0000.jsonl", "process 4711 on host elsewhere"]);
    // It does not save the other one.
    assert_eq!(output.stdout, format!("{}\n", other.display()));
    assert!(held.with_extension("jsonl.lease").exists());
    assert_eq!(home.session_files(), [held]);
}

#[test]
fn what_names_no_session_removes_nothing() {
    let home = TempHome::new();
    let file = store(&home, "0199aaaa-0000", &question("x", 1));
    let other = store(&home, "0199aaaa-1111", &question("x", 1));
    home.write("note.jsonl", "{}\n");
    for (name, words) in [
        ("", "No session begins with"),
        ("0199aaaa", "Several sessions"),
        ("ffff", "list --all"),
        ("./missing.jsonl", "missing.jsonl"),
        ("note.jsonl", "not a session file"),
        ("..", "No session"),
        ("../project", "not a session file"),
    ] {
        session(&home, &["rm", "0199aaaa-0000", name]).failure(&[words]);
    }
    session(&home, &["rm"]).failure(&["SESSION"]);
    session(&home, &[]).failure(&["list"]);
    assert_eq!(home.session_files(), [file, other]);
}

#[test]
fn on_a_terminal_removing_is_asked_for_and_stored_text_cannot_draw() {
    // U06
    let home = TempHome::new();
    let file = store(&home, "0199aaaa-0000", &branched());
    let mut command = bare_command(&home);
    command.args(["session", "rm", "0199"]);
    let mut talk = Talk::with(command);
    let mut shown = format!("{}\nMove this session to the trash? [y/N] ", file.display());
    talk.shows(&shown);
    talk.keys("\n");
    shown += "\nNothing was deleted.\n";
    talk.shows(&shown);
    talk.ends(1);
    assert_eq!(home.session_files(), [file]);

    // JSON may hold this one as it is.
    store(&home, "0199bbbb-0000", &question("\u{9b}31m", 1));
    let export = ["session", "export", "0199b", "--format", "jsonl"];
    let mut command = bare_command(&home);
    command.args(export);
    let mut talk = Talk::with(command);
    talk.ends(0);
    let piped = home.pliant().args(export).run().success().stdout;
    assert!(piped.contains('\u{9b}'));
    talk.shows(&piped.replace('\u{9b}', ""));
}

#[test]
fn the_doctor_tells_what_is_odd_and_makes_a_copy_that_can_be_continued() {
    let home = TempHome::new();
    let file = store(&home, "0199aaaa-0000", &branched());
    let sound = session(&home, &["doctor", "0199"]).success();
    assert_eq!(sound.stdout, "Nothing is odd about this session.\n");

    let whole = fs::read_to_string(&file).expect("it is text");
    let torn = whole.replacen("\"type\":\"session\"", "\"type\":\"sess", 1) + "{\"type\":\"mess";
    fs::write(&file, &torn).expect("it is writable");
    let name = file.display().to_string();
    let output = session(&home, &["doctor", &name]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = "Line 2: the session header before this entry is missing or damaged; it cannot be opened; a copy gets a new header.\nLines 1, 7: not a whole record; it is passed over; a copy leaves it out.\nLine 7: the last line has no end; it is read all the same; a copy is written without it.\n`--write-copy` writes a mended copy; the file itself stays.\n";
    assert_eq!(output.stdout, said);

    let copy = stdout(&home, &["doctor", &name, "--write-copy"]);
    assert_eq!(fs::read_to_string(&file).expect("it is text"), torn);
    let copy = copy.trim_end();
    let shown = stdout(&home, &["show", copy]);
    assert!(shown.contains("* 55555555"), "{shown}");
    session(&home, &["doctor", copy]).success();
}

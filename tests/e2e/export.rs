//! `--export` and `pliant session export`: a stored session as a page (`interfaces.md` §1.2, §13).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use pliant_tests::{TempHome, workspace};

/// A stored session as pi wrote it, of this version.
fn fixture(home: &TempHome, name: &str) -> PathBuf {
    let stored = workspace().join("tests/fixtures/sessions").join(name);
    home.write(name, fs::read(stored).expect("it is there"))
}

#[test]
fn sessions_of_every_version_are_exported_and_stay_as_they_are() {
    let home = TempHome::new();
    for name in [
        "v1.jsonl",
        "v2.jsonl",
        "v3.jsonl",
        "damaged.jsonl",
        "cycle.jsonl",
        "v4.jsonl",
    ] {
        let file = fixture(&home, name);
        let before = fs::read(&file).expect("it is there");
        let stem = name.trim_end_matches(".jsonl");
        let output = home.pliant().args(["--export", name]).run().success();
        assert_eq!(
            output.stdout,
            format!("Exported to: pliant-session-{stem}.html\n")
        );
        if name == "damaged.jsonl" {
            assert!(output.stderr.starts_with("Warning: Line "), "{output:?}");
        }
        let page = home
            .project_dir()
            .join(format!("pliant-session-{stem}.html"));
        let text = fs::read_to_string(&page).expect("it is text");
        assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>\n"));
        assert!(text.contains("class=\"entry "), "{name}");
        let mode = fs::metadata(&page)
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read(&file).expect("it is there"), before);
    }
    let left = fs::read_dir(home.project_dir()).expect("it is a folder");
    assert_eq!(
        left.count(),
        12,
        "there are the sessions and their pages, and nothing else"
    );
}

#[test]
fn the_output_of_an_export_is_the_word_that_follows() {
    let home = TempHome::new();
    fixture(&home, "v3.jsonl");
    let output = home
        .pliant()
        .args(["--export", "v3.jsonl", "out.html"])
        .run()
        .success();
    assert_eq!(output.stdout, "Exported to: out.html\n");
    assert!(home.read("out.html").contains("What is in a.txt?"));
    let branch = home
        .pliant()
        .args(["--export", "v3.jsonl", "out.jsonl"])
        .run()
        .success();
    assert_eq!(branch.stdout, "Exported to: out.jsonl\n");
    assert!(home.read("out.jsonl").starts_with("{\"type\":\"session\""));
}

#[test]
fn an_export_that_fails_says_why_and_ends_with_one() {
    let home = TempHome::new();
    let file = fixture(&home, "v3.jsonl");
    fixture(&home, "not-a-session.jsonl");
    let before = fs::read(&file).expect("it is there");
    let failure = |words: &[&str], said: &[&str]| {
        let output = home.pliant().args(words).run().failure(said);
        assert!(output.stdout.is_empty(), "{output:?}");
    };
    failure(&["--export", "none.jsonl"], &["none.jsonl"]);
    failure(
        &["--export", "not-a-session.jsonl"],
        &["not a session file"],
    );
    failure(&["--export", "v3.jsonl", "v3.jsonl"], &["session itself"]);
    failure(
        &["--export", "v3.jsonl", "no/x.html"],
        &["no/x.html cannot be written"],
    );
    assert_eq!(fs::read(&file).expect("it is there"), before);
}

#[test]
fn the_command_exports_a_page_by_its_name_or_when_asked_to() {
    let home = TempHome::new();
    fixture(&home, "v3.jsonl");
    let export = |words: &[&str]| {
        home.pliant()
            .args(["session", "export", "./v3.jsonl"])
            .args(words)
            .run()
    };
    let path = |name: &str| format!("{}\n", home.project_dir().join(name).display());
    assert_eq!(export(&["a.html"]).success().stdout, path("a.html"));
    let page = home.read("a.html");
    assert!(page.starts_with("<!DOCTYPE html>"));
    export(&["a.html"]).failure(&["a.html is there already", "--force"]);
    assert_eq!(
        export(&["--html"]).success().stdout,
        path("pliant-session-v3.html")
    );
    assert_eq!(home.read("pliant-session-v3.html"), page);
    assert_eq!(export(&["-", "--format", "html"]).success().stdout, page);
}

//! What a model sees of a search, on the local file system.

use serde_json::json;

use super::search::WALK_AHEAD;
use super::*;
use crate::testing::Dir;

fn numbered(matching: &[usize], lines: usize) -> String {
    let line = |n| {
        if matching.contains(&n) {
            format!("hit {n}\n")
        } else {
            format!("l{n}\n")
        }
    };
    (1..=lines).map(line).collect()
}

/// One file `f` with hits on these of nine lines; the lines shown, and whether more were noted.
fn shown(hits: &[usize], context: usize, limit: usize) -> (Vec<String>, bool) {
    let dir = Dir::with(&[("f", &numbered(hits, 9))]);
    let arguments = json!({"pattern": "hit", "context": context, "limit": limit});
    let more = dir.details(&Grep, arguments.clone()) == json!({"matchLimitReached": limit});
    let text = dir.text(&Grep, arguments);
    let text = text.split("\n\n").next().unwrap();
    let lines = text
        .lines()
        .map(|line| line.trim_start_matches('f').to_owned());
    (lines.collect(), more)
}

#[test]
fn matches_are_shown_with_path_and_line_in_the_order_of_paths() {
    // extensions §8.6
    let dir = Dir::with(&[
        ("b.txt", "x\nneedle one\n"),
        ("a/c.txt", "needle\r\n"),
        (".h", "a needle"),
    ]);
    let text = dir.text(&Grep, json!({"pattern": "needle"}));
    assert_eq!(
        text,
        ".h:1: a needle\na/c.txt:1: needle\nb.txt:2: needle one"
    );
    assert_eq!(
        dir.details(&Grep, json!({"pattern": "needle"})),
        json!(null)
    );
    let text = dir.text(&Grep, json!({"pattern": "needle", "path": "a"}));
    assert_eq!(text, "c.txt:1: needle");
    let text = dir.text(&Grep, json!({"pattern": "needle", "path": "a/c.txt"}));
    assert_eq!(text, "c.txt:1: needle");
}

#[test]
fn no_match_is_not_an_error() {
    let dir = Dir::with(&[("a", "x")]);
    let result = dir.run(&Grep, json!({"pattern": "needle"})).unwrap();
    assert_eq!(result, ToolResult::text("No line in . matches needle."));
}

#[test]
fn a_pattern_is_a_regular_expression_unless_literal() {
    let dir = Dir::with(&[("a", "a.b\naxb\nA.B\n")]);
    let grep = |more: serde_json::Value| {
        let mut arguments = json!({"pattern": "a.b"});
        arguments
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        dir.text(&Grep, arguments)
    };
    assert_eq!(grep(json!({})), "a:1: a.b\na:2: axb");
    assert_eq!(grep(json!({"literal": true})), "a:1: a.b");
    assert_eq!(
        grep(json!({"literal": true, "ignoreCase": true})),
        "a:1: a.b\na:3: A.B"
    );
}

#[test]
fn globs_are_rooted_at_the_searched_directory() {
    let dir = Dir::with(&[
        ("s/a.rs", "x"),
        ("s/b.txt", "x"),
        ("s/m/a.rs", "x"),
        ("m/a.rs", "x"),
    ]);
    let grep = |glob| dir.text(&Grep, json!({"pattern": "x", "path": "s", "glob": glob}));
    assert_eq!(grep("*.rs"), "a.rs:1: x\nm/a.rs:1: x");
    assert_eq!(grep("m/*.rs"), "m/a.rs:1: x");
    assert_eq!(grep("./m/*.rs"), "m/a.rs:1: x");
    assert_eq!(grep("!*.rs"), "b.txt:1: x");
    assert_eq!(grep("s/*.rs"), "No line in s matches x.");
}

#[test]
fn ignore_files_are_honoured_and_git_itself_is_left_out() {
    let dir = Dir::with(&[
        (".gitignore", "*.log"),
        (".ignore", "t"),
        (".git/config", "x"),
        ("a.log", "x"),
        ("t", "x"),
        ("b", "x"),
    ]);
    assert_eq!(dir.text(&Grep, json!({"pattern": "x"})), "b:1: x");
    let inside = dir.text(&Grep, json!({"pattern": "x", "path": ".git"}));
    assert_eq!(inside, "config:1: x");
}

#[test]
fn context_is_shown_around_matches_and_once() {
    let (lines, more) = shown(&[3, 5], 1, 9);
    assert_eq!(
        lines,
        ["-2- l2", ":3: hit 3", "-4- l4", ":5: hit 5", "-6- l6"]
    );
    assert!(!more);
}

#[test]
fn exactly_the_limit_is_whole_and_one_more_is_noted() {
    assert_eq!(
        shown(&[2, 4], 0, 2),
        (vec![":2: hit 2".into(), ":4: hit 4".into()], false)
    );
    assert_eq!(shown(&[2, 4], 0, 1), (vec![":2: hit 2".into()], true));
    assert_eq!(shown(&[2, 4], 0, 0).0, [":2: hit 2"]);
}

#[test]
fn the_context_after_the_last_match_is_still_shown() {
    let ctx = |hits: &[usize], limit| shown(hits, 2, limit);
    assert_eq!(
        ctx(&[2], 1),
        (
            vec![
                "-1- l1".into(),
                ":2: hit 2".into(),
                "-3- l3".into(),
                "-4- l4".into()
            ],
            false
        )
    );
    assert_eq!(
        ctx(&[1, 8], 1),
        (
            vec![":1: hit 1".into(), "-2- l2".into(), "-3- l3".into()],
            true
        )
    );
    assert_eq!(
        ctx(&[1, 2, 9], 1),
        (
            vec![":1: hit 1".into(), "-2- hit 2".into(), "-3- l3".into()],
            true
        )
    );
    assert_eq!(
        ctx(&[1, 3], 1),
        (
            vec![":1: hit 1".into(), "-2- l2".into(), "-3- hit 3".into()],
            true
        )
    );
}

#[test]
fn a_further_match_in_another_file_is_noted_too() {
    let dir = Dir::with(&[("a", "x\ny\n"), ("b", "y\nx\n")]);
    let arguments = json!({"pattern": "x", "limit": 1, "context": 1});
    let text = dir.text(&Grep, arguments.clone());
    assert!(
        text.starts_with("a:1: x\na-2- y\n\n[There are more than 1 matches"),
        "{text}"
    );
    assert_eq!(
        dir.details(&Grep, arguments),
        json!({"matchLimitReached": 1})
    );
}

#[test]
fn long_lines_are_cut_after_500_utf16_units_and_not_inside_a_character() {
    // T07
    let exact = "é".repeat(500);
    let over = format!("{}🦀tail", "é".repeat(499));
    let dir = Dir::with(&[("a", &format!("{exact}\n{over}\n"))]);
    let text = dir.text(&Grep, json!({"pattern": "é"}));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], format!("a:1: {exact}"));
    assert_eq!(lines[1], format!("a:2: {}... [truncated]", "é".repeat(499)));
    let details = dir.details(&Grep, json!({"pattern": "é"}));
    assert_eq!(details, json!({"linesTruncated": true}));
}

#[test]
fn the_byte_limit_applies_and_a_line_limit_does_not() {
    let dir = Dir::with(&[
        ("a", &"x\n".repeat(3000)),
        ("b", &format!("{}\n", "y".repeat(400)).repeat(300)),
    ]);
    let result = dir
        .run(&Grep, json!({"pattern": "x", "limit": 5000}))
        .unwrap();
    assert_eq!(result.details, None);
    let details = dir.details(&Grep, json!({"pattern": "y", "limit": 5000}));
    assert_eq!(details["truncation"]["truncatedBy"], "bytes");
    assert!(details["truncation"]["outputBytes"].as_u64().unwrap() <= 50 * 1024);
    assert_eq!(details["truncation"]["totalLines"], 300);
}

#[test]
fn binary_files_are_passed_over_unless_asked_for_by_name() {
    let dir = Dir::with(&[("bin", "\0\0x needle\n"), ("text", "needle")]);
    assert_eq!(
        dir.text(&Grep, json!({"pattern": "needle"})),
        "text:1: needle"
    );
    let named = dir.text(&Grep, json!({"pattern": "needle", "path": "bin"}));
    assert!(named.contains("needle"), "{named}");
}

#[test]
fn bytes_that_are_no_text_do_not_stop_a_search() {
    let dir = Dir::new();
    dir.put("a", b"\xff needle \xc3\n");
    assert_eq!(
        dir.text(&Grep, json!({"pattern": "needle"})),
        "a:1: \u{fffd} needle \u{fffd}"
    );
}

#[test]
fn mistakes_are_named() {
    let dir = Dir::with(&[("a", "x")]);
    let error = |arguments| dir.error(&Grep, arguments);
    assert!(error(json!({"pattern": "a("})).starts_with("The pattern cannot be searched for"));
    assert!(error(json!({"pattern": "a\\nb"})).contains("a match never spans lines"));
    assert!(error(json!({"pattern": "x", "glob": "a["})).starts_with("glob is not a glob"));
    assert!(error(json!({"pattern": "x", "path": "q"})).starts_with("q does not exist"));
}

#[test]
fn an_abort_ends_the_search() {
    let mut dir = Dir::with(&[("a", "x")]);
    dir.cancel_at = "stat";
    for path in [".", "a"] {
        let answer = dir.run(&Grep, json!({"pattern": "x", "path": path}));
        assert_eq!(answer, Err(Error::cancelled()));
    }
}

#[test]
fn a_search_that_ends_early_does_not_wait_for_the_walk() {
    let dir = Dir::new();
    for number in 0..WALK_AHEAD * 3 {
        dir.put(&format!("{number}"), b"x");
    }
    let details = dir.details(&Grep, json!({"pattern": "x", "limit": 1}));
    assert_eq!(details, json!({"matchLimitReached": 1}));
}

//! Which test pins which rule of the kernel's contract. The rules are a list in `fixtures/rules`, tests
//! name them in their comments (`// R22, R24-R26, invariants 21 and 22`), and a rule without a test
//! has a reason. `cargo test -p pliant-tests --test rules -- --nocapture` prints the table.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use pliant_tests::workspace;

const RULES: &str = include_str!("fixtures/rules/kernel.txt");
const UNTESTED: &str = include_str!("fixtures/rules/untested.txt");

/// The letters of the kernel's rules; invariants are numbered, and listed under an I.
const LETTERS: &str = "LTPRVG";

#[test]
fn every_rule_has_a_test_or_a_reason_why_not() {
    let rules: Vec<(&str, &str)> = lines(RULES).collect();
    let reasons: BTreeMap<&str, &str> = lines(UNTESTED).collect();
    let tests = tests_by_rule();
    let mut wrong = Vec::new();
    for (rule, about) in &rules {
        println!("{rule:<4} {about}");
        let pinned = tests.get(*rule).into_iter().flatten();
        pinned.for_each(|test| println!("       {test}"));
        match (tests.contains_key(*rule), reasons.get(rule)) {
            (false, None) => wrong.push(format!("{rule} has neither a test nor a reason")),
            (true, Some(_)) => {
                wrong.push(format!("{rule} has a test, and a reason for having none"));
            }
            (false, Some(reason)) => println!("       no test: {reason}"),
            (true, None) => {}
        }
    }
    let known: BTreeSet<&str> = rules.iter().map(|(rule, _)| *rule).collect();
    let named = tests.keys().map(String::as_str);
    let unknown = named
        .chain(reasons.keys().copied())
        .filter(|rule| !known.contains(rule));
    wrong.extend(unknown.map(|rule| format!("there is no rule {rule}: {:?}", tests.get(rule))));
    let pinned = rules.iter().filter(|(rule, _)| tests.contains_key(*rule));
    println!(
        "{} rules, {} of them with tests",
        rules.len(),
        pinned.count()
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_reader_of_comments_reads() {
    for (comment, expected) in [
        ("R22", "R22"),
        ("R19-R22, R9, reports K06", "R19 R20 R21 R22 R9"),
        ("L24–L26: and L1 - as 3 others", "L24 L25 L26 L1"),
        ("P41–43", "P41 P42 P43"),
        ("§4.2, invariants 16 and 17", "I16 I17"),
        ("Invariants 1–3, 12. 7 things", "I1 I2 I3 I12"),
        ("S26, invariant 13, M4, reports P10", "I13"),
        ("reports P07, T04; T4", "T4"),
        ("invariant_31_quoted_arguments", "I31"),
        ("extensions §9.2, T01, R0, xR1, R1x, HTTP2", ""),
    ] {
        assert_eq!(ids(comment).join(" "), expected, "{comment}");
    }
    let source = "
    /// R1
    #[tokio::test]
    async fn one() {
        // R2
        let x = 1; // R3
    }

    // R4
    fn no_test() {}

    #[test]
    #[cfg(unix)]
    // R5
    fn two() {
        {}
    }";
    assert_eq!(
        tests_of(source),
        [
            ("one".to_owned(), " R1  R2 one".to_owned()),
            ("two".to_owned(), " R5 two".to_owned())
        ]
    );
}

/// The names of the tests that name a rule, by rule.
fn tests_by_rule() -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in rust_files(workspace()) {
        let shown = file.strip_prefix(workspace()).expect("the file is ours");
        // Examples of comments stand in this one.
        if shown == Path::new("tests/rules.rs") {
            continue;
        }
        let source = fs::read_to_string(&file).expect("sources are readable");
        for (test, comments) in tests_of(&source) {
            for rule in ids(&comments) {
                let test = format!("{}: {test}", shown.display());
                found.entry(rule).or_default().insert(test);
            }
        }
    }
    found
}

/// The tests of a source file, each with the comments in it and right above it. A test ends where
/// rustfmt puts its brace.
fn tests_of(source: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = source.lines().collect();
    let mut tests = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        if !code.starts_with("#[test]") && !code.starts_with("#[tokio::test") {
            continue;
        }
        let end = format!("{}}}", &line[..line.len() - code.len()]);
        let above = lines[..at].iter().rev().map_while(|line| comment(line));
        let body: Vec<&str> = lines[at..]
            .iter()
            .take_while(|line| **line != end)
            .copied()
            .collect();
        let mut comments: Vec<&str> = above.collect();
        comments.reverse();
        comments.extend(body.iter().filter_map(|line| comment(line)));
        let name = body
            .iter()
            .find_map(|line| line.split_once("fn ")?.1.split_once('('));
        let name = name.map_or("", |(name, _)| name);
        // A property says which one it is in its name.
        comments.push(name);
        tests.push((name.to_owned(), comments.join(" ")));
    }
    tests
}

/// The text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    line.trim_start()
        .strip_prefix("//")
        .map(|text| text.trim_start_matches(['/', '!']))
}

/// What a list of numbers counts.
#[derive(Clone, Copy, PartialEq)]
enum Counts {
    Rules,
    Invariants,
    /// Faults that users reported, which have letters too.
    Reports,
}

/// The rules and invariants that a comment names.
fn ids(comment: &str) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    let mut counts = Counts::Rules;
    for (before, word) in words(comment) {
        let listed = before
            .chars()
            .all(|c| matches!(c, ' ' | ',' | '-' | '–' | '_'));
        counts = match word.to_lowercase().as_str() {
            "reports" => Counts::Reports,
            "invariant" | "invariants" => Counts::Invariants,
            "and" => counts,
            word if listed && counts == Counts::Invariants && number(word).is_some() => counts,
            word if listed && counts == Counts::Reports && word.len() == 3 => counts,
            _ => Counts::Rules,
        };
        let digits = word.trim_start_matches(|c: char| LETTERS.contains(c));
        let letter = &word[..word.len() - digits.len()];
        let Some(last) = number(digits).filter(|_| counts != Counts::Reports) else {
            continue;
        };
        let of_rule = counts == Counts::Rules && letter.len() == 1;
        let ranges = matches!(before, "-" | "–");
        let begun = ids.last().filter(|_| ranges).and_then(|id| {
            let (known, first) = id.split_at(1);
            let same = letter.is_empty() || letter == known;
            Some((known.to_owned(), number(first).filter(|_| same)?))
        });
        if let Some((letter, first)) = begun {
            ids.extend((first + 1..=last).map(|number| format!("{letter}{number}")));
        } else if of_rule {
            ids.push(word.to_owned());
        } else if counts == Counts::Invariants && letter.is_empty() {
            ids.push(format!("I{last}"));
        }
    }
    ids
}

/// Runs of letters and digits, each with what stands before it.
fn words(text: &str) -> Vec<(&str, &str)> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(char::is_alphanumeric) {
        let end = rest[start..]
            .find(|c: char| !c.is_alphanumeric())
            .map_or(rest.len(), |length| start + length);
        words.push((&rest[..start], &rest[start..end]));
        rest = &rest[end..];
    }
    words
}

/// A number as rules have them: no zero leads.
fn number(digits: &str) -> Option<u32> {
    let plain = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

/// The lines of a list: an id and its text.
fn lines(list: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' '))
}

/// Every source file below a folder, without what cargo builds.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is readable");
    let mut files = Vec::new();
    for path in entries.map(|entry| entry.expect("the folder is readable").path()) {
        if path.is_dir() && !path.join("CACHEDIR.TAG").exists() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

//! What is told of branches that are left, over trees in memory.

use pliant_sdk::message::MessageContent;
use serde_json::{Value, json};

use super::branch::{LeftBranch, budget, request, summary};
use super::tests::{Talk, answer, call, long, result, user, with, word};
use super::*;
use crate::tree::{BranchSummary, EntryBody, EntryId, Replacement};

/// The first words of what is told of a branch with this budget.
fn told(left: &LeftBranch, budget: u64) -> String {
    let told = left.told(budget);
    let words: Vec<String> = told.messages.iter().map(word).collect();
    let more = if told.complete { "" } else { "… " };
    format!("{more}{}", words.join(" "))
}

fn all_of(talk: &Talk) -> LeftBranch {
    LeftBranch {
        common_ancestor: None,
        entries: talk.0.path_to_leaf().to_vec(),
    }
}

#[test]
fn what_is_left_begins_behind_the_last_common_entry_and_no_compaction_ends_it() {
    // R39
    let mut talk = Talk::new([user("a", 10)]);
    let root = talk.leaf();
    talk.say(answer("b", 10));
    talk.say(user("c", 10));
    let inside = talk.leaf();
    talk.compact(prepare(&talk.0, 10).unwrap());
    talk.say(answer("d", 10));
    let old = talk.leaf();
    let ids = |target: &EntryId, talk: &Talk| {
        let left = LeftBranch::of(&talk.0, target);
        (left.common_ancestor, left.entries.len())
    };
    assert_eq!(ids(&root, &talk), (Some(root.clone()), 4));
    assert_eq!(ids(&inside, &talk), (Some(inside.clone()), 2));
    // To a place further on nothing is left, and to another root everything is.
    talk.0.branch(&root).unwrap();
    assert_eq!(ids(&old, &talk), (Some(root), 0));
    talk.0.reset_leaf();
    assert_eq!(ids(&old, &talk), (None, 0));
    talk.say(user("x", 10));
    assert_eq!(ids(&old, &talk), (None, 1));
    assert_eq!(ids(&"nowhere".into(), &talk), (None, 1));
}

#[test]
fn the_newest_that_fit_are_told_without_results() {
    // R41
    let talk = Talk::new([
        json!({"role": "system", "content": "prompt"}),
        user("a", 10),
        call("x"),
        result("x", 1000),
        answer("b", 10),
        user("c", 10),
    ]);
    let left = all_of(&talk);
    assert_eq!(told(&left, 1000), "a x b c");
    assert_eq!(told(&left, 20), "… b c");
    assert_eq!(told(&left, 19), "… c");
    assert_eq!(told(&left, 9), "… ");
}

#[test]
fn a_summary_goes_over_the_budget_while_a_tenth_of_it_is_left() {
    // R41
    let mut talk = Talk::new([user("a", 10)]);
    let earlier = BranchSummary {
        summary: long("s", 50),
        ..BranchSummary::default()
    };
    talk.0.append(EntryBody::BranchSummary(earlier)).unwrap();
    talk.say(user("c", 18));
    let left = all_of(&talk);
    let roles = |budget| {
        let told = left.told(budget);
        let roles: Vec<String> = told.messages.iter().map(|m| m.role().to_owned()).collect();
        roles.join(" ")
    };
    assert_eq!(roles(21), "branchSummary user");
    assert_eq!(roles(20), "user");
}

#[test]
fn what_an_edit_left_out_or_changed_is_told_as_it_reads_now() {
    // R41
    let mut talk = Talk::new([user("a", 10)]);
    let first = talk.leaf();
    talk.say(answer("gone", 10));
    talk.omit();
    for text in ["once", "twice"] {
        let new = Replacement::Content(MessageContent::Text(text.to_owned()));
        talk.0.edit_context(&first, new).unwrap();
    }
    assert_eq!(told(&all_of(&talk), 100), "twice");
}

#[test]
fn files_come_from_all_calls_and_from_earlier_summaries_of_ours() {
    // R41, R36
    let mut talk = Talk::new([call("read-here")]);
    talk.omit();
    let nested = json!({"calls": [{"name": "write", "arguments": {"path": "nested"}}]});
    talk.say(with(result("x", 1), json!({"nestedCalls": nested})));
    for (path, from_hook) in [("noted", Some(false)), ("theirs", Some(true))] {
        let noted = BranchSummary {
            details: Some(json!({"readFiles": [path], "modifiedFiles": [format!("{path}-too")]})),
            from_hook,
            ..BranchSummary::default()
        };
        talk.0.append(EntryBody::BranchSummary(noted)).unwrap();
    }
    let told = summary("TEXT", &all_of(&talk).files());
    let (head, files) = told.split_once("TEXT").unwrap();
    assert!(head.ends_with("What happened on it:\n\n"));
    assert_eq!(
        files,
        "\n\n<read-files>\nnoted\nread-here\n</read-files>\n\n<modified-files>\nnested\nnoted-too\n</modified-files>"
    );
}

#[test]
fn the_budget_leaves_room_in_the_window() {
    // R41
    assert_eq!(budget(200_000, None), 200_000 - 16_384);
    assert_eq!(budget(0, None), 128_000 - 16_384);
    assert_eq!(budget(8_000, None), 4_000);
    assert_eq!(budget(8_000, Some(1_000)), 7_000);
    assert_eq!(budget(8_000, Some(9_000)), 0);
}

#[test]
fn a_branch_is_asked_for_in_the_form_of_a_compaction_without_its_critical_context() {
    // R41, R33
    let asked = request("TALK", Some(" the tests "), false);
    assert!(asked.starts_with("<conversation>\nTALK\n</conversation>"));
    for heading in ["## Goal", "## Key Decisions", "## Next Steps\n1."] {
        assert!(asked.contains(heading), "{heading}");
    }
    assert!(!asked.contains("Critical Context"));
    assert!(asked.ends_with("Additional focus: the tests"));
    let replaced = request("TALK", Some("One word."), true);
    assert_eq!(
        replaced,
        "<conversation>\nTALK\n</conversation>\n\nOne word."
    );
    // Nothing replaces nothing.
    assert_eq!(
        request("TALK", None, true),
        request("TALK", Some("  "), false)
    );
}

#[test]
fn an_empty_branch_is_told_as_nothing() {
    assert_eq!(
        LeftBranch::default().told(0),
        all_of(&Talk::new(Vec::<Value>::new())).told(9)
    );
}

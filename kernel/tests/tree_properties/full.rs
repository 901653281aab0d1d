//! A disk that fills up: appends that do not fit fail, change nothing and leave no half line, and
//! smaller ones still fit (S12, invariant 35). The disk is a limit on the size of files, under
//! which this test program is run again.

use std::process::Command;
use std::sync::Arc;

use pliant_kernel::tree::{BranchSummary, EntryBody, TreeError};
use pliant_sdk::message::Message;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::session::Session;
use crate::values;

const LIMITED: &str = "PLIANT_LIMITED_FILES";

#[test]
fn an_append_that_does_not_fit_changes_nothing() {
    let limited = "trap '' XFSZ; ulimit -f 60; exec \"$0\" --exact full::writer --nocapture";
    let output = Command::new("sh")
        .args(["-c", limited])
        .arg(std::env::current_exe().unwrap())
        .env(LIMITED, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}{errors}"
    );
}

/// The writer; does nothing unless it is asked for.
#[test]
fn writer() {
    if std::env::var_os(LIMITED).is_none() {
        return;
    }
    let mut runner = TestRunner::deterministic();
    let mut session = Session::new();
    session.append(user("first"));
    let mut failures = [0, 0];
    while failures.iter().any(|count| *count < 20) {
        let body = values::body().new_tree(&mut runner).unwrap().current();
        let long = user(&"much ".repeat(1000));
        let which = usize::from(failures[1] < failures[0]);
        let before = session.look();
        let result = match which {
            0 if failures[0] % 3 == 0 => session.tree.append(long).cloned(),
            0 => session.tree.append(body).cloned(),
            _ => {
                let first = session.tree.entries()[0].id().clone();
                let summary = BranchSummary {
                    summary: "left".repeat(20),
                    ..BranchSummary::default()
                };
                session
                    .tree
                    .branch_with_summary(Some(&first), summary)
                    .cloned()
            }
        };
        match result {
            Ok(entry) => session.record(entry),
            Err(error) => {
                assert!(matches!(error, TreeError::Write { .. }), "{error}");
                assert_eq!(session.look(), before);
                failures[which] += 1;
            }
        }
        session.check();
    }
    session.reopen();
    session.check();
}

fn user(text: &str) -> EntryBody {
    EntryBody::Message(Arc::new(Message::user(text, 1)))
}

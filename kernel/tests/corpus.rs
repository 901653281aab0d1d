//! The inputs of the fuzz targets, by the same rules (`tests/fuzz`): what was written by hand and
//! what fuzzing found. The sessions of the other tests are inputs too.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

#[path = "../../tests/fuzz/checks/read_session.rs"]
mod read_session;
#[path = "../../tests/fuzz/checks/repair.rs"]
mod repair;

#[test]
fn every_session_of_the_corpus_is_opened_and_goes_on_or_is_left_alone() {
    each("fuzz/corpus/read_session", read_session::check);
    each("fuzz/corpus/repair", read_session::check);
    each("fixtures/sessions", read_session::check);
}

#[test]
fn every_history_of_the_corpus_gives_a_valid_request() {
    each("fuzz/corpus/repair", repair::check);
    each("fuzz/corpus/read_session", repair::check);
    each("fixtures/sessions", repair::check);
}

/// Found by fuzzing: the older version was written anew before it was known to be a session.
#[test]
fn an_old_file_that_is_refused_in_the_end_is_left_untouched() {
    let bytes = include_bytes!("../../tests/fuzz/corpus/read_session/old-header-behind-an-entry");
    read_session::check(bytes, tempfile::tempdir().unwrap().path());
}

/// Found by fuzzing: lines that could be read as text were copied with the bytes that are none.
#[test]
fn a_mended_copy_is_text() {
    let bytes = include_bytes!("../../tests/fuzz/corpus/read_session/not-utf-8");
    read_session::check(bytes, tempfile::tempdir().unwrap().path());
}

/// Runs a check on every file of a folder below `tests`.
fn each(folder: &str, check: fn(&[u8], &Path)) {
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests")
        .join(folder);
    let mut inputs: Vec<PathBuf> = fs::read_dir(inputs)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    inputs.sort();
    let scratch = tempfile::tempdir().unwrap();
    let mut failed = Vec::new();
    for input in &inputs {
        let bytes = fs::read(input).unwrap();
        if catch_unwind(|| check(&bytes, scratch.path())).is_err() {
            failed.push(input.file_name().unwrap());
        }
    }
    assert!(!inputs.is_empty() && failed.is_empty(), "{failed:?}");
}

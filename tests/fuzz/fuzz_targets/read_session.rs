//! Any bytes as a session file: opening, looking, exporting, appending, opening again.

#![no_main]

#[path = "../checks/read_session.rs"]
mod read_session;
#[path = "../checks/scratch.rs"]
mod scratch;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| scratch::with_folder(|folder| {
    read_session::check(bytes, folder);
}));

//! Any bytes as a session whose history is to be sent to a model.

#![no_main]

#[path = "../checks/repair.rs"]
mod repair;
#[path = "../checks/scratch.rs"]
mod scratch;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| scratch::with_folder(|folder| {
    repair::check(bytes, folder);
}));

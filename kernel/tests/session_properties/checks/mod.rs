//! The invariants of `kernel.md` §9 that a whole session shows, a file for each thing they are about.

mod calls;
mod file;
mod generations;
mod messages;
mod prompts;
mod queues;
pub mod requests;
mod runs;

use pliant_sdk::Event;

use crate::record::{Record, word};
use crate::script::Script;

/// What is broken, in a sentence.
type Broken = Result<(), String>;

/// Checks everything.
pub fn all(script: &Script, record: &Record) {
    for check in [
        file::check,
        generations::check,
        prompts::check,
        queues::check,
        requests::check,
    ] {
        if let Err(rule) = check(script, record) {
            panic!("{rule}\n{}", words(record));
        }
    }
    let mut calls = calls::Calls::default();
    let mut messages = messages::Messages::default();
    let mut runs = runs::Runs::new(script);
    for (at, event) in record.events.iter().enumerate() {
        let seen = [calls.see(event), messages.see(event), runs.see(event)];
        if let Some(rule) = seen.into_iter().find_map(Result::err) {
            panic!("event {at}: {rule}\n{}", words(record));
        }
    }
    if let Err(rule) = runs.end(record) {
        panic!("{rule}\n{}", words(record));
    }
}

fn words(record: &Record) -> String {
    let words = record.events.iter().map(|event| word(event));
    let numbered = words
        .enumerate()
        .map(|(at, word)| format!("{at:>4} {word}\n"));
    numbered.collect::<String>() + &format!("{:#?}\n{:#?}", record.prompts, record.aborts)
}

fn require(holds: bool, rule: impl Into<String>) -> Broken {
    if holds { Ok(()) } else { Err(rule.into()) }
}

/// The text of a user message that begins.
fn user_begins(event: &Event) -> Option<String> {
    let Event::MessageStart { message } = event else {
        return None;
    };
    match &**message {
        pliant_sdk::Message::User(user) => Some(user.content.joined_text("")),
        _ => None,
    }
}

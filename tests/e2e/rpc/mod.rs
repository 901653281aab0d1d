//! The RPC mode from outside: what a program that drives pliant sends and reads (`interfaces.md` §7–§11).

mod bash;
mod compaction;
mod dialogs;
mod ends;
mod floods;
mod models;
mod prompting;
mod protocol;
mod queues;
mod sessions;
mod tree;

use serde_json::Value;

/// The texts of messages, with their roles; system messages are passed by.
fn spoken(messages: &Value) -> Vec<(String, String)> {
    let messages = messages.as_array().expect("it is a list").iter();
    let spoken = messages.filter(|message| message["role"] != "system");
    spoken
        .map(|message| (role(message), text(message)))
        .collect()
}

fn role(message: &Value) -> String {
    message["role"].as_str().unwrap_or_default().to_owned()
}

fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        content => {
            let blocks = content.as_array().into_iter().flatten();
            blocks.filter_map(|block| block["text"].as_str()).collect()
        }
    }
}

/// The types of records, in order.
fn kinds(records: &[Value]) -> Vec<&str> {
    let kinds = records.iter().map(|record| record["type"].as_str());
    kinds.map(Option::unwrap_or_default).collect()
}

//! Commands in a shell, as a tool for models: `bash`.
//!
//! The kernel runs the process; what is here is the way from its bytes to an answer: text that fits
//! into a conversation, the whole output in a file when it does not, and how the command ended.

mod bash;

mod output;
mod spill;

use pliant_sdk::{Error, Host, Init, Plugin};

fn create(_host: Host, _init: Init) -> Result<Plugin, Error> {
    Ok(Plugin::new().tool(bash::Bash))
}

pliant_sdk::export! {
    name: "shell",
    provides: { tool "bash" },
    create: create,
}

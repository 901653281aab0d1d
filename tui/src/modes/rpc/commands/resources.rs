//! What can be called by a slash: commands of extensions, prompt templates, skills.

use serde_json::{Value, json};

use super::{Answer, Call, Entry, quick};
use crate::modes::rpc::request::Data;

pub(super) const COMMANDS: &[Entry] = &[quick("get_commands", |call| Box::pin(list(call)))];

async fn list(call: Call) -> Answer {
    let kernel = call.rpc.runtime.kernel();
    let commands: Vec<Value> = kernel
        .slash_commands()
        .iter()
        .map(|command| json!(command))
        .collect();
    Data::of(&json!({ "commands": commands }))
}

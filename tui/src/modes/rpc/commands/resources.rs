//! What can be called by a slash (commands of extensions, prompt templates, skills), and loading plugins
//! and scripts anew.

use serde_json::{Value, json};

use super::{Answer, Call, Entry, long, quick, said};
use crate::modes::rpc::request::Data;

pub(super) const COMMANDS: &[Entry] = &[
    quick("get_commands", |call| Box::pin(list(call))),
    long("reload", |call| Box::pin(reload(call))),
    quick("get_plugins", |call| Box::pin(plugins(call))),
];

/// An addition of pliant: how plugins and scripts are doing.
async fn plugins(call: Call) -> Answer {
    let plugins = call.rpc.runtime.kernel().reloader().standing();
    Data::of(&json!({ "plugins": plugins }))
}

/// An addition of pliant: answers what became of each source.
async fn reload(call: Call) -> Answer {
    let report = call.session().reload().await.map_err(said)?;
    Data::of(&json!({ "changes": report.changes }))
}

async fn list(call: Call) -> Answer {
    let kernel = call.rpc.runtime.kernel();
    let commands: Vec<Value> = kernel
        .slash_commands()
        .iter()
        .map(|command| json!(command))
        .collect();
    Data::of(&json!({ "commands": commands }))
}

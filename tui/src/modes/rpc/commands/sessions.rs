//! Another session in the place of the current one, its name, and what it exports.

use std::path::PathBuf;

use pliant_kernel::OpenError;
use pliant_kernel::tree::{EntryId, Position, TreeError};
use serde_json::json;

use super::{Answer, Call, Entry, long, quick, said};
use crate::modes::rpc::request::Data;

pub(super) const COMMANDS: &[Entry] = &[
    long("new_session", |call| {
        Box::pin(async move {
            let parent: Option<PathBuf> = call.fields().optional("parentSession")?;
            let session = call.rpc.runtime.new_session(parent).await;
            cancelled(session.map_err(said)?.is_none())
        })
    }),
    long("switch_session", |call| {
        Box::pin(async move {
            let path: PathBuf = call.fields().required("sessionPath")?;
            let session = call.rpc.runtime.switch_session(&path).await;
            cancelled(session.map_err(said)?.is_none())
        })
    }),
    long("fork", |call| Box::pin(fork(call))),
    long("clone", |call| {
        Box::pin(async move {
            let session = call.rpc.runtime.clone_session().await;
            cancelled(session.map_err(said)?.is_none())
        })
    }),
    quick("get_fork_messages", |call| {
        Box::pin(async move {
            let messages = call.session().user_messages();
            let messages: Vec<_> = messages
                .into_iter()
                .map(|(id, text)| json!({"entryId": id, "text": text}))
                .collect();
            Data::of(&json!({ "messages": messages }))
        })
    }),
    quick("set_session_name", |call| {
        Box::pin(async move {
            let name: String = call.fields().required("name")?;
            if name.trim().is_empty() {
                return Err("Session name cannot be empty".to_owned());
            }
            call.session().set_name(name.trim()).await.map_err(said)?;
            Ok(Data::none())
        })
    }),
    long("export_html", |call| {
        Box::pin(async move {
            let path: Option<PathBuf> = call.fields().optional("outputPath")?;
            let written = call.session().export_html(path.as_deref()).await;
            Data::of(&json!({"path": written.map_err(said)?}))
        })
    }),
];

fn cancelled(cancelled: bool) -> Answer {
    Data::of(&json!({ "cancelled": cancelled }))
}

async fn fork(call: Call) -> Answer {
    let id: String = call.fields().required("entryId")?;
    let id = EntryId::from(id.as_str());
    let forked = call.rpc.runtime.fork(&id, Position::Before).await;
    let forked = forked.map_err(|error| match error {
        OpenError::Tree(TreeError::UnknownEntry { .. } | TreeError::NotAUserMessage { .. }) => {
            "Invalid entry ID for forking".to_owned()
        }
        error => error.to_string(),
    })?;
    let is_cancelled = forked.is_none();
    let text = forked.and_then(|forked| forked.editor_text);
    Data::of(&json!({"text": text.unwrap_or_default(), "cancelled": is_cancelled}))
}

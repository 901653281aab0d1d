//! Reading the session's tree (`extensions.md` §5.2, `sessionManager`). Entries are as they are stored;
//! the tree is flat, with children by number, because it may be deeper than JSON can be nested.

use pliant_sdk::Error;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Allowed, Service};
use crate::session::Session;
use crate::tree::{Entry, EntryId, Node, Selected};

pub(super) const SERVICES: &[Service] = &[Service {
    name: "session.read",
    allowed: Allowed::Anywhere,
    run: |session, ask| {
        Box::pin(async move {
            let question: Question = serde_json::from_value(ask.payload).map_err(unknown)?;
            Ok(question.answer(&Session(session)))
        })
    },
}];

#[derive(Deserialize)]
#[serde(tag = "what", rename_all = "camelCase")]
enum Question {
    Info,
    Header,
    Entries,
    Entry { id: EntryId },
    Branch { from: Option<EntryId> },
    Tree,
    LeafId,
    LeafEntry,
    Label { id: EntryId },
    ContextEntries,
    Projection,
}

fn unknown(error: serde_json::Error) -> Error {
    Error::invalid(format!(
        "session.read does not know what is asked: {error}. Ask for info, header, entries, entry, branch, tree, leafId, leafEntry, label, contextEntries or projection."
    ))
}

impl Question {
    fn answer(self, session: &Session) -> Value {
        match self {
            Self::Info => info(session),
            Self::Header => session
                .header()
                .line()
                .ok()
                .and_then(|line| serde_json::from_str(&line).ok())
                .unwrap_or_default(),
            Self::Entries => all(session.entries()),
            Self::Entry { id } => session.entry(&id).map_or(Value::Null, |e| e.to_json()),
            Self::Branch { from } => all(session.branch(from.as_ref())),
            Self::Tree => tree(session),
            Self::LeafId => json!(session.leaf()),
            Self::LeafEntry => {
                let leaf = session.leaf().and_then(|leaf| session.entry(&leaf));
                leaf.map_or(Value::Null, |entry| entry.to_json())
            }
            Self::Label { id } => json!(session.label(&id)),
            Self::ContextEntries => {
                let projection = session.projection();
                all(projection.sources().iter().map(|selected| &selected.entry))
            }
            Self::Projection => projection(session),
        }
    }
}

fn all<E: AsRef<Entry>>(entries: impl IntoIterator<Item = E>) -> Value {
    let entries = entries.into_iter();
    entries.map(|entry| entry.as_ref().to_json()).collect()
}

fn info(session: &Session) -> Value {
    let file = session.file();
    let folder = file.as_deref().and_then(|file| file.parent());
    json!({
        "cwd": session.cwd(),
        "sessionDir": folder,
        "sessionId": session.header().id.as_str(),
        "sessionFile": file,
        "sessionName": session.name(),
    })
}

fn tree(session: &Session) -> Value {
    let nodes = session.nodes();
    let shown = |node: &Node| {
        let mut shown = json!({"entry": node.entry.to_json(), "children": node.children});
        if let Some(label) = &node.label {
            shown["label"] = json!(label.text);
            shown["labelTimestamp"] = json!(label.timestamp);
        }
        shown
    };
    let all: Value = nodes.all.iter().map(shown).collect();
    json!({"nodes": all, "roots": nodes.roots})
}

fn projection(session: &Session) -> Value {
    let (projection, said) = (session.projection(), session.branch_settings());
    let source = |selected: &Selected| json!({"entryId": selected.entry.id(), "messages": selected.range.len()});
    let sources: Value = projection.sources().iter().map(source).collect();
    let model = said
        .model
        .map(|model| json!({"provider": model.provider, "modelId": model.model_id}));
    json!({
        "messages": projection.messages(),
        "sources": sources,
        "thinkingLevel": said.thinking_level,
        "model": model,
    })
}

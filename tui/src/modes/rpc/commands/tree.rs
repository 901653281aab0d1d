//! The entries of the session as they are stored, and its tree.

use std::borrow::Cow;

use pliant_kernel::run::{NavigateError, NavigateOptions};
use pliant_kernel::tree::{Entry as TreeEntry, EntryId, Nodes};
use serde_json::json;
use serde_json::value::RawValue;

use super::{Answer, Call, Entry, long, quick, said};
use crate::modes::rpc::request::Data;

pub(super) const COMMANDS: &[Entry] = &[
    quick("get_entries", |call| Box::pin(entries(call))),
    quick("get_tree", |call| {
        Box::pin(async move {
            let session = call.session();
            let tree = json_of_nodes(&session.nodes());
            Ok(with_leaf("tree", tree, session.leaf()))
        })
    }),
    long("navigate_tree", |call| Box::pin(navigate(call))),
    quick("set_label", |call| {
        Box::pin(async move {
            let id: String = call.fields().required("entryId")?;
            let label: Option<String> = call.fields().optional("label")?;
            let id = EntryId::from(id.as_str());
            let labelled = call.session().set_label(&id, label.as_deref());
            labelled.map_err(said)?;
            Ok(Data::none())
        })
    }),
];

async fn entries(call: Call) -> Answer {
    let since: Option<String> = call.fields().optional("since")?;
    let session = call.session();
    let all = session.entries();
    let from = match &since {
        None => 0,
        Some(id) => {
            let at = all.iter().position(|entry| entry.id().as_str() == id);
            at.ok_or_else(|| format!("Entry not found: {id}"))? + 1
        }
    };
    let mut json = Vec::from(b"[");
    for (number, entry) in all[from..].iter().enumerate() {
        if number > 0 {
            json.push(b',');
        }
        json.extend_from_slice(stored(entry).as_bytes());
    }
    json.push(b']');
    Ok(with_leaf("entries", json, session.leaf()))
}

/// An entry as its line; of one whose line is no JSON there is what every entry has.
fn stored(entry: &TreeEntry) -> Cow<'_, str> {
    let line = entry.raw();
    match serde_json::from_str::<&RawValue>(&line) {
        Ok(_) => line,
        Err(_) => Cow::Owned(entry.to_json().to_string()),
    }
}

fn with_leaf(name: &str, json: Vec<u8>, leaf: Option<EntryId>) -> Data {
    let head = format!("{{\"{name}\":");
    let tail = format!(",\"leafId\":{}}}", json!(leaf));
    Data::json([head.as_bytes(), &json, tail.as_bytes()].concat())
}

/// The forest with each node in its parent. A session may be deeper than any stack.
fn json_of_nodes(nodes: &Nodes) -> Vec<u8> {
    let mut json = Vec::from(b"[");
    // Lists of siblings that are being written, and how many of each are.
    let mut open: Vec<(&[usize], usize)> = vec![(&nodes.roots, 0)];
    while let Some((siblings, written)) = open.last_mut() {
        let Some(number) = siblings.get(*written) else {
            open.pop();
            json.push(b']');
            if !open.is_empty() {
                json.push(b'}');
            }
            continue;
        };
        if *written > 0 {
            json.push(b',');
        }
        *written += 1;
        let node = &nodes.all[*number];
        json.extend_from_slice(b"{\"entry\":");
        json.extend_from_slice(stored(&node.entry).as_bytes());
        if let Some(label) = &node.label {
            let text = format!(
                ",\"label\":{},\"labelTimestamp\":{}",
                json!(label.text),
                json!(label.timestamp)
            );
            json.extend_from_slice(text.as_bytes());
        }
        json.extend_from_slice(b",\"children\":[");
        open.push((&node.children, 0));
    }
    json
}

async fn navigate(call: Call) -> Answer {
    let fields = call.fields();
    let target: String = fields.required("targetId")?;
    let options = NavigateOptions {
        summarize: fields.optional("summarize")?.unwrap_or_default(),
        instructions: fields.optional("customInstructions")?,
        label: fields.optional("label")?,
        ..NavigateOptions::default()
    };
    let target = EntryId::from(target.as_str());
    let arrival = call.session().navigate_tree(&target, options).await;
    match arrival {
        Err(NavigateError::Cancelled | NavigateError::Aborted) => {
            Data::of(&json!({"cancelled": true}))
        }
        arrival => {
            let mut data = json!({"cancelled": false});
            if let Some(text) = arrival.map_err(said)?.editor_text {
                data["editorText"] = json!(text);
            }
            Data::of(&data)
        }
    }
}

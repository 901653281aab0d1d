//! What the conversation would be with a proposal: projected from a copy that shares all entries.

use std::sync::Arc;

use pliant_sdk::{Error, Message};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::Draft;
use crate::run::convert::convert;
use crate::run::tail::is_open;
use crate::tree::{Entry, SessionTree};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Context<'a> {
    context_entries: Vec<&'a Entry>,
    context_messages: &'a [Arc<Message>],
    llm_messages: Vec<Arc<Message>>,
    pending_messages: &'a [Message],
    can_continue: bool,
}

/// The conversation with these drafts; `None` when there are none, for it is then as it is.
///
/// # Errors
/// When they cannot be appended to this branch.
pub(super) fn of(tree: &SessionTree, drafts: &[Draft]) -> Result<Option<SessionTree>, Error> {
    if drafts.is_empty() {
        return Ok(None);
    }
    let mut scratch = tree.scratch();
    for draft in drafts {
        let body = draft.body(&scratch)?;
        let appended = scratch.append(body);
        appended.map_err(|error| Error::invalid(error.to_string()))?;
    }
    Ok(Some(scratch))
}

/// What handlers are shown of a conversation, as JSON.
///
/// # Errors
/// When it cannot be written as such.
pub(super) fn written(tree: &SessionTree, pending: &[Message]) -> Result<Box<RawValue>, Error> {
    let projection = tree.projection();
    let selected = projection.sources().iter();
    Ok(to_raw_value(&Context {
        context_entries: selected.map(|selected| &*selected.entry).collect(),
        context_messages: projection.messages(),
        llm_messages: projection.messages().iter().filter_map(convert).collect(),
        pending_messages: pending,
        can_continue: is_open(projection.messages()) || !pending.is_empty(),
    })?)
}

//! The system messages of a branch, found without reading what stands between them.

use std::sync::Arc;

use pliant_sdk::message::Message;

use super::skim;
use super::{Entry, EntryKind, SessionTree};

/// Bytes of a line in which a message says its role.
const BEGINNING: u64 = 1024;

impl SessionTree {
    /// The system messages from root to leaf, also those before a compaction.
    pub fn system_messages(&self) -> impl Iterator<Item = &Arc<Message>> {
        let entries = self.path_to_leaf().iter();
        let messages = entries
            .filter(|entry| may_be_system(entry))
            .filter_map(|entry| entry.message());
        messages.filter(|message| matches!(***message, Message::System(_)))
    }
}

/// Only what says another role where pi and pliant say it is passed by unread.
fn may_be_system(entry: &Entry) -> bool {
    if entry.kind() != EntryKind::Message || entry.is_read() {
        return entry.kind() == EntryKind::Message;
    }
    let beginning = entry.line.beginning(BEGINNING);
    let role = beginning.as_deref().ok().and_then(skim::role);
    role.is_none_or(|role| role == "system")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_is_read_where_it_is_written_first() {
        let line = |message: &str| {
            format!(
                r#"{{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{message}}}"#
            )
        };
        let role = |message| skim::role(line(message).as_bytes()).map(str::to_owned);
        assert_eq!(
            role(r#"{"role":"user","content":"x"}"#),
            Some("user".into())
        );
        assert_eq!(role(r#"{"role":"system"}"#), Some("system".into()));
        assert_eq!(role(r#"{"content":"x","role":"user"}"#), None);
        assert_eq!(skim::role(b"{}"), None);
    }
}

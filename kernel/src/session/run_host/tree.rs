//! The conversation as a run sees it.

use std::sync::Arc;

use pliant_sdk::{Error, Message};

use crate::run::{Assembly, TreeHost};
use crate::session::{Shared, lock};
use crate::tree::{Entry, EntryBody, EntryId, Replacement, SessionTree};

impl TreeHost for Arc<Shared> {
    fn store(&self, message: &Arc<Message>) -> Result<(), Error> {
        if let Message::Custom(custom) = &**message {
            return self.store_custom(custom);
        }
        match self.tree().append_message(Arc::clone(message)) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::failed(error.to_string())),
        }
    }

    fn omit(&self, message: &Arc<Message>) -> Result<Vec<serde_json::Value>, Error> {
        let mut tree = self.tree();
        let mut edits = Vec::new();
        for id in answer_and_results(&tree, message) {
            let edit = tree
                .edit_context(&id, Replacement::Omit)
                .map_err(|error| Error::failed(error.to_string()))?;
            edits.extend(serde_json::to_value(edit));
        }
        Ok(edits)
    }

    fn look<T>(&self, look: impl FnOnce(&SessionTree) -> T) -> T {
        look(&self.tree())
    }

    fn change<T>(&self, change: impl FnOnce(&mut SessionTree) -> T) -> T {
        change(&mut self.tree())
    }

    fn append(&self, body: EntryBody) -> Result<Arc<Entry>, Error> {
        match self.tree().append(body) {
            Ok(entry) => Ok(Arc::clone(entry)),
            Err(error) => Err(Error::failed(error.to_string())),
        }
    }

    fn has_recovered(&self) -> bool {
        lock(&self.state).recovered
    }

    fn note_recovery(&self, recovered: bool) -> bool {
        std::mem::replace(&mut lock(&self.state).recovered, recovered)
    }

    fn run_boundary(&self) {
        Shared::run_boundary(self);
    }

    fn context(&self) -> Vec<Arc<Message>> {
        self.tree().context().to_vec()
    }

    fn assemble<T>(&self, work: impl FnOnce(&[Arc<Message>], &mut Assembly) -> T) -> T {
        let tree = self.tree();
        work(tree.context(), &mut lock(&self.assembly))
    }

    fn conversation(&self) -> String {
        self.tree().id().to_string()
    }
}

/// The entries of a stored message, and of the results of its calls that requests still show.
fn answer_and_results(tree: &SessionTree, message: &Arc<Message>) -> Vec<EntryId> {
    let sources = tree.projection().sources();
    let is_stored = |entry: &Entry| {
        let stored = entry.message();
        stored.is_some_and(|stored| Arc::ptr_eq(stored, message))
    };
    let Some(at) = sources.iter().rposition(|s| is_stored(&s.entry)) else {
        return Vec::new();
    };
    let calls = |id: &str| {
        let answer = message.as_assistant();
        answer.is_some_and(|answer| answer.tool_calls().any(|call| call.id == id))
    };
    let results = sources[at + 1..].iter().filter(|selected| {
        let shown = tree.projection().messages_of(selected);
        shown.iter().any(|message| match &**message {
            Message::ToolResult(result) => calls(&result.tool_call_id),
            _ => false,
        })
    });
    let answer = std::iter::once(&sources[at]);
    let all = answer.chain(results);
    all.map(|selected| selected.entry.id().clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::*;
    use crate::tree::Ids;

    fn call(id: &str) -> Value {
        json!({"type": "toolCall", "id": id, "name": "read", "arguments": {}})
    }

    fn result(id: &str) -> Value {
        json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "content": []})
    }

    #[test]
    fn an_answer_is_left_out_with_the_results_of_its_calls_that_are_shown() {
        // R9, invariant 10
        let mut tree = SessionTree::in_memory(Path::new("/w"), None, Ids::system());
        let mut say = |message: Value| {
            let message = Arc::new(Message::from(message));
            let entry = tree.append_message(Arc::clone(&message)).unwrap();
            (entry.id().clone(), message)
        };
        say(json!({"role": "assistant", "content": [call("a")], "stopReason": "toolUse"}));
        say(result("a"));
        let cut = json!({"role": "assistant", "content": [call("b"), call("c"), call("d")],
            "stopReason": "length"});
        let (answer, message) = say(cut);
        let (first, _) = say(result("b"));
        say(json!({"role": "user", "content": "wait"}));
        let (second, _) = say(result("c"));
        let (gone, _) = say(result("d"));
        tree.edit_context(&gone, Replacement::Omit).unwrap();
        assert_eq!(answer_and_results(&tree, &message), [answer, first, second]);
        let elsewhere = Arc::new(Message::user("never stored", 0));
        assert!(answer_and_results(&tree, &elsewhere).is_empty());
    }
}

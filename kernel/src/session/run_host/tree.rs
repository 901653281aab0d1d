//! The conversation as a run sees it.

use std::sync::Arc;

use pliant_sdk::{Error, Message};

use crate::run::{Assembly, TreeHost};
use crate::session::{Shared, lock};
use crate::tree::{Compaction, EntryBody, EntryId, Replacement, SessionTree};

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
        let stored = tree.path_to_leaf().iter().rev().find(|entry| {
            entry
                .message()
                .is_some_and(|stored| Arc::ptr_eq(stored, message))
        });
        let Some(id) = stored.map(|entry| entry.id().clone()) else {
            return Ok(Vec::new());
        };
        let edit = tree
            .edit_context(&id, Replacement::Omit)
            .map_err(|error| Error::failed(error.to_string()))?;
        Ok(serde_json::from_str(&edit.raw()).into_iter().collect())
    }

    fn look<T>(&self, look: impl FnOnce(&SessionTree) -> T) -> T {
        look(&self.tree())
    }

    fn append_compaction(&self, compaction: Compaction) -> Result<EntryId, Error> {
        match self.tree().append(EntryBody::Compaction(compaction)) {
            Ok(entry) => Ok(entry.id().clone()),
            Err(error) => Err(Error::failed(error.to_string())),
        }
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

//! Trying out what appending would give, without storing anything (R47).

use super::{Place, SessionTree};

impl SessionTree {
    /// A copy in memory that shares all entries. What is appended to it is stored nowhere.
    #[must_use]
    pub fn scratch(&self) -> Self {
        Self {
            header: self.header.clone(),
            entries: self.entries.clone(),
            index: self.index.clone(),
            leaf: self.leaf,
            labels: self.labels.clone(),
            named_at: self.named_at,
            place: Place::Memory,
            damage: Vec::new(),
            notices: Vec::new(),
            lines: 0,
            others_write: false,
            sync: self.sync,
            ids: self.ids.clone(),
            branch: self.branch.clone(),
            totals: self.totals.clone(),
        }
    }
}

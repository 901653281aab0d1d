//! What is known about the branch of the leaf, worked out when first asked for and kept up while
//! entries are appended, so that a turn costs what the turn adds (S35).

use std::sync::{Arc, OnceLock};

use super::Entry;
use super::projection::{Projection, Settings};

/// Forget it whenever the leaf moves.
#[derive(Default, Clone)]
pub(super) struct Branch {
    path: OnceLock<Vec<Arc<Entry>>>,
    projection: OnceLock<Projection>,
    settings: OnceLock<Settings>,
}

impl Branch {
    /// `path` gives the entries from root to leaf.
    pub(super) fn path(&self, path: impl FnOnce() -> Vec<Arc<Entry>>) -> &[Arc<Entry>] {
        self.path.get_or_init(path)
    }

    pub(super) fn projection(&self, path: impl FnOnce() -> Vec<Arc<Entry>>) -> &Projection {
        self.projection
            .get_or_init(|| Projection::of(self.path(path)))
    }

    pub(super) fn settings(&self, path: impl FnOnce() -> Vec<Arc<Entry>>) -> &Settings {
        self.settings.get_or_init(|| Settings::of(self.path(path)))
    }

    /// The projection, if it was worked out.
    pub(super) fn known_projection(&self) -> Option<&Projection> {
        self.projection.get()
    }

    /// Entries of the path have been exchanged for unread ones.
    pub(super) fn forget_path(&mut self) {
        self.path = OnceLock::new();
    }

    /// The leaf got a child, which is the leaf now.
    pub(super) fn append(&mut self, entry: &Arc<Entry>) {
        if let Some(path) = self.path.get_mut() {
            path.push(Arc::clone(entry));
        }
        if let Some(settings) = self.settings.get_mut() {
            settings.append(entry);
        }
        if self
            .projection
            .get_mut()
            .is_some_and(|projection| !projection.append(entry))
        {
            self.projection = OnceLock::new();
        }
    }
}

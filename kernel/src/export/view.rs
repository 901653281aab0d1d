//! What is exported: a session as it is at one moment. Taking it reads no more than the file's
//! outline; entries are read when they are written, and not kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pliant_sdk::message::Usage;

use crate::tree::{Entry, Header, ModelRef, Nodes, SessionTree};

/// A session at one moment. It stays what it is while the session goes on.
#[derive(Debug)]
pub struct View {
    pub(super) header: Header,
    pub(super) name: Option<String>,
    pub(super) nodes: Nodes,
    /// Root to leaf.
    pub(super) path: Vec<Arc<Entry>>,
    pub(super) totals: Usage,
    pub(super) model: Option<ModelRef>,
    /// Places of the file that could not be read.
    pub(super) damaged: usize,
    source: Option<PathBuf>,
}

impl View {
    /// The session as it is now.
    #[must_use]
    pub fn of(tree: &SessionTree) -> Self {
        Self {
            header: tree.header().clone(),
            name: tree.name().map(str::to_owned),
            nodes: tree.nodes(),
            path: tree.path_to_leaf().to_vec(),
            totals: tree.usage_totals().clone(),
            model: tree.settings().model.clone(),
            damaged: tree.damage().len(),
            source: tree.path().map(Path::to_owned),
        }
    }

    /// The same, of a session that was read from this file, over which nothing is to be written.
    #[must_use]
    pub fn read_from(self, file: &Path) -> Self {
        Self {
            source: Some(file.to_owned()),
            ..self
        }
    }

    /// The session's own file.
    pub(super) fn source(&self) -> Option<&Path> {
        self.source.as_deref()
    }
}

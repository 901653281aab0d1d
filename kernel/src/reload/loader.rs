//! What brings generations into being: one loader for native plugins, one for scripts, and whatever else
//! an embedding program has. All of them are loaded, reloaded and withdrawn the same way.

use std::path::PathBuf;
use std::sync::Arc;

use pliant_sdk::host::BoxFuture;

use crate::digest::Digest;
use crate::registry::{Generation, Promise, Source};
use crate::watch::Place;

/// A source as it is found, before any of its code runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its name in the registry, its file, its place in the load order.
    pub source: Source,
    /// What identifies its content, where that is known without reading a file.
    pub digest: Option<Digest>,
}

impl Candidate {
    /// A source whose content is not looked at.
    #[must_use]
    pub fn of(source: Source) -> Self {
        Self {
            source,
            digest: None,
        }
    }
}

/// A file that is there and cannot be used as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The file.
    pub path: PathBuf,
    /// Why, and what to do, in sentences.
    pub message: String,
}

/// Everything a loader finds at one moment.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// What can be loaded, in load order.
    pub candidates: Vec<Candidate>,
    /// What is there and cannot be.
    pub broken: Vec<Broken>,
    /// What else is odd, in sentences.
    pub warnings: Vec<String>,
}

/// Something that could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadFailure {
    /// The source, if that much is known.
    pub source: Option<Source>,
    /// Why, and what to do, in sentences.
    pub message: String,
}

/// One kind of source.
pub trait Loader: Send + Sync {
    /// Looks what there is now. Runs no code of it.
    fn find(&self) -> Findings;

    /// Where changes of that are seen.
    fn places(&self) -> Vec<Place>;

    /// Loads one and checks what it contributes. Nothing is registered yet, so a failure leaves no trace
    /// (E05).
    ///
    /// # Errors
    /// Why not, and what to do, in sentences.
    fn load(
        &self,
        candidate: &Candidate,
    ) -> BoxFuture<'static, Result<Arc<dyn Generation>, String>>;

    /// What one would contribute, as far as its file tells: its place is kept for that while it cannot be
    /// loaded.
    fn promises(&self, _candidate: &Candidate) -> Vec<Promise> {
        Vec::new()
    }
}

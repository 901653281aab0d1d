//! What became of a reload, source by source.

use pliant_sdk::event::{SourceChange, SourceOutcome};

use crate::digest::Digest;
use crate::registry::Source;

/// What a reload did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// A line for each source that it looked at.
    pub changes: Vec<SourceChange>,
}

impl Report {
    /// Whether anything is worth a word: something changed, or could not.
    #[must_use]
    pub fn says_something(&self) -> bool {
        let unchanged = |change: &SourceChange| change.outcome == SourceOutcome::Unchanged;
        !self.changes.iter().all(unchanged)
    }

    /// The failures, as sentences.
    pub fn failures(&self) -> impl Iterator<Item = &str> {
        let failed = self.changes.iter();
        failed
            .filter(|change| change.outcome == SourceOutcome::Failed)
            .filter_map(|change| change.message.as_deref())
    }
}

/// A line of the report; the rest is filled in by who knows it.
pub(super) fn change(source: &Source, outcome: SourceOutcome) -> SourceChange {
    SourceChange::new(&source.name, source.path.as_deref(), outcome)
}

pub(super) fn short(digest: Option<Digest>) -> Option<String> {
    digest.map(|digest| digest.short())
}

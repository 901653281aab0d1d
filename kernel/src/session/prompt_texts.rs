//! The texts that a session's prompt is built from, as they were when their files last changed.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pliant_sdk::event::{SourceChange, SourceOutcome};

use crate::prompt::{PromptOptions, PromptSource};
use crate::resources::LiveResources;
use crate::watch::Place;

/// Where the texts come from, and what they are now.
#[derive(Debug)]
pub(super) struct PromptTexts {
    source: PromptSource,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    options: Arc<PromptOptions>,
    /// What was odd when they were last read.
    problems: Vec<String>,
}

impl PromptTexts {
    /// Reads them for the first time; what is odd is told.
    pub(super) fn read(source: PromptSource, notices: &mut Vec<String>) -> Self {
        let mut problems = Vec::new();
        let options = Arc::new(source.read(&mut problems));
        notices.extend(problems.iter().cloned());
        Self {
            source,
            current: Mutex::new(Current { options, problems }),
        }
    }

    /// What the prompt is built from now.
    pub(super) fn now(&self) -> Arc<PromptOptions> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current.options)
    }

    /// Skills and templates.
    pub(super) fn resources(&self) -> &Arc<LiveResources> {
        &self.source.resources
    }

    pub(super) fn places(&self) -> Vec<Place> {
        self.source.places()
    }

    /// Reads them anew. `None` when the prompt is built from the same as before; else what of its files
    /// has changed.
    pub(super) fn reread(&self) -> (bool, Vec<SourceChange>) {
        let mut problems = Vec::new();
        let after = self.source.read(&mut problems);
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let news = problems
            .iter()
            .filter(|problem| !current.problems.contains(problem));
        let mut changes: Vec<SourceChange> = news
            .map(|problem| SourceChange::new("prompt", None, SourceOutcome::Failed).saying(problem))
            .collect();
        current.problems = problems;
        if *current.options == after {
            return (false, changes);
        }
        changes.extend(differences(&current.options, &after));
        current.options = Arc::new(after);
        (true, changes)
    }
}

/// What of the files changed; skills tell of themselves.
fn differences(before: &PromptOptions, after: &PromptOptions) -> Vec<SourceChange> {
    let texts = |options: &PromptOptions| {
        [
            ("SYSTEM.md", options.custom.clone()),
            ("APPEND_SYSTEM.md", options.addendum.clone()),
        ]
    };
    let mut changes = Vec::new();
    for ((name, then), (_, now)) in texts(before).into_iter().zip(texts(after)) {
        let outcome = outcome(then.as_deref(), now.as_deref());
        changes.extend(outcome.map(|outcome| SourceChange::new(name, None, outcome)));
    }
    let text = |files: &[(String, String)], path: &str| {
        let mut files = files.iter();
        files
            .find(|(other, _)| other == path)
            .map(|(_, text)| text.clone())
    };
    let (old, new) = (&before.context_files, &after.context_files);
    let mut paths: Vec<&String> = old.iter().chain(new).map(|(path, _)| path).collect();
    paths.sort_unstable();
    paths.dedup();
    for path in paths {
        let (then, now) = (text(old, path), text(new, path));
        let name = Path::new(path)
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let outcome = outcome(then.as_deref(), now.as_deref());
        changes.extend(
            outcome.map(|outcome| SourceChange::new(name.clone(), Some(Path::new(path)), outcome)),
        );
    }
    changes
}

fn outcome(then: Option<&str>, now: Option<&str>) -> Option<SourceOutcome> {
    match (then, now) {
        (None, Some(_)) => Some(SourceOutcome::Added),
        (Some(_), None) => Some(SourceOutcome::Removed),
        (then, now) => (then != now).then_some(SourceOutcome::Reloaded),
    }
}

//! Skills and prompt templates, as something that a reload reads anew.

use std::path::Path;
use std::sync::Arc;

use pliant_sdk::event::{SourceChange, SourceOutcome};

use crate::reload::Texts;
use crate::resources::{LiveResources, Reread};
use crate::watch::Place;

/// The resources of a kernel.
pub(super) struct ResourceTexts {
    resources: Arc<LiveResources>,
}

impl ResourceTexts {
    pub(super) fn new(resources: Arc<LiveResources>) -> Self {
        Self { resources }
    }
}

impl Texts for ResourceTexts {
    fn places(&self) -> Vec<Place> {
        self.resources.places()
    }

    fn reread(&self) -> Vec<SourceChange> {
        let Reread {
            before,
            after,
            warnings,
        } = match self.resources.reread() {
            Ok(reread) => reread,
            Err(missing) => return vec![failed("resources", missing.to_string())],
        };
        let skills = differences(before.skills(), after.skills(), |skill| {
            (format!("skill:{}", skill.name), &*skill.file)
        });
        let templates = differences(before.templates(), after.templates(), |template| {
            (format!("prompt:{}", template.name), &*template.file)
        });
        let odd = warnings
            .into_iter()
            .map(|sentence| failed("resources", sentence));
        skills.into_iter().chain(templates).chain(odd).collect()
    }
}

/// What is there now and was not, is other than it was, or is gone; by name.
fn differences<T: PartialEq>(
    before: &[T],
    after: &[T],
    about: impl Fn(&T) -> (String, &Path),
) -> Vec<SourceChange> {
    let find = |all: &[T], name: &str| all.iter().position(|one| about(one).0 == name);
    let mut changes = Vec::new();
    for now in after {
        let (name, path) = about(now);
        let outcome = match find(before, &name) {
            None => SourceOutcome::Added,
            Some(place) if before[place] != *now => SourceOutcome::Reloaded,
            Some(_) => continue,
        };
        changes.push(of_file(name, path, outcome));
    }
    for then in before {
        let (name, path) = about(then);
        if find(after, &name).is_none() {
            changes.push(of_file(name, path, SourceOutcome::Removed));
        }
    }
    changes
}

/// One file that changed.
pub(super) fn of_file(source: String, path: &Path, outcome: SourceOutcome) -> SourceChange {
    SourceChange {
        source,
        path: Some(path.display().to_string()),
        outcome,
        generation: None,
        from: None,
        to: None,
        message: None,
    }
}

fn failed(source: &str, message: String) -> SourceChange {
    SourceChange {
        path: None,
        message: Some(message),
        ..of_file(source.to_owned(), Path::new(""), SourceOutcome::Failed)
    }
}

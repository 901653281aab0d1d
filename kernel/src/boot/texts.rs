//! Skills, prompt templates and themes, as something that a reload reads anew.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use pliant_sdk::event::{SourceChange, SourceOutcome};

use crate::reload::{Reread, Texts};
use crate::resources::{LiveResources, Resources};
use crate::theme::Theme;
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

    fn reread(&self) -> Reread {
        let (before, after, warnings) = match self.resources.reread() {
            Ok(reread) => (reread.before, reread.after, reread.warnings),
            Err(missing) => return vec![failed(missing.to_string())].into(),
        };
        let skills = differences(before.skills(), after.skills(), |skill| {
            (format!("skill:{}", skill.name), &*skill.file)
        });
        let templates = differences(before.templates(), after.templates(), |template| {
            (format!("prompt:{}", template.name), &*template.file)
        });
        let themes = differences(&of_files(&before), &of_files(&after), |theme| {
            let file = theme.file().map_or(Path::new(""), |file| file);
            (format!("theme:{}", theme.name()), file)
        });
        let odd = warnings.into_iter().map(failed);
        let changes: Vec<SourceChange> = skills
            .into_iter()
            .chain(templates)
            .chain(themes)
            .chain(odd)
            .collect();
        changes.into()
    }
}

/// The themes that can change.
fn of_files(resources: &Resources) -> Vec<Arc<Theme>> {
    let themes = resources.themes().all();
    themes
        .filter(|theme| theme.file().is_some())
        .cloned()
        .collect()
}

/// What is there now and was not, is other than it was, or is gone; by name.
fn differences<T: PartialEq>(
    before: &[T],
    after: &[T],
    about: impl Fn(&T) -> (String, &Path),
) -> Vec<SourceChange> {
    let by_name = |all: &[T]| -> HashMap<String, usize> {
        let named = all.iter().enumerate();
        named.map(|(place, one)| (about(one).0, place)).collect()
    };
    let (then, now) = (by_name(before), by_name(after));
    let mut changes = Vec::new();
    for one in after {
        let (name, path) = about(one);
        let outcome = match then.get(&name) {
            None => SourceOutcome::Added,
            Some(place) if before[*place] != *one => SourceOutcome::Reloaded,
            Some(_) => continue,
        };
        changes.push(SourceChange::new(name, Some(path), outcome));
    }
    for one in before {
        let (name, path) = about(one);
        if !now.contains_key(&name) {
            changes.push(SourceChange::new(name, Some(path), SourceOutcome::Removed));
        }
    }
    changes
}

/// Something odd about what is found.
fn failed(message: String) -> SourceChange {
    SourceChange::new("resources", None, SourceOutcome::Failed).saying(message)
}

//! Packages: folders with extensions, skills, prompt templates and themes that somebody shares
//! (`resources.md` §9). The settings name them; what they bring comes after everything of the user's and
//! before what ships.
//!
//! Nothing is fetched here: a package of a repository is there once it was installed.

mod manifest;
mod places;
mod source;

pub use manifest::Package;
pub use places::{PackagePlace, PackagePlaces, places_of};
pub use source::{GitSource, Source};

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::settings::{Scope, Settings};

/// The setting that lists packages.
pub const KEY: &str = "packages";

/// A package as the settings name it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Whose settings.
    pub scope: Scope,
    /// As it is written.
    pub written: String,
    /// Where it comes from.
    pub source: Source,
    /// What of it counts.
    pub filters: Filters,
}

/// What of a package counts, by kind: `None` is all, an empty list nothing; patterns as in the other lists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Filters {
    /// Of its extensions.
    pub extensions: Option<Vec<String>>,
    /// Of its skills.
    pub skills: Option<Vec<String>>,
    /// Of its prompt templates.
    pub prompts: Option<Vec<String>>,
    /// Of its themes.
    pub themes: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Source(String),
    Filtered {
        source: String,
        #[serde(default = "yes")]
        autoload: bool,
        #[serde(flatten)]
        filters: Filters,
    },
}

fn yes() -> bool {
    true
}

/// The packages that the settings name, the project's first. A project's entry takes the place of the
/// user's of the same source, unless it says `autoload: false`: then it only narrows that one. What cannot
/// be read is told.
#[must_use]
pub fn entries(settings: &Settings, home: Option<&Path>) -> (Vec<Entry>, Vec<String>) {
    let mut warnings = Vec::new();
    let mut all: Vec<Entry> = Vec::new();
    let mut narrowing: Vec<Entry> = Vec::new();
    for (scope, base, list) in settings.written_lists(KEY) {
        let Value::Array(list) = list else {
            warnings.push(format!(
                "The setting \"{KEY}\" in {} is no list, so it is passed by.",
                base.display()
            ));
            continue;
        };
        for item in list {
            let (written, autoload, filters) = match Written::deserialize(item) {
                Ok(Written::Source(source)) => (source, true, Filters::default()),
                Ok(Written::Filtered {
                    source,
                    autoload,
                    filters,
                }) => (source, autoload, filters),
                Err(_) => {
                    warnings.push(format!(
                        "A package in the settings is neither a source nor a map with `source`, and is passed by: {item}"
                    ));
                    continue;
                }
            };
            let source = match Source::parse(&written, &base, home) {
                Ok(source) => source,
                Err(error) => {
                    warnings.push(error.message);
                    continue;
                }
            };
            let entry = Entry {
                scope,
                written,
                source,
                filters,
            };
            match autoload {
                true if all.iter().any(|other| other.is(&entry)) => {}
                true => all.push(entry),
                false => narrowing.push(entry),
            }
        }
    }
    for filter in narrowing {
        for entry in all.iter_mut().filter(|entry| entry.is(&filter)) {
            entry.filters.narrow(&filter.filters);
        }
    }
    (all, warnings)
}

impl Entry {
    /// Whether both are the same package, of whatever version.
    fn is(&self, other: &Self) -> bool {
        self.source.identity() == other.source.identity()
    }
}

impl Filters {
    /// What the other says counts before what this one says.
    fn narrow(&mut self, by: &Self) {
        for (own, by) in [
            (&mut self.extensions, &by.extensions),
            (&mut self.skills, &by.skills),
            (&mut self.prompts, &by.prompts),
            (&mut self.themes, &by.themes),
        ] {
            if by.is_some() && own.as_ref().is_none_or(|own| !own.is_empty()) {
                own.clone_from(by);
            }
        }
    }
}

#[cfg(test)]
mod tests;

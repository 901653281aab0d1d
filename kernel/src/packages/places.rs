//! Where the resources of packages are looked for.

use std::path::{Path, PathBuf};

use super::{Entry, Package};
use crate::settings::Patterns;

/// A place of a package, and which of what is there counts.
#[derive(Debug, Clone)]
pub struct PackagePlace {
    /// A file or folder.
    pub path: PathBuf,
    filter: Option<Patterns>,
}

impl PackagePlace {
    /// Whether a file found there counts.
    #[must_use]
    pub fn takes(&self, file: &Path) -> bool {
        let filter = self.filter.as_ref();
        filter.is_none_or(|filter| filter.take(file, true))
    }
}

/// All of them, by kind, in the order of the packages.
#[derive(Debug, Clone, Default)]
pub struct PackagePlaces {
    /// Of extensions.
    pub extensions: Vec<PackagePlace>,
    /// Of skills.
    pub skills: Vec<PackagePlace>,
    /// Of prompt templates.
    pub prompts: Vec<PackagePlace>,
    /// Of themes.
    pub themes: Vec<PackagePlace>,
}

/// The places of packages. One that is broken or not there is told, and the others work.
#[must_use]
pub fn places_of(entries: &[Entry], agent_dir: &Path) -> (PackagePlaces, Vec<String>) {
    let mut all = PackagePlaces::default();
    let mut warnings = Vec::new();
    for entry in entries {
        let folder = entry.source.folder(agent_dir);
        if !folder.is_dir() {
            warnings.push(match entry.source {
                super::Source::Git(_) => format!(
                    "The package {} is not installed: pliant install {}",
                    entry.written, entry.written
                ),
                super::Source::Folder(_) => format!(
                    "There is no folder {}, which the settings list as a package.",
                    folder.display()
                ),
            });
            continue;
        }
        let package = match Package::read(&folder) {
            Ok((package, odd)) => {
                warnings.extend(odd);
                package
            }
            Err(error) => {
                warnings.push(error.message);
                continue;
            }
        };
        let filters = &entry.filters;
        for (places, paths, filter) in [
            (&mut all.extensions, package.extensions, &filters.extensions),
            (&mut all.skills, package.skills, &filters.skills),
            (&mut all.prompts, package.prompts, &filters.prompts),
            (&mut all.themes, package.themes, &filters.themes),
        ] {
            if filter.as_ref().is_some_and(Vec::is_empty) {
                continue;
            }
            let filter = filter.as_ref();
            let filter = filter.map(|filter| Patterns::selecting(&package.folder, filter));
            places.extend(paths.into_iter().map(|path| PackagePlace {
                path,
                filter: filter.clone(),
            }));
        }
    }
    (all, warnings)
}

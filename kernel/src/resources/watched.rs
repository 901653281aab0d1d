//! Where a change of a resource is seen: the folders and files in which resources are looked for, there
//! or not.

use std::path::Path;

use super::ResourceOptions;
use super::places::{places, skills_wanted, templates_wanted, themes_wanted};
use crate::packages;
use crate::watch::{Class, Only, Place};

/// What of a package's folder says where its resources are.
const OF_PACKAGE: [&str; 6] = [
    "pliant.toml",
    "package.json",
    "extensions",
    "skills",
    "prompts",
    "themes",
];

/// All of them.
pub(super) fn places_of(options: &ResourceOptions, agent_dir: &Path, cwd: &Path) -> Vec<Place> {
    let mut odd = Vec::new();
    let mut all = Vec::new();
    let (packages, _) = packages::places_of(&options.packages, agent_dir);
    for entry in options.packages.iter() {
        // What it says of itself, and folders that come.
        let folder = entry.source.folder(agent_dir);
        all.push(Place::files(&folder, OF_PACKAGE, Class::Text));
    }
    for (wanted, recursive, ending) in [
        (skills_wanted(options, &packages), true, ".md"),
        (templates_wanted(options, &packages), false, ".md"),
        (themes_wanted(options, &packages), false, ".json"),
    ] {
        // What is named and gone is told where it is read.
        let found = places(&wanted, options, agent_dir, cwd, &mut odd).unwrap_or_default();
        all.extend(found.into_iter().filter_map(|place| {
            if place.path.is_file() {
                return Place::file(&place.path, Class::Text);
            }
            Some(Place {
                directory: place.path,
                recursive,
                class: Class::Text,
                only: Only::Names {
                    prefix: String::new(),
                    suffix: ending.to_owned(),
                },
            })
        }));
    }
    all
}

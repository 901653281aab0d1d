//! Files of extensions, which other parts run: one level deep, `extensions/NAME.ENDING` or
//! `extensions/NAME/index.ENDING` (`resources.md` §2.1).

use std::path::{Path, PathBuf};

use super::ResourceOptions;
use super::places::{Place, Wanted, places};
use super::walk::Walk;
use crate::packages;
use crate::registry::Rank;
use crate::settings::{ResourceList, Scope};

/// The files with an ending that the lists name and the folders hold, the project's first; what a list
/// names and is not there is told.
#[must_use]
pub fn extension_files(
    ending: &str,
    lists: &[ResourceList],
    options: &ResourceOptions,
    agent_dir: &Path,
    cwd: &Path,
) -> (Vec<(PathBuf, Rank)>, Vec<String>) {
    // What is odd about a package is told where its texts are read.
    let (packages, _) = packages::places_of(&options.packages, agent_dir);
    let mut warnings = Vec::new();
    let wanted = Wanted {
        kind: "an extension",
        folder: "extensions",
        named: &[],
        only_named: false,
        lists,
        packages: &packages.extensions,
        discovered: &[],
        shared: false,
        ships: false,
    };
    let without_pi = ResourceOptions {
        no_pi: true,
        ..options.clone()
    };
    // Nothing is named, so nothing named can be missing.
    let places = places(&wanted, &without_pi, agent_dir, cwd, &mut warnings).unwrap_or_default();
    let mut walk = Walk::default();
    let mut files = Vec::new();
    for place in &places {
        for file in files_in(place, ending, &mut walk) {
            if place.takes(&file) && walk.meet(&file) {
                files.push((file, rank(place)));
            }
        }
    }
    (files, warnings)
}

fn rank(place: &Place) -> Rank {
    match (place.scope, place.listed) {
        (Scope::Package, _) => Rank::Package,
        (Scope::Project, true) => Rank::ProjectSettings,
        (Scope::Project, false) => Rank::Project,
        (_, true) => Rank::UserSettings,
        (_, false) => Rank::User,
    }
}

fn files_in(place: &Place, ending: &str, walk: &mut Walk) -> Vec<PathBuf> {
    if place.path.is_file() {
        return vec![place.path.clone()];
    }
    let Some(listing) = walk.enter(&place.path) else {
        return Vec::new();
    };
    walk.leave();
    let mut files = listing.files;
    files.retain(|file| file.extension().is_some_and(|found| found == ending));
    let indexes = listing
        .folders
        .iter()
        .map(|folder| folder.join(format!("index.{ending}")));
    files.extend(indexes.filter(|index| index.is_file()));
    files
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn scripts_are_found_one_level_deep_and_a_projects_only_when_it_is_trusted() {
        // interfaces §14, resources §2.1
        let dir = tempfile::tempdir().unwrap();
        let file = |path: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        };
        for path in [
            "agent/extensions/b.rhai",
            "agent/extensions/a.rhai",
            "agent/extensions/c/index.rhai",
            "agent/extensions/c/other.rhai",
            "agent/extensions/note.txt",
            "more/d.rhai",
            "p/.pliant/extensions/e.rhai",
        ] {
            file(path);
        }
        let agent = dir.path().join("agent");
        let entries = ["../more/d.rhai", "../gone.rhai", "-extensions/b.rhai"].map(str::to_owned);
        let lists = [ResourceList::new(Scope::User, &agent, &entries, None)];
        let found = |project| {
            let options = ResourceOptions {
                project,
                ..ResourceOptions::default()
            };
            extension_files("rhai", &lists, &options, &agent, &dir.path().join("p"))
        };
        let (files, warnings) = found(false);
        let name = |(path, rank): &(PathBuf, Rank)| {
            let name = path.strip_prefix(dir.path()).unwrap_or(path);
            (name.display().to_string(), *rank)
        };
        let expected = [
            ("agent/../more/d.rhai".to_owned(), Rank::UserSettings),
            ("agent/extensions/a.rhai".to_owned(), Rank::User),
            ("agent/extensions/c/index.rhai".to_owned(), Rank::User),
        ];
        assert_eq!(files.iter().map(name).collect::<Vec<_>>(), expected);
        assert!(warnings[0].contains("gone.rhai, which the settings list as an extension"));
        let of_project = ("p/.pliant/extensions/e.rhai".to_owned(), Rank::Project);
        assert_eq!(name(&found(true).0[0]), of_project);
    }
}

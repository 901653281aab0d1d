//! Where resources are looked for, in the order of their precedence (`resources.md` §2): the command
//! line; what the project's settings list, its own folders; what the user's settings list, the user's
//! folders; then pi's, the project's before the user's (`interfaces.md` §3.1).

use std::path::{Path, PathBuf};

use super::skills::Strays;
use super::{MissingResource, ResourceOptions};
use crate::packages::{PackagePlace, PackagePlaces};
use crate::settings::{PROJECT_DIR, Patterns, ResourceList, Scope};

/// A place to look in: a folder, or one file.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) scope: Scope,
    pub(super) strays: Strays,
    /// Which of what is there count.
    pub(super) patterns: Option<Patterns>,
    /// Whether a list names it.
    pub(super) listed: bool,
    /// The package it is of.
    pub(super) package: Option<PackagePlace>,
}

impl Place {
    /// A folder by convention.
    pub(super) fn found(path: PathBuf, scope: Scope) -> Self {
        Self {
            path,
            scope,
            strays: Strays::AtRoot,
            patterns: None,
            listed: false,
            package: None,
        }
    }

    /// Whether a file found there counts.
    pub(super) fn takes(&self, file: &Path) -> bool {
        let patterns = self.patterns.as_ref();
        let package = self.package.as_ref();
        patterns.is_none_or(|patterns| patterns.take(file, self.listed))
            && package.is_none_or(|package| package.takes(file))
    }
}

/// One kind of resource.
pub(super) struct Wanted<'a> {
    /// What it is called.
    pub(super) kind: &'static str,
    /// The folder's name.
    pub(super) folder: &'static str,
    /// Named on the command line.
    pub(super) named: &'a [PathBuf],
    /// Only those.
    pub(super) only_named: bool,
    /// What the settings list.
    pub(super) lists: &'a [ResourceList],
    /// What packages bring.
    pub(super) packages: &'a [PackagePlace],
    /// What extensions name.
    pub(super) discovered: &'a [PathBuf],
    /// Whether folders that agents share count.
    pub(super) shared: bool,
    /// Whether what ships is found as files; of extensions, whoever runs them knows which ship.
    pub(super) ships: bool,
}

/// Skills.
pub(super) fn skills_wanted<'a>(
    options: &'a ResourceOptions,
    packages: &'a PackagePlaces,
) -> Wanted<'a> {
    Wanted {
        kind: "a skill",
        folder: "skills",
        named: &options.skills,
        only_named: options.no_skills,
        lists: &options.skill_lists,
        packages: &packages.skills,
        discovered: &options.discovered.skills,
        shared: true,
        ships: true,
    }
}

/// Prompt templates.
pub(super) fn templates_wanted<'a>(
    options: &'a ResourceOptions,
    packages: &'a PackagePlaces,
) -> Wanted<'a> {
    Wanted {
        kind: "a prompt template",
        folder: "prompts",
        named: &options.templates,
        only_named: options.no_templates,
        lists: &options.template_lists,
        packages: &packages.prompts,
        discovered: &options.discovered.templates,
        shared: false,
        ships: true,
    }
}

/// Themes. Those that ship are built in.
pub(super) fn themes_wanted<'a>(
    options: &'a ResourceOptions,
    packages: &'a PackagePlaces,
) -> Wanted<'a> {
    Wanted {
        kind: "a theme",
        folder: "themes",
        named: &options.themes,
        only_named: options.no_themes,
        lists: &options.theme_lists,
        packages: &packages.themes,
        discovered: &options.discovered.themes,
        shared: false,
        ships: false,
    }
}

/// All places. Listed ones that are not there are told.
pub(super) fn places(
    wanted: &Wanted<'_>,
    options: &ResourceOptions,
    agent_dir: &Path,
    cwd: &Path,
    warnings: &mut Vec<String>,
) -> Result<Vec<Place>, MissingResource> {
    let named = named(wanted.kind, wanted.named, cwd)?;
    let mut all: Vec<Place> = named.map(|path| Place::found(path, Scope::Run)).collect();
    if wanted.only_named {
        return Ok(all);
    }
    let (there, missing): (Vec<&PathBuf>, Vec<&PathBuf>) = wanted
        .discovered
        .iter()
        .partition(|path| path.is_file() || path.is_dir());
    for path in missing {
        warnings.push(format!(
            "There is no file or folder {}, which an extension names as {}.",
            path.display(),
            wanted.kind
        ));
    }
    let project = options.project.then(|| of_project(wanted, options, cwd));
    let mut user = vec![Place::found(agent_dir.join(wanted.folder), Scope::User)];
    if let Some(home) = options.home.as_deref().filter(|_| wanted.shared) {
        user.push(shared(home, Scope::User));
    }
    for (scope, found) in [
        (Scope::Project, project.unwrap_or_default()),
        (Scope::User, user),
    ] {
        let list = wanted.lists.iter().find(|list| list.scope == scope);
        all.extend(with_list(wanted.kind, list, found, warnings));
    }
    let shipped = options.shipped.as_ref().filter(|_| wanted.ships);
    let shipped = shipped.map(|folder| folder.join(wanted.folder));
    let shipped = shipped.map(|folder| Place::found(folder, Scope::Shipped));
    if !options.no_pi {
        let of_project = options.project.then(|| (cwd.join(".pi"), Scope::Project));
        let of_user = options.home.as_ref();
        let of_user = of_user.map(|home| (home.join(".pi/agent"), Scope::User));
        let of_pi = of_project.into_iter().chain(of_user);
        all.extend(of_pi.map(|(dir, scope)| Place::found(dir.join(wanted.folder), scope)));
    }
    all.extend(wanted.packages.iter().map(|package| Place {
        package: Some(package.clone()),
        ..Place::found(package.path.clone(), Scope::Package)
    }));
    all.extend(shipped);
    let discovered = there.into_iter().cloned();
    all.extend(discovered.map(|path| Place::found(path, Scope::Run)));
    Ok(all)
}

fn of_project(wanted: &Wanted<'_>, options: &ResourceOptions, cwd: &Path) -> Vec<Place> {
    let own = cwd.join(PROJECT_DIR).join(wanted.folder);
    let mut found = vec![Place::found(own, Scope::Project)];
    if wanted.shared {
        // Up to the root of the repository; that of the user is not the project's.
        let root = cwd.ancestors().find(|folder| folder.join(".git").exists());
        let inside = cwd
            .ancestors()
            .filter(|folder| root.is_none_or(|root| folder.starts_with(root)))
            .filter(|folder| Some(*folder) != options.home.as_deref());
        found.extend(inside.map(|folder| shared(folder, Scope::Project)));
    }
    found
}

fn shared(folder: &Path, scope: Scope) -> Place {
    Place {
        strays: Strays::BelowRoot,
        ..Place::found(folder.join(".agents/skills"), scope)
    }
}

fn with_list(
    kind: &str,
    list: Option<&ResourceList>,
    mut found: Vec<Place>,
    warnings: &mut Vec<String>,
) -> Vec<Place> {
    let Some(list) = list else {
        return found;
    };
    let (there, missing): (Vec<_>, Vec<_>) = list
        .places
        .iter()
        .partition(|path| path.is_file() || path.is_dir());
    for path in missing {
        warnings.push(format!(
            "There is no file or folder {}, which the settings list as {kind}.",
            path.display()
        ));
    }
    let listed = there.into_iter().map(|path| Place {
        listed: true,
        ..Place::found(path.clone(), list.scope)
    });
    let mut all: Vec<Place> = listed.collect();
    all.append(&mut found);
    for place in &mut all {
        place.patterns = Some(list.patterns.clone());
    }
    all
}

fn named(
    kind: &'static str,
    paths: &[PathBuf],
    cwd: &Path,
) -> Result<impl Iterator<Item = PathBuf>, MissingResource> {
    let paths: Vec<PathBuf> = paths.iter().map(|path| cwd.join(path)).collect();
    // A pipe or a device is neither.
    match paths.iter().find(|path| !path.is_file() && !path.is_dir()) {
        Some(path) => Err(MissingResource {
            kind,
            path: path.clone(),
        }),
        None => Ok(paths.into_iter()),
    }
}

//! The crates of plugins in a folder, as cargo knows them.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use serde::Deserialize;
use thiserror::Error;

use crate::watch::{Class, Only, Place};

/// A crate whose library is a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crate {
    name: String,
    manifest: PathBuf,
    /// Name of the library, as in its file.
    library: String,
    target_dir: PathBuf,
    /// Its own folder, and those of crates that it names by path.
    folders: Vec<PathBuf>,
}

/// Why there is no plugin in a folder.
#[derive(Debug, Error)]
pub enum NoCrate {
    /// There is no crate at all.
    #[error("There is no Cargo.toml in {0}. `pliant plugin new NAME` starts a plugin.")]
    NoManifest(PathBuf),
    /// cargo cannot be asked.
    #[error("cargo cannot be started: {0}. It comes with Rust: https://rustup.rs.")]
    NoCargo(std::io::Error),
    /// cargo does not like it.
    #[error("cargo cannot read the crate in {folder}: {cause}")]
    Refused {
        /// The folder.
        folder: PathBuf,
        /// What cargo says.
        cause: String,
    },
    /// It is no plugin.
    #[error(
        "The crate in {0} is no plugin: no library of it has crate-type = [\"cdylib\"]. Add that to [lib] in its Cargo.toml."
    )]
    NoLibrary(PathBuf),
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    target_directory: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    targets: Vec<Target>,
    #[serde(default)]
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    crate_types: Vec<String>,
}

#[derive(Deserialize)]
struct Dependency {
    path: Option<PathBuf>,
}

impl Crate {
    /// The plugins in a folder: its own crate, or those of its workspace that lie in it.
    ///
    /// # Errors
    /// Why there is none.
    pub fn find(folder: &Path) -> Result<Vec<Self>, NoCrate> {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let manifest = folder.join("Cargo.toml");
        if !manifest.is_file() {
            return Err(NoCrate::NoManifest(folder));
        }
        let output = Command::new("cargo")
            .args([
                "metadata",
                "--no-deps",
                "--format-version",
                "1",
                "--manifest-path",
            ])
            .arg(&manifest)
            .output()
            .map_err(NoCrate::NoCargo)?;
        let refused = |cause: String| NoCrate::Refused {
            folder: folder.clone(),
            cause,
        };
        if !output.status.success() {
            return Err(refused(
                String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            ));
        }
        let metadata: Metadata = serde_json::from_slice(&output.stdout).map_err(|error| {
            refused(format!("its answer is another one than expected ({error})"))
        })?;
        let all: Vec<Self> = metadata
            .packages
            .iter()
            .filter(|package| package.manifest_path.starts_with(&folder))
            .filter_map(|package| Self::of(package, &metadata.target_directory))
            .collect();
        match all.is_empty() {
            true => Err(NoCrate::NoLibrary(folder)),
            false => Ok(all),
        }
    }

    fn of(package: &Package, target_dir: &Path) -> Option<Self> {
        let mut targets = package.targets.iter();
        let library =
            targets.find(|target| target.crate_types.iter().any(|kind| kind == "cdylib"))?;
        let own = package.manifest_path.parent()?.to_owned();
        let by_path = package
            .dependencies
            .iter()
            .filter_map(|dependency| dependency.path.clone());
        Some(Self {
            name: package.name.clone(),
            manifest: package.manifest_path.clone(),
            library: library.name.replace('-', "_"),
            target_dir: target_dir.to_owned(),
            folders: std::iter::once(own).chain(by_path).collect(),
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its `Cargo.toml`.
    #[must_use]
    pub fn manifest(&self) -> &Path {
        &self.manifest
    }

    /// Where cargo puts its library when it builds with a profile's folder, `debug` or `release`.
    #[must_use]
    pub fn library(&self, profile: &str) -> PathBuf {
        let file = format!("{DLL_PREFIX}{}{DLL_SUFFIX}", self.library);
        self.target_dir.join(profile).join(file)
    }

    /// The library that is built while it is written.
    #[must_use]
    pub fn built(&self) -> PathBuf {
        self.library("debug")
    }

    /// Builds it if its library is missing or older than its sources, and waits for that. What cargo says
    /// goes where the standard error of this process goes; `false` when it does not build.
    ///
    /// # Errors
    /// When cargo cannot be started.
    pub fn build_if_outdated(&self) -> Result<bool, NoCrate> {
        if !self.is_outdated() {
            return Ok(true);
        }
        let status = Command::new("cargo")
            .args(["build", "--package", &self.name, "--manifest-path"])
            .arg(&self.manifest)
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .status();
        status
            .map(|status| status.success())
            .map_err(NoCrate::NoCargo)
    }

    /// Where its sources are.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        let place = |directory: PathBuf, recursive, only| Place {
            directory,
            recursive,
            class: Class::Text,
            only,
        };
        self.folders.iter().flat_map(move |folder| {
            let named = |name: &str| place(folder.clone(), false, Only::Files(vec![name.into()]));
            [
                place(folder.join("src"), true, Only::All),
                named("Cargo.toml"),
                named("build.rs"),
            ]
        })
    }

    /// Whether a file belongs to its sources.
    pub(super) fn has_source(&self, path: &Path) -> bool {
        self.folders.iter().any(|folder| path.starts_with(folder))
    }

    /// Whether its library is missing, or older than a source of its own.
    pub(super) fn is_outdated(&self) -> bool {
        let Ok(built) = std::fs::metadata(self.built()).and_then(|file| file.modified()) else {
            return true;
        };
        self.folders
            .iter()
            .any(|folder| newest(&folder.join("src"), 0) > Some(built))
            || modified(&self.manifest) > Some(built)
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path)
        .and_then(|file| file.modified())
        .ok()
}

/// The latest time in a folder; not deeper than sources lie.
fn newest(folder: &Path, depth: usize) -> Option<SystemTime> {
    const DEEPEST: usize = 16;
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let times = entries.filter_map(|entry| {
        let path = entry.path();
        match path.is_dir() && depth < DEEPEST {
            true => newest(&path, depth + 1),
            false => modified(&path),
        }
    });
    times.max()
}

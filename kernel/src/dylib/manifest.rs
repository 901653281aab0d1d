//! What a library says of itself in its read-only data, read from the file without running any of
//! its code: name, version, ABI and what it provides. Reading touches only the symbol table and the
//! manifest, so that looking at many libraries costs little.

use std::fs::File;
use std::path::{Path, PathBuf};

use object::read::{ReadCache, ReadRef};
use object::{Object, ObjectSection, ObjectSymbol};
use pliant_abi::{ABI_MAJOR, MANIFEST_CLOSE, MANIFEST_OPEN};
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::blocks::Blocks;
use crate::registry::{Kind, Rank, Source};

/// The symbol that the SDK's export macro places at the manifest.
const SYMBOL: &str = "PLIANT_MANIFEST";

/// The version that plugins may ask for.
const KERNEL: &str = env!("CARGO_PKG_VERSION");

/// A manifest longer than this is not one.
const MAX_LEN: u64 = 1 << 20;

/// Why a library is not loaded. Each is a sentence that names the file, the cause and the next step.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error(
        "The plugin {path} cannot be read: {cause}. Check that the file exists and may be read."
    )]
    Unreadable {
        /// Its file.
        path: String,
        /// Why, as a clause.
        cause: String,
    },
    /// It is no library, or half of one.
    #[error(
        "The plugin {path} is not a complete library for this machine ({cause}). Build it again."
    )]
    NotALibrary {
        /// Its file.
        path: String,
        /// Why, as a clause.
        cause: String,
    },
    /// It is a library of something else.
    #[error(
        "The library {path} is not a pliant plugin: it has no manifest. Plugins use `pliant_sdk::export!`."
    )]
    NoManifest {
        /// Its file.
        path: String,
    },
    /// Its manifest makes no sense.
    #[error(
        "The manifest of the plugin {path} cannot be read: {cause}. Build it again with a current pliant-sdk."
    )]
    BadManifest {
        /// Its file.
        path: String,
        /// Why, as a clause.
        cause: String,
    },
    /// It was built for another version of the border between kernel and plugins.
    #[error(
        "The plugin \"{name}\" ({path}) was built for plugin ABI {theirs}, but this pliant has ABI {ours}. \
         Build it again with the pliant-sdk of this version."
    )]
    WrongAbi {
        /// The plugin's name.
        name: String,
        /// Its file.
        path: String,
        /// The number it was built for.
        theirs: u32,
        /// The number here.
        ours: u32,
    },
    /// A panic in it would end the process.
    #[error(
        "The plugin \"{name}\" ({path}) was built to abort on panics, which would end the agent. \
         Build it with panic = \"unwind\"."
    )]
    Aborts {
        /// The plugin's name.
        name: String,
        /// Its file.
        path: String,
    },
    /// It cannot do without something that this kernel does not have.
    #[error(
        "The plugin \"{name}\" ({path}) needs {needs}, and this is pliant {ours}{lacking}. Use a newer pliant, or a version of the plugin that was made for this one."
    )]
    NeedsMore {
        /// The plugin's name.
        name: String,
        /// Its file.
        path: String,
        /// What it needs, as a noun.
        needs: String,
        /// The version here.
        ours: &'static str,
        /// What is not here, as a clause.
        lacking: String,
    },
    /// It does not fit this kernel.
    #[error(
        "The plugin \"{name}\" ({path}) cannot be loaded: {cause}. Build it again with the pliant-sdk of this version."
    )]
    Refused {
        /// The plugin's name.
        name: String,
        /// Its file.
        path: String,
        /// Why, as a clause.
        cause: String,
    },
    /// It failed at its start.
    #[error("The plugin \"{name}\" ({path}) failed to start: {cause}")]
    CreateFailed {
        /// The plugin's name.
        name: String,
        /// Its file.
        path: String,
        /// Why, as a clause.
        cause: String,
    },
    /// Its start took too long.
    #[error(
        "The plugin \"{name}\" ({path}) did not start within {limit}. Correct what it does at its start, or remove it."
    )]
    TooSlow {
        /// The plugin's name.
        name: String,
        /// Its file.
        path: String,
        /// How long it had.
        limit: String,
    },
    /// The file is not the one that was found.
    #[error(
        "The plugin \"{name}\" ({path}) has changed since it was found: {cause}. \
         Try again when its build is done; start pliant again to use another version."
    )]
    Changed {
        /// The plugin's name.
        name: String,
        /// Its file.
        path: String,
        /// Why, as a clause.
        cause: String,
    },
    /// It contributes something else than it said.
    #[error(
        "The plugin \"{name}\" ({path}) provides something else than its manifest says: {cause}. Correct its `provides` list."
    )]
    Misfit {
        /// The plugin's name.
        name: String,
        /// Its file.
        path: String,
        /// Why, as a clause.
        cause: String,
    },
    /// There is no place for the copy that is loaded.
    #[error(
        "No private copy of the plugin {path} can be made in {dir}: {cause}. Free space there, or set TMPDIR."
    )]
    NotStaged {
        /// Its file.
        path: String,
        /// Where copies go.
        dir: String,
        /// Why, as a clause.
        cause: String,
    },
}

impl LoadError {
    pub(super) fn changed(found: &FoundPlugin, cause: &str) -> Self {
        Self::Changed {
            name: found.manifest.name.clone(),
            path: found.path.display().to_string(),
            cause: cause.to_owned(),
        }
    }

    pub(super) fn create_failed(found: &FoundPlugin, cause: String) -> Self {
        Self::CreateFailed {
            name: found.manifest.name.clone(),
            path: found.path.display().to_string(),
            cause,
        }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Unreadable { path, .. }
            | Self::NotALibrary { path, .. }
            | Self::NoManifest { path }
            | Self::BadManifest { path, .. }
            | Self::WrongAbi { path, .. }
            | Self::Aborts { path, .. }
            | Self::NeedsMore { path, .. }
            | Self::Refused { path, .. }
            | Self::CreateFailed { path, .. }
            | Self::TooSlow { path, .. }
            | Self::Changed { path, .. }
            | Self::Misfit { path, .. }
            | Self::NotStaged { path, .. } => Path::new(path),
        }
    }

    /// Why, without the name and the file; of what has no more than these, the whole sentence.
    pub(super) fn cause(&self) -> String {
        match self {
            Self::Unreadable { cause, .. }
            | Self::Refused { cause, .. }
            | Self::CreateFailed { cause, .. }
            | Self::Misfit { cause, .. } => cause.clone(),
            other => other.to_string(),
        }
    }

    /// Whether the same file may load at the next attempt: space was missing, or a build was at work.
    pub(super) fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Unreadable { .. } | Self::NotStaged { .. } | Self::Changed { .. }
        )
    }
}

/// A library that may be loaded.
#[derive(Debug, Clone)]
pub struct FoundPlugin {
    /// The file.
    pub path: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
    /// Where in the load order it stands.
    pub rank: Rank,
}

impl FoundPlugin {
    /// The plugin as a source of the registry.
    #[must_use]
    pub fn source(&self) -> Source {
        Source {
            name: self.manifest.name.clone(),
            path: Some(self.path.clone()),
            rank: self.rank,
        }
    }
}

/// What a library says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Plugin name, unique among loaded plugins.
    pub name: String,
    /// The plugin's own version.
    pub version: String,
    /// Major ABI number; must be ours.
    pub abi: u32,
    /// Minor ABI number, informational.
    #[serde(default)]
    pub abi_minor: u32,
    /// Version of the SDK it was built with.
    #[serde(default)]
    pub sdk: String,
    /// Panic strategy.
    #[serde(default)]
    pub panic: String,
    /// `process` if it wishes to run in one of its own.
    #[serde(default)]
    pub isolation: String,
    /// Host services it cannot do without.
    #[serde(default, deserialize_with = "texts")]
    pub needs: Vec<String>,
    /// The least version of the kernel, as `major.minor.patch` or less of it; empty for any.
    #[serde(default)]
    pub kernel: String,
    /// What it contributes.
    #[serde(default, deserialize_with = "provided")]
    pub provides: Vec<Provided>,
}

/// One line of a manifest's `provides`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provided {
    /// What it is.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Environment variables that may hold the key of a provider.
    pub env: Vec<String>,
}

/// The macro closes its lists with a null.
fn texts<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let entries = Vec::<Option<String>>::deserialize(deserializer)?;
    Ok(entries.into_iter().flatten().collect())
}

/// Likewise; kinds of later versions are passed by.
fn provided<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Provided>, D::Error> {
    let entries = Vec::<Value>::deserialize(deserializer)?;
    let read = |entry: Value| {
        let kind = Kind::parse(entry.get("kind")?.as_str()?)?;
        let name = entry.get("name")?.as_str()?.to_owned();
        let env = entry
            .get("env")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let env = env
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        Some(Provided { kind, name, env })
    };
    Ok(entries.into_iter().filter_map(read).collect())
}

/// Reads the manifest of a library and checks that the library may be mapped at all.
///
/// # Errors
/// Everything that makes a file something else than a complete plugin for this ABI.
pub(super) fn read_manifest(path: &Path) -> Result<Manifest, LoadError> {
    let shown = path.display().to_string();
    let unreadable = |cause: std::io::Error| LoadError::Unreadable {
        path: shown.clone(),
        cause: cause.to_string(),
    };
    // Before it is opened: opening a pipe waits for a writer.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(LoadError::Unreadable {
            path: shown,
            cause: "it is not a file".to_owned(),
        });
    }
    let file = File::open(path).map_err(unreadable)?;
    let json = embedded(file).map_err(|cause| match cause {
        Some(cause) => LoadError::NotALibrary {
            path: shown.clone(),
            cause,
        },
        None => LoadError::NoManifest {
            path: shown.clone(),
        },
    })?;
    let manifest: Manifest =
        serde_json::from_slice(&json).map_err(|error| LoadError::BadManifest {
            path: shown.clone(),
            cause: error.to_string(),
        })?;
    check(manifest, shown)
}

fn check(manifest: Manifest, path: String) -> Result<Manifest, LoadError> {
    if manifest.abi != ABI_MAJOR {
        let Manifest {
            name, abi: theirs, ..
        } = manifest;
        return Err(LoadError::WrongAbi {
            name,
            path,
            theirs,
            ours: ABI_MAJOR,
        });
    }
    if manifest.panic == "abort" {
        return Err(LoadError::Aborts {
            name: manifest.name,
            path,
        });
    }
    if !is_at_least(KERNEL, &manifest.kernel) {
        return Err(LoadError::NeedsMore {
            needs: format!("pliant {} or newer", manifest.kernel),
            name: manifest.name,
            path,
            ours: KERNEL,
            lacking: String::new(),
        });
    }
    Ok(manifest)
}

/// Whether a version is the wanted one or newer. What is no number in the wanted one is taken as newer
/// than everything: it was written for a way of counting that is not known here.
fn is_at_least(ours: &str, wanted: &str) -> bool {
    let numbers = |version: &str| -> Vec<u64> {
        let parts = version.split('.').filter(|part| !part.is_empty());
        parts.map(|part| part.parse().unwrap_or(u64::MAX)).collect()
    };
    let (mut ours, wanted) = (numbers(ours), numbers(wanted));
    ours.resize(ours.len().max(wanted.len()), 0);
    ours >= wanted
}

impl FoundPlugin {
    /// Whether everything it needs is offered.
    ///
    /// # Errors
    /// What is not.
    pub(super) fn served_by(&self, offered: &[&str]) -> Result<(), LoadError> {
        let needs = self.manifest.needs.iter().map(String::as_str);
        let lacking: Vec<&str> = needs.filter(|name| !offered.contains(name)).collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let plural = if lacking.len() == 1 { "" } else { "s" };
        let names = lacking.join("\", \"");
        Err(LoadError::NeedsMore {
            name: self.manifest.name.clone(),
            path: self.path.display().to_string(),
            needs: format!("the host service{plural} \"{names}\""),
            ours: KERNEL,
            lacking: ", which does not offer that".to_owned(),
        })
    }
}

/// The bytes between the marks; `Err(None)` when the library has none.
fn embedded(file: File) -> Result<Vec<u8>, Option<String>> {
    let broken = |error: object::Error| Some(error.to_string());
    let length = file
        .metadata()
        .map_err(|error| Some(error.to_string()))?
        .len();
    let cache = ReadCache::new(file);
    let object = object::File::parse(Blocks(&cache)).map_err(broken)?;
    if object.architecture() != native_architecture() {
        return Err(Some(format!("it is for {:?}", object.architecture())));
    }
    // A file that a build has not finished ends before its last section does.
    let past_the_end = |section: &object::Section<'_, '_, _>| {
        section
            .file_range()
            .is_some_and(|(start, size)| start.saturating_add(size) > length)
    };
    if object.sections().any(|section| past_the_end(&section)) {
        return Err(Some("the file is cut short".to_owned()));
    }
    let symbol = object
        .dynamic_symbols()
        .find(|symbol| symbol.name() == Ok(SYMBOL))
        .ok_or(None)?;
    let index = symbol.section_index().ok_or(None)?;
    let section = object.section_by_index(index).map_err(broken)?;
    // By its place in the file: asked for a part of a section, the reader reads all of it.
    let (start, length) = section.file_range().ok_or(None)?;
    let offset = symbol.address().checked_sub(section.address());
    let offset = offset.filter(|offset| *offset < length).ok_or(None)?;
    let size = symbol.size().min(MAX_LEN).min(length - offset);
    let bytes = (&cache)
        .read_bytes_at(start + offset, size)
        .map_err(|()| Some("the file is cut short".to_owned()))?;
    let inner = bytes
        .strip_prefix(MANIFEST_OPEN.as_bytes())
        .and_then(|rest| rest.strip_suffix(MANIFEST_CLOSE.as_bytes()));
    inner.map(<[u8]>::to_vec).ok_or(None)
}

fn native_architecture() -> object::Architecture {
    use object::Architecture::{Aarch64, Arm, I386, Riscv64, Unknown, X86_64};
    match std::env::consts::ARCH {
        "x86_64" => X86_64,
        "aarch64" => Aarch64,
        "x86" => I386,
        "arm" => Arm,
        "riscv64" => Riscv64,
        _ => Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_at_least_what_stands_before_or_at_its_place() {
        for wanted in ["", "0", "0.1", "0.1.0", "0.0.9", "0.1.0.0"] {
            assert!(is_at_least("0.1.0", wanted), "{wanted}");
        }
        for wanted in [
            "0.1.1", "0.2", "1", "0.10", "0.1.0.1", "soon", "0.x", "0.1-beta", "-1",
        ] {
            assert!(!is_at_least("0.1.0", wanted), "{wanted}");
        }
        assert!(is_at_least("0.10.0", "0.9"));
    }
}

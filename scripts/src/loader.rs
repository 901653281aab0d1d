//! Scripts as a loader: which files count, and loading one of them anew when it has changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pliant_kernel::digest::Digest;
use pliant_kernel::registry::{Generation, HookPoint, Kind, MakeServices, Promise, Rank, Source};
use pliant_kernel::reload::{Candidate, Findings, Loader};
use pliant_kernel::textfile;
use pliant_kernel::watch::{Class, Only, Place};
use pliant_sdk::host::BoxFuture;

use crate::extension::{Limits, load_extension};
use crate::modules::imported_files;
use crate::script::Script;
use crate::shipped::{Shipped, shipped_extensions};

/// Finds files of scripts and their places in the load order; what is odd is told in sentences.
pub type FindScripts = Box<dyn Fn() -> (Vec<(PathBuf, Rank)>, Vec<String>) + Send + Sync>;

/// Whether a script that ships is wanted now.
pub type WantsShipped = Box<dyn Fn(&Shipped) -> bool + Send + Sync>;

/// The scripts of a kernel.
pub struct Scripts {
    /// Which of those that ship are wanted.
    pub shipped: WantsShipped,
    /// Those that are found.
    pub found: FindScripts,
    /// Where some may be found later, absolute.
    pub folders: Vec<PathBuf>,
    /// Those that were named.
    pub named: Vec<PathBuf>,
    /// What a script is served with while it is loaded.
    pub services: MakeServices,
    /// How long a script may take.
    pub limits: Limits,
}

impl std::fmt::Debug for Scripts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scripts")
            .field("named", &self.named)
            .finish_non_exhaustive()
    }
}

impl Scripts {
    fn shipped(&self) -> impl Iterator<Item = Script> {
        let all = shipped_extensions().into_iter();
        all.filter(|shipped| (self.shipped)(shipped))
            .map(Script::from)
    }

    fn script(&self, source: &Source) -> Result<Script, String> {
        let shipped = self.shipped().find(|shipped| shipped.name == source.name);
        match (shipped, &source.path) {
            (Some(shipped), _) => Ok(shipped),
            (None, Some(path)) => match Script::read(path, source.rank) {
                Ok(script) => Ok(Script {
                    name: source.name.clone(),
                    ..script
                }),
                Err(error) => Err(error.to_string()),
            },
            (None, None) => Err(format!(
                "The script {} does not ship any more.",
                source.name
            )),
        }
    }
}

/// What of a script is known before it is read.
fn of_file((path, rank): (PathBuf, Rank)) -> Candidate {
    let name = path.display().to_string();
    let path = std::path::absolute(&path).unwrap_or(path);
    Candidate {
        digest: digest_of(&path),
        source: Source {
            name,
            path: Some(path),
            rank,
        },
    }
}

/// What identifies a script together with the files it imports: a change of these is one of it.
fn digest_of(path: &Path) -> Option<Digest> {
    let own = Digest::of_file(path).ok()?;
    let imported = imported_files(path);
    if imported.is_empty() {
        return Some(own);
    }
    let shown = |file: &PathBuf| Digest::of_file(file).map_or(String::new(), |d| d.to_string());
    let all = imported
        .iter()
        .map(shown)
        .fold(own.to_string(), |all, one| all + "\n" + one.as_str());
    Some(Digest::of(all.as_bytes()))
}

impl Loader for Scripts {
    fn find(&self) -> Findings {
        let (found, warnings) = (self.found)();
        let shipped = self.shipped().map(|shipped| Candidate {
            digest: Some(Digest::of(shipped.text.as_bytes())),
            source: Source {
                name: shipped.name,
                path: shipped.path,
                rank: shipped.rank,
            },
        });
        let named = self
            .named
            .iter()
            .map(|path| (path.clone(), Rank::CommandLine));
        Findings {
            candidates: shipped
                .chain(found.into_iter().chain(named).map(of_file))
                .collect(),
            warnings,
            ..Findings::default()
        }
    }

    fn places(&self) -> Vec<Place> {
        let in_folder = |folder: &PathBuf| Place {
            directory: folder.clone(),
            recursive: true,
            class: Class::Script,
            only: Only::Names {
                prefix: String::new(),
                suffix: ".rhai".to_owned(),
            },
        };
        let folders = self.folders.iter().map(in_folder);
        let Findings { candidates, .. } = self.find();
        let files = candidates
            .into_iter()
            .filter_map(|candidate| candidate.source.path);
        let files = files.flat_map(|file| {
            let imported = imported_files(&file);
            std::iter::once(file).chain(imported)
        });
        let outside =
            files.filter(|file| !self.folders.iter().any(|folder| file.starts_with(folder)));
        let files = outside.filter_map(|file| Place::file(&file, Class::Script));
        folders.chain(files).collect()
    }

    /// The gates whose names are in its text: which of them it means, nobody can say.
    fn promises(&self, candidate: &Candidate) -> Vec<Promise> {
        let path = candidate.source.path.as_deref();
        let text = path.and_then(|path| textfile::read(path).ok());
        let text = text.unwrap_or_default();
        let named = |gate: &&HookPoint| text.contains(gate.name());
        let gates = HookPoint::ALL.iter().filter(|point| point.fails_closed());
        let gates = gates.filter(named);
        gates
            .map(|gate| Promise::new(Kind::Hook, gate.name()))
            .collect()
    }

    fn load(
        &self,
        candidate: &Candidate,
    ) -> BoxFuture<'static, Result<Arc<dyn Generation>, String>> {
        let source = &candidate.source;
        let script = self.script(source);
        let (services, limits) = ((self.services)(source), self.limits);
        let name = source.name.clone();
        Box::pin(async move {
            let loaded = load_extension(script?, services, limits).await;
            loaded.map_err(|error| format!("The extension {name} cannot be loaded: {error}"))
        })
    }
}

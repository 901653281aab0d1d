//! Native plugins as a loader: which files count, and opening them again when they have changed.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pliant_sdk::host::BoxFuture;
use serde::Deserialize;

use super::KernelOptions;
use crate::dev::Crate;
use crate::dylib::{
    FoundPlugin, LoadError, PLUGIN_PREFIX, PluginHost, SearchPath, find_plugins, found_at, reopen,
};
use crate::registry::{Generation, Kind, Promise, Rank, Source};
use crate::reload::{Broken, Candidate, Findings, Loader};
use crate::session::ToolSelection;
use crate::settings::Settings;
use crate::watch::{Class, Only, Place};

/// The setting that lists plugins which are switched off.
pub const DISABLED: &str = "plugins.disabled";

/// Which plugins are wanted.
pub(super) struct Wanted {
    search: SearchPath,
    /// Named on the command line, absolute.
    named: Vec<PathBuf>,
    /// Being written, likewise.
    developed: Vec<PathBuf>,
    tools: ToolSelection,
    /// Names of those that the user has switched off.
    disabled: Vec<String>,
}

/// What was found of plugins.
pub(super) struct Found {
    /// Those to open: all that are wanted, and those that were named.
    pub(super) plugins: Vec<FoundPlugin>,
    /// Names of the tools of all of them.
    pub(super) tools: Vec<String>,
    pub(super) problems: Vec<LoadError>,
}

impl Wanted {
    pub(super) fn of(options: &KernelOptions, settings: &Settings) -> Self {
        let disabled = Vec::deserialize(settings.get(DISABLED));
        let program = options.program.as_deref();
        let named = options.plugins.iter();
        Self {
            search: match options.no_extensions {
                true => SearchPath::shipped(program),
                false => SearchPath::standard(program, &options.agent_dir),
            },
            named: named.map(|path| options.cwd.join(path)).collect(),
            developed: options.dev.iter().map(Crate::built).collect(),
            tools: options.tools.clone(),
            disabled: disabled.unwrap_or_default(),
        }
    }

    /// Whether the user lets a plugin of that name be loaded.
    pub(super) fn is_enabled(&self, name: &str) -> bool {
        !self.disabled.iter().any(|disabled| disabled == name)
    }

    /// Everything there is, whether it is wanted or not.
    pub(super) fn find_all(&self) -> Found {
        let (mut plugins, mut problems) = find_plugins(&self.search);
        let developed = self.developed.iter().filter(|path| path.exists());
        for path in self.named.iter().chain(developed) {
            match found_at(path, Rank::CommandLine) {
                Ok(named) => {
                    plugins.retain(|plugin| plugin.manifest.name != named.manifest.name);
                    plugins.push(named);
                }
                Err(problem) => problems.push(problem),
            }
        }
        Found {
            plugins,
            tools: Vec::new(),
            problems,
        }
    }

    /// What is to be loaded. One that was named is wanted whatever the settings say.
    pub(super) fn find(&self) -> Found {
        let mut found = self.find_all();
        let is_named = |plugin: &FoundPlugin| plugin.rank == Rank::CommandLine;
        let plugins = &mut found.plugins;
        plugins.retain(|plugin| is_named(plugin) || self.is_enabled(&plugin.manifest.name));
        let provided = plugins.iter().flat_map(|plugin| &plugin.manifest.provides);
        found.tools = provided
            .filter(|item| item.kind == Kind::Tool)
            .map(|item| item.name.clone())
            .collect();
        plugins.retain(|plugin| is_named(plugin) || self.wants(plugin));
        found
    }

    /// A library that cannot be used, as a source; its name is that of its file.
    pub(super) fn source_of(&self, problem: &LoadError) -> Source {
        let path = problem.path();
        Source {
            name: path.display().to_string(),
            path: Some(path.to_owned()),
            rank: self.search.rank_of(path).unwrap_or(Rank::User),
        }
    }

    /// Whether a problem is that of a plugin named on the command line.
    pub(super) fn names(&self, problem: &LoadError) -> bool {
        self.named
            .iter()
            .any(|path| path.as_path() == problem.path())
    }

    /// Whether the file is that of a plugin which is being written.
    pub(super) fn develops(&self, path: &Path) -> bool {
        self.developed.iter().any(|developed| developed == path)
    }

    /// A plugin that has nothing but tools nobody wants is not loaded.
    fn wants(&self, plugin: &FoundPlugin) -> bool {
        let mut provides = plugin.manifest.provides.iter();
        provides.any(|item| item.kind != Kind::Tool || self.tools.wants(&item.name))
    }
}

/// What the manifest of a library says.
pub(super) fn promises(found: &FoundPlugin) -> Vec<Promise> {
    let provides = found.manifest.provides.iter();
    provides
        .map(|item| Promise::new(item.kind, &item.name))
        .collect()
}

/// The native plugins of a kernel.
pub(super) struct Plugins {
    wanted: Wanted,
    host: Arc<PluginHost>,
}

impl Plugins {
    pub(super) fn new(wanted: Wanted, host: Arc<PluginHost>) -> Self {
        Self { wanted, host }
    }
}

impl Loader for Plugins {
    fn find(&self) -> Findings {
        let Found {
            plugins, problems, ..
        } = self.wanted.find();
        let candidate = |plugin: &FoundPlugin| Candidate {
            source: plugin.source(),
            digest: None,
        };
        let broken = |problem: LoadError| Broken {
            path: problem.path().to_owned(),
            message: problem.to_string(),
        };
        Findings {
            candidates: plugins.iter().map(candidate).collect(),
            broken: problems.into_iter().map(broken).collect(),
            warnings: Vec::new(),
        }
    }

    fn places(&self) -> Vec<Place> {
        let searched = self.wanted.search.directories().map(|directory| Place {
            directory: directory.to_owned(),
            recursive: false,
            class: Class::Library,
            only: Only::Names {
                prefix: format!("{DLL_PREFIX}{PLUGIN_PREFIX}"),
                suffix: DLL_SUFFIX.to_owned(),
            },
        });
        let named = self.wanted.named.iter().chain(&self.wanted.developed);
        let named = named.filter_map(|path| Place::file(path, Class::Library));
        searched.chain(named).collect()
    }

    /// A library tells it in its manifest, if that can be read.
    fn promises(&self, candidate: &Candidate) -> Vec<Promise> {
        let Source { path, rank, .. } = &candidate.source;
        let found = path.as_deref().map(|path| found_at(path, *rank));
        found.map_or_else(Vec::new, |found| {
            found.map(|found| promises(&found)).unwrap_or_default()
        })
    }

    fn load(
        &self,
        candidate: &Candidate,
    ) -> BoxFuture<'static, Result<Arc<dyn Generation>, String>> {
        let (host, source) = (Arc::clone(&self.host), candidate.source.clone());
        Box::pin(async move {
            // A candidate of this loader has its file.
            let path = source.path.unwrap_or_default();
            let found = found_at(&path, source.rank).map_err(|problem| problem.to_string())?;
            let opened = reopen(found, &host).await;
            opened.map_err(|problem| problem.to_string())
        })
    }
}

//! The kernel put together: settings, host services, registry, models, plugins. Scripts are
//! published by the front end, which knows their host.

mod builder;
mod commands;
mod developing;
mod gatekeeper;
mod inventory;
mod key_texts;
mod model_texts;
mod open;
mod plugins;
mod project;
mod replace;
mod runtime;
mod select;
mod services;
mod sessions;
mod settings_texts;
mod shortcuts;
mod texts;
mod watching;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use thiserror::Error as ThisError;

pub use builder::{BuildError, Builder};
pub use commands::{Scope, SlashCommand, SlashSource, SourceInfo};
pub use developing::Developing;
pub use gatekeeper::has_gatekeeper;
pub use inventory::{Item, check_plugin, inventory};
pub use open::{OpenError, OpenOptions, SessionChoice, WhenHeld};
pub use plugins::DISABLED;
pub use replace::Forked;
pub use runtime::Runtime;
pub use sessions::{NoSession, SessionFolders};
pub use watching::Watching;

use plugins::{Plugins, Wanted, promises};
use services::{host_services, model_asker, plugin_host};

use crate::dev::Crate;
use crate::dylib::{HostProgram, LoadError, open};
use crate::environment::Environment;
use crate::host::HostServices;
use crate::host::ui::{HostUi, NoUi};
use crate::keys::{KeyBindings, LiveKeys};
use crate::models::{Catalog, Credentials, CustomModels, ModelClient};
use crate::registry::{FlagValues, Rank, Registry, Source};
use crate::reload::{Candidate, Reloader};
use crate::resources::{LiveResources, MissingResource, ResourceOptions};
use crate::session::{Equipment, Opened, Surroundings, ToolSelection};
use crate::settings::{LiveSettings, Settings};
use crate::trust::TrustPolicy;
use commands::SlashCommands;
use key_texts::KeyTexts;
use model_texts::ModelTexts;
use settings_texts::SettingsTexts;
use texts::ResourceTexts;

/// How a kernel is started.
#[derive(Clone)]
pub struct KernelOptions {
    /// Working directory, absolute.
    pub cwd: PathBuf,
    /// The user's configuration directory.
    pub agent_dir: PathBuf,
    /// The running program; plugins are looked for beside it.
    pub program: Option<PathBuf>,
    /// Where sessions are, instead of where the environment and the settings say.
    pub session_dir: Option<PathBuf>,
    /// AGENTS.md and its relatives stay out of the prompt.
    pub no_context_files: bool,
    /// No plugins of the user but those named on the command line.
    pub no_extensions: bool,
    /// Plugins named on the command line.
    pub plugins: Vec<PathBuf>,
    /// Plugins that are being written: their libraries are loaded like those of the command line, and not
    /// missed where they are not there yet.
    pub dev: Vec<Crate>,
    /// What is started for plugins in processes of their own: a program that calls
    /// [`dylib::serve`](crate::dylib::serve) then. Without it there are no such processes, and plugins
    /// are not tried out before they are loaded.
    pub plugin_host: Option<HostProgram>,
    /// All plugins that do not ship run in processes of their own.
    pub isolate: bool,
    /// Which tools; plugins whose tools are not wanted are not loaded.
    pub tools: ToolSelection,
    /// Which skills and prompt templates.
    pub resources: ResourceOptions,
    /// The variables that count. None do unless they are given: [`Environment::of_process`].
    pub environment: Environment,
    /// Whether the project's own files count.
    pub trust: TrustPolicy,
    /// A key for this process only.
    pub api_key: Option<String>,
    /// Keys for this process only, by provider.
    pub keys: HashMap<String, String>,
    /// Instead of the settings in the files.
    pub settings: Option<Settings>,
    /// What the front end shows for plugins.
    pub ui: Arc<dyn HostUi>,
    /// Called with each session before its handlers hear of it.
    pub opened: Opened,
}

impl std::fmt::Debug for KernelOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelOptions")
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

impl KernelOptions {
    /// The defaults for a working directory and a configuration directory.
    #[must_use]
    pub fn new(cwd: PathBuf, agent_dir: PathBuf) -> Self {
        Self {
            cwd,
            agent_dir,
            program: None,
            session_dir: None,
            no_context_files: false,
            no_extensions: false,
            plugins: Vec::new(),
            dev: Vec::new(),
            plugin_host: None,
            isolate: false,
            tools: ToolSelection::default(),
            resources: ResourceOptions::default(),
            environment: Environment::default(),
            trust: TrustPolicy::default(),
            api_key: None,
            keys: HashMap::new(),
            settings: None,
            ui: Arc::new(NoUi),
            opened: Arc::new(|_| {}),
        }
    }
}

/// Why a kernel cannot be started: something named on the command line is not to be had.
#[derive(Debug, ThisError)]
pub enum BootError {
    /// A plugin that was named does not load.
    #[error("{0}")]
    Plugin(#[from] LoadError),
    /// A path that was named does not exist.
    #[error("{0}")]
    Resource(#[from] MissingResource),
}

/// Everything that sessions share.
pub struct Kernel {
    options: KernelOptions,
    settings: Arc<LiveSettings>,
    registry: Arc<Registry>,
    flags: Arc<FlagValues>,
    host: Arc<HostServices>,
    reloader: Arc<Reloader>,
    catalog: Arc<Catalog>,
    client: Arc<ModelClient>,
    resources: Arc<LiveResources>,
    keys: Arc<LiveKeys>,
    slash: Arc<SlashCommands>,
    surroundings: Arc<Surroundings>,
    /// Whether the project's own files count.
    trusted: bool,
    /// By a decision that was stored, not for this run alone.
    trusts_by_decision: bool,
    warnings: Vec<String>,
    failures: Vec<String>,
    tools: Vec<String>,
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel")
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}

impl Kernel {
    /// Starts a kernel. What is broken but not asked for is a warning; a plugin named on the command
    /// line must load, and a path named there must exist.
    ///
    /// # Errors
    /// [`BootError`].
    pub fn boot(options: KernelOptions) -> Result<Self, BootError> {
        let mut warnings = Vec::new();
        let (settings, verdict) = project::settings(&options, &mut warnings);
        let trusted = verdict.trusted;
        let live = Arc::new(LiveSettings::new(settings.clone()));
        let registry = Arc::new(Registry::default());
        let wanted = project::resource_options(&options, &settings, trusted, &mut warnings);
        let (agent_dir, cwd) = (options.agent_dir.clone(), options.cwd.clone());
        let (resources, problems) = LiveResources::load(wanted.clone(), agent_dir, cwd)?;
        let resources = Arc::new(resources);
        warnings.extend(problems);

        let pi_dir = wanted.home.as_ref().filter(|_| !wanted.no_pi);
        let pi_dir = pi_dir.map(|home| home.join(".pi/agent"));
        let (keys, problems) = key_texts::load(&options, pi_dir.as_deref());
        let keys = Arc::new(keys);
        warnings.extend(problems);
        let custom = CustomModels::load(&options.agent_dir, pi_dir.as_deref());
        let given = options.api_key.clone();
        let (credentials, problem) =
            Credentials::load(&options.agent_dir, &custom, given, &options.environment);
        warnings.extend(problem);
        let credentials = Arc::new(credentials.with_keys(&options.keys));
        let wanted = Wanted::of(&options, &settings);
        let found = wanted.find();
        let memory = options.agent_dir.join("cache").join("contributions.json");
        let mut reloader = Reloader::new(Arc::clone(&registry)).remembering_in(memory);
        let most = settings.count("hotReload.maxReloads");
        if let Some(most) = most.and_then(|most| usize::try_from(most).ok()) {
            reloader = reloader.allowing(most);
        }
        let (mut opened, mut failed) = (Vec::new(), Vec::new());
        let (mut failures, mut broken) = (Vec::new(), Vec::new());
        for problem in found.problems {
            if wanted.names(&problem) {
                return Err(problem.into());
            }
            let (source, reason) = (wanted.source_of(&problem), problem.to_string());
            let (source, stand_in) = reloader.stand_in(source, Vec::new(), &reason);
            if !wanted.is_enabled(&source.name) {
                continue;
            }
            if let Some(stand_in) = stand_in {
                registry.publish(stand_in);
                failed.push(Candidate::of(source));
            }
            match wanted.develops(problem.path()) {
                true => warnings.push(reason),
                false => failures.push(reason),
            }
            broken.push(problem.path().to_owned());
        }
        let (mut found, tools) = (found.plugins, found.tools);
        // The name of what is broken is not given to somebody weaker (E06).
        found.retain(|plugin| {
            let holds = |held: &Candidate| {
                held.source.name == plugin.manifest.name && held.source.rank < plugin.rank
            };
            !failed.iter().any(holds)
        });

        let flags = Arc::new(FlagValues::default());
        let host = host_services(&options, &live, &registry, &credentials, &found, &flags);
        let plugin_host = Arc::new(plugin_host(&options, &live, &host));
        for plugin in found {
            let is_developed = wanted.develops(&plugin.path);
            let named = plugin.rank == Rank::CommandLine && !is_developed;
            let candidate = Candidate::of(plugin.source());
            let promises = promises(&plugin);
            match open(plugin, &plugin_host) {
                Ok(generation) => {
                    registry.publish(generation);
                    opened.push(candidate);
                }
                Err(error) if named => return Err(error.into()),
                Err(error) => {
                    let reason = error.to_string();
                    let (source, stand_in) = reloader.stand_in(candidate.source, promises, &reason);
                    stand_in.into_iter().for_each(|it| registry.publish(it));
                    match is_developed {
                        true => warnings.push(reason),
                        false => failures.push(reason),
                    }
                    failed.push(Candidate::of(source));
                }
            }
        }
        let plugins = Arc::new(Plugins::new(wanted, plugin_host));
        reloader.take_over(plugins, opened, failed, &broken);
        let (of_texts, texts) = (Arc::clone(&live), Arc::clone(&resources));
        let of_settings = SettingsTexts::new(options.clone(), trusted, of_texts, texts);
        reloader.add_texts(Arc::new(of_settings));
        reloader.add_texts(Arc::new(ResourceTexts::new(Arc::clone(&resources))));
        reloader.add_texts(Arc::new(KeyTexts(Arc::clone(&keys))));

        let catalog = Arc::new(Catalog::new(
            Arc::clone(&registry),
            custom.clone(),
            Arc::clone(&credentials),
            model_asker(Arc::clone(&host)),
        ));
        reloader.add_texts(Arc::new(ModelTexts {
            agent_dir: options.agent_dir.clone(),
            pi_dir,
            catalog: Arc::clone(&catalog),
            credentials: Arc::clone(&credentials),
            told: Mutex::new([("models.json", custom.error.clone())].into()),
            current: Mutex::new(custom),
        }));
        let for_client = Arc::clone(&host);
        let client = ModelClient::new(
            Arc::new(move |source| for_client.for_source(source, None)),
            credentials,
        );
        let slash = Arc::new(SlashCommands {
            registry: Arc::clone(&registry),
            resources: Arc::clone(&resources),
            settings: Arc::clone(&live),
            options: options.clone(),
        });
        Ok(Self {
            surroundings: Arc::new(slash.surroundings(trusted)),
            slash,
            options,
            settings: live,
            registry,
            flags,
            host,
            reloader: Arc::new(reloader),
            catalog,
            client: Arc::new(client),
            resources,
            keys,
            trusted,
            trusts_by_decision: verdict.by_decision,
            warnings,
            failures,
            tools,
        })
    }

    /// What is registered; front ends publish scripts here.
    #[must_use]
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// What the user gives for the flags of extensions; a front end sets it when these are loaded.
    #[must_use]
    pub fn flags(&self) -> &FlagValues {
        &self.flags
    }

    /// Keeps the registry as the files are.
    #[must_use]
    pub fn reloader(&self) -> &Arc<Reloader> {
        &self.reloader
    }

    /// Services for sources that a front end brings.
    #[must_use]
    pub fn host(&self) -> &Arc<HostServices> {
        &self.host
    }

    /// The models there are.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The settings in force.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.now()
    }

    /// Names of all tools there are, also of plugins that were not loaded because nobody wants them.
    #[must_use]
    pub fn tool_names(&self) -> Vec<String> {
        let mut names = self.tools.clone();
        for tool in self.registry.snapshot().tools() {
            if !names.contains(&tool.spec.name) {
                names.push(tool.spec.name.clone());
            }
        }
        names
    }

    /// What is odd and was passed by, as sentences.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Plugins that were found but cannot be loaded, as sentences. Whoever runs without a person
    /// looking should stop for these: what is missing may be what kept watch.
    #[must_use]
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Skills, prompt templates and themes, as they are now.
    #[must_use]
    pub fn resources(&self) -> &Arc<LiveResources> {
        &self.resources
    }

    /// What keys do now; asked anew at each key.
    #[must_use]
    pub fn key_bindings(&self) -> Arc<KeyBindings> {
        self.keys.now()
    }

    fn equipment(&self) -> Equipment {
        Equipment {
            registry: Arc::clone(&self.registry),
            host: Arc::clone(&self.host),
            catalog: Arc::clone(&self.catalog),
            client: Arc::clone(&self.client),
            reloader: Arc::clone(&self.reloader),
            settings: Arc::clone(&self.settings),
            ui: Arc::clone(&self.options.ui),
            surroundings: Arc::clone(&self.surroundings),
            opened: Arc::clone(&self.options.opened),
        }
    }
}

/// The source of what the embedding program registers itself.
#[must_use]
pub fn inline_source(name: &str) -> Source {
    Source::inline(name, Rank::Inline)
}

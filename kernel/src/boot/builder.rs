//! From what an embedding program wants to a running session: the kernel's options, the session's, and
//! what the program brings itself (`interfaces.md` §15). Thin: it fills in [`KernelOptions`] and
//! [`OpenOptions`], and publishes what was given between booting and opening.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pliant_sdk::message::ThinkingLevel;
use pliant_sdk::{Error, Plugin, Tool};
use serde_json::Value;
use thiserror::Error as ThisError;

use super::{
    BootError, Kernel, KernelOptions, OpenError, OpenOptions, Runtime, SessionChoice, inline_source,
};
use crate::environment::Environment;
use crate::host::ui::HostUi;
use crate::models::ModelWish;
use crate::registry::{Generation, InProcess};
use crate::resources::ResourceOptions;
use crate::session::{Session, ToolSelection};
use crate::settings::Settings;
use crate::trust::TrustPolicy;

/// The source of tools that are given one by one.
const OWN_TOOLS: &str = "custom-tools";

/// Why there is no runtime.
#[derive(Debug, ThisError)]
pub enum BuildError {
    /// The process has no directory to work in.
    #[error("The working directory is gone ({0}). Change to one that exists.")]
    NoWorkingDirectory(std::io::Error),
    /// The process has no user with a home.
    #[error("There is no home directory. Set PLIANT_AGENT_DIR to a directory for pliant's files.")]
    NoHome,
    /// Something that was named is not to be had.
    #[error("{0}")]
    Boot(#[from] BootError),
    /// A plugin of the program cannot be registered.
    #[error("The plugin \"{name}\" cannot be registered: {error}")]
    Plugin {
        /// Its name.
        name: String,
        /// Why.
        error: Error,
    },
    /// The session cannot be opened.
    #[error("{0}")]
    Open(#[from] OpenError),
}

/// Puts a kernel and its first session together.
///
/// [`Builder::new`] looks at nothing but the two directories it is given: no environment, no home, no
/// standard streams. [`Builder::of_process`] is for a program that wants what its user has set up for
/// pliant.
///
/// ```
/// use pliant_kernel::{Builder, SessionChoice, ToolSelection};
///
/// let builder = Builder::new("/project", "/project/.agent")
///     .session(SessionChoice::InMemory)
///     .tools(ToolSelection::none())
///     .model("openrouter/qwen/qwen3-coder")
///     .api_key("openrouter", "the key");
/// # drop(builder);
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct Builder {
    options: KernelOptions,
    open: OpenOptions,
    generations: Vec<Arc<dyn Generation>>,
    plugins: Vec<(String, Plugin)>,
    tools: Option<Plugin>,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("options", &self.options)
            .field("plugins", &self.plugins)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// For a working directory and a configuration directory, which need not exist.
    pub fn new(cwd: impl Into<PathBuf>, agent_dir: impl Into<PathBuf>) -> Self {
        Self::with_options(KernelOptions::new(cwd.into(), agent_dir.into()))
    }

    /// What the user of this process has: its working directory, the configuration directory and the
    /// keys of its environment, the skills of his home, and the plugins beside the program.
    ///
    /// # Errors
    /// [`BuildError::NoWorkingDirectory`] and [`BuildError::NoHome`].
    pub fn of_process() -> Result<Self, BuildError> {
        let environment = Environment::of_process();
        let cwd = std::env::current_dir().map_err(BuildError::NoWorkingDirectory)?;
        let agent_dir = environment.agent_dir().ok_or(BuildError::NoHome)?;
        let mut options = KernelOptions::new(cwd.clone(), cwd.join(agent_dir));
        options.program = std::env::current_exe().ok();
        options.resources.home = environment.home().map(Path::to_owned);
        options.environment = environment;
        Ok(Self::with_options(options))
    }

    /// From options that are filled in already.
    pub fn with_options(options: KernelOptions) -> Self {
        Self {
            options,
            open: OpenOptions::default(),
            generations: Vec::new(),
            plugins: Vec::new(),
            tools: None,
        }
    }

    /// Which conversation the session continues; a new, stored one unless this is said.
    pub fn session(mut self, session: SessionChoice) -> Self {
        self.open.session = session;
        self
    }

    /// The model: `provider/id`, an id, or a part of one; it may end in `:level`. Otherwise the one of
    /// the session, of the settings, or the first that can be used.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.open.model = ModelWish {
            provider: None,
            model: Some(model.into()),
        };
        self
    }

    /// The session opens also where there is no model; prompts are refused until one is selected.
    pub fn model_may_be_missing(mut self) -> Self {
        self.open.may_lack_model = true;
        self
    }

    /// How hard the model thinks.
    pub fn thinking(mut self, level: ThinkingLevel) -> Self {
        self.open.level = Some(level);
        self
    }

    /// The models to choose from and to cycle through, as patterns.
    pub fn scoped_models<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.open.scope = Some(patterns.into_iter().map(Into::into).collect());
        self
    }

    /// Replaces the introduction of the system prompt.
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.open.system_prompt = Some(text.into());
        self
    }

    /// Adds to the system prompt.
    pub fn append_system_prompt(mut self, text: impl Into<String>) -> Self {
        self.open.append_system_prompt = Some(text.into());
        self
    }

    /// Which tools there are, and which are active at the start.
    pub fn tools(mut self, tools: ToolSelection) -> Self {
        self.options.tools = tools;
        self
    }

    /// A tool of the program. It stands over one of the same name that ships with pliant.
    pub fn custom_tool<T: Tool>(mut self, tool: T) -> Self {
        self.tools = Some(self.tools.take().unwrap_or_default().tool(tool));
        self
    }

    /// A plugin of the program: tools, wires, providers, commands, handlers. The name says whose they
    /// are wherever that matters; the last plugin of a name counts.
    pub fn plugin(mut self, name: impl Into<String>, plugin: Plugin) -> Self {
        self.plugins.push((name.into(), plugin));
        self
    }

    /// Contributions of any other kind of source.
    pub fn generation(mut self, generation: Arc<dyn Generation>) -> Self {
        self.generations.push(generation);
        self
    }

    /// The variables that count, such as those of keys and of the proxy. None do unless they are given.
    /// What tools start inherits those of the process all the same, without the keys.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.options.environment = environment;
        self
    }

    /// Whether the project's own files count.
    pub fn trust(mut self, trust: TrustPolicy) -> Self {
        self.options.trust = trust;
        self
    }

    /// A native plugin, by its file; it must load.
    pub fn library(mut self, file: impl Into<PathBuf>) -> Self {
        self.options.plugins.push(file.into());
        self
    }

    /// Which skills and prompt templates.
    pub fn resources(mut self, resources: ResourceOptions) -> Self {
        self.options.resources = resources;
        self
    }

    /// Settings instead of those in the files, which are then neither read nor written.
    pub fn settings(mut self, settings: Value) -> Self {
        self.options.settings = Some(Settings::from_value(settings));
        self
    }

    /// The key of a provider, for this process only. It counts before one that is stored or in the
    /// environment.
    pub fn api_key(mut self, provider: impl Into<String>, key: impl Into<String>) -> Self {
        self.options.keys.insert(provider.into(), key.into());
        self
    }

    /// What shows and asks for plugins; nobody does unless this is given.
    pub fn ui(mut self, ui: impl HostUi + 'static) -> Self {
        self.options.ui = Arc::new(ui);
        self
    }

    /// Called with the session, and with each that takes its place, before handlers hear of it: who
    /// subscribes here misses nothing.
    pub fn opened(mut self, opened: impl Fn(&Session) + Send + Sync + 'static) -> Self {
        self.options.opened = Arc::new(opened);
        self
    }

    /// Starts the kernel and opens the session. Needs a tokio runtime, which the session then uses.
    ///
    /// # Errors
    /// A sentence that says what to do.
    pub async fn build(self) -> Result<Runtime, BuildError> {
        let Self {
            options,
            open,
            mut generations,
            mut plugins,
            tools,
        } = self;
        let kernel = Kernel::boot(options)?;
        plugins.extend(tools.map(|tools| (OWN_TOOLS.to_owned(), tools)));
        for (name, plugin) in plugins {
            match InProcess::new(inline_source(&name), plugin) {
                Ok(plugin) => generations.push(Arc::new(plugin)),
                Err(error) => return Err(BuildError::Plugin { name, error }),
            }
        }
        kernel.registry().publish_all(generations);
        let session = kernel.open_session(open.clone()).await?;
        Ok(Runtime::new(Arc::new(kernel), session, open))
    }
}

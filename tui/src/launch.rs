//! From parsed arguments to an exit status: boot, scripts, session, mode.

use std::fs::File;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use pliant_kernel::dylib::HostProgram;
use pliant_kernel::environment::Environment;
use pliant_kernel::registry::Rank;
use pliant_kernel::reload::LoadFailure;
use pliant_kernel::session::Session;
use pliant_kernel::{Kernel, KernelOptions, OpenOptions, Runtime, SessionChoice};
use pliant_scripts::{
    FindScripts, Limits, Scripts, Shipped, WantsShipped, shipped_extensions, shipped_texts,
};
use pliant_sdk::flag::FlagSpec;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

use crate::args::{self, Args, Options, OutputMode};
use crate::dev_command;
use crate::held;
use crate::library::is_library;
use crate::modes::signals::{OnInterrupt, Signals};
use crate::modes::{self, Ui, rpc};
use crate::prompt_input::{from_home, prompts};
use crate::resume;
use crate::stdout::{self, Claimed};
use crate::{say, trust, unfold};

/// The first word of a process that runs a plugin: nobody types it.
pub const PLUGIN_HOST: &str = "__plugin-host";

/// Runs what was asked for and answers the exit status.
///
/// # Errors
/// What stopped it, as a sentence.
pub async fn run(mut args: Args) -> anyhow::Result<u8> {
    unfold::folders(&mut args.options)?;
    let asked = &args.options;
    if asked.version {
        return print_version();
    }
    asked.check()?;
    start_log(asked)?;
    let mode = mode(asked);
    if asked.resume && mode != Mode::Line {
        bail!(
            "--resume asks which session, which needs a terminal. Name it with --session, or take the latest with --continue; `pliant session list` shows those there are."
        );
    }
    let only_told = asked.help || asked.list_models.is_some();
    let Claimed { input, output } = match mode {
        Mode::Line if !only_told => stdout::share()?,
        _ => stdout::claim()?,
    };
    let mut options = kernel_options(asked, mode)?;
    if only_told {
        return tell(args, options, &output).await;
    }
    if mode == Mode::Rpc {
        return run_rpc(args, options, input, output).await;
    }
    options.ui = Arc::new(Ui::of(mode));
    let kernel = boot(&mut args, options, mode).await?;
    let prompts = prompts(&args, input)?;
    if mode != Mode::Line && prompts.is_empty() {
        say::warning(
            "There is no prompt, so nothing is asked. Give one: pliant -p \"what you want\".",
        );
    }
    let mut open = args.options.open_options()?;
    if args.options.resume && open.session == SessionChoice::New {
        open.session = SessionChoice::Named(resume::pick(&kernel.session_folders())?);
    }
    let session = held::open(&kernel, open.clone(), mode).await?;
    tell_oddities(&kernel, &session);
    let on_interrupt = match mode {
        Mode::Line => OnInterrupt::Tell,
        Mode::Print | Mode::Json | Mode::Rpc => OnInterrupt::End,
    };
    // Until here a signal simply ends the process: there is nothing to store.
    let signals = listen(on_interrupt)?;
    match mode {
        Mode::Print => modes::print::run(&session, prompts, signals, output).await,
        Mode::Json => modes::json::run(&session, prompts, signals, output).await,
        Mode::Line | Mode::Rpc => {
            let runtime = Runtime::new(Arc::new(kernel), session, later(open));
            modes::line::run(&runtime, prompts, signals).await
        }
    }
}

/// Nothing is loaded for it.
fn print_version() -> anyhow::Result<u8> {
    let Claimed { output, .. } = stdout::share()?;
    modes::tell(&output, concat!(env!("CARGO_PKG_VERSION"), "\n"))
}

/// The help or the models: what is not in order is told, and stops nobody from reading.
async fn tell(mut args: Args, options: KernelOptions, output: &File) -> anyhow::Result<u8> {
    let kernel = start(&args.options, options, Mode::Line).await?;
    if args.options.help {
        return modes::tell(output, &args::help_of(&flags(&kernel)));
    }
    settle(&mut args, &kernel)?;
    let search = args.options.list_models.as_deref().unwrap_or_default();
    modes::list_models::run(kernel.catalog(), search, output).await
}

/// A program on the other side: what it may be asked and told has its place before there is a plugin.
async fn run_rpc(
    mut args: Args,
    mut options: KernelOptions,
    input: File,
    output: File,
) -> anyhow::Result<u8> {
    if let Some(file) = args.files.first() {
        bail!(
            "@{} cannot be attached in RPC mode. Send what it says, or images, with the command \"prompt\".",
            file.display()
        );
    }
    let setup = rpc::Setup::new(output)?;
    let records = setup.records();
    options.ui = setup.ui();
    options.opened = Arc::new(move |session| records.follow(session.subscribe()));
    let kernel = boot(&mut args, options, Mode::Rpc).await?;
    let options = OpenOptions {
        may_lack_model: true,
        ..args.options.open_options()?
    };
    let signals = listen(OnInterrupt::End)?;
    let opening = async move {
        let session = held::open(&kernel, options.clone(), Mode::Rpc).await?;
        tell_oddities(&kernel, &session);
        Ok(rpc::Opened {
            kernel,
            session,
            options: later(options),
        })
    };
    setup.run(opening, input, signals).await
}

/// What later sessions are opened with: they have an id and a name of their own.
fn later(open: OpenOptions) -> OpenOptions {
    OpenOptions {
        id: None,
        name: None,
        ..open
    }
}

/// What the kernel is told of the process, without anything from the command line.
///
/// # Errors
/// When the working directory is gone, or there is no home.
pub fn bare_options() -> anyhow::Result<KernelOptions> {
    let mut options = KernelOptions::new(working_dir()?, agent_dir()?);
    options.environment = Environment::of_process();
    options.resources.home = options.environment.home().map(Path::to_owned);
    options.program = std::env::current_exe().ok();
    options.plugin_host = options.program.clone().map(|program| HostProgram {
        program,
        args: vec![PLUGIN_HOST.into()],
    });
    Ok(options)
}

fn kernel_options(asked: &Options, mode: Mode) -> anyhow::Result<KernelOptions> {
    let mut options = bare_options()?;
    if asked.offline {
        options.environment = options.environment.with("PLIANT_OFFLINE", "1");
    }
    options.trust = trust::policy(asked, mode);
    options.isolate = asked.isolate;
    options.dev = dev_command::crates(&asked.dev)?;
    let libraries = asked.extension.iter().filter(|path| is_library(path));
    options.plugins = asked.plugin.iter().chain(libraries).cloned().collect();
    options.session_dir = asked.session_dir.as_deref().map(from_home);
    options.no_extensions = asked.no_extensions;
    options.no_context_files = asked.no_context_files;
    options.tools = asked.tool_selection();
    options.resources = asked.resource_options();
    match shipped_texts(&options.agent_dir.join("cache").join("shipped")) {
        Ok(folder) => options.resources.shipped = Some(folder),
        Err(error) => say::warning(format!(
            "The skills and prompt templates that ship are left out, because they cannot be written to {}: {error}.",
            options.agent_dir.join("cache").display()
        )),
    }
    options.api_key.clone_from(&asked.api_key);
    Ok(options)
}

/// The kernel with all that was asked for, and what is odd about it on stderr.
async fn boot(args: &mut Args, options: KernelOptions, mode: Mode) -> anyhow::Result<Kernel> {
    let kernel = start(&args.options, options, mode).await?;
    settle(args, &kernel)?;
    warn_of_tools(&kernel, &args.options);
    Ok(kernel)
}

/// The kernel with its plugins and scripts.
async fn start(asked: &Options, mut options: KernelOptions, mode: Mode) -> anyhow::Result<Kernel> {
    trust::ask_extensions(asked, &mut options).await?;
    let kernel = Kernel::boot(options)?;
    for warning in kernel.warnings() {
        say::warning(warning);
    }
    let mut failures = kernel.failures().to_vec();
    publish_scripts(&kernel, asked, &mut failures).await?;
    judge(&failures, mode)?;
    for diagnostic in kernel.registry().snapshot().diagnostics() {
        say::warning(diagnostic);
    }
    kernel.shortcuts().1.iter().for_each(say::warning);
    Ok(kernel)
}

/// Options that extensions declare.
fn flags(kernel: &Kernel) -> Vec<FlagSpec> {
    let snapshot = kernel.registry().snapshot();
    snapshot.flags().map(|flag| flag.spec.clone()).collect()
}

/// Gives extensions what was typed for their options.
fn settle(args: &mut Args, kernel: &Kernel) -> anyhow::Result<()> {
    let given = args.settle_flags(&flags(kernel));
    for (name, value) in given.map_err(anyhow::Error::msg)? {
        kernel.flags().set(&name, value);
    }
    Ok(())
}

fn tell_oddities(kernel: &Kernel, session: &Session) {
    if let Some(problem) = kernel.catalog().error() {
        say::warning(problem);
    }
    for notice in session.notices() {
        say::warning(notice);
    }
}

fn listen(on_interrupt: OnInterrupt) -> anyhow::Result<Signals> {
    let signals = Signals::listen(on_interrupt);
    signals.map_err(|error| anyhow::anyhow!("Signals cannot be received: {error}."))
}

/// An extension that is missing may be the one that keeps watch, so where nobody looks, nothing is
/// done without it (`interfaces.md` §1.5); at a terminal the user sees the warning and decides.
fn judge(failures: &[String], mode: Mode) -> anyhow::Result<()> {
    match (failures, mode) {
        ([], _) => Ok(()),
        ([first, rest @ ..], Mode::Print | Mode::Json | Mode::Rpc) => {
            rest.iter().for_each(say::error);
            bail!("{first}")
        }
        (failures, Mode::Line) => {
            failures.iter().for_each(say::warning);
            Ok(())
        }
    }
}

/// A tool list with a name that nobody has may be a typing mistake, or meant for another version.
fn warn_of_tools(kernel: &Kernel, asked: &Options) {
    let tools = kernel.tool_names();
    if let Some(name) = asked.tool_selection().unknown(&tools) {
        say::warning(format_args!(
            "There is no tool \"{name}\". The tools are: {}.",
            tools.join(", ")
        ));
    }
}

/// How the session is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The last answer on stdout.
    Print,
    /// Every event on stdout.
    Json,
    /// A prompt, line by line.
    Line,
    /// Commands on stdin, answers and events on stdout.
    Rpc,
}

/// JSON if it was asked for, else print unless somebody sits at a terminal (`interfaces.md` §1.4).
fn mode(asked: &Options) -> Mode {
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    match asked.mode {
        Some(OutputMode::Json) => Mode::Json,
        Some(OutputMode::Rpc) => Mode::Rpc,
        _ if asked.print || !terminal => Mode::Print,
        _ => Mode::Line,
    }
}

/// Where the program was started.
///
/// # Errors
/// When that directory is gone.
pub fn working_dir() -> anyhow::Result<PathBuf> {
    std::env::current_dir().context("The working directory is gone; change to one that exists.")
}

/// `PLIANT_AGENT_DIR`, else `~/.pliant/agent`.
///
/// # Errors
/// When there is no home.
pub fn agent_dir() -> anyhow::Result<PathBuf> {
    match Environment::of_process().agent_dir() {
        Some(dir) => Ok(std::path::absolute(dir)?),
        None => bail!(
            "There is no home directory. Set PLIANT_AGENT_DIR to a directory for pliant's files."
        ),
    }
}

/// The scripts that ship, those of the user and of a trusted project, and those named on the command
/// line, which must load.
pub async fn publish_scripts(
    kernel: &Kernel,
    asked: &Options,
    failures: &mut Vec<String>,
) -> anyhow::Result<()> {
    let scripts = scripts(kernel, asked)?;
    let (failed, warnings) = kernel.reloader().load(Arc::new(scripts)).await;
    warnings.iter().for_each(say::warning);
    for LoadFailure { source, message } in failed {
        if source.is_some_and(|source| source.rank == Rank::CommandLine) {
            bail!("{message}");
        }
        failures.push(message);
    }
    Ok(())
}

fn scripts(kernel: &Kernel, asked: &Options) -> anyhow::Result<Scripts> {
    let all_shipped = shipped_extensions();
    let mut asked_for: Vec<String> = Vec::new();
    let mut folders = Vec::new();
    let found: FindScripts = match asked.no_extensions {
        true => Box::new(|| (Vec::new(), Vec::new())),
        false => {
            folders = kernel.extension_folders();
            Box::new(kernel.extension_finder("rhai"))
        }
    };
    let mut named = Vec::new();
    for path in asked.extension.iter().filter(|path| !is_library(path)) {
        match path.to_str().and_then(|path| path.strip_prefix("builtin:")) {
            Some(name) => asked_for.push(builtin(&all_shipped, name)?),
            None => named.push(path.clone()),
        }
    }
    let (found_too, ships) = (!asked.no_extensions, kernel.shipped_chooser());
    let shipped: WantsShipped = Box::new(move |shipped| {
        let is_asked_for = asked_for.iter().any(|name| name == shipped.name);
        is_asked_for || (found_too && ships(shipped.name).unwrap_or(shipped.on))
    });
    let host = Arc::clone(kernel.host());
    let limits = Limits {
        handler: kernel.settings().handler_limit().unwrap_or(Duration::MAX),
        ..Limits::default()
    };
    Ok(Scripts {
        shipped,
        found,
        folders,
        named,
        services: Arc::new(move |source| host.for_source(source, None)),
        limits,
    })
}

/// The extension of that name that ships.
fn builtin(shipped: &[Shipped], name: &str) -> anyhow::Result<String> {
    let mut names = shipped.iter().map(|shipped| shipped.name);
    if names.clone().any(|known| known == name) {
        return Ok(name.to_owned());
    }
    let names: Vec<_> = names.by_ref().collect();
    bail!(
        "No extension \"{name}\" ships with pliant. Those that do: {}.",
        names.join(", ")
    )
}

/// A log only where one was asked for: to a file, or to stderr where only PLIANT_LOG says what.
fn start_log(asked: &Options) -> anyhow::Result<()> {
    let filter = std::env::var("PLIANT_LOG").ok();
    let filter = filter.filter(|filter| !filter.is_empty());
    let writer = match (&asked.log_file, &filter) {
        (Some(path), _) => BoxMakeWriter::new(File::create(path).with_context(|| {
            format!(
                "The log file {} cannot be written. Name another one.",
                path.display()
            )
        })?),
        (None, Some(_)) => BoxMakeWriter::new(std::io::stderr),
        (None, None) => return Ok(()),
    };
    let filter = filter.unwrap_or_else(|| "pliant=debug".to_owned());
    let filter = tracing_subscriber::EnvFilter::try_new(&filter).with_context(|| {
        format!("PLIANT_LOG=\"{filter}\" is not a filter. Write for example pliant=debug.")
    })?;
    tracing_subscriber::fmt()
        .with_writer(writer)
        .with_ansi(false)
        .with_env_filter(filter)
        .init();
    Ok(())
}

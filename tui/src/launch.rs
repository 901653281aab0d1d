//! From parsed arguments to an exit status: boot, scripts, session, mode.

use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use pliant_kernel::registry::{Generation, Rank, Source};
use pliant_kernel::session::Session;
use pliant_kernel::{Kernel, KernelOptions, OpenOptions, textfile};
use pliant_scripts::{Limits, Script, load_extension, shipped_extensions};

use crate::args::{Args, OutputMode};
use crate::held;
use crate::library::is_library;
use crate::modes::signals::{OnInterrupt, Signals};
use crate::modes::{self, Ui, rpc};
use crate::say;
use crate::stdout::{self, Claimed};

/// Runs what was asked for and answers the exit status.
///
/// # Errors
/// What stopped it, as a sentence.
pub async fn run(args: &Args) -> anyhow::Result<u8> {
    start_log(args)?;
    let mode = mode(args);
    let Claimed { input, output } = match (mode, &args.list_models) {
        (Mode::Line, None) => stdout::share()?,
        _ => stdout::claim()?,
    };
    let cwd = working_dir()?;
    let agent_dir = agent_dir()?;
    let mut options = KernelOptions::new(cwd, agent_dir);
    options.program = std::env::current_exe().ok();
    let libraries = args.extension.iter().filter(|path| is_library(path));
    options.plugins = args.plugin.iter().chain(libraries).cloned().collect();
    options.tools = args.tool_selection();
    options.resources = args.resource_options();
    options.api_key.clone_from(&args.api_key);
    if mode == Mode::Rpc {
        return run_rpc(args, options, input, output).await;
    }
    options.ui = Arc::new(Ui::of(mode));
    let kernel = boot(args, options, mode).await?;
    if let Some(search) = &args.list_models {
        return modes::list_models::run(kernel.catalog(), search, &output).await;
    }
    let prompts = prompts(args, input)?;
    if mode != Mode::Line && prompts.is_empty() {
        bail!("There is no prompt. Give one: pliant -p \"what you want\".");
    }
    let session = held::open(&kernel, args.open_options()?, mode).await?;
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
        Mode::Line | Mode::Rpc => modes::line::run(&session, prompts, signals).await,
    }
}

/// A program on the other side: what it may be asked and told has its place before there is a plugin.
async fn run_rpc(
    args: &Args,
    mut options: KernelOptions,
    input: File,
    output: File,
) -> anyhow::Result<u8> {
    if let Some(file) = args.messages.iter().find(|word| word.starts_with('@')) {
        bail!(
            "RPC mode takes no files, so {file} cannot be attached. Send a prompt that names it."
        );
    }
    let setup = rpc::Setup::new(output)?;
    let records = setup.records();
    options.ui = setup.ui();
    options.opened = Arc::new(move |session| records.follow(session.subscribe()));
    let kernel = boot(args, options, Mode::Rpc).await?;
    let options = OpenOptions {
        may_lack_model: true,
        ..args.open_options()?
    };
    let signals = listen(OnInterrupt::End)?;
    let opening = async move {
        let session = held::open(&kernel, options.clone(), Mode::Rpc).await?;
        tell_oddities(&kernel, &session);
        Ok(rpc::Opened {
            kernel,
            session,
            options,
        })
    };
    setup.run(opening, input, signals).await
}

/// The kernel with all that was asked for, and what is odd about it on stderr.
async fn boot(args: &Args, options: KernelOptions, mode: Mode) -> anyhow::Result<Kernel> {
    if args.api_key.is_some() && args.model.is_none() {
        bail!("--api-key needs --model: a key goes to one service only. Name the model it is for.");
    }
    let agent_dir = options.agent_dir.clone();
    let kernel = Kernel::boot(options)?;
    for warning in kernel.warnings() {
        say::warning(warning);
    }
    let mut failures = kernel.failures().to_vec();
    publish_scripts(&kernel, args, &agent_dir, &mut failures).await?;
    judge(&failures, mode)?;
    check_tools(&kernel, args)?;
    for diagnostic in kernel.registry().snapshot().diagnostics() {
        say::warning(diagnostic);
    }
    Ok(kernel)
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

/// A tool list with a name that nobody has is a typing mistake.
fn check_tools(kernel: &Kernel, args: &Args) -> anyhow::Result<()> {
    let wanted = args.tool_selection();
    if wanted.is_mixed() {
        bail!(
            "--tools takes either the tools there are to be, or changes of the default ones (+name, -name), not both."
        );
    }
    let tools = kernel.tool_names();
    match wanted.unknown(&tools) {
        Some(name) => bail!(
            "There is no tool \"{name}\". The tools are: {}.",
            tools.join(", ")
        ),
        None => Ok(()),
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
fn mode(args: &Args) -> Mode {
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    match args.mode {
        Some(OutputMode::Json) => Mode::Json,
        Some(OutputMode::Rpc) => Mode::Rpc,
        _ if args.print || !terminal => Mode::Print,
        _ => Mode::Line,
    }
}

/// What was piped in, then the messages; the first prompt is both together (`interfaces.md` §1.3).
fn prompts(args: &Args, mut stdin: File) -> anyhow::Result<Vec<String>> {
    let (files, messages) = split_files(&args.messages)?;
    let mut prompts: Vec<String> = messages;
    if !files.is_empty() {
        match prompts.first_mut() {
            Some(first) => first.insert_str(0, &files),
            None => prompts.push(files),
        }
    }
    if stdin.is_terminal() {
        return Ok(prompts);
    }
    let mut piped = Vec::new();
    if let Err(error) = stdin.read_to_end(&mut piped) {
        bail!("Standard input cannot be read: {error}. Give it a file or </dev/null.");
    }
    let piped = String::from_utf8_lossy(&piped);
    let piped = piped.trim();
    if !piped.is_empty() {
        match prompts.first_mut() {
            Some(first) => first.insert_str(0, piped),
            None => prompts.push(piped.to_owned()),
        }
    }
    Ok(prompts)
}

/// The text of `@FILE` arguments, and the messages (`interfaces.md` §1.3). Empty files are skipped.
fn split_files(words: &[String]) -> anyhow::Result<(String, Vec<String>)> {
    let (mut files, mut messages) = (String::new(), Vec::new());
    for word in words {
        let Some(path) = word.strip_prefix('@') else {
            messages.push(word.clone());
            continue;
        };
        let text = textfile::read(Path::new(path)).map_err(|error| {
            anyhow::anyhow!("The file {path} cannot be attached: {error}. Text files can be; images come with a later version.")
        })?;
        if !text.is_empty() {
            let absolute = std::path::absolute(path)?;
            files.push_str(&format!(
                "<file name=\"{}\">\n{text}\n</file>\n",
                absolute.display()
            ));
        }
    }
    Ok((files, messages))
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
    let set = ["PLIANT_AGENT_DIR", "PLIANT_CODING_AGENT_DIR"]
        .iter()
        .find_map(std::env::var_os);
    let dir = match set.filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir),
        None => match std::env::home_dir() {
            Some(home) => home.join(".pliant").join("agent"),
            None => bail!(
                "There is no home directory. Set PLIANT_AGENT_DIR to a directory for pliant's files."
            ),
        },
    };
    Ok(std::path::absolute(dir)?)
}

/// The scripts that ship, the user's own, and those named on the command line, which must load.
async fn publish_scripts(
    kernel: &Kernel,
    args: &Args,
    agent_dir: &Path,
    failures: &mut Vec<String>,
) -> anyhow::Result<()> {
    let own = if args.no_extensions {
        Vec::new()
    } else {
        scripts_in(&agent_dir.join("extensions"))
    };
    let shipped = shipped_extensions()
        .into_iter()
        .map(|shipped| Ok(shipped.into()));
    let scripts = shipped.chain(own.iter().map(|path| Script::read(path, Rank::User)));
    let mut generations = Vec::new();
    for script in scripts.collect::<Vec<_>>() {
        let loaded = match script {
            Ok(script) => load(kernel, script).await,
            Err(error) => Err(error.into()),
        };
        match loaded {
            Ok(generation) => generations.push(generation),
            Err(error) => failures.push(error.to_string()),
        }
    }
    for path in args.extension.iter().filter(|path| !is_library(path)) {
        generations.push(load(kernel, Script::read(path, Rank::CommandLine)?).await?);
    }
    kernel.registry().publish_all(generations);
    Ok(())
}

/// The Rhai files of a directory, in the order of their names.
fn scripts_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_script = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == "rhai")
    };
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(is_script)
        .collect();
    paths.sort();
    paths
}

async fn load(kernel: &Kernel, script: Script) -> anyhow::Result<Arc<dyn Generation>> {
    let source = Source {
        name: script.name.clone(),
        path: script.path.clone(),
        rank: script.rank,
    };
    let services = kernel.host().for_source(&source, None);
    let limits = Limits {
        handler: kernel.settings().handler_limit().unwrap_or(Duration::MAX),
        ..Limits::default()
    };
    load_extension(script, services, limits)
        .await
        .map_err(|error| anyhow::anyhow!("The extension {} cannot be loaded: {error}", source.name))
}

/// A log only where one was asked for: stdout and stderr belong to the mode.
fn start_log(args: &Args) -> anyhow::Result<()> {
    let Some(path) = &args.log_file else {
        return Ok(());
    };
    let file = std::fs::File::create(path).with_context(|| {
        format!(
            "The log file {} cannot be written. Name another one.",
            path.display()
        )
    })?;
    let filter = std::env::var("PLIANT_LOG").unwrap_or_else(|_| "pliant=debug".to_owned());
    let filter = tracing_subscriber::EnvFilter::try_new(&filter).with_context(|| {
        format!("PLIANT_LOG=\"{filter}\" is not a filter. Write for example pliant=debug.")
    })?;
    tracing_subscriber::fmt()
        .with_writer(file)
        .with_ansi(false)
        .with_env_filter(filter)
        .init();
    Ok(())
}

//! The options, as clap knows them: names, values, help. How words become these is in `words`, what
//! they mean to the kernel in `meaning`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use pliant_kernel::theme::ThemeChoice;
use pliant_kernel::tree::SessionId;

use crate::say;

const MODE: &str = "Prompt and output";
const MODEL: &str = "Model";
const SESSION: &str = "Session";
const TOOLS: &str = "Tools";
const RESOURCES: &str = "Extensions and resources";
const DISPLAY: &str = "Display";
const OTHER: &str = "Other";

/// A terminal agent that is bent while it runs.
// No `Debug`: it would show the key.
#[derive(Parser)]
#[command(
    name = "pliant",
    version,
    no_binary_name = true,
    disable_version_flag = true,
    disable_help_flag = true,
    args_override_self = true
)]
pub struct Options {
    /// Answer the prompt, print the answer and exit. The next word is the prompt.
    #[arg(short, long, help_heading = MODE)]
    pub print: bool,

    /// What goes to stdout: the answer, or records for a program.
    #[arg(long, value_enum, help_heading = MODE)]
    pub mode: Option<OutputMode>,

    /// Replace the built-in introduction of the prompt: a text, or a file that holds it.
    #[arg(long, value_name = "TEXT|FILE", help_heading = MODE)]
    pub system_prompt: Option<String>,

    /// Add to the prompt: a text, or a file that holds it.
    #[arg(long, value_name = "TEXT|FILE", help_heading = MODE)]
    pub append_system_prompt: Vec<String>,

    /// Leave AGENTS.md and its relatives out of the prompt.
    #[arg(long, help_heading = MODE)]
    pub no_context_files: bool,

    /// Provider of the model; goes with --model.
    #[arg(long, value_name = "NAME", help_heading = MODEL)]
    pub provider: Option<String>,

    /// Model: an id, provider/id, or a part of either; `:high` and the like set the thinking level.
    #[arg(long, value_name = "MODEL", help_heading = MODEL)]
    pub model: Option<String>,

    /// Models to choose from, separated by commas: names as above, also with `*` and `?`.
    #[arg(long, value_name = "MODELS", help_heading = MODEL)]
    pub models: Option<String>,

    /// How much the model thinks: off, minimal, low, medium, high, xhigh, max.
    #[arg(long, value_name = "LEVEL", help_heading = MODEL)]
    pub thinking: Option<String>,

    /// Key for this run only; it is not stored.
    #[arg(long, value_name = "KEY", help_heading = MODEL)]
    pub api_key: Option<String>,

    /// Show the models that can be used; a word filters them.
    #[arg(long, value_name = "SEARCH", num_args = 0..=1, default_missing_value = "", help_heading = MODEL)]
    pub list_models: Option<String>,

    /// Continue the latest session of this directory.
    #[arg(short = 'c', long = "continue", help_heading = SESSION)]
    pub continue_latest: bool,

    /// Choose the session to continue (in a terminal).
    #[arg(short, long, help_heading = SESSION)]
    pub resume: bool,

    /// Open a session: its file, or the beginning of its id.
    #[arg(long, value_name = "PATH|ID", help_heading = SESSION)]
    pub session: Option<String>,

    /// Open the session of this directory with exactly this id, or begin it.
    #[arg(long, value_name = "ID", value_parser = session_id, conflicts_with_all = ["session", "continue_latest", "resume"], help_heading = SESSION)]
    pub session_id: Option<SessionId>,

    /// Copy a session (its file, or the beginning of its id) into a new one of this directory.
    #[arg(long, value_name = "PATH|ID", conflicts_with_all = ["session", "continue_latest", "resume", "no_session"], help_heading = SESSION)]
    pub fork: Option<String>,

    /// Where sessions are stored and looked for.
    #[arg(long, value_name = "DIR", help_heading = SESSION)]
    pub session_dir: Option<PathBuf>,

    /// Keep the session in memory only.
    #[arg(long, help_heading = SESSION)]
    pub no_session: bool,

    /// Export a session (its file, or the beginning of its id) as a page of HTML, to the file that is
    /// named after it: --export SESSION [OUTPUT].
    #[arg(long, value_name = "PATH|ID", help_heading = SESSION)]
    pub export: Option<String>,

    /// Name the session.
    #[arg(short, long, value_name = "NAME", value_parser = name, help_heading = SESSION)]
    pub name: Option<String>,

    /// Where another process has the session: wait until it is closed there.
    #[arg(long, help_heading = SESSION)]
    pub wait: bool,

    /// Read the session, also where another process has it, and store nothing.
    #[arg(long, conflicts_with = "wait", help_heading = SESSION)]
    pub read_only: bool,

    /// Only these tools, separated by commas (`*` matches any); or changes of the default: +name,-name.
    #[arg(short, long, value_name = "LIST", value_parser = tools, help_heading = TOOLS)]
    pub tools: Option<List>,

    /// Not these tools, separated by commas (`*` matches any).
    #[arg(long, value_name = "LIST", value_parser = list, help_heading = TOOLS)]
    pub exclude_tools: Option<List>,

    /// No built-in tools, unless --tools names them; those of extensions stay.
    #[arg(long, help_heading = TOOLS)]
    pub no_builtin_tools: bool,

    /// No tools, unless --tools names them.
    #[arg(long, help_heading = TOOLS)]
    pub no_tools: bool,

    /// Load an extension: a Rhai script, a plugin library, a folder with everything in it, or
    /// `builtin:NAME` for one that ships.
    #[arg(short, long, value_name = "FILE", help_heading = RESOURCES)]
    pub extension: Vec<PathBuf>,

    /// Load no extensions but those given with --extension.
    #[arg(long, help_heading = RESOURCES)]
    pub no_extensions: bool,

    /// Load a native plugin.
    #[arg(long, value_name = "FILE", help_heading = RESOURCES)]
    pub plugin: Vec<PathBuf>,

    /// Load the plugin whose crate is in this folder, and build and reload it whenever it is saved.
    #[arg(long, value_name = "FOLDER", help_heading = RESOURCES)]
    pub dev: Vec<PathBuf>,

    /// Run native plugins that do not ship with pliant in processes of their own.
    #[arg(long, help_heading = RESOURCES)]
    pub isolate: bool,

    /// Use no MCP servers.
    #[arg(long, help_heading = RESOURCES)]
    pub no_mcp: bool,

    /// Use a skill: its file or folder, or a folder of several.
    #[arg(long, value_name = "PATH", help_heading = RESOURCES)]
    pub skill: Vec<PathBuf>,

    /// Use no skills but those given with --skill.
    #[arg(long, help_heading = RESOURCES)]
    pub no_skills: bool,

    /// Use a prompt template: its file, or a folder of several.
    #[arg(long, value_name = "PATH", help_heading = RESOURCES)]
    pub prompt_template: Vec<PathBuf>,

    /// Use no prompt templates but those given with --prompt-template.
    #[arg(long, help_heading = RESOURCES)]
    pub no_prompt_templates: bool,

    /// Use a theme: its file, or a folder of several.
    #[arg(long, value_name = "PATH", help_heading = RESOURCES)]
    pub theme: Vec<PathBuf>,

    /// Use no themes but those given with --theme.
    #[arg(long, help_heading = RESOURCES)]
    pub no_themes: bool,

    /// Trust the project's own settings and extensions in this run.
    #[arg(short, long, overrides_with = "no_approve", help_heading = RESOURCES)]
    pub approve: bool,

    /// Do not trust them in this run.
    #[arg(long, overrides_with = "approve", help_heading = RESOURCES)]
    pub no_approve: bool,

    /// Begin with this theme, or a pair: light/dark.
    #[arg(long, value_name = "NAME", value_parser = theme, help_heading = DISPLAY)]
    pub use_theme: Option<String>,

    /// How much of the terminal is used.
    #[arg(long, value_enum, help_heading = DISPLAY)]
    pub tui_mode: Option<TuiMode>,

    /// Tell everything that is loaded at the start.
    #[arg(long, help_heading = DISPLAY)]
    pub verbose: bool,

    /// Use the network for nothing but what was asked for.
    #[arg(long, help_heading = OTHER)]
    pub offline: bool,

    /// Write a log to this file; PLIANT_LOG sets what, and alone it writes to stderr.
    #[arg(long, value_name = "FILE", help_heading = OTHER)]
    pub log_file: Option<PathBuf>,

    /// Show this help, with the options of the extensions.
    #[arg(short, long, help_heading = OTHER)]
    pub help: bool,

    /// Print the version.
    #[arg(short = 'v', long, help_heading = OTHER)]
    pub version: bool,
}

/// What goes to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputMode {
    /// The last answer.
    Text,
    /// Every event, one a line.
    Json,
    /// Commands on stdin, answers and events on stdout.
    Rpc,
}

/// How the terminal is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TuiMode {
    /// All of it.
    Fullscreen,
    /// As other programs use it.
    Regular,
}

/// Names separated by commas.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List(pub Vec<String>);

impl Options {
    /// Reads options in the one form that `words` gives them.
    pub(super) fn read(words: Vec<OsString>) -> Result<Self, String> {
        Self::try_parse_from(words).map_err(|error| sentence(&error))
    }
}

/// Ends the process with help, or a mistake, which has status 1.
pub fn end(error: &clap::Error) -> ! {
    if error.use_stderr() {
        say::error(sentence(error));
        std::process::exit(1);
    }
    // Nothing can be said if not even that can be printed.
    let _ = error.print();
    std::process::exit(0)
}

/// What clap says, as one sentence.
fn sentence(error: &clap::Error) -> String {
    let text = error.to_string();
    let said = text.split("\n\nUsage:").next().unwrap_or(&text);
    let said = said.split("\n\nFor more").next().unwrap_or(said);
    let words: Vec<_> = said.split_whitespace().collect();
    let said = words.join(" ");
    let said = said.trim_start_matches("error: ").trim_end_matches('.');
    let mut letters = said.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

/// The names in a list.
pub(super) fn names(text: &str) -> Vec<String> {
    let names = text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

#[expect(clippy::unnecessary_wraps, reason = "clap wants a parser")]
fn list(text: &str) -> Result<List, String> {
    Ok(List(names(text)))
}

/// Either names and patterns, or changes of what there is by default.
fn tools(text: &str) -> Result<List, String> {
    let names = names(text);
    let changes = names.iter().filter(|name| name.starts_with(['+', '-']));
    let pattern = changes.clone().find(|name| name.contains('*'));
    match (changes.count(), pattern) {
        (0, _) => {}
        (count, _) if count < names.len() => {
            return Err("it takes either the tools there are to be, or changes of the default ones (+name, -name), not both".to_owned());
        }
        (_, Some(pattern)) => {
            return Err(format!(
                "{pattern} has to name one tool: + and - take no patterns"
            ));
        }
        _ => {}
    }
    Ok(List(names))
}

fn name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("a name says something".to_owned()),
        name => Ok(name.to_owned()),
    }
}

fn session_id(text: &str) -> Result<SessionId, String> {
    SessionId::parse(text).map_err(|error| error.to_string())
}

fn theme(text: &str) -> Result<String, String> {
    match text {
        "" => Err("a theme has a name".to_owned()),
        option if option.starts_with('-') => Err("no theme has that name".to_owned()),
        name if ThemeChoice::parse(name).is_none() => {
            Err("it is one name, or two with a slash between them: light/dark".to_owned())
        }
        name => Ok(name.to_owned()),
    }
}

//! The first word may be a command instead of the beginning of a prompt. It is one only if it is
//! written exactly so: anything else is said to the model.

use std::ffi::OsString;
use std::io::Write;

use anyhow::bail;
use clap_complete::Shell;

use crate::args::{self, Args};
use crate::auth_command::AuthCommand;
use crate::config_command::ConfigCommand;
use crate::dev_command::DevCommand;
use crate::modes::unwritable;
use crate::package_command::PackageCommand;
use crate::plugin_command::PluginCommand;
use crate::script_command::ScriptCommand;
use crate::session_command::SessionCommand;
use crate::words::Words;

/// The commands there are.
pub const COMMANDS: &[(&str, &str)] = &[
    (
        "session",
        "List, show, export, examine, import and delete stored sessions",
    ),
    ("config", "Take over settings of pi"),
    ("auth", "Take over keys of pi"),
    (
        "plugin",
        "Start, check, list, install, remove and switch native plugins",
    ),
    ("script", "Check scripts, and show what they can call"),
    (
        "dev",
        "A session with plugins that are built and reloaded whenever they are saved",
    ),
    (
        "install",
        "Install a package: a folder or a repository with extensions, skills, prompts",
    ),
    ("remove", "Remove a package"),
    ("list", "List the packages"),
    ("update", "Update packages that follow a branch"),
    (
        "completions",
        "Print completions for a shell: bash, elvish, fish, powershell or zsh",
    ),
    ("help", "Show this help, or that of a command"),
];

/// Words that are commands of later versions; nobody should get used to them as prompts.
const RESERVED: &[&str] = &["acp", "mcp", "run"];

/// What the process was asked to do.
pub enum Asked {
    /// Something that needs no kernel.
    Session(SessionCommand),
    /// Likewise, about settings.
    Config(ConfigCommand),
    /// Likewise, about keys.
    Auth(AuthCommand),
    /// Likewise, about plugins.
    Plugin(PluginCommand),
    /// Likewise, about packages.
    Package(PackageCommand),
    /// Likewise, about scripts.
    Script(ScriptCommand),
    /// Builds of plugins, without a session.
    Dev(DevCommand),
    /// Completions for a shell.
    Completions(Shell),
    /// Everything else.
    Talk(Box<Args>),
}

/// Reads the command line of the process; a mistake ends it with status 1.
///
/// # Errors
/// A sentence about a command that does not exist yet.
pub fn asked() -> anyhow::Result<Asked> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let texts: Vec<&str> = words
        .iter()
        .map(|word| word.to_str().unwrap_or_default())
        .collect();
    Ok(match texts.as_slice() {
        ["session", ..] => Asked::Session(SessionCommand::read(&words)),
        ["config", ..] => Asked::Config(ConfigCommand::read(&words)),
        ["auth", ..] => Asked::Auth(AuthCommand::read(&words)),
        ["plugin", ..] => Asked::Plugin(PluginCommand::read(&words)),
        ["script", ..] => Asked::Script(ScriptCommand::read(&words)),
        ["install" | "remove" | "uninstall" | "list" | "update", ..] => {
            Asked::Package(PackageCommand::of(&words))
        }
        ["help", word @ ("install" | "remove" | "list" | "update")] => {
            Asked::Package(PackageCommand::of(&help_of(word)))
        }
        ["dev", ..] => match DevCommand::read(&words) {
            Ok(command) => Asked::Dev(command),
            Err(words) => Asked::Talk(Box::new(Args::read_or_exit(words))),
        },
        ["help", "plugin"] => Asked::Plugin(PluginCommand::read(&help_of("plugin"))),
        ["help", "script"] => Asked::Script(ScriptCommand::read(&help_of("script"))),
        ["help", "dev"] => match DevCommand::read(&help_of("dev")) {
            Ok(command) => Asked::Dev(command),
            Err(words) => Asked::Talk(Box::new(Args::read_or_exit(words))),
        },
        ["help", "session"] => Asked::Session(SessionCommand::read(&help_of("session"))),
        ["help", "config"] => Asked::Config(ConfigCommand::read(&help_of("config"))),
        ["help", "auth"] => Asked::Auth(AuthCommand::read(&help_of("auth"))),
        ["help"] | ["help", "completions"] => {
            Asked::Talk(Box::new(Args::read_or_exit(["--help".into()])))
        }
        ["completions", name] => match <Shell as clap::ValueEnum>::from_str(name, true) {
            Ok(shell) => Asked::Completions(shell),
            Err(_) => bail!(
                "There are no completions for \"{name}\", but for bash, elvish, fish, powershell and zsh."
            ),
        },
        ["completions"] => {
            bail!("Which shell? pliant completions bash, elvish, fish, powershell or zsh.")
        }
        [first, ..] if RESERVED.contains(first) => bail!(
            "The command \"{first}\" does not exist yet. To say it to the model: pliant -- {first} ..."
        ),
        _ => Asked::Talk(Box::new(Args::read_or_exit(words))),
    })
}

fn help_of(command: &str) -> [OsString; 2] {
    [command, "--help"].map(OsString::from)
}

/// Prints completions.
///
/// # Errors
/// When stdout cannot be written.
pub fn print_completions(shell: Shell) -> anyhow::Result<u8> {
    let mut command = args::command();
    for definition in [
        SessionCommand::definition(),
        ConfigCommand::definition(),
        AuthCommand::definition(),
        PluginCommand::definition(),
        ScriptCommand::definition(),
        DevCommand::definition(),
    ] {
        command = command.subcommand(definition);
    }
    let known: Vec<String> = command
        .get_subcommands()
        .map(|known| known.get_name().to_owned())
        .collect();
    let is_new = |name: &str| name != "help" && !known.iter().any(|known| known == name);
    for (name, about) in COMMANDS.iter().filter(|(name, _)| is_new(name)) {
        command = command.subcommand(clap::Command::new(*name).about(*about));
    }
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut command, "pliant", &mut text);
    match std::io::stdout().write_all(&text) {
        Ok(()) => Ok(0),
        Err(error) => unwritable(&error),
    }
}

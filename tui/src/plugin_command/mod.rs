//! `pliant plugin …`: what can be done with native plugins without a session. One file a command.

mod check;
mod enable;
mod install;
mod list;
mod lock;
mod new;
mod remove;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use pliant_kernel::KernelOptions;

use crate::launch;

/// Make, check, list, install, remove and switch plugins.
#[derive(Parser)]
#[command(name = "plugin", bin_name = "pliant plugin")]
pub struct PluginCommand {
    #[command(subcommand)]
    command: Command,
}

/// One variant a file.
#[derive(Subcommand)]
enum Command {
    New(new::New),
    Check(check::Check),
    List(list::List),
    Enable(enable::Enable),
    Disable(enable::Disable),
    Install(install::Install),
    Remove(remove::Remove),
}

impl PluginCommand {
    /// Runs it and answers the exit status.
    ///
    /// # Errors
    /// What stopped it, as a sentence.
    pub fn run(&self) -> anyhow::Result<u8> {
        match &self.command {
            Command::New(new) => new.run(),
            Command::Check(check) => check.run(),
            Command::List(list) => list.run(),
            Command::Enable(enable) => enable.run(),
            Command::Disable(disable) => disable.run(),
            Command::Install(install) => install.run(),
            Command::Remove(remove) => remove.run(),
        }
    }
}

/// The kernel's options as every front end would have them, without anything from the command line.
fn options() -> anyhow::Result<KernelOptions> {
    launch::bare_options()
}

/// Where plugins of the user are installed.
fn folder() -> anyhow::Result<PathBuf> {
    Ok(launch::agent_dir()?.join("plugins"))
}

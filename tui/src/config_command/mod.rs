//! `pliant config …`: what can be done with settings without a session. One file a command.

mod import_pi;

use clap::{Parser, Subcommand};

/// Take over settings.
#[derive(Parser)]
#[command(name = "config", bin_name = "pliant config")]
pub struct ConfigCommand {
    #[command(subcommand)]
    command: Command,
}

/// One variant a file.
#[derive(Subcommand)]
enum Command {
    ImportPi(import_pi::ImportPi),
}

impl ConfigCommand {
    /// Runs it and answers the exit status.
    ///
    /// # Errors
    /// What stopped it, as a sentence.
    pub fn run(&self) -> anyhow::Result<u8> {
        match &self.command {
            Command::ImportPi(import) => import.run(),
        }
    }
}

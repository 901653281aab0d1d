//! `pliant auth …`: what can be done with stored keys. One file a command.

mod import_pi;

use clap::{Parser, Subcommand};

/// Take over keys.
#[derive(Parser)]
#[command(name = "auth", bin_name = "pliant auth")]
pub struct AuthCommand {
    #[command(subcommand)]
    command: Command,
}

/// One variant a file.
#[derive(Subcommand)]
enum Command {
    ImportPi(import_pi::ImportPi),
}

impl AuthCommand {
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

//! `pliant config …`: what can be done with settings without a session. One file a command.

mod import_pi;

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use crate::args;

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
    /// Reads the words, of which the first is its name. A mistake in them ends the process with status 1.
    pub fn read(words: &[OsString]) -> Self {
        Self::try_parse_from(words).unwrap_or_else(|error| args::end(&error))
    }

    /// What there is to choose, for completions.
    pub fn definition() -> clap::Command {
        <Self as clap::CommandFactory>::command()
    }

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

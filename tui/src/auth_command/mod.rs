//! `pliant auth …`: what can be done with stored keys. One file a command.

mod import_pi;

use std::ffi::OsStr;

use clap::{Parser, Subcommand};

use crate::args;

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
    /// The command of the process, if its first word says that it is one about keys. A mistake in it
    /// ends the process with status 1.
    pub fn of_process() -> Option<Self> {
        let mut words = std::env::args_os().skip(1);
        if words.next().as_deref() != Some(OsStr::new("auth")) {
            return None;
        }
        let read = Self::try_parse_from(std::env::args_os().skip(1));
        Some(read.unwrap_or_else(|error| args::end(&error)))
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

//! `pliant script …`: what can be done with scripts without a session. One file a command.

mod check;
mod docs;
mod repl;

use clap::{Parser, Subcommand};

/// Check scripts, show what they can call, and try it out.
#[derive(Parser)]
#[command(name = "script", bin_name = "pliant script")]
pub struct ScriptCommand {
    #[command(subcommand)]
    command: Command,
}

/// One variant a file.
#[derive(Subcommand)]
enum Command {
    Check(check::Check),
    Docs(docs::Docs),
    Repl(repl::ReplArgs),
}

impl ScriptCommand {
    /// Runs it and answers the exit status.
    ///
    /// # Errors
    /// What stopped it, as a sentence.
    pub fn run(&self) -> anyhow::Result<u8> {
        match &self.command {
            Command::Check(check) => check.run(),
            Command::Docs(docs) => docs.run(),
            Command::Repl(repl) => repl.run(),
        }
    }
}

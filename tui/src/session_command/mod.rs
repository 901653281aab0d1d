//! `pliant session …`: what can be done with stored sessions without talking to a model. One file a
//! command. None of them starts the kernel, so they are done at once; stdout has the result only.

mod doctor;
mod export;
mod import;
mod list;
mod rm;
mod show;

use std::io::{IsTerminal, Write};
use std::path::Path;

use anyhow::Context;
use clap::{Parser, Subcommand};
use pliant_kernel::boot::SessionFolders;
use pliant_kernel::environment::Environment;
use pliant_kernel::settings::Settings;
use pliant_kernel::tree::{Damage, iso_from_ms};

use crate::launch;
use crate::modes::unwritable;
use crate::say::{self, printable};

/// List, show, export, examine, import and delete stored sessions.
#[derive(Parser)]
#[command(
    name = "session",
    bin_name = "pliant session",
    arg_required_else_help = false
)]
pub struct SessionCommand {
    #[command(subcommand)]
    command: Command,
}

/// One variant a file.
#[derive(Subcommand)]
enum Command {
    List(list::List),
    Show(show::Show),
    Export(export::Export),
    Doctor(doctor::Doctor),
    Import(import::Import),
    Rm(rm::Rm),
}

impl SessionCommand {
    /// Runs it and answers the exit status.
    ///
    /// # Errors
    /// What stopped it, as a sentence.
    pub fn run(&self) -> anyhow::Result<u8> {
        let folders = folders()?;
        match &self.command {
            Command::List(list) => list.run(&folders),
            Command::Show(show) => show.run(&folders),
            Command::Export(export) => export.run(&folders),
            Command::Doctor(doctor) => doctor.run(&folders),
            Command::Import(import) => import.run(&folders),
            Command::Rm(rm) => rm.run(&folders),
        }
    }
}

/// Where sessions are, seen from the working directory.
///
/// # Errors
/// When there is no such directory, or no home.
pub fn folders() -> anyhow::Result<SessionFolders> {
    let cwd = launch::working_dir()?;
    let agent_dir = launch::agent_dir()?;
    let (settings, problems) = Settings::load(&agent_dir);
    problems.iter().for_each(say::warning);
    let settings = settings.with_untrusted_project(&cwd);
    let environment = Environment::of_process();
    Ok(SessionFolders::new(
        &agent_dir,
        &cwd,
        &settings,
        &environment,
    ))
}

/// Writes the result. A program gets it as it is; a terminal must not be told what to do by what is
/// stored (U06).
pub fn print(text: &str) -> anyhow::Result<u8> {
    let mut out = std::io::stdout().lock();
    let written = if out.is_terminal() {
        out.write_all(printable(text).as_bytes())
    } else {
        out.write_all(text.as_bytes())
    };
    match written.and_then(|()| out.flush()) {
        Ok(()) => Ok(0),
        Err(error) => unwritable(&error),
    }
}

/// Writes the path of a file that there is now, or was.
fn print_path(path: &Path) -> anyhow::Result<u8> {
    print(&format!("{}\n", path.display()))
}

/// The first words of a text, on one line and without control characters.
pub fn first_words(text: &str, most: usize) -> String {
    let mut line = String::new();
    // A little more than fits is enough to see that it does not fit.
    for word in text.split_whitespace().take(most + 1) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().filter(|c| !c.is_control()).take(most + 1));
    }
    match line.char_indices().nth(most) {
        Some(_) => line.chars().take(most - 1).chain(['…']).collect(),
        None => line,
    }
}

/// `2026-11-30 21:04`, in UTC.
pub fn minute(ms: i64) -> String {
    let time = iso_from_ms(ms);
    format!("{} {}", &time[..10], &time[11..16])
}

/// Tells what of a file could not be read, the first places of it.
pub fn tell_damage(damage: &[Damage]) {
    const SHOWN: usize = 10;
    damage.iter().take(SHOWN).for_each(say::warning);
    if let Some(more @ 1..) = damage.len().checked_sub(SHOWN) {
        say::warning(format_args!(
            "{more} more places of the session file were skipped."
        ));
    }
}

/// The absolute form of a path, for what is written.
fn absolute(path: &Path) -> anyhow::Result<std::path::PathBuf> {
    std::path::absolute(path).with_context(|| format!("{} names no file.", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_words_are_one_line_of_bounded_length() {
        assert_eq!(first_words(" a\n\tb\u{1b}[1m  c ", 20), "a b[1m c");
        assert_eq!(first_words("abcdef", 6), "abcdef");
        assert_eq!(first_words("abcdefg", 6), "abcde…");
        assert_eq!(first_words(&"é ".repeat(1_000_000), 5), "é é …");
        assert_eq!(first_words("\u{7}", 5), "");
    }

    #[test]
    fn the_command_line_is_understood() {
        use clap::CommandFactory;
        SessionCommand::command().debug_assert();
    }
}

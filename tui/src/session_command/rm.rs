//! `pliant session rm`: sessions to the trash. A session that somebody is writing stays
//! (`kernel.md` S18).

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use pliant_kernel::boot::SessionFolders;
use pliant_kernel::tree;

use super::print_path;
use crate::say;

/// Move sessions to the trash.
#[derive(Args)]
pub struct Rm {
    /// Their files, or the beginnings of their ids.
    #[arg(required = true, value_name = "SESSION")]
    sessions: Vec<String>,

    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
}

impl Rm {
    /// One that does not exist or is no session stops the command before anything is done; one that
    /// stays for another reason does not save the others.
    pub fn run(&self, folders: &SessionFolders) -> anyhow::Result<u8> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for name in &self.sessions {
            let path = folders.find(name)?;
            // Whoever means pi's own says so with the path.
            if folders.is_of_pi(&path) && !name.contains(['/', '\\']) {
                bail!(
                    "The session {name} is pi's, so it stays. To delete it anyway, name its file: {}.",
                    path.display()
                );
            }
            if let Err(error) = std::fs::File::open(&path) {
                bail!("{} cannot be read, so it stays: {error}.", path.display());
            }
            // One whose header is damaged is a session by its place.
            let is_in_place = path.extension().is_some_and(|ending| ending == "jsonl")
                && folders
                    .all()
                    .iter()
                    .any(|folder| path.parent() == Some(folder));
            if !path.is_file() || !(is_in_place || tree::peek(&path).is_some()) {
                bail!("{} is not a session file, so it stays.", path.display());
            }
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        if !self.yes && !agreed(&paths) {
            say::note("Nothing was deleted.");
            return Ok(1);
        }
        let mut status = 0;
        for path in &paths {
            match tree::discard(path) {
                Ok(()) => status = print_path(path)?.max(status),
                Err(error) => {
                    say::error(error);
                    status = 1;
                }
            }
        }
        Ok(status)
    }
}

/// Asks where somebody can answer; a script has decided already.
fn agreed(paths: &[PathBuf]) -> bool {
    let mut stderr = std::io::stderr();
    if !std::io::stdin().is_terminal() || !stderr.is_terminal() {
        return true;
    }
    for path in paths {
        say::note(path.display());
    }
    let these = match paths.len() {
        1 => "this session".to_owned(),
        more => format!("these {more} sessions"),
    };
    let _ = write!(stderr, "Move {these} to the trash? [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

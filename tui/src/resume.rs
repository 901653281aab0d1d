//! `--resume` at a plain terminal: the latest sessions of the directory with a number each, and which
//! one is meant. A better picker is for a better interface.

use std::io::{BufRead, Write};

use anyhow::bail;
use pliant_kernel::boot::SessionFolders;
use pliant_kernel::tree::{self, Listed, one_line};

use crate::say::{self, printable};
use crate::session_command::{first_words, minute};

/// What fits on a terminal.
const SHOWN: usize = 20;

/// Characters of a name or of first words.
const TITLE: usize = 60;

/// Asks for a session, and answers its file.
///
/// # Errors
/// When there is none, or none is chosen.
pub fn pick(folders: &SessionFolders) -> anyhow::Result<String> {
    let mut sessions = tree::list(&folders.here());
    if let Some(cwd) = folders.only_of() {
        sessions.retain(|session| tree::same_directory(&session.header.cwd, cwd));
    }
    if sessions.is_empty() {
        bail!(
            "There are no stored sessions of this directory. `pliant session list --all` lists those of all others."
        );
    }
    for (number, session) in (1..).zip(sessions.iter().take(SHOWN)) {
        say::note(format_args!("{number:>3}  {}", line(session)));
    }
    loop {
        let Some(answer) = ask("Which one (a number, or q to leave)? ")? else {
            bail!("No session was chosen.");
        };
        let chosen = answer
            .parse()
            .ok()
            .and_then(|number: usize| number.checked_sub(1));
        match chosen.and_then(|index| sessions.iter().take(SHOWN).nth(index)) {
            Some(session) => return Ok(session.path.display().to_string()),
            None if answer == "q" => bail!("No session was chosen."),
            None => {}
        }
    }
}

fn line(session: &Listed) -> String {
    let title = session.name.as_deref().or(session.first_message.as_deref());
    let title = first_words(&printable(&one_line(title.unwrap_or_default())), TITLE);
    format!("{}  {title}", minute(session.modified_ms))
}

/// A line that is typed, without white space around it; `None` at the end of the input.
///
/// # Errors
/// When the terminal cannot be read or written.
pub fn ask(question: &str) -> anyhow::Result<Option<String>> {
    let mut out = std::io::stdout().lock();
    write!(out, "{question}")?;
    out.flush()?;
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim().to_owned()))
}

//! Opening a session that another process may have, or that is pi's: at a terminal the user is asked
//! what to do, else the options say it, or it fails (`kernel.md` S18).

use std::io::{BufRead, Write};

use anyhow::bail;
use pliant_kernel::session::Session;
use pliant_kernel::tree::TreeError;
use pliant_kernel::{Kernel, OpenError, OpenOptions, SessionChoice, WhenHeld};

use crate::launch::Mode;
use crate::say;

/// Opens a session.
///
/// # Errors
/// What stopped it, as a sentence.
pub async fn open(kernel: &Kernel, options: OpenOptions, mode: Mode) -> anyhow::Result<Session> {
    // Who has it is told before anything is waited for.
    let asked = options.when_held;
    let first = OpenOptions {
        when_held: match asked {
            WhenHeld::Wait => WhenHeld::Refuse,
            other => other,
        },
        ..options.clone()
    };
    let held = match kernel.open_session(first).await {
        Err(OpenError::Tree(error @ TreeError::Held { .. })) => error,
        Err(error @ OpenError::OfPi { .. }) if mode == Mode::Line => {
            return fork_of_pi(kernel, options, error).await;
        }
        opened => return Ok(opened?),
    };
    let TreeError::Held { path, .. } = &held else {
        return Err(held.into());
    };
    let file = path.display().to_string();
    let (session, when_held) = match (asked, mode) {
        (WhenHeld::Wait, _) => (options.session, WhenHeld::Wait),
        (_, Mode::Line) => match ask(&held)? {
            Choice::Wait => (options.session, WhenHeld::Wait),
            Choice::Read => (options.session, WhenHeld::Read),
            Choice::Fork => (SessionChoice::ForkOf(file), WhenHeld::Refuse),
            Choice::Leave => bail!("The session was not opened."),
        },
        _ => bail!("{held} Options for that: --wait, --read-only, or --fork {file}."),
    };
    if when_held == WhenHeld::Wait {
        say::note(format_args!("{held} Waiting; Ctrl-C gives up."));
    }
    let options = OpenOptions {
        session,
        when_held,
        ..options
    };
    Ok(kernel.open_session(options).await?)
}

/// A session of pi that was named by its id is not written to; a copy is offered.
async fn fork_of_pi(
    kernel: &Kernel,
    options: OpenOptions,
    error: OpenError,
) -> anyhow::Result<Session> {
    let OpenError::OfPi { file, .. } = &error else {
        return Err(error.into());
    };
    say::warning(&error);
    let mut out = std::io::stdout().lock();
    write!(out, "Copy it to this directory and go on there? [y/N] ")?;
    out.flush()?;
    drop(out);
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    if !matches!(line.trim().to_lowercase().as_str(), "y" | "yes") {
        bail!("The session was not opened.");
    }
    let session = SessionChoice::ForkOf(file.display().to_string());
    Ok(kernel
        .open_session(OpenOptions { session, ..options })
        .await?)
}

enum Choice {
    Wait,
    Read,
    Fork,
    Leave,
}

fn ask(held: &TreeError) -> anyhow::Result<Choice> {
    say::warning(held);
    loop {
        let mut out = std::io::stdout().lock();
        write!(
            out,
            "[w]ait, [f]ork into a new session, [r]ead without storing, or [q]uit? "
        )?;
        out.flush()?;
        let mut line = String::new();
        if std::io::stdin().lock().read_line(&mut line)? == 0 {
            return Ok(Choice::Leave);
        }
        match line.trim() {
            "w" | "wait" => return Ok(Choice::Wait),
            "f" | "fork" => return Ok(Choice::Fork),
            "r" | "read" => return Ok(Choice::Read),
            "q" | "quit" => return Ok(Choice::Leave),
            _ => {}
        }
    }
}

//! Opening a session that another process may have, or that is pi's: at a terminal the user is asked
//! what to do, else the options say it, or it fails (`kernel.md` S18).

use anyhow::bail;
use pliant_kernel::session::Session;
use pliant_kernel::tree::TreeError;
use pliant_kernel::{Kernel, OpenError, OpenOptions, SessionChoice, WhenHeld};

use crate::launch::Mode;
use crate::resume::ask;
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
        Err(error @ (OpenError::Elsewhere { .. } | OpenError::OfPi { .. }))
            if mode == Mode::Line =>
        {
            return fork_here(kernel, options, &error).await;
        }
        opened => return Ok(opened?),
    };
    let TreeError::Held { path, .. } = &held else {
        return Err(held.into());
    };
    let file = path.display().to_string();
    let (session, when_held) = match (asked, mode) {
        (WhenHeld::Wait, _) => (options.session, WhenHeld::Wait),
        (_, Mode::Line) => match what_now(&held)? {
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

/// A session of another directory, or of pi, is not written to: a copy is offered
/// (`interfaces.md` §1.2, §3.1).
async fn fork_here(
    kernel: &Kernel,
    options: OpenOptions,
    other: &OpenError,
) -> anyhow::Result<Session> {
    let source = match (other, options.session) {
        (OpenError::OfPi { file, .. }, _) => file.display().to_string(),
        (_, SessionChoice::Named(name)) => name,
        _ => bail!("{other}"),
    };
    say::warning(other);
    match ask("Copy it to this directory and go on there? [y/N] ")?.as_deref() {
        Some("y" | "yes") => {}
        _ => bail!("The session was not opened."),
    }
    let options = OpenOptions {
        session: SessionChoice::ForkOf(source),
        ..options
    };
    Ok(kernel.open_session(options).await?)
}

enum Choice {
    Wait,
    Read,
    Fork,
    Leave,
}

fn what_now(held: &TreeError) -> anyhow::Result<Choice> {
    say::warning(held);
    loop {
        const QUESTION: &str =
            "[w]ait, [f]ork into a new session, [r]ead without storing, or [q]uit? ";
        let Some(answer) = ask(QUESTION)? else {
            return Ok(Choice::Leave);
        };
        match &*answer {
            "w" | "wait" => return Ok(Choice::Wait),
            "f" | "fork" => return Ok(Choice::Fork),
            "r" | "read" => return Ok(Choice::Read),
            "q" | "quit" => return Ok(Choice::Leave),
            _ => {}
        }
    }
}

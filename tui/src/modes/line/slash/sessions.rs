//! `/new`, `/resume`, `/import`: another session in the place of this one; `/name`, `/session`: this one.

use std::fmt::Write;
use std::path::PathBuf;

use pliant_kernel::tree::{self, Listed};
use pliant_kernel::{Runtime, SessionChoice};

use super::{Outcome, Said, Slash};
use crate::session_command::{first_words, minute};

/// Sessions that `/resume` lists.
const LISTED: usize = 20;
const TITLE: usize = 60;

pub(super) const NEW: Slash = Slash {
    name: "new",
    takes: "",
    about: "Begin another session.",
    run: |runtime, _| Box::pin(async move { moved(runtime, runtime.new_session(None).await) }),
};

pub(super) const RESUME: Slash = Slash {
    name: "resume",
    takes: "[NUMBER|ID|FILE]",
    about: "List earlier sessions of this directory, or go on with one.",
    run: |runtime, word| Box::pin(resume(runtime, word)),
};

pub(super) const IMPORT: Slash = Slash {
    name: "import",
    takes: "FILE",
    about: "Copy a session file to the others and go on with it.",
    run: |runtime, word| Box::pin(import(runtime, word)),
};

pub(super) const NAME: Slash = Slash {
    name: "name",
    takes: "[NAME]",
    about: "Name this session, or show its name.",
    run: |runtime, name| {
        Box::pin(async move {
            let session = runtime.session();
            if name.is_empty() {
                let name = session.name().unwrap_or_else(|| "no name yet".to_owned());
                return Ok(Said::Text(format!("[{name}]\n")));
            }
            session.set_name(name).await.map_err(said)?;
            Ok(Said::Text(format!("[named {name}]\n")))
        })
    },
};

pub(super) const SESSION: Slash = Slash {
    name: "session",
    takes: "",
    about: "Show what this session has come to.",
    run: |runtime, _| Box::pin(async move { Ok(Said::Text(numbers(runtime).await)) }),
};

async fn resume(runtime: &Runtime, word: &str) -> Outcome {
    let sessions = earlier(runtime);
    if word.is_empty() {
        return Ok(Said::Text(listing(&sessions)));
    }
    let number = word.parse::<usize>().ok().and_then(|at| at.checked_sub(1));
    let file = match number.and_then(|at| sessions.get(at)) {
        Some(session) => session.path.clone(),
        None => {
            let folders = runtime.kernel().session_folders();
            folders.find(word).map_err(said)?
        }
    };
    open(runtime, file).await
}

/// What another program works with is not gone on with in place (`interfaces.md` §3.1).
async fn open(runtime: &Runtime, file: PathBuf) -> Outcome {
    let name = file.display().to_string();
    let choice = match runtime.kernel().session_folders().is_of_pi(&file) {
        true => SessionChoice::ForkOf(name),
        false => SessionChoice::Named(name),
    };
    moved(runtime, runtime.open(choice).await)
}

async fn import(runtime: &Runtime, word: &str) -> Outcome {
    if word.is_empty() {
        return Err("Say which file: /import FILE.".to_owned());
    }
    let source = runtime.session().cwd().join(word);
    let folder = runtime.kernel().session_folders().here();
    let copy = tree::import(&source, &folder).map_err(said)?;
    open(runtime, copy).await
}

pub(super) fn moved<T>(
    runtime: &Runtime,
    outcome: Result<Option<T>, impl std::fmt::Display>,
) -> Outcome {
    if outcome.map_err(said)?.is_none() {
        return Ok(Said::Text(
            "[an extension kept this session open]\n".to_owned(),
        ));
    }
    let session = runtime.session();
    let name = session
        .name()
        .unwrap_or_else(|| session.header().id.to_string());
    let mut text = format!("[session {name}]\n");
    for notice in session.notices() {
        // A string takes everything.
        let _ = writeln!(text, "[{notice}]");
    }
    Ok(Said::Moved(text))
}

pub(super) fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The sessions of this directory but the open one, the latest first.
fn earlier(runtime: &Runtime) -> Vec<Listed> {
    let folders = runtime.kernel().session_folders();
    let open = runtime.session().file();
    let directories = folders.of_directory();
    let mut sessions: Vec<_> = directories.iter().flat_map(|dir| tree::list(dir)).collect();
    let only_of = folders.only_of();
    sessions.retain(|session| {
        let is_here = only_of.is_none_or(|cwd| tree::same_directory(&session.header.cwd, cwd));
        is_here && Some(&session.path) != open.as_ref()
    });
    sessions.sort_by_key(|session| std::cmp::Reverse(session.modified_ms));
    sessions
}

fn listing(sessions: &[Listed]) -> String {
    if sessions.is_empty() {
        return "[there are no other sessions of this directory]\n".to_owned();
    }
    let mut text = String::new();
    for (at, session) in sessions.iter().take(LISTED).enumerate() {
        let title = session.name.as_ref().or(session.first_message.as_ref());
        let title = title.map_or_else(|| "(empty)".to_owned(), |title| first_words(title, TITLE));
        let time = minute(session.modified_ms);
        let _ = writeln!(text, "{:>3}  {time}  {title}", at + 1);
    }
    text.push_str("[/resume NUMBER goes on with one]\n");
    text
}

async fn numbers(runtime: &Runtime) -> String {
    let session = runtime.session();
    let stats = session.stats().await;
    let mut text = String::new();
    let mut add = |name: &str, value: String| {
        let _ = writeln!(text, "{name:12} {value}");
    };
    add("id", stats.session_id);
    if let Some(file) = stats.session_file {
        add("file", file.display().to_string());
    }
    if let Some(name) = session.name() {
        add("name", name);
    }
    add(
        "messages",
        format!(
            "{} of the user, {} answers, {} tool calls",
            stats.user_messages, stats.assistant_messages, stats.tool_calls
        ),
    );
    let tokens = stats.tokens;
    add(
        "tokens",
        format!(
            "{} in, {} out, {} read from caches, {} written to them",
            tokens.input, tokens.output, tokens.cache_read, tokens.cache_write
        ),
    );
    add("cost", format!("{:.4} USD", stats.cost));
    if let Some(usage) = stats.context_usage {
        let full = usage.percent.map_or_else(
            || "not known until the next answer".to_owned(),
            |percent| format!("{percent:.0} % of {} tokens", usage.context_window),
        );
        add("context", full);
    }
    text
}

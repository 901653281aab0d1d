//! `/tree`, `/label`: another place of the session; `/fork`, `/clone`: a new session from a place of it.

use std::collections::HashSet;
use std::fmt::Write;

use pliant_kernel::Runtime;
use pliant_kernel::run::NavigateOptions;
use pliant_kernel::tree::{EntryId, Position};

use super::sessions::{moved, said};
use super::{Outcome, Said, Slash};
use crate::session_command::first_words;

const TITLE: usize = 70;

pub(super) const TREE: Slash = Slash {
    name: "tree",
    takes: "[ENTRY [summarize]]",
    about: "List what was said on all branches, or go to a place of it.",
    run: |runtime, words| Box::pin(tree(runtime, words)),
};

pub(super) const FORK: Slash = Slash {
    name: "fork",
    takes: "[ENTRY]",
    about: "Take what came before something you said to a new session.",
    run: |runtime, word| Box::pin(fork(runtime, word)),
};

pub(super) const CLONE: Slash = Slash {
    name: "clone",
    takes: "",
    about: "Copy this branch to a new session.",
    run: |runtime, _| Box::pin(async move { moved(runtime, runtime.clone_session().await) }),
};

pub(super) const LABEL: Slash = Slash {
    name: "label",
    takes: "ENTRY [LABEL]",
    about: "Label a place of the session, or take its label away.",
    run: |runtime, words| {
        Box::pin(async move {
            let (word, label) = words.split_once(' ').unwrap_or((words, ""));
            let entry = place(runtime, word)?;
            let label = Some(label.trim()).filter(|label| !label.is_empty());
            runtime.session().set_label(&entry, label).map_err(said)?;
            Ok(Said::Nothing)
        })
    },
};

async fn tree(runtime: &Runtime, words: &str) -> Outcome {
    if words.is_empty() {
        return Ok(Said::Text(said_on_all_branches(runtime)));
    }
    let (word, how) = words.split_once(' ').unwrap_or((words, ""));
    let options = NavigateOptions {
        summarize: match how.trim() {
            "" => false,
            "summarize" => true,
            other => {
                return Err(format!(
                    "\"{other}\" is not \"summarize\", which is all that may follow the entry."
                ));
            }
        },
        ..NavigateOptions::default()
    };
    let entry = place(runtime, word)?;
    let arrival = runtime.session().navigate_tree(&entry, options).await;
    Ok(Said::Text(text_to_say_better(
        arrival.map_err(said)?.editor_text,
    )))
}

async fn fork(runtime: &Runtime, word: &str) -> Outcome {
    if word.is_empty() {
        return Ok(Said::Text(said_on_all_branches(runtime)));
    }
    let entry = place(runtime, word)?;
    let forked = runtime.fork(&entry, Position::Before).await;
    let mut text = None;
    let forked = forked.map(|forked| forked.map(|forked| text = forked.editor_text));
    match moved(runtime, forked)? {
        Said::Moved(told) => Ok(Said::Moved(told + &*text_to_say_better(text))),
        other => Ok(other),
    }
}

/// What stood there: a terminal interface has an editor for it.
fn text_to_say_better(text: Option<String>) -> String {
    match text {
        Some(text) => format!("[what you said there:]\n{text}\n"),
        None => "[here]\n".to_owned(),
    }
}

/// The entry that a word begins.
fn place(runtime: &Runtime, word: &str) -> Result<EntryId, String> {
    let entries = runtime.session().entries();
    let ids = entries.iter().map(|entry| entry.id());
    let mut found: Vec<_> = ids.filter(|id| id.as_str().starts_with(word)).collect();
    found.dedup();
    match (word, &found[..]) {
        ("", _) => Err("Say which entry; /tree lists them.".to_owned()),
        (_, [id]) => Ok((*id).clone()),
        (_, []) => Err(format!(
            "No entry begins with \"{word}\"; /tree lists them."
        )),
        (_, _) => Err(format!(
            "Several entries begin with \"{word}\". Give more of it."
        )),
    }
}

/// What the user said, a line each; those of the branch that is in force are marked.
fn said_on_all_branches(runtime: &Runtime) -> String {
    let session = runtime.session();
    let branch: HashSet<EntryId> = session
        .branch(None)
        .iter()
        .map(|entry| entry.id().clone())
        .collect();
    let mut text = String::new();
    for (id, said) in session.user_messages() {
        let mark = if branch.contains(&id) { '*' } else { ' ' };
        let label = session.label(&id);
        let label = label.map_or_else(String::new, |label| format!("({label}) "));
        // A string takes everything.
        let _ = writeln!(text, "{mark} {id}  {label}{}", first_words(&said, TITLE));
    }
    if text.is_empty() {
        text.push_str("[nothing was said yet]\n");
    }
    text
}

//! Slash words of the plain prompt (`interfaces.md` §12): a table; words that are not in it are those of
//! extensions, skills and templates.

mod export;
mod model;
mod places;
mod plugins;
mod reload;
mod sessions;

use std::fmt::Write;
use std::pin::Pin;

use pliant_kernel::Runtime;
use pliant_kernel::compaction::CompactionError;

/// What came of a slash word.
pub(super) enum Said {
    /// What there is to say is in the events.
    Nothing,
    /// This is to be shown.
    Text(String),
    /// Another session is open now; this is to be shown.
    Moved(String),
}

pub(super) type Outcome = Result<Said, String>;
type Running<'a> = Pin<Box<dyn Future<Output = Outcome> + 'a>>;

/// One of the words.
pub(super) struct Slash {
    pub(super) name: &'static str,
    /// What may follow it, for `/help`.
    takes: &'static str,
    about: &'static str,
    run: for<'a> fn(&'a Runtime, &'a str) -> Running<'a>,
}

impl Slash {
    /// Does it, with what follows the word.
    pub(super) async fn run(&self, runtime: &Runtime, rest: &str) -> Outcome {
        (self.run)(runtime, rest).await
    }
}

const WORDS: &[Slash] = &[
    Slash {
        name: "help",
        takes: "",
        about: "Show this list.",
        run: |runtime, _| Box::pin(async move { Ok(Said::Text(help(runtime))) }),
    },
    model::MODEL,
    model::THINKING,
    Slash {
        name: "compact",
        takes: "[WHAT TO KEEP IN MIND]",
        about: "Let a summary stand for what was said so far.",
        run: |runtime, focus| Box::pin(compact(runtime, focus)),
    },
    sessions::NEW,
    sessions::RESUME,
    sessions::IMPORT,
    sessions::NAME,
    sessions::SESSION,
    places::TREE,
    places::FORK,
    places::CLONE,
    places::LABEL,
    export::EXPORT,
    reload::RELOAD,
    plugins::PLUGINS,
];

/// The word that a line begins with, and what follows it.
pub(super) fn named(line: &str) -> Option<(&'static Slash, &str)> {
    let line = line.strip_prefix('/')?;
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let slash = WORDS.iter().find(|slash| slash.name == word)?;
    Some((slash, rest.trim()))
}

async fn compact(runtime: &Runtime, focus: &str) -> Outcome {
    match runtime.session().compact(Some(focus)).await {
        // That one is in the events.
        Ok(_) | Err(CompactionError::Aborted) => Ok(Said::Nothing),
        Err(error) => Err(error.to_string()),
    }
}

fn help(runtime: &Runtime) -> String {
    let mut text = String::new();
    let mut add = |word: &str, about: &str| {
        // A string takes everything.
        let _ = writeln!(text, "{word:32} {about}");
    };
    for slash in WORDS {
        add(
            format!("/{} {}", slash.name, slash.takes).trim_end(),
            slash.about,
        );
    }
    add("/quit", "End.");
    add("!COMMAND", "Run a command; the model sees what it prints.");
    add("!!COMMAND", "Run a command for yourself.");
    for command in runtime.kernel().slash_commands() {
        let about = command.description.unwrap_or_default();
        add(&format!("/{}", command.name), &about);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_by_its_whole_name_and_told_in_a_sentence() {
        for slash in WORDS {
            let line = format!("/{}  a b ", slash.name);
            let (found, rest) = named(&line).unwrap();
            assert_eq!((found.name, rest), (slash.name, "a b"));
            assert!(slash.about.ends_with('.'), "{}", slash.about);
            assert!(named(&format!("/{}x", slash.name)).is_none());
        }
    }
}

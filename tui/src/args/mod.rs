//! The command line: what was typed, and what it means. Nothing is loaded here.

mod flags;
mod help;
mod meaning;
mod options;
mod words;

use std::ffi::OsString;
use std::path::PathBuf;

pub use flags::FlagWord;
pub use help::{command, help_of};
pub use options::{Options, OutputMode, end};

use crate::say;

/// A command line that can be understood.
pub struct Args {
    /// What was chosen.
    pub options: Options,
    /// Messages, in their order.
    pub messages: Vec<String>,
    /// Files to attach (`@FILE`), in their order.
    pub files: Vec<PathBuf>,
    /// Long options that an extension may have declared.
    pub flags: Vec<FlagWord>,
}

impl Args {
    /// Reads the words of a command line; a mistake ends the process with status 1.
    pub fn read_or_exit(typed: impl IntoIterator<Item = OsString>) -> Self {
        Self::read(typed).unwrap_or_else(|error| {
            say::error(error);
            std::process::exit(1)
        })
    }

    /// Reads words, without the name of the program.
    ///
    /// # Errors
    /// A sentence.
    pub fn read(typed: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let words = words::sort(typed)?;
        let options = Options::read(words.options)?;
        Ok(Self {
            options,
            messages: words.messages,
            files: words.files,
            flags: words.flags,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(words: &[&str]) -> Result<Args, String> {
        Args::read(words.iter().map(OsString::from))
    }

    /// Words that mean something, and others.
    fn word() -> impl Strategy<Value = String> {
        let known = help::command()
            .get_arguments()
            .filter_map(|option| Some(format!("--{}", option.get_long()?)))
            .collect::<Vec<_>>();
        prop_oneof![
            prop::sample::select(known),
            prop::sample::select(
                [
                    "-p",
                    "-nt",
                    "-xt",
                    "-q",
                    "-",
                    "--",
                    "---",
                    "@",
                    "@x",
                    "",
                    "a,b",
                    "--x=1",
                    "--=",
                    "x",
                    "/x",
                    "high",
                    "-1",
                    "--mode=json",
                    "+a,b",
                    "\u{0}"
                ]
                .map(str::to_owned)
                .to_vec()
            ),
            ".*",
        ]
    }

    proptest! {
        #[test]
        fn any_words_are_understood_or_refused_with_a_sentence(
            words in prop::collection::vec(word(), 0..8)
        ) {
            let typed = words.iter().map(OsString::from);
            if let Err(sentence) = Args::read(typed) {
                prop_assert!(!sentence.trim().is_empty());
            }
        }

        #[test]
        fn what_follows_two_dashes_is_taken_as_it_is(
            rest in prop::collection::vec("[^@].*", 0..5)
        ) {
            let typed = ["--".to_owned()].into_iter().chain(rest.clone());
            let args = Args::read(typed.map(OsString::from)).unwrap();
            prop_assert_eq!(args.messages, rest);
        }
    }

    #[test]
    fn options_messages_and_files_may_be_mixed() {
        // interfaces §1.1
        let args = read(&[
            "one", "--model", "m", "@a.md", "two", "-c", "--", "-three", "@b.md", "--tools",
        ]);
        let args = args.unwrap();
        assert_eq!(args.messages, ["one", "two", "-three", "--tools"]);
        assert_eq!(args.files, [PathBuf::from("a.md"), PathBuf::from("b.md")]);
        assert_eq!(args.options.model.as_deref(), Some("m"));
        assert!(args.options.continue_latest);
    }

    #[test]
    fn sessions_exclude_each_other() {
        // interfaces §1.2
        let taken = |words: &[&str]| read(words).map(drop).unwrap_err();
        for other in [
            &["--session", "y"][..],
            &["--continue"],
            &["-r"],
            &["--no-session"],
        ] {
            let error = taken(&[&["--fork", "x"], other].concat());
            assert!(
                error.contains("--fork") && error.contains(other[0].trim_matches('r')),
                "{error}"
            );
        }
        for other in [&["--session", "y"][..], &["--continue"], &["--resume"]] {
            let error = taken(&[&["--session-id", "a"], other].concat());
            assert!(error.contains(other[0]), "{error}");
        }
        assert!(read(&["--fork", "x", "--session-id", "a"]).is_ok());
        assert!(read(&["--no-session", "--session-id", "a"]).is_ok());
    }

    #[test]
    fn a_value_that_is_missing_or_wrong_is_told() {
        for words in [
            &["--mode"][..],
            &["--mode", "xml"],
            &["--model"],
            &["--name"],
            &["--name", " "],
            &["--tui-mode", "huge"],
            &["--use-theme"],
            &["--use-theme", "-p"],
            &["--tools", "+a,b"],
            &["--tools", "+a*"],
            &["--session-id", "-x"],
            &["--session-id", "a b"],
            &["--session-id", "end-"],
            &["--print=x"],
        ] {
            let error = read(words).map(drop).unwrap_err();
            let option = words[0].split('=').next().unwrap_or_default();
            assert!(error.contains(option), "{words:?}: {error}");
            assert!(error.ends_with('.') && !error.contains('\n'), "{error}");
        }
    }
}

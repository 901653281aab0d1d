//! The words as typed, sorted: options in one form that clap can read, messages, files, and options
//! that only an extension can know (`interfaces.md` §1.1). What an option takes is asked of the
//! options' own definition, so there is nothing to say twice.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Arg, ArgAction};

use super::flags::FlagWord;
use super::help;

/// Short options of several letters, which clap does not know.
pub(super) const LONG_SHORTS: [(&str, &str); 8] = [
    ("-na", "no-approve"),
    ("-nbt", "no-builtin-tools"),
    ("-nc", "no-context-files"),
    ("-ne", "no-extensions"),
    ("-np", "no-prompt-templates"),
    ("-ns", "no-skills"),
    ("-nt", "no-tools"),
    ("-xt", "exclude-tools"),
];

/// The words of a command line by what they are.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// `--name` or `--name=value` each.
    pub(super) options: Vec<OsString>,
    pub(super) messages: Vec<String>,
    pub(super) files: Vec<PathBuf>,
    pub(super) flags: Vec<FlagWord>,
}

/// What an option does with the word after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    /// Whatever it is.
    Value,
    /// If it is no option and no file.
    ValueIfAny,
    /// The same, and it is a message.
    Message,
}

/// Sorts the words.
///
/// # Errors
/// A sentence about an option that nobody can know, or a word that is no text.
pub(super) fn sort(typed: impl IntoIterator<Item = OsString>) -> Result<Words, String> {
    let options: Vec<Arg> = help::command().get_arguments().cloned().collect();
    let mut words = Words::default();
    let mut typed = typed.into_iter().peekable();
    while let Some(word) = typed.next() {
        if word == "--" {
            for word in typed {
                words.add(word)?;
            }
            return Ok(words);
        }
        if !word.as_encoded_bytes().starts_with(b"-") {
            words.add(word)?;
            continue;
        }
        let Some(name) = word.to_str() else {
            return Err(no_text(&word));
        };
        let (name, joined) = match name.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value)),
            _ => (name, None),
        };
        let Some(option) = options.iter().find(|option| is_called(option, name)) else {
            let Some(flag) = name.strip_prefix("--") else {
                return Err(unknown_short(name));
            };
            let next = joined.map(str::to_owned);
            let value = match next {
                None => typed.next_if(|next| is_free(next)).map(text).transpose()?,
                given => given,
            };
            words.flags.push(FlagWord {
                name: flag.to_owned(),
                value,
                joined: joined.is_some(),
                before: words.messages.len(),
            });
            continue;
        };
        let value = match (joined, takes(option)) {
            (Some(value), _) => Some(OsString::from(value)),
            (None, Takes::Nothing) => None,
            (None, Takes::Value) => typed.next(),
            (None, Takes::ValueIfAny) => typed.next_if(|next| is_free(next)),
            (None, Takes::Message) => {
                // Three dashes are the front matter of a prompt.
                let matter = |next: &OsStr| next.as_encoded_bytes().starts_with(b"---");
                if let Some(next) = typed.next_if(|next| is_free(next) || matter(next)) {
                    words.messages.push(text(next)?);
                }
                None
            }
        };
        words.options.push(normal(option, value));
    }
    Ok(words)
}

impl Words {
    /// Adds a word that is no option.
    fn add(&mut self, word: OsString) -> Result<(), String> {
        if word.as_encoded_bytes().starts_with(b"@") {
            self.files.push(without_sign(&word));
        } else {
            self.messages.push(text(word)?);
        }
        Ok(())
    }
}

/// A path may be no text.
fn without_sign(word: &OsStr) -> PathBuf {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        OsStr::from_bytes(&word.as_bytes()[1..]).into()
    }
    #[cfg(not(unix))]
    PathBuf::from(&word.to_string_lossy()[1..])
}

fn is_called(option: &Arg, name: &str) -> bool {
    let long = LONG_SHORTS.iter().find(|(short, _)| *short == name);
    let long = long.map(|(_, long)| *long).or(name.strip_prefix("--"));
    if long.is_some() {
        return option.get_long() == long;
    }
    let mut letters = name.chars().skip(1);
    option.get_short().is_some() && option.get_short() == letters.next() && letters.next().is_none()
}

fn takes(option: &Arg) -> Takes {
    let optional = option
        .get_num_args()
        .is_some_and(|count| count.min_values() == 0);
    match option.get_action() {
        ArgAction::SetTrue if option.get_id() == "print" => Takes::Message,
        ArgAction::SetTrue => Takes::Nothing,
        _ if optional => Takes::ValueIfAny,
        _ => Takes::Value,
    }
}

/// The form in which nothing can be mistaken for something else.
fn normal(option: &Arg, value: Option<OsString>) -> OsString {
    let mut word = OsString::from("--");
    word.push(option.get_long().unwrap_or_default());
    if let Some(value) = value {
        word.push("=");
        word.push(value);
    }
    word
}

/// Neither an option nor a file.
fn is_free(word: &OsStr) -> bool {
    !matches!(word.as_encoded_bytes(), [b'-' | b'@', ..])
}

fn text(word: OsString) -> Result<String, String> {
    word.into_string().map_err(|word| no_text(&word))
}

fn no_text(word: &OsStr) -> String {
    format!(
        "The argument \"{}\" is no text in UTF-8, which is all that a model can read.",
        word.to_string_lossy()
    )
}

fn unknown_short(name: &str) -> String {
    let cut: String = name.chars().take(40).collect();
    format!(
        "There is no option {cut}. A message that begins with a dash stands behind \"--\"; `pliant --help` shows the options."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(words: &[&str]) -> Words {
        sort(words.iter().map(OsString::from)).unwrap()
    }

    #[test]
    fn print_takes_the_message_that_follows_it() {
        // interfaces §1.1
        let matter = "---\nname: x\n---\nDo it.";
        for (typed, messages) in [
            (&["-p", "list .", "--no-session"][..], &["list ."][..]),
            (
                &["first", "--print", matter, "last"],
                &["first", matter, "last"],
            ),
            (&["-p", "--no-session", "later"], &["later"]),
            (&["-p", "@file"], &[]),
        ] {
            let words = sorted(typed);
            assert_eq!(words.messages, messages, "{typed:?}");
            assert!(words.options.contains(&"--print".into()));
        }
        assert!(sort(["x", matter].map(OsString::from)).is_ok_and(|words| !words.flags.is_empty()));
    }

    #[test]
    fn options_have_one_form() {
        let words = sorted(&[
            "-nt",
            "-xt",
            "bash",
            "-e",
            "-odd.rhai",
            "--model=m",
            "--tools",
            "",
            "-v",
        ]);
        let wanted = [
            "--no-tools",
            "--exclude-tools=bash",
            "--extension=-odd.rhai",
            "--model=m",
            "--tools=",
            "--version",
        ];
        assert_eq!(words.options, wanted);
    }

    #[test]
    fn a_search_is_optional() {
        assert_eq!(
            sorted(&["--list-models", "son"]).options,
            ["--list-models=son"]
        );
        let words = sorted(&["--list-models", "@x", "--list-models", "-c"]);
        assert_eq!(
            words.options,
            ["--list-models", "--list-models", "--continue"]
        );
    }

    #[test]
    fn an_unknown_long_option_is_kept_for_an_extension() {
        // interfaces §1.1
        let words = sorted(&[
            "a",
            "--plan=x=y",
            "--plan",
            "now",
            "--plan",
            "-c",
            "--plan",
            "@f",
        ]);
        let kept: Vec<_> = words
            .flags
            .iter()
            .map(|flag| flag.value.as_deref())
            .collect();
        assert_eq!(kept, [Some("x=y"), Some("now"), None, None]);
        assert!(
            words
                .flags
                .iter()
                .all(|flag| flag.name == "plan" && flag.before == 1)
        );
    }

    #[test]
    fn an_unknown_short_option_is_a_mistake() {
        // interfaces §1.1
        for word in ["-q", "-pc", "-", "-nx", "-né"] {
            let error = sort([OsString::from(word)]).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_paths_may_be_no_text() {
        use std::os::unix::ffi::OsStringExt;
        let word = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        for words in [
            vec![word(b"\xff")],
            vec![word(b"-p"), word(b"---\xff")],
            vec![word(b"--x"), word(b"\xff")],
            vec![word(b"--\xff")],
        ] {
            assert!(sort(words).is_err());
        }
        assert_eq!(sort([word(b"@\xff")]).unwrap().files.len(), 1);
        assert_eq!(sort([word(b"-e"), word(b"\xff")]).unwrap().options.len(), 1);
    }
}

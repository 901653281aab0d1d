//! The command line as typed, and what it means. Nothing is loaded here.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Parser, ValueEnum};
use pliant_kernel::models::ModelWish;
use pliant_kernel::resources::ResourceOptions;
use pliant_kernel::session::ToolSelection;
use pliant_kernel::{OpenOptions, SessionChoice, WhenHeld, textfile};
use pliant_sdk::message::ThinkingLevel;

use crate::say;

/// A terminal agent that is bent while it runs.
// No `Debug`: it would show the key.
#[derive(Parser)]
#[command(
    name = "pliant",
    version,
    disable_version_flag = true,
    args_override_self = true,
    after_help = "Stored sessions: pliant session list, show, export, doctor, import, rm (pliant session --help)."
)]
pub struct Args {
    /// Answer the prompt, print the answer and exit.
    #[arg(short, long)]
    pub print: bool,

    /// Output: `text` (the answer) or `json` (every event, one a line).
    #[arg(long, value_enum)]
    pub mode: Option<OutputMode>,

    /// Provider of the model.
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,

    /// Model: an id, provider/id, or a part of either; `:high` and the like set the thinking level.
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// Models to choose from, separated by commas: names as above, also with `*` and `?`.
    #[arg(long, value_name = "MODELS", value_delimiter = ',')]
    pub models: Option<Vec<String>>,

    /// How much the model thinks: off, minimal, low, medium, high, xhigh, max.
    #[arg(long, value_name = "LEVEL")]
    pub thinking: Option<String>,

    /// Key for this run only; it is not stored.
    #[arg(long, value_name = "KEY")]
    pub api_key: Option<String>,

    /// Show the models that can be used; a word filters them.
    #[arg(long, value_name = "SEARCH", num_args = 0..=1, default_missing_value = "")]
    pub list_models: Option<String>,

    /// Continue the latest session of this directory.
    #[arg(short = 'c', long = "continue")]
    pub continue_latest: bool,

    /// Open a session: its file, or the beginning of its id.
    #[arg(long, value_name = "PATH|ID", conflicts_with = "continue_latest")]
    pub session: Option<String>,

    /// Copy a session (its file, or the beginning of its id) into a new one of this directory.
    #[arg(long, value_name = "PATH|ID", conflicts_with_all = ["continue_latest", "session"])]
    pub fork: Option<String>,

    /// Where another process has the session: wait until it is closed there.
    #[arg(long)]
    pub wait: bool,

    /// Read the session, also where another process has it, and store nothing.
    #[arg(long, conflicts_with = "wait")]
    pub read_only: bool,

    /// Keep the session in memory only.
    #[arg(long, conflicts_with_all = ["continue_latest", "session", "fork"])]
    pub no_session: bool,

    /// Replace the built-in introduction of the prompt: a text, or a file that holds it.
    #[arg(long, value_name = "TEXT|FILE")]
    pub system_prompt: Option<String>,

    /// Add to the prompt: a text, or a file that holds it.
    #[arg(long, value_name = "TEXT|FILE")]
    pub append_system_prompt: Vec<String>,

    /// Only these tools, separated by commas (`*` matches any); or changes of the default: +name,-name.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub tools: Option<Vec<String>>,

    /// Not these tools, separated by commas (`*` matches any).
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub exclude_tools: Vec<String>,

    /// No tools.
    #[arg(long, conflicts_with = "tools")]
    pub no_tools: bool,

    /// Load an extension: a Rhai script or a plugin library.
    #[arg(short, long, value_name = "FILE")]
    pub extension: Vec<PathBuf>,

    /// Load no extensions but those given with `-e`.
    #[arg(long)]
    pub no_extensions: bool,

    /// Use a skill: its file or folder, or a folder of several.
    #[arg(long, value_name = "PATH")]
    pub skill: Vec<PathBuf>,

    /// Use no skills but those given with `--skill`.
    #[arg(long)]
    pub no_skills: bool,

    /// Use a prompt template: its file, or a folder of several.
    #[arg(long, value_name = "PATH")]
    pub prompt_template: Vec<PathBuf>,

    /// Use no prompt templates but those given with `--prompt-template`.
    #[arg(long)]
    pub no_prompt_templates: bool,

    /// Load a native plugin.
    #[arg(long, value_name = "FILE")]
    pub plugin: Vec<PathBuf>,

    /// Write a log to this file; PLIANT_LOG sets what (default: debug).
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,

    /// Print the version.
    #[arg(short = 'v', long, action = clap::ArgAction::Version)]
    version: Option<bool>,

    /// The prompt; several are run one after the other.
    #[arg(value_name = "MESSAGE")]
    pub messages: Vec<String>,
}

/// What goes to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputMode {
    /// The last answer.
    Text,
    /// Every event, one a line.
    Json,
    /// Commands on stdin, answers and events on stdout.
    #[value(hide = true)]
    Rpc,
}

/// Short options of more than one letter, which are part of the interface (`interfaces.md` §1.2).
const LONG_SHORTS: [(&str, &str); 6] = [
    ("-ne", "--no-extensions"),
    ("-np", "--no-prompt-templates"),
    ("-ns", "--no-skills"),
    ("-nt", "--no-tools"),
    ("-t", "--tools"),
    ("-xt", "--exclude-tools"),
];

/// Marks a word as a message, whatever it begins with. No argument of a process can hold it.
const MESSAGE: char = '\0';

impl Args {
    /// Reads the command line of the process; a mistake ends it with status 1.
    pub fn of_process() -> Self {
        Self::read(std::env::args_os()).unwrap_or_else(|error| end(&error))
    }

    fn read(typed: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut args = Self::try_parse_from(words(typed))?;
        for message in &mut args.messages {
            if let Some(marked) = message.strip_prefix(MESSAGE) {
                *message = marked.to_owned();
            }
        }
        Ok(args)
    }

    /// Which tools are wanted.
    pub fn tool_selection(&self) -> ToolSelection {
        if self.no_tools {
            return ToolSelection::none();
        }
        ToolSelection {
            allow: self.tools.clone(),
            exclude: self.exclude_tools.clone(),
            defaults: None,
        }
    }

    /// Which skills and prompt templates are wanted.
    pub fn resource_options(&self) -> ResourceOptions {
        ResourceOptions {
            skills: self.skill.clone(),
            no_skills: self.no_skills,
            templates: self.prompt_template.clone(),
            no_templates: self.no_prompt_templates,
            home: std::env::home_dir(),
            no_pi: false,
        }
    }

    /// What the session is opened with.
    ///
    /// # Errors
    /// When a file with a part of the prompt cannot be read.
    pub fn open_options(&self) -> anyhow::Result<OpenOptions> {
        let session = match (&self.session, &self.fork) {
            (Some(name), _) => SessionChoice::Named(name.clone()),
            (_, Some(name)) => SessionChoice::ForkOf(name.clone()),
            _ if self.continue_latest => SessionChoice::Continue,
            _ if self.no_session => SessionChoice::InMemory,
            _ => SessionChoice::New,
        };
        let when_held = match (self.wait, self.read_only) {
            (true, _) => WhenHeld::Wait,
            (_, true) => WhenHeld::Read,
            _ => WhenHeld::Refuse,
        };
        let level = self.thinking.as_deref().and_then(ThinkingLevel::parse);
        if let (Some(word), None) = (&self.thinking, level) {
            say::warning(format_args!(
                "\"{word}\" is not a thinking level and is ignored; the levels are off, minimal, low, medium, high, xhigh, max."
            ));
        }
        let appended = self
            .append_system_prompt
            .iter()
            .map(|text| text_or_file(text))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let system_prompt = self.system_prompt.as_deref().map(text_or_file);
        Ok(OpenOptions {
            session,
            when_held,
            model: ModelWish {
                provider: self.provider.clone(),
                model: self.model.clone(),
            },
            level,
            scope: self.models.clone(),
            system_prompt: system_prompt.transpose()?,
            append_system_prompt: (!appended.is_empty()).then(|| appended.join("\n\n")),
            ..OpenOptions::default()
        })
    }
}

/// Ends the process with help, the version, or a mistake, which has status 1.
pub fn end(error: &clap::Error) -> ! {
    if error.use_stderr() {
        let text = error.to_string();
        let lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).collect();
        say::error(lines.join("\n").trim_start_matches("error: "));
        std::process::exit(1);
    }
    // Help or the version; nothing can be said if not even that can be printed.
    let _ = error.print();
    std::process::exit(0)
}

/// What clap reads: short options of several letters as the long ones they stand for, and the word
/// after `-p` marked as a message if it begins with three dashes, as front matter does.
fn words(typed: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut typed = typed.into_iter();
    let mut words = Vec::new();
    let mut after_print = false;
    for word in typed.by_ref() {
        let is_message = after_print && word.as_encoded_bytes().starts_with(b"---");
        after_print = word == "-p" || word == "--print";
        let long = LONG_SHORTS.iter().find(|(short, _)| word == *short);
        let rest = word == "--";
        words.push(match long {
            _ if is_message => [OsString::from(String::from(MESSAGE)), word]
                .into_iter()
                .collect(),
            Some((_, long)) => OsString::from(*long),
            None => word,
        });
        if rest {
            break;
        }
    }
    words.extend(typed);
    words
}

/// A value that names a file stands for its content; one that names nothing is the text itself.
fn text_or_file(value: &str) -> anyhow::Result<String> {
    match textfile::read(Path::new(value)) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::PermissionDenied || Path::new(value).exists() => {
            bail!("The prompt file {value} cannot be read: {error}.")
        }
        Err(_) => Ok(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    fn read(words: &[&str]) -> Result<Args, String> {
        let words = ["pliant"].iter().chain(words).map(OsString::from);
        Args::read(words).map_err(|error| error.to_string())
    }

    #[test]
    fn print_takes_the_message_that_follows_it() {
        let args = read(&["-p", "list .", "--mode", "json"]).unwrap();
        assert!(args.print && args.mode == Some(OutputMode::Json));
        assert_eq!(args.messages, ["list ."]);
    }

    #[test]
    fn the_message_after_print_may_begin_with_three_dashes_and_only_there() {
        let matter = "---\nname: x\n---\nDo it.";
        for print in ["-p", "--print"] {
            let args = read(&["first", print, matter, "--no-session", "last"]).unwrap();
            assert_eq!(args.messages, ["first", matter, "last"]);
            assert!(args.no_session);
        }
        assert!(read(&["-p", "-z"]).is_err());
        assert!(read(&["x", matter]).is_err());
    }

    #[test]
    fn short_options_of_several_letters_are_options_until_two_dashes() {
        let args = read(&["-ne", "-ns", "-np", "-xt", "bash", "--", "-nt"]).unwrap();
        assert!(args.no_extensions && !args.no_tools);
        assert!(args.no_skills && args.no_prompt_templates);
        assert_eq!(args.exclude_tools, ["bash"]);
        assert_eq!(args.messages, ["-nt"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_word_that_is_no_text_is_a_mistake() {
        use std::os::unix::ffi::OsStringExt;
        for word in [&b"\xff"[..], b"---\xff"] {
            let words = [b"pliant", &b"-p"[..], word].map(|word| OsString::from_vec(word.to_vec()));
            assert!(Args::read(words).is_err());
        }
    }

    #[test]
    fn sessions_exclude_each_other() {
        assert!(read(&["--continue", "--no-session"]).is_err());
    }

    #[test]
    fn a_prompt_is_a_text_or_a_file_that_can_be_read() {
        assert_eq!(text_or_file("Be brief.").unwrap(), "Be brief.");
        assert_eq!(text_or_file(&"long ".repeat(1000)).unwrap().len(), 5000);
        let manifest = text_or_file("Cargo.toml").unwrap();
        assert!(manifest.contains("[package]"));
        let error = text_or_file("src").unwrap_err().to_string();
        assert!(error.contains("src cannot be read"), "{error}");
    }
}

//! The command line as typed, and what it means. Nothing is loaded here.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use pliant_kernel::models::ModelWish;
use pliant_kernel::session::ToolSelection;
use pliant_kernel::{OpenOptions, SessionChoice};
use pliant_sdk::message::ThinkingLevel;

/// A terminal agent that is bent while it runs.
#[derive(Debug, Parser)]
#[command(
    name = "pliant",
    version,
    disable_version_flag = true,
    args_override_self = true
)]
pub struct Args {
    /// Answer the prompt, print the answer and exit.
    #[arg(short, long)]
    pub print: bool,

    /// Output: `text` (the last answer) or `json` (every event, one a line).
    #[arg(long, value_enum)]
    pub mode: Option<OutputMode>,

    /// Provider of the model.
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,

    /// Model: an id, provider/id, or a part of either; `:high` and the like set the thinking level.
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

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
    #[arg(short, long = "continue")]
    pub resume_latest: bool,

    /// Open a session: its file, or the beginning of its id.
    #[arg(long, value_name = "PATH|ID", conflicts_with = "resume_latest")]
    pub session: Option<String>,

    /// Keep the session in memory only.
    #[arg(long, conflicts_with_all = ["resume_latest", "session"])]
    pub no_session: bool,

    /// Replace the built-in introduction of the prompt: a text, or a file that holds it.
    #[arg(long, value_name = "TEXT|FILE")]
    pub system_prompt: Option<String>,

    /// Add to the prompt: a text, or a file that holds it.
    #[arg(long, value_name = "TEXT|FILE")]
    pub append_system_prompt: Vec<String>,

    /// Only these tools, separated by commas.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub tools: Option<Vec<String>>,

    /// Not these tools, separated by commas.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub exclude_tools: Vec<String>,

    /// No tools.
    #[arg(long, conflicts_with = "tools")]
    pub no_tools: bool,

    /// Load a Rhai extension.
    #[arg(short, long, value_name = "FILE")]
    pub extension: Vec<PathBuf>,

    /// Load no extensions but those given with `-e`.
    #[arg(long)]
    pub no_extensions: bool,

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
}

/// Short options of more than one letter, which are part of the interface (`interfaces.md` §1.2).
const LONG_SHORTS: [(&str, &str); 3] = [
    ("-nt", "--no-tools"),
    ("-t", "--tools"),
    ("-xt", "--exclude-tools"),
];

impl Args {
    /// Reads the command line of the process; a mistake ends it with status 1.
    pub fn of_process() -> Self {
        let long = |word: OsString| {
            let found = LONG_SHORTS.iter().find(|(short, _)| word == *short);
            found.map_or(word, |(_, long)| OsString::from(*long))
        };
        Self::try_parse_from(std::env::args_os().map(long)).unwrap_or_else(|error| {
            let status = i32::from(error.use_stderr());
            // Nothing can be said if not even this can be printed.
            let _ = error.print();
            std::process::exit(status)
        })
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

    /// What the session is opened with.
    ///
    /// # Errors
    /// When `--provider` stands without `--model`, or the prompt file cannot be read.
    pub fn open_options(&self) -> anyhow::Result<OpenOptions> {
        let session = match (&self.session, self.resume_latest, self.no_session) {
            (Some(name), _, _) => SessionChoice::Named(name.clone()),
            (_, true, _) => SessionChoice::Continue,
            (_, _, true) => SessionChoice::InMemory,
            _ => SessionChoice::New,
        };
        let level = self.thinking.as_deref().and_then(ThinkingLevel::parse);
        if let (Some(word), None) = (&self.thinking, level) {
            eprintln!(
                "Warning: \"{word}\" is not a thinking level and is ignored; the levels are off, minimal, low, medium, high, xhigh, max."
            );
        }
        let appended = self
            .append_system_prompt
            .iter()
            .map(|text| text_or_file(text))
            .collect::<Vec<_>>();
        Ok(OpenOptions {
            session,
            model: ModelWish {
                provider: self.provider.clone(),
                model: self.model.clone(),
            },
            level,
            system_prompt: self.system_prompt.as_deref().map(text_or_file),
            append_system_prompt: (!appended.is_empty()).then(|| appended.join("\n\n")),
        })
    }
}

/// A value that names a file stands for its content.
fn text_or_file(value: &str) -> String {
    std::fs::read_to_string(value).unwrap_or_else(|_| value.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn print_takes_the_message_that_follows_it() {
        let args = Args::try_parse_from(["pliant", "-p", "list .", "--mode", "json"]).unwrap();
        assert!(args.print && args.mode == Some(OutputMode::Json));
        assert_eq!(args.messages, ["list ."]);
    }

    #[test]
    fn sessions_exclude_each_other() {
        assert!(Args::try_parse_from(["pliant", "--continue", "--no-session"]).is_err());
    }
}

//! The help, and the definition that completions are made of.

use clap::{Arg, Command, CommandFactory, ValueHint};
use pliant_sdk::flag::{FlagKind, FlagSpec};

use super::Options;
use super::words::LONG_SHORTS;
use crate::commands::COMMANDS;

const USAGE: &str = "pliant [OPTIONS] [--] [@FILE]... [MESSAGE]...
       pliant COMMAND ...";

const EXAMPLES: &str = "\
Examples:
  pliant                                    Talk
  pliant -p \"Which tests fail?\"             Ask once, for scripts
  git diff | pliant -p \"Review this: \"      Give it what another program prints
  pliant @notes.md @plan.png \"Compare.\"     Attach files
  pliant -c -p \"And now?\"                   Go on with the latest session
  pliant --model sonnet:high --tools read,grep -p \"Find the leak.\"

With --mode json every event is a line of JSON on stdout; with --mode rpc so are the commands on
stdin. Messages, warnings and logs never go there.";

/// Everything there is to choose, with what clap alone would not show.
pub fn command() -> Command {
    let mut command = Options::command().override_usage(USAGE).arg(
        Arg::new("message")
            .num_args(0..)
            .value_hint(ValueHint::AnyPath)
            .hide(true),
    );
    for (short, long) in LONG_SHORTS {
        let id = long.replace('-', "_");
        command = command.mut_arg(id, |option| {
            let help = option
                .get_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            option.help(format!("{help} [{short}]"))
        });
    }
    command
}

/// The help, with the options that extensions declare.
pub fn help_of(flags: &[FlagSpec]) -> String {
    let mut extra = String::from("Commands (pliant COMMAND --help tells more):\n");
    for (name, about) in COMMANDS {
        extra += &format!("  {name:<12} {about}\n");
    }
    if !flags.is_empty() {
        extra += "\nOptions of extensions:\n";
    }
    for flag in flags {
        let value = match flag.kind {
            FlagKind::Boolean => "",
            FlagKind::String => " <TEXT>",
        };
        let name = format!("--{}{value}", flag.name);
        let about = flag.description.as_deref().unwrap_or_default();
        extra += format!("  {name:<24} {about}").trim_end();
        extra += "\n";
    }
    let help = command().after_help(extra + "\n" + EXAMPLES).render_help();
    help.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
        Options::command().debug_assert();
    }

    #[test]
    fn the_help_shows_each_option_with_all_its_names() {
        let help = help_of(&[]);
        for (short, long) in LONG_SHORTS {
            assert!(help.contains(&format!("[{short}]")) && help.contains(&format!("--{long}")));
        }
        for option in command().get_arguments() {
            if let Some(short) = option.get_short() {
                assert!(help.contains(&format!("-{short}, --")), "{short}");
            }
        }
        assert!(!help.contains("Options of extensions"));
        let plan = FlagSpec {
            name: "plan".to_owned(),
            description: Some("Plan first.".to_owned()),
            ..FlagSpec::default()
        };
        assert!(help_of(&[plan]).contains("--plan"));
    }
}

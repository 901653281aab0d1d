//! pliant: parse the command line, boot the kernel, choose the mode, exit.

mod args;
mod auth_command;
mod commands;
mod config_command;
mod dev_command;
mod export;
mod git;
mod held;
mod launch;
mod library;
mod modes;
mod package_command;
mod pi;
mod plugin_command;
mod prompt_input;
mod resume;
mod say;
mod script_command;
mod session_command;
mod stdout;
mod trust;
mod unfold;
mod words;

use std::process::ExitCode;

use anyhow::Context;
use commands::Asked;

fn main() -> ExitCode {
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == launch::PLUGIN_HOST)
    {
        std::process::exit(pliant_kernel::dylib::serve().into());
    }
    ExitCode::from(status(commands::asked().and_then(perform)))
}

fn perform(asked: Asked) -> anyhow::Result<u8> {
    let args = match asked {
        Asked::Session(command) => return command.run(),
        Asked::Config(command) => return command.run(),
        Asked::Auth(command) => return command.run(),
        Asked::Plugin(command) => return command.run(),
        Asked::Package(command) => return command.run(),
        Asked::Script(command) => return command.run(),
        Asked::Dev(command) => return command.run(),
        Asked::Completions(shell) => return commands::print_completions(shell),
        Asked::Talk(args) => args,
    };
    if let Some(session) = &args.options.export {
        return export::run(session, args.messages.first());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("No event loop can be started.")?;
    let status = runtime.block_on(launch::run(*args));
    // A script or plugin that never returns must not keep the process.
    runtime.shutdown_background();
    status
}

/// The exit status; what stopped the program is said.
fn status(ended: anyhow::Result<u8>) -> u8 {
    ended.unwrap_or_else(|error| {
        say::error(with_causes(&error));
        1
    })
}

/// The sentence, and the causes that it does not tell itself.
fn with_causes(error: &anyhow::Error) -> String {
    error
        .chain()
        .skip(1)
        .fold(error.to_string(), |text, cause| {
            let cause = cause.to_string();
            if text.contains(&cause) {
                text
            } else {
                format!("{text} ({cause})")
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let error = anyhow::anyhow!("no space").context("The log cannot be written: no space.");
        assert_eq!(with_causes(&error), "The log cannot be written: no space.");
        let error = anyhow::anyhow!("no space").context("The log cannot be written.");
        assert_eq!(with_causes(&error), "The log cannot be written. (no space)");
    }
}

//! pliant: parse the command line, boot the kernel, choose the mode, exit.

mod args;
mod held;
mod launch;
mod library;
mod modes;
mod say;
mod session_command;
mod stdout;

use std::process::ExitCode;

use args::Args;
use session_command::SessionCommand;

fn main() -> ExitCode {
    if let Some(command) = SessionCommand::of_process() {
        return ExitCode::from(status(command.run()));
    }
    let args = Args::of_process();
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            say::error(format_args!("No event loop can be started: {error}."));
            return ExitCode::FAILURE;
        }
    };
    let status = status(runtime.block_on(launch::run(&args)));
    // A script or plugin that never returns must not keep the process.
    runtime.shutdown_background();
    ExitCode::from(status)
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

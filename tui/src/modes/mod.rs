//! Front ends over one session: print, JSON, line by line. Each subscribes, sends prompts, and turns
//! events into what it shows; none knows what is behind the session.

mod changes;
pub mod json;
pub mod line;
pub mod list_models;
pub mod print;
mod prompts;
pub mod rpc;
pub mod signals;
mod ui;

use std::fs::File;
use std::io::Write;

use pliant_kernel::Runtime;
use pliant_kernel::run::advice;
use pliant_kernel::session::Subscription;
use pliant_sdk::Event;
use pliant_sdk::message::{Message, StopReason};

use crate::say;

pub use ui::Ui;

/// Why an answer is no success, in a sentence.
pub fn failure_of(message: &Message) -> Option<String> {
    let answer = message.as_assistant()?;
    let text = answer.error_message.as_deref().unwrap_or_default();
    match answer.stop_reason {
        StopReason::Error => {
            let (model, provider) = (&answer.model, &answer.provider);
            Some(match advice(answer) {
                None => format!("The model {model} of {provider} failed: {text}"),
                Some(advice) => format!(
                    "The model {model} of {provider} failed: {} {advice}",
                    say::ended(text)
                ),
            })
        }
        StopReason::Aborted => Some("The request was aborted.".to_owned()),
        StopReason::Length => {
            Some("The answer is cut off: the model hit its output limit.".to_owned())
        }
        _ => None,
    }
}

/// Writes a text for who asked for it, and answers the status.
///
/// # Errors
/// When stdout cannot be written.
pub fn tell(mut output: &File, text: &str) -> anyhow::Result<u8> {
    match output.write_all(text.as_bytes()) {
        Ok(()) => Ok(0),
        Err(error) => unwritable(&error),
    }
}

/// What it means that stdout cannot be written: status 1. A reader that has left knows why.
///
/// # Errors
/// Any other failure, as a sentence.
pub fn unwritable(error: &std::io::Error) -> anyhow::Result<u8> {
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        return Ok(1);
    }
    anyhow::bail!("Standard output cannot be written: {error}.")
}

/// Reloads what changes, and builds what is being written.
pub fn watch(runtime: &Runtime) {
    if let Err(error) = runtime.watch() {
        say::warning(format_args!(
            "Plugins that are being written are not built: {error}."
        ));
    }
}

/// Failures of plugins and scripts go to stderr; the run goes on.
pub async fn report_failures(mut events: Subscription) {
    while let Some(event) = events.recv().await {
        match &*event {
            Event::ExtensionError {
                extension_path,
                event,
                error,
            } => say::warning(format_args!("{extension_path} failed at {event}: {error}")),
            Event::Notice { message } => say::warning(message),
            Event::ResourcesChanged { changes } => {
                changes::lines(changes).iter().for_each(say::warning);
            }
            Event::AutoRetryStart {
                attempt,
                max_attempts,
                delay_ms,
                error_message,
            } => say::warning(format_args!(
                "The model failed: {} Attempt {attempt} of {max_attempts} follows in {} s.",
                say::ended(error_message),
                delay_ms.div_ceil(1000)
            )),
            Event::CompactionEnd {
                error_message: Some(message),
                ..
            } => say::warning(message),
            _ => {}
        }
    }
}

//! Print mode: runs the prompts and writes the text of the last answer, nothing else
//! (`interfaces.md` §2).

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use pliant_kernel::pipeline::Prompt;
use pliant_kernel::session::Session;
use pliant_sdk::message::{Content, Message};
use tokio::time::timeout;

use super::prompts::Prompts;
use super::signals::{Signals, orderly};
use super::{failure_of, report_failures, unwritable};
use crate::say::{self, printable};

/// How long the last failures of plugins may take to be reported.
const REPORTS: Duration = Duration::from_secs(1);

/// Runs the prompts one after the other; status 1 when the last answer is no success.
///
/// # Errors
/// When a prompt is refused, or stdout cannot be written.
pub async fn run(
    session: &Session,
    prompts: Vec<Prompt>,
    mut signals: Signals,
    output: File,
) -> anyhow::Result<u8> {
    // Without a prompt, what was said last is what there is to print.
    let before = match prompts.is_empty() {
        true => session.projection().messages().last().cloned(),
        false => None,
    };
    let reporting = tokio::spawn(report_failures(session.subscribe()));
    let sender = Prompts::to(session);
    let running = sender.run_all_and_close(prompts);
    tokio::pin!(running);
    let mut asked = None;
    let outcome = tokio::select! {
        outcome = &mut running => Some(outcome),
        status = signals.next() => {
            asked = Some(status);
            sender.stop();
            session.hurry();
            orderly(running).await
        }
    };
    session.end_subscriptions();
    let _ = timeout(REPORTS, reporting).await;
    // Everything is stored: from here on a signal ends the process at once.
    drop(signals);
    match (asked, outcome.transpose()) {
        (None, outcome) => {
            let last = outcome?.flatten().or(before);
            last.map_or(Ok(0), |last| show(&last, &output))
        }
        (Some(status), outcome) => {
            outcome.inspect_err(|error| say::error(error)).ok();
            Ok(status)
        }
    }
}

/// Writes the answer, and answers the status that it means.
fn show(last: &Message, output: &File) -> anyhow::Result<u8> {
    // Half an answer is no answer; one that was only too long is shown as far as it goes.
    let half = last
        .as_assistant()
        .is_some_and(|answer| answer.stop_reason.is_failure());
    if !half && let Err(error) = write_text(last, output) {
        return unwritable(&error);
    }
    match failure_of(last) {
        Some(sentence) => {
            say::error(sentence);
            Ok(1)
        }
        None => Ok(0),
    }
}

fn write_text(message: &Message, mut out: &File) -> std::io::Result<()> {
    let Some(answer) = message.as_assistant() else {
        return Ok(());
    };
    // A program gets the answer as it is; a terminal must not be told what to do by it (U06).
    let terminal = out.is_terminal();
    for text in answer
        .content
        .iter()
        .filter_map(Content::as_text)
        .filter(|text| !text.is_empty())
    {
        let shown = if terminal {
            printable(text)
        } else {
            text.to_owned()
        };
        out.write_all((shown + "\n").as_bytes())?;
    }
    Ok(())
}

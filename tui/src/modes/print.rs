//! Print mode: runs the prompts and writes the text of the last answer, nothing else
//! (`interfaces.md` §2).

use std::io::Write;
use std::sync::Arc;

use pliant_kernel::pipeline::Prompt;
use pliant_kernel::session::{PromptEnd, Session};
use pliant_sdk::Event;
use pliant_sdk::message::{Content, Message};

use super::{failure_of, unless_interrupted};

/// Runs the prompts one after the other; status 1 when the last answer is no success.
///
/// # Errors
/// When a prompt is refused, or stdout cannot be written.
pub async fn run(session: &Session, prompts: Vec<String>) -> anyhow::Result<u8> {
    let reporting = tokio::spawn(report_failures(session.subscribe()));
    let outcome = unless_interrupted(session, run_all(session, prompts)).await;
    session.close("quit").await;
    reporting.abort();
    let last = match outcome {
        Ok(last) => last?,
        Err(status) => return Ok(status),
    };
    let Some(last) = last else { return Ok(0) };
    // Half an answer is no answer; one that was only too long is shown as far as it goes.
    if !last
        .as_assistant()
        .is_some_and(|answer| answer.stop_reason.is_failure())
    {
        write_text(&last)?;
    }
    match failure_of(&last) {
        Some(sentence) => {
            eprintln!("Error: {sentence}");
            Ok(1)
        }
        None => Ok(0),
    }
}

async fn run_all(session: &Session, prompts: Vec<String>) -> anyhow::Result<Option<Arc<Message>>> {
    let mut last = None;
    for prompt in prompts {
        let PromptEnd {
            last: answer,
            failure,
        } = session.prompt(Prompt::text(prompt), |_| ()).await?;
        if let Some(failure) = failure {
            return Err(failure.into());
        }
        last = answer.or(last);
    }
    Ok(last)
}

/// Failures of plugins and scripts go to stderr; the run goes on.
async fn report_failures(mut events: pliant_kernel::session::Subscription) {
    while let Some(event) = events.recv().await {
        if let Event::ExtensionError {
            extension_path,
            event,
            error,
        } = &*event
        {
            eprintln!("Warning: {extension_path} failed at {event}: {error}");
        }
    }
}

fn write_text(message: &Message) -> std::io::Result<()> {
    let Some(answer) = message.as_assistant() else {
        return Ok(());
    };
    let mut out = std::io::stdout().lock();
    for text in answer
        .content
        .iter()
        .filter_map(Content::as_text)
        .filter(|text| !text.is_empty())
    {
        writeln!(out, "{text}")?;
    }
    out.flush()
}

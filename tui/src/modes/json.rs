//! JSON mode: the session header, then every event, one object a line (`interfaces.md` §2, §7). A
//! reader that is slow slows the session and loses nothing.

use std::io::{BufWriter, Write};

use pliant_kernel::pipeline::Prompt;
use pliant_kernel::session::{Session, Subscription};
use tokio::task::JoinHandle;

use super::unless_interrupted;

/// Runs the prompts; a failure of the provider is in the stream and no failure of the process.
///
/// # Errors
/// When a prompt is refused, the session cannot be stored, or stdout cannot be written.
pub async fn run(session: &Session, prompts: Vec<String>) -> anyhow::Result<u8> {
    let mut header = session.header().line()?.into_bytes();
    if !header.ends_with(b"\n") {
        header.push(b'\n');
    }
    let writer = write_events(header, session.subscribe());
    let outcome = match unless_interrupted(session, run_all(session, prompts)).await {
        Ok(outcome) => outcome.map(|()| 0),
        Err(status) => Ok(status),
    };
    session.close("quit").await;
    session.end_subscriptions();
    writer.await??;
    outcome
}

async fn run_all(session: &Session, prompts: Vec<String>) -> anyhow::Result<()> {
    for prompt in prompts {
        if let Some(failure) = session.prompt(Prompt::text(prompt), |_| ()).await?.failure {
            return Err(failure.into());
        }
    }
    Ok(())
}

/// Writes on a thread of its own, so that a full pipe blocks nothing but this; flushes whenever
/// nothing more is waiting.
fn write_events(header: Vec<u8>, mut events: Subscription) -> JoinHandle<std::io::Result<()>> {
    tokio::task::spawn_blocking(move || {
        let mut out = BufWriter::with_capacity(64 << 10, std::io::stdout().lock());
        out.write_all(&header)?;
        loop {
            let event = match events.try_recv() {
                Ok(event) => event,
                Err(_) => {
                    out.flush()?;
                    match events.blocking_recv() {
                        Some(event) => event,
                        None => return out.flush(),
                    }
                }
            };
            serde_json::to_writer(&mut out, &*event)?;
            out.write_all(b"\n")?;
        }
    })
}

//! An agent in a program: a session in memory, two prompts, an answer and its numbers.
//!
//! `cargo run -p pliant-kernel --example embed`

mod offline;

use std::io::Write;

use pliant_kernel::{Builder, Prompt, SessionChoice, ToolSelection};

/// What every step may fail with.
pub type Failure = Box<dyn std::error::Error>;

/// What the program does. It writes where it is told to, so that a test can read it.
pub async fn run(out: &mut impl Write) -> Result<(), Failure> {
    let cwd = std::env::current_dir()?;
    // `Builder::of_process()` instead uses the keys, settings and plugins of the user.
    let runtime = Builder::new(&cwd, cwd.join(".agent"))
        .session(SessionChoice::InMemory)
        .tools(ToolSelection::none())
        .plugin("offline", offline::plugin())
        .model("offline/parrot")
        .append_system_prompt("Be brief.")
        .build()
        .await?;
    let session = runtime.session();

    // Returns when the run has settled. The closure hears at once what becomes of the prompt.
    let end = session.prompt(Prompt::text("Good morning"), |_| ()).await?;
    if let Some(failure) = end.failure {
        return Err(failure.into());
    }
    let answer = session.last_assistant_text().unwrap_or_default();
    writeln!(out, "{answer}")?;

    session
        .prompt(Prompt::text("and good night"), |_| ())
        .await?;
    for message in session.messages() {
        writeln!(out, "- {}", message.role())?;
    }
    let stats = session.stats().await;
    writeln!(out, "{} messages", stats.total_messages)?;
    runtime.close().await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    run(&mut std::io::stdout()).await
}

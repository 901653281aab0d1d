//! `pliant script repl`: the functions of scripts, line by line, in a session that is thrown away.

use std::fs;
use std::io::{BufRead, IsTerminal, Write};
use std::sync::Arc;

use clap::Args;
use pliant_kernel::pipeline::Prompt;
use pliant_kernel::session::Session;
use pliant_kernel::trust::TrustPolicy;
use pliant_kernel::{Kernel, OpenOptions, SessionChoice};
use pliant_scripts::{EVAL, Repl};
use pliant_sdk::Event;
use tokio::sync::mpsc;

use crate::launch::{self, Mode};
use crate::modes::Ui;
use crate::modes::signals::{OnInterrupt, Signals};
use crate::say;
use crate::session_command::print;

/// Try out what scripts can call, line by line.
///
/// The session is not stored, and neither are extensions of yours loaded. `ctx` is that of a command. What is
/// registered counts at once: /NAME runs a command. :load FILE runs a script, :quit ends.
#[derive(Args)]
pub struct ReplArgs {}

const HELP: &str = "Type what a script could have; `ctx` is that of a command. A line goes on while a bracket is open.\n\
    /NAME ARGS  run a command that was registered\n\
    :load FILE  run a script\n\
    :list       what is registered\n\
    :quit       end; Ctrl-C stops what runs\n";

impl ReplArgs {
    pub fn run(&self) -> anyhow::Result<u8> {
        let runtime = tokio::runtime::Runtime::new()?;
        let status = runtime.block_on(talk());
        // A script that never returns must not keep the process.
        runtime.shutdown_background();
        status
    }
}

/// Answers 1 if a text failed and nobody was there to see it.
async fn talk() -> anyhow::Result<u8> {
    let is_terminal = std::io::stdin().is_terminal();
    let mut options = launch::bare_options()?;
    options.trust = TrustPolicy {
        decided: Some(false),
        ask: None,
    };
    options.no_extensions = true;
    options.ui = Arc::new(Ui::of(Mode::Line));
    let kernel = Kernel::boot(options)?;
    let repl = Repl::new()?;
    kernel.registry().publish(Arc::clone(&repl) as _);
    let open = OpenOptions {
        session: SessionChoice::InMemory,
        may_lack_model: true,
        ..OpenOptions::default()
    };
    let session = kernel.open_session(open).await?;
    let mut signals = Signals::listen(OnInterrupt::Tell)?;
    let mut lines = lines();
    if is_terminal {
        print("Functions of scripts, line by line. :help says more.\n")?;
    }
    let (mut text, mut failed) = (String::new(), false);
    loop {
        if is_terminal {
            print(if text.is_empty() { "> " } else { "… " })?;
        }
        let line = tokio::select! {
            line = lines.recv() => line,
            status = signals.next() => {
                if text.is_empty() {
                    return Ok(status);
                }
                text.clear();
                print("\n")?;
                continue;
            }
        };
        match line {
            Some(line) => text += &line,
            // What was begun is run as it is, so that it is said what it lacks.
            None if text.is_empty() => break,
            None => {}
        }
        let is_over = lines.is_closed() && lines.is_empty();
        if !is_over && Repl::is_unfinished(&text) {
            continue;
        }
        let typed = std::mem::take(&mut text);
        let typed = typed.trim();
        let doing = async {
            match typed.split_once(' ').unwrap_or((typed, "")) {
                ("", _) => Ok(true),
                (":quit" | ":exit", _) => Ok(false),
                (":help", _) => print(HELP).map(|_| true),
                (":list", _) => print(&listed(&repl)).map(|_| true),
                (":load", file) => {
                    let text = fs::read_to_string(file.trim()).map_err(|error| {
                        anyhow::anyhow!("The file {} cannot be read: {error}.", file.trim())
                    })?;
                    run(&session, &repl, &format!("/{EVAL} {text}"))
                        .await
                        .map(|()| true)
                }
                (word, _) if word.starts_with(':') => Err(anyhow::anyhow!(
                    "There is no {word}; :help lists what there is."
                )),
                (word, _) if word.starts_with('/') => {
                    run(&session, &repl, typed).await.map(|()| true)
                }
                _ => run(&session, &repl, &format!("/{EVAL} {typed}"))
                    .await
                    .map(|()| true),
            }
        };
        tokio::pin!(doing);
        let done = loop {
            tokio::select! {
                done = &mut doing => break done,
                _ = signals.next() => session.cancel(),
            }
        };
        match done {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                say::error(format!("{error:#}"));
                failed = true;
            }
        }
    }
    session.close("quit").await;
    Ok(u8::from(failed && !is_terminal))
}

/// Runs a command; what it comes to is printed.
async fn run(session: &Session, repl: &Repl, command: &str) -> anyhow::Result<()> {
    let mut events = session.subscribe();
    session.prompt(Prompt::text(command), |_| ()).await?;
    let mut failure = None;
    while let Ok(event) = events.try_recv() {
        if let Event::ExtensionError { error, .. } = &*event {
            failure = Some(error.clone());
        }
    }
    match repl.take_said() {
        Some(Ok(Some(value))) => print(&format!("{value}\n")).map(drop),
        Some(Ok(None)) => Ok(()),
        Some(Err(error)) => Err(error.into()),
        None => failure.map_or(Ok(()), |error| Err(anyhow::anyhow!(error))),
    }
}

fn listed(repl: &Repl) -> String {
    use pliant_kernel::registry::Generation;

    let items = repl.contributions();
    let items = items.iter().filter(|item| item.name != EVAL);
    let line = |item: &pliant_kernel::registry::Contribution| {
        let kind = serde_json::to_value(item.kind).unwrap_or_default();
        format!("{} {}\n", kind.as_str().unwrap_or_default(), item.name)
    };
    let lines: String = items.map(line).collect();
    match lines.is_empty() {
        true => "Nothing is registered.\n".to_owned(),
        false => lines,
    }
}

/// The lines of stdin, read on a thread of their own: reading cannot be given up.
fn lines() -> mpsc::UnboundedReceiver<String> {
    let (tell, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut bytes = Vec::new();
        while matches!(stdin.read_until(b'\n', &mut bytes), Ok(1..)) {
            let line = String::from_utf8_lossy(&bytes).into_owned();
            bytes.clear();
            if tell.send(line).is_err() {
                return;
            }
        }
        let _ = std::io::stdout().flush();
    });
    lines
}

//! The plain prompt: a line is read, the answer streams, tool calls are named. What a terminal
//! interface will do better, this does anywhere.

use std::io::{BufRead, Write};

use pliant_kernel::pipeline::Prompt;
use pliant_kernel::session::{Session, Subscription};
use pliant_sdk::message::Message;
use pliant_sdk::{Event, StreamEvent};
use tokio::sync::mpsc;

use super::{failure_of, interrupt};

/// Talks until the input ends or `/quit` is typed.
///
/// # Errors
/// When the session cannot be stored.
pub async fn run(session: &Session, prompts: Vec<String>) -> anyhow::Result<u8> {
    let model = session
        .model()
        .map(|model| model.reference())
        .unwrap_or_default();
    println!("pliant, with {model}. Ctrl-C stops an answer; /quit or Ctrl-D ends.");
    tokio::task::spawn(show(session.subscribe()));
    let mut given = prompts.into_iter();
    let mut typed = Lines::default();
    loop {
        let line = match given.next() {
            Some(line) => line,
            None => match typed.next().await {
                Some(line) => line,
                None => break,
            },
        };
        match line.trim() {
            "" => continue,
            "/quit" | "/exit" => break,
            _ => {}
        }
        if let Some(status) = answer(session, line).await? {
            session.close("quit").await;
            return Ok(status);
        }
    }
    session.close("quit").await;
    println!();
    Ok(0)
}

/// Runs one prompt; answers a status when the process is to end.
async fn answer(session: &Session, line: String) -> anyhow::Result<Option<u8>> {
    let running = session.prompt(Prompt::text(line), |_| ());
    tokio::pin!(running);
    loop {
        tokio::select! {
            end = &mut running => {
                match end {
                    Ok(end) => {
                        if let Some(failure) = end.failure {
                            return Err(failure.into());
                        }
                    }
                    Err(refusal) => eprintln!("Error: {refusal}"),
                }
                return Ok(None);
            }
            signal = interrupt() => {
                session.cancel();
                if signal.status != INTERRUPT {
                    let _ = running.await;
                    return Ok(Some(signal.status));
                }
            }
        }
    }
}

/// The status that Ctrl-C would mean; at the prompt it stops the answer instead.
const INTERRUPT: u8 = 130;

/// Lines of the terminal, read on a thread of their own, one at a time, so that nothing is read
/// while an answer runs that the user did not mean for pliant.
#[derive(Default)]
struct Lines {
    wanted: Option<(std::sync::mpsc::Sender<()>, mpsc::Receiver<Option<String>>)>,
}

impl Lines {
    async fn next(&mut self) -> Option<String> {
        let (ask, lines) = self.wanted.get_or_insert_with(reader);
        ask.send(()).ok()?;
        tokio::select! {
            line = lines.recv() => line.flatten(),
            _ = interrupt() => None,
        }
    }
}

fn reader() -> (std::sync::mpsc::Sender<()>, mpsc::Receiver<Option<String>>) {
    let (ask, asked) = std::sync::mpsc::channel();
    let (tx, rx) = mpsc::channel(1);
    std::thread::spawn(move || {
        while asked.recv().is_ok() {
            print!("> ");
            let _ = std::io::stdout().flush();
            let mut line = String::new();
            let read = std::io::stdin().lock().read_line(&mut line);
            let line = read
                .ok()
                .filter(|bytes| *bytes > 0)
                .map(|_| line.trim_end_matches(['\r', '\n']).to_owned());
            if tx.blocking_send(line).is_err() {
                return;
            }
        }
    });
    (ask, rx)
}

/// Shows events as they come.
async fn show(mut events: Subscription) {
    while let Some(event) = events.recv().await {
        if let Some(text) = rendered(&event) {
            print!("{}", printable(&text));
            let _ = std::io::stdout().flush();
        }
    }
}

fn rendered(event: &Event) -> Option<String> {
    match event {
        Event::MessageUpdate {
            assistant_message_event,
            ..
        } => match assistant_message_event {
            StreamEvent::TextDelta { delta, .. } => Some(delta.clone()),
            StreamEvent::TextEnd { .. } => Some("\n".to_owned()),
            _ => None,
        },
        Event::MessageEnd { message } if matches!(**message, Message::Assistant(_)) => {
            failure_of(message).map(|sentence| format!("[{sentence}]\n"))
        }
        Event::ToolExecutionStart {
            tool_name, args, ..
        } => Some(format!("· {tool_name} {}\n", brief(args))),
        Event::ToolExecutionEnd {
            tool_name,
            is_error: true,
            result,
            ..
        } => {
            let text = pliant_sdk::message::joined_text(&result.content, " ");
            Some(format!("· {tool_name} failed: {}\n", cut(&text, 200)))
        }
        Event::ExtensionError {
            extension_path,
            event,
            error,
        } => Some(format!("[{extension_path} failed at {event}: {error}]\n")),
        _ => None,
    }
}

/// The arguments in one short line: their values, strings bare.
fn brief(args: &serde_json::Value) -> String {
    let values = args.as_object().into_iter().flat_map(|map| map.values());
    let shown = values.map(|value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    });
    cut(&shown.collect::<Vec<_>>().join(" "), 120)
}

fn cut(text: &str, chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// Control characters of answers and tools must not reach the terminal (U06).
fn printable(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_sequences_do_not_reach_the_terminal() {
        // U06
        assert_eq!(
            printable("a\u{1b}]52;c;x\u{7}b\u{9b}1mc\n"),
            "a]52;c;xb1mc\n"
        );
    }

    #[test]
    fn arguments_are_shown_in_one_short_line() {
        assert_eq!(
            brief(&serde_json::json!({"path": "a b", "limit": 3})),
            "a b 3"
        );
        assert_eq!(cut(&"x ".repeat(100), 5), "x x x…");
    }
}

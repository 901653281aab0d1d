//! The plain prompt: a line is read, the answer streams, tool calls are named. What a terminal
//! interface will do better, this does anywhere.

use std::io::{BufRead, Write};
use std::pin::pin;

use pliant_kernel::compaction::CompactionError;
use pliant_kernel::session::{Session, Subscription};
use pliant_sdk::event::CompactionReason;
use pliant_sdk::message::Message;
use pliant_sdk::{Event, StreamEvent};
use tokio::sync::mpsc;

use super::choose::Choice;
use super::failure_of;
use super::prompts::Prompts;
use super::signals::{INTERRUPT, Signals, orderly, patience};
use crate::say::{self, printable};

/// Talks until the input ends or `/quit` is typed.
///
/// # Errors
/// When the session cannot be stored.
pub async fn run(session: &Session, prompts: Vec<String>, signals: Signals) -> anyhow::Result<u8> {
    let mut talk = Talk {
        session,
        events: session.subscribe(),
        signals,
        typed: Lines::default(),
        screen: Screen::default(),
    };
    talk.greet();
    let status = talk.until_the_end(prompts).await;
    if status.as_ref().is_ok_and(|status| *status != 0) {
        session.hurry();
    }
    let closing = session.close("quit");
    match status {
        Ok(0) => closing.await,
        _ => drop(orderly(closing).await),
    }
    talk.show_waiting();
    talk.screen.end_line();
    status
}

/// A session and the terminal it is shown on.
struct Talk<'a> {
    session: &'a Session,
    events: Subscription,
    signals: Signals,
    typed: Lines,
    screen: Screen,
}

/// What is to be done next.
enum Next {
    Answer(String),
    End(u8),
}

impl Talk<'_> {
    fn greet(&mut self) {
        let with = match self.session.model() {
            Some(model) => format!("with {}", model.reference()),
            None => "without a model".to_owned(),
        };
        self.screen.write(&format!(
            "pliant, {with}. Ctrl-C stops an answer; /compact shortens the conversation; /quit or Ctrl-D ends.\n"
        ));
    }

    /// Answers the given prompts, then typed ones; answers the status of the process.
    async fn until_the_end(&mut self, prompts: Vec<String>) -> anyhow::Result<u8> {
        let mut given = prompts.into_iter();
        loop {
            let next = match given.next() {
                Some(prompt) => {
                    self.screen.write(&format!("> {prompt}\n"));
                    Next::Answer(prompt)
                }
                None => self.ask().await,
            };
            let line = match next {
                Next::Answer(line) => line,
                Next::End(status) => return Ok(status),
            };
            let status = match line.trim() {
                "" => continue,
                "/quit" | "/exit" => return Ok(0),
                typed => match (focus_of_compaction(typed), Choice::read(typed)) {
                    (Some(focus), _) => self.compact(focus).await,
                    (None, Some(choice)) => self.choose(choice).await,
                    (None, None) => self.answer(line).await,
                },
            };
            if let Some(status) = status {
                return Ok(status);
            }
        }
    }

    /// Prompts for a line. The first Ctrl-C only throws away what is typed: it may have been meant
    /// for an answer that has just ended.
    async fn ask(&mut self) -> Next {
        let mut interrupted = false;
        self.screen.write("> ");
        self.typed.ask();
        loop {
            tokio::select! {
                Some(event) = self.events.recv() => self.screen.show(&event),
                line = self.typed.next() => {
                    if let Some(line) = line {
                        self.screen.typed_enter();
                        return Next::Answer(line);
                    }
                    return Next::End(0);
                }
                status = self.signals.next() => {
                    if status != INTERRUPT || interrupted {
                        return Next::End(status);
                    }
                    interrupted = true;
                    self.screen.write("\n[Ctrl-C again or Ctrl-D ends.]\n> ");
                }
            }
        }
    }

    /// Runs one prompt; answers a status when the process is to end.
    async fn answer(&mut self, line: String) -> Option<u8> {
        let prompts = Prompts::to(self.session);
        let running = async {
            match prompts.run(line).await {
                Ok(end) => end.failure.map(|failure| failure.to_string()),
                Err(refusal) => Some(refusal.to_string()),
            }
        };
        self.watch(running, || prompts.stop()).await
    }

    /// Compacts the conversation; answers a status when the process is to end.
    async fn compact(&mut self, focus: &str) -> Option<u8> {
        let session = self.session;
        let running = async {
            match session.compact(Some(focus)).await {
                // That one is in the events.
                Ok(_) | Err(CompactionError::Aborted) => None,
                Err(error) => Some(error.to_string()),
            }
        };
        self.watch(running, || session.cancel()).await
    }

    /// Chooses a model or a level, and shows what is in force; answers a status when the process is to
    /// end.
    async fn choose(&mut self, choice: Choice) -> Option<u8> {
        let session = self.session;
        let mut in_force = None;
        let choosing = async {
            let chosen = choice.carry_out(session).await;
            chosen.map(|said| in_force = Some(said)).err()
        };
        let status = self.watch(choosing, || session.cancel()).await;
        if let Some(said) = in_force {
            self.screen.write(&format!("[{said}]\n"));
        }
        status
    }

    /// Shows what something tells that answers a complaint; `stop` asks it to end. Answers a status
    /// when the process is to end.
    async fn watch(
        &mut self,
        running: impl Future<Output = Option<String>>,
        stop: impl Fn(),
    ) -> Option<u8> {
        let mut running = pin!(running);
        let mut limit = pin!(patience());
        let mut asked = None;
        let end = loop {
            tokio::select! {
                biased;
                status = self.signals.next() => {
                    if asked == Some(INTERRUPT) {
                        return Some(status);
                    }
                    asked = Some(status);
                    // The terminal has shown `^C`.
                    self.screen.in_line |= status == INTERRUPT;
                    stop();
                    limit.set(patience());
                }
                Some(event) = self.events.recv() => self.screen.show(&event),
                end = &mut running => break Some(end),
                () = &mut limit, if asked.is_some() => break None,
            }
        };
        // What the run has told last.
        self.show_waiting();
        self.screen.end_line();
        match end {
            // The prompt stays: what is wrong may be mended meanwhile.
            Some(complaint) => complaint.iter().for_each(say::error),
            None => say::warning("What was running did not stop in time and was dropped."),
        }
        asked.filter(|status| *status != INTERRUPT)
    }

    fn show_waiting(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            self.screen.show(&event);
        }
    }
}

/// What `/compact` is to keep in mind; `None` for a line that is something else.
fn focus_of_compaction(line: &str) -> Option<&str> {
    let focus = line.strip_prefix("/compact")?;
    (focus.is_empty() || focus.starts_with(char::is_whitespace)).then(|| focus.trim())
}

/// Lines of the terminal, read on a thread of their own, one at a time, so that nothing is read
/// while an answer runs that the user did not mean for pliant.
struct Lines {
    ask: std::sync::mpsc::Sender<()>,
    lines: mpsc::Receiver<Option<String>>,
}

impl Default for Lines {
    fn default() -> Self {
        let (ask, asked) = std::sync::mpsc::channel();
        let (tx, lines) = mpsc::channel(1);
        std::thread::spawn(move || {
            while asked.recv().is_ok() {
                if tx.blocking_send(read_line()).is_err() {
                    return;
                }
            }
        });
        Self { ask, lines }
    }
}

impl Lines {
    /// Wants one more line.
    fn ask(&self) {
        // A thread that is gone shows as the end of the input.
        let _ = self.ask.send(());
    }

    /// The line that was asked for; `None` at the end of the input.
    async fn next(&mut self) -> Option<String> {
        self.lines.recv().await.flatten()
    }
}

fn read_line() -> Option<String> {
    let mut line = Vec::new();
    match std::io::stdin().lock().read_until(b'\n', &mut line) {
        Ok(1..) => Some(
            String::from_utf8_lossy(&line)
                .trim_end_matches(['\r', '\n'])
                .to_owned(),
        ),
        _ => None,
    }
}

/// Stdout, and whether something stands in its last line. A terminal that cannot be written is gone;
/// the end of its input says so.
#[derive(Default)]
struct Screen {
    in_line: bool,
}

impl Screen {
    fn write(&mut self, text: &str) {
        let Some(last) = text.chars().next_back() else {
            return;
        };
        self.in_line = last != '\n';
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(printable(text).as_bytes());
        let _ = out.flush();
    }

    /// The user typed the end of the line.
    fn typed_enter(&mut self) {
        self.in_line = false;
    }

    fn end_line(&mut self) {
        if self.in_line {
            self.write("\n");
        }
    }

    /// Shows an event, if it is one to show.
    fn show(&mut self, event: &Event) {
        match rendered(event) {
            Some(Shown::Text(text)) => self.write(&text),
            Some(Shown::Line(line)) => {
                self.end_line();
                self.write(&line);
                self.end_line();
            }
            None => {}
        }
    }
}

/// How an event is shown.
enum Shown {
    /// As it comes.
    Text(String),
    /// On a line of its own; an empty one ends the last.
    Line(String),
}

fn rendered(event: &Event) -> Option<Shown> {
    let line = match event {
        Event::MessageUpdate {
            assistant_message_event,
            ..
        } => match assistant_message_event {
            StreamEvent::TextDelta { delta, .. } => return Some(Shown::Text(delta.clone())),
            StreamEvent::TextEnd { .. } => String::new(),
            _ => return None,
        },
        Event::MessageEnd { message } if matches!(**message, Message::Assistant(_)) => {
            format!("[{}]", failure_of(message)?)
        }
        Event::ToolExecutionStart {
            tool_name, args, ..
        } => format!("· {tool_name} {}", brief(args)),
        Event::ToolExecutionEnd {
            tool_name,
            is_error: true,
            result,
            ..
        } => {
            let text = pliant_sdk::message::joined_text(&result.content, " ");
            format!("· {tool_name} failed: {}", cut(&text, 200))
        }
        Event::Notice { message } => format!("[{message}]"),
        Event::AutoRetryStart {
            attempt,
            max_attempts,
            delay_ms,
            error_message,
        } => format!(
            "[attempt {attempt} of {max_attempts} in {} s, because the last one failed: {}]",
            delay_ms.div_ceil(1000),
            cut(error_message, 200)
        ),
        Event::CompactionStart { reason } => {
            format!(
                "[compacting the conversation, because {}]",
                because(*reason)
            )
        }
        // Whoever asked for it is answered the error.
        Event::CompactionEnd {
            reason: CompactionReason::Manual,
            error_message: Some(_),
            ..
        } => return None,
        Event::CompactionEnd {
            result,
            error_message,
            ..
        } => match (result, error_message) {
            (Some(done), _) => format!(
                "[compacted: about {} tokens instead of {}]",
                done.estimated_tokens_after, done.tokens_before
            ),
            (None, Some(message)) => format!("[{message}]"),
            (None, None) => "[the compaction was stopped]".to_owned(),
        },
        Event::SummarizationRetryScheduled {
            attempt,
            max_attempts,
            delay_ms,
            error_message,
        } => format!(
            "[attempt {attempt} of {max_attempts} at the summary in {} s, because the last one failed: {}]",
            delay_ms.div_ceil(1000),
            cut(error_message, 200)
        ),
        Event::ExtensionError {
            extension_path,
            event,
            error,
        } => format!("[{extension_path} failed at {event}: {error}]"),
        _ => return None,
    };
    Some(Shown::Line(line))
}

fn because(reason: CompactionReason) -> &'static str {
    match reason {
        CompactionReason::Manual => "you asked for it",
        CompactionReason::Threshold => "it fills the model's context window",
        CompactionReason::Overflow => "the request did not fit into the model's context window",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_in_one_short_line() {
        assert_eq!(
            brief(&serde_json::json!({"path": "a b", "limit": 3})),
            "a b 3"
        );
        assert_eq!(cut(&"x ".repeat(100), 5), "x x x…");
    }

    #[test]
    fn a_compaction_is_asked_for_by_its_whole_name() {
        assert_eq!(focus_of_compaction("/compact"), Some(""));
        assert_eq!(focus_of_compaction("/compact the tests"), Some("the tests"));
        assert_eq!(focus_of_compaction("/compactness"), None);
    }
}

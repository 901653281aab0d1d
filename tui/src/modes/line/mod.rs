//! The plain prompt: a line is read, the answer streams, tool calls are named. What a terminal
//! interface will do better, this does anywhere. Lines that begin with `!` are run by the shell, words
//! with a slash are looked up in [`slash`] first.

mod screen;
mod slash;
mod typed;
mod views;

use std::pin::pin;

use pliant_kernel::Runtime;
use pliant_kernel::pipeline::Prompt;
use pliant_kernel::session::{BashOptions, Session, Subscription};
use pliant_sdk::Event;

use super::prompts::Prompts;
use super::signals::{INTERRUPT, Signals, orderly, patience};
use crate::say;
use screen::Screen;
use slash::{Said, Slash};
use typed::Lines;
use views::Views;

/// Talks until the input ends or `/quit` is typed.
///
/// # Errors
/// When the session cannot be stored.
pub async fn run(runtime: &Runtime, prompts: Vec<Prompt>, signals: Signals) -> anyhow::Result<u8> {
    let mut talk = Talk {
        runtime,
        events: runtime.session().subscribe(),
        signals,
        typed: Lines::default(),
        screen: Screen::default(),
        views: Views::default(),
    };
    super::watch(runtime);
    talk.greet();
    let status = talk.until_the_end(prompts).await;
    let closing = runtime.close();
    match status {
        Ok(0) => closing.await,
        _ => drop(orderly(closing).await),
    }
    // Extensions have ended; what is left is shown without them.
    while let Ok(event) = talk.events.try_recv() {
        talk.screen.show(&event);
    }
    talk.screen.end_line();
    status
}

/// The open session and the terminal it is shown on.
struct Talk<'a> {
    runtime: &'a Runtime,
    events: Subscription,
    signals: Signals,
    typed: Lines,
    screen: Screen,
    views: Views,
}

/// What is to be done next.
enum Next {
    Do(Prompt),
    End(u8),
}

/// What a line is.
enum Line<'a> {
    Nothing,
    Quit,
    /// A command of the shell; its output is kept from the model if it began with two marks.
    Shell {
        command: &'a str,
        is_private: bool,
    },
    Slash(&'static Slash, &'a str),
    Prompt,
}

impl<'a> Line<'a> {
    fn of(prompt: &'a Prompt) -> Self {
        let text = prompt.text.trim();
        match text {
            "" if prompt.images.is_empty() => return Self::Nothing,
            "/quit" | "/exit" => return Self::Quit,
            _ => {}
        }
        if let Some(command) = text.strip_prefix('!') {
            let (command, is_private) = match command.strip_prefix('!') {
                Some(command) => (command.trim(), true),
                None => (command.trim(), false),
            };
            if !command.is_empty() {
                return Self::Shell {
                    command,
                    is_private,
                };
            }
        }
        match slash::named(text) {
            Some((slash, rest)) => Self::Slash(slash, rest),
            None => Self::Prompt,
        }
    }
}

impl Talk<'_> {
    fn greet(&mut self) {
        let with = match self.session().model() {
            Some(model) => format!("with {}", model.reference()),
            None => "without a model".to_owned(),
        };
        self.screen.write(&format!(
            "pliant, {with}. Ctrl-C stops an answer; /help lists the commands; /quit or Ctrl-D ends.\n"
        ));
    }

    fn session(&self) -> Session {
        self.runtime.session()
    }

    /// Does what is given, then what is typed; answers the status of the process.
    async fn until_the_end(&mut self, prompts: Vec<Prompt>) -> anyhow::Result<u8> {
        let mut given = prompts.into_iter();
        loop {
            let next = match given.next() {
                Some(prompt) => {
                    self.screen.write(&format!("> {}\n", prompt.text));
                    Next::Do(prompt)
                }
                None => self.ask().await,
            };
            let prompt = match next {
                Next::Do(prompt) => prompt,
                Next::End(status) => return Ok(status),
            };
            let status = match Line::of(&prompt) {
                Line::Nothing => None,
                Line::Quit => return Ok(0),
                Line::Shell {
                    command,
                    is_private,
                } => self.run_command(command, is_private).await,
                Line::Slash(slash, rest) => self.call(slash, rest).await,
                Line::Prompt => self.answer(prompt).await,
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
                Some(event) = self.events.recv() => self.show(&event).await,
                line = self.typed.next() => {
                    if let Some(line) = line {
                        self.screen.typed_enter();
                        return Next::Do(Prompt::text(line));
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
    async fn answer(&mut self, prompt: Prompt) -> Option<u8> {
        let session = self.session();
        let prompts = Prompts::to(&session);
        let running = async {
            match prompts.run(prompt).await {
                Ok(end) => end.failure.map(|failure| failure.to_string()),
                Err(refusal) => Some(refusal.to_string()),
            }
        };
        self.watch(running, || prompts.stop()).await
    }

    /// Runs a command of the shell, likewise.
    async fn run_command(&mut self, command: &str, is_private: bool) -> Option<u8> {
        let session = self.session();
        let options = BashOptions {
            exclude_from_context: is_private,
            ..BashOptions::default()
        };
        let mut ended = None;
        let running = async {
            match session.execute_bash(command, options).await {
                Ok(result) => ended = result.exit_code.filter(|code| *code != 0),
                Err(error) => return Some(error.to_string()),
            }
            None
        };
        let status = self.watch(running, || session.abort_bash()).await;
        if let Some(code) = ended {
            self.screen.write(&format!("[exit code {code}]\n"));
        }
        status
    }

    /// Does what a slash word says, likewise.
    async fn call(&mut self, slash: &Slash, rest: &str) -> Option<u8> {
        let runtime = self.runtime;
        let session = self.session();
        let mut said = None;
        let calling = async {
            let outcome = slash.run(runtime, rest).await;
            outcome.map(|answer| said = Some(answer)).err()
        };
        let status = self.watch(calling, || session.cancel()).await;
        match said {
            Some(Said::Text(text)) => {
                self.screen.write(&text);
                self.screen.end_line();
            }
            Some(Said::Moved(text)) => {
                self.events = self.session().subscribe();
                self.screen.write(&text);
                self.screen.end_line();
            }
            Some(Said::Nothing) | None => {}
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
                    if status == INTERRUPT {
                        self.screen.is_marked();
                    }
                    stop();
                    limit.set(patience());
                }
                Some(event) = self.events.recv() => self.show(&event).await,
                end = &mut running => break Some(end),
                () = &mut limit, if asked.is_some() => break None,
            }
        };
        // What the run has told last.
        self.show_waiting().await;
        self.screen.end_line();
        match end {
            // The prompt stays: what is wrong may be mended meanwhile.
            Some(complaint) => complaint.iter().for_each(say::error),
            None => say::warning("What was running did not stop in time and was dropped."),
        }
        asked.filter(|status| *status != INTERRUPT)
    }

    async fn show_waiting(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            self.show(&event).await;
        }
    }

    async fn show(&mut self, event: &Event) {
        let session = self.runtime.session();
        match self.views.of(&session, event).await {
            Some(lines) => self.screen.write_lines(&lines),
            None => self.screen.show(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &str) -> String {
        match Line::of(&Prompt::text(line)) {
            Line::Nothing => "nothing".to_owned(),
            Line::Quit => "quit".to_owned(),
            Line::Shell {
                command,
                is_private,
            } => format!("shell {command} {is_private}"),
            Line::Slash(slash, rest) => format!("/{} [{rest}]", slash.name),
            Line::Prompt => "prompt".to_owned(),
        }
    }

    #[test]
    fn a_line_is_taken_for_what_it_begins_with() {
        // interfaces §12
        let lines = [
            ("  ", "nothing"),
            (" /quit ", "quit"),
            ("!ls -l", "shell ls -l false"),
            ("!! ls", "shell ls true"),
            ("!", "prompt"),
            ("/compact the tests", "/compact [the tests]"),
            ("/model", "/model []"),
            ("/compactness", "prompt"),
            ("/mytemplate x", "prompt"),
            ("say /model", "prompt"),
        ];
        for (line, expected) in lines {
            assert_eq!(kind(line), expected, "{line}");
        }
    }
}

//! The thread that builds: one build at a time, and a change of what is being built ends it and begins it
//! anew.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Instant;

use super::Report;
use super::crates::Crate;
use super::messages::{CompilerError, error_in};

/// Errors that are kept of a build.
const MOST: usize = 50;

/// Bytes that are kept of what cargo says beside them.
const TAIL: usize = 4000;

/// What the thread is told.
pub(super) enum Message {
    /// Files changed.
    Changed(Vec<PathBuf>),
    /// The build of that number said a line.
    Line(u64, String),
    /// It ended; what it said on its standard error.
    Ended(u64, String),
    Notice(String),
    Stop,
}

pub(super) struct Work {
    crates: Vec<Crate>,
    messages: Sender<Message>,
    tell: Box<dyn Fn(Report) + Send>,
    /// Places of the crates to build, in order.
    waiting: VecDeque<usize>,
    running: Option<Build>,
    builds: u64,
}

/// A build under way.
struct Build {
    number: u64,
    of: usize,
    cargo: Child,
    begun: Instant,
    errors: Vec<CompilerError>,
}

impl Work {
    pub(super) fn new(
        crates: Vec<Crate>,
        messages: Sender<Message>,
        tell: Box<dyn Fn(Report) + Send>,
    ) -> Self {
        let outdated = crates.iter().enumerate();
        let waiting = outdated
            .filter(|(_, one)| one.is_outdated())
            .map(|(at, _)| at);
        Self {
            waiting: waiting.collect(),
            crates,
            messages,
            tell,
            running: None,
            builds: 0,
        }
    }

    /// Until somebody stops it.
    pub(super) fn run(mut self, inbox: &Receiver<Message>) {
        self.begin();
        while let Ok(message) = inbox.recv() {
            match message {
                Message::Changed(paths) => self.changed(&paths),
                Message::Line(number, line) => {
                    if let Some(build) =
                        self.running.as_mut().filter(|build| build.number == number)
                        && build.errors.len() < MOST
                    {
                        build.errors.extend(error_in(&line));
                    }
                }
                Message::Ended(number, said) => self.ended(number, &said),
                Message::Notice(sentence) => (self.tell)(Report::Notice(sentence)),
                Message::Stop => break,
            }
            self.begin();
        }
        self.stop();
    }

    fn changed(&mut self, paths: &[PathBuf]) {
        for (at, one) in self.crates.iter().enumerate() {
            let concerns = paths.iter().any(|path| one.has_source(path));
            if concerns && !self.waiting.contains(&at) {
                self.waiting.push_back(at);
            }
        }
        let outdated = self.running.as_ref().map(|build| build.of);
        if outdated.is_some_and(|of| self.waiting.contains(&of)) {
            self.stop();
        }
    }

    /// Starts the next build, if none runs.
    fn begin(&mut self) {
        if self.running.is_some() {
            return;
        }
        let Some(of) = self.waiting.pop_front() else {
            return;
        };
        self.builds += 1;
        let package = self.crates[of].name().to_owned();
        (self.tell)(Report::Building {
            package: package.clone(),
        });
        match self.start(of) {
            Ok(build) => self.running = Some(build),
            Err(error) => (self.tell)(Report::Failed {
                package,
                errors: Vec::new(),
                cause: format!("cargo cannot be started: {error}."),
            }),
        }
    }

    fn start(&self, of: usize) -> std::io::Result<Build> {
        let one = &self.crates[of];
        let mut command = Command::new("cargo");
        command
            .args(["build", "--message-format=json", "--package", one.name()])
            .arg("--manifest-path")
            .arg(one.manifest())
            .env("CARGO_TERM_COLOR", "never")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // A group of its own, so that what cargo has started ends with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut cargo = command.spawn()?;
        let number = self.builds;
        let (stdout, stderr) = (cargo.stdout.take(), cargo.stderr.take());
        let messages = self.messages.clone();
        std::thread::Builder::new()
            .name("cargo".to_owned())
            .spawn(move || {
                let said = std::thread::spawn(move || stderr.map(tail).unwrap_or_default());
                let lines = stdout.map(BufReader::new);
                for line in lines
                    .into_iter()
                    .flat_map(BufRead::lines)
                    .map_while(Result::ok)
                {
                    if messages.send(Message::Line(number, line)).is_err() {
                        break;
                    }
                }
                let said = said.join().unwrap_or_default();
                let _ = messages.send(Message::Ended(number, said));
            })?;
        Ok(Build {
            number,
            of,
            cargo,
            begun: Instant::now(),
            errors: Vec::new(),
        })
    }

    fn ended(&mut self, number: u64, said: &str) {
        let Some(mut build) = self.running.take_if(|build| build.number == number) else {
            return;
        };
        let one = &self.crates[build.of];
        let package = one.name().to_owned();
        let succeeded = build.cargo.wait().is_ok_and(|status| status.success());
        (self.tell)(match succeeded {
            true => Report::Built {
                package,
                library: one.built(),
                took: build.begun.elapsed(),
            },
            false => Report::Failed {
                package,
                errors: build.errors,
                cause: said.trim().to_owned(),
            },
        });
    }

    /// Ends the build that runs.
    fn stop(&mut self) {
        let Some(mut build) = self.running.take() else {
            return;
        };
        #[cfg(unix)]
        if let Some(group) = i32::try_from(build.cargo.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = build.cargo.kill();
        let _ = build.cargo.wait();
    }
}

/// The last of what is said.
fn tail(mut from: impl Read) -> String {
    let (mut kept, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = from.read(&mut piece) {
        kept.extend_from_slice(&piece[..read]);
        let excess = kept.len().saturating_sub(2 * TAIL);
        if excess > 0 {
            kept.drain(..excess + TAIL);
        }
    }
    let from = kept.len().saturating_sub(TAIL);
    String::from_utf8_lossy(&kept[from..]).into_owned()
}

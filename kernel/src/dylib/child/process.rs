//! The process of a child: starting it, the last lines it wrote, ending it, and what became of it in
//! words.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, PipeReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

/// Lines that are kept of what a child writes.
const LINES: usize = 3;

/// The longest of them, bytes.
const LONGEST: usize = 300;

/// What is started as a child: a program that calls [`serve`](super::serve) when it is started so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostProgram {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

/// A child that was started.
#[derive(Debug)]
pub(super) struct Process {
    child: Mutex<Child>,
    pub(super) id: u32,
    tail: Arc<Mutex<VecDeque<String>>>,
}

impl Process {
    /// Starts one for a plugin; answers it and our end of the link.
    pub(super) fn start(program: &HostProgram, plugin: &str) -> io::Result<(Self, UnixStream)> {
        let (ours, theirs) = UnixStream::pair()?;
        let (lines, written) = io::pipe()?;
        let child = Command::new(&program.program)
            .args(&program.args)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(OwnedFd::from(written.try_clone()?)))
            .stderr(Stdio::from(OwnedFd::from(written)))
            .spawn()?;
        let tail = Arc::default();
        let (kept, name) = (Arc::clone(&tail), plugin.to_owned());
        std::thread::Builder::new()
            .name("plugin-lines".to_owned())
            .spawn(move || read_lines(lines, &name, &kept))?;
        let process = Self {
            id: child.id(),
            child: Mutex::new(child),
            tail,
        };
        Ok((process, ours))
    }

    /// Ends it. One that has ended already is not ended again: its number may be somebody else's.
    pub(super) fn kill(&self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(None) = child.try_wait() {
            let _ = child.kill();
        }
    }

    /// Waits for its end, and tells how it came.
    pub(super) fn wait(&self) -> String {
        loop {
            let ended = {
                let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
                child.try_wait()
            };
            match ended {
                Ok(Some(status)) => return self.told(status),
                Ok(None) => std::thread::sleep(std::time::Duration::from_millis(1)),
                Err(error) => return format!("its end is unknown ({error})"),
            }
        }
    }

    fn told(&self, status: ExitStatus) -> String {
        let how = match (status.signal(), status.code()) {
            (Some(signal), _) => match signal_name(signal) {
                Some(name) => format!("it was ended by signal {signal} ({name})"),
                None => format!("it was ended by signal {signal}"),
            },
            (None, Some(code)) => format!("it ended the process with status {code}"),
            (None, None) => "it ended the process".to_owned(),
        };
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        match tail.back() {
            None => how,
            Some(_) => {
                let lines: Vec<&str> = tail.iter().map(String::as_str).collect();
                format!("{how}; it wrote: {}", lines.join(" / "))
            }
        }
    }
}

/// What people call a signal.
fn signal_name(signal: i32) -> Option<&'static str> {
    let names = [
        (libc::SIGSEGV, "SIGSEGV, a wrong address"),
        (libc::SIGABRT, "SIGABRT, an abort"),
        (libc::SIGBUS, "SIGBUS, a file cut short or a wrong address"),
        (libc::SIGILL, "SIGILL, a wrong instruction"),
        (libc::SIGFPE, "SIGFPE, wrong arithmetic"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGXCPU, "SIGXCPU, its limit of processor time"),
    ];
    let named = names.into_iter().find(|(number, _)| *number == signal);
    named.map(|(_, name)| name)
}

/// What a child writes is for the log.
fn read_lines(lines: PipeReader, plugin: &str, kept: &Mutex<VecDeque<String>>) {
    let mut lines = BufReader::new(lines);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = io::Read::take(&mut lines, 64 << 10).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        if text.is_empty() {
            continue;
        }
        tracing::info!(target: "pliant::plugin", source = plugin, "{text}");
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= LINES {
            kept.pop_front();
        }
        let end = text.floor_char_boundary(LONGEST.min(text.len()));
        kept.push_back(text[..end].to_owned());
    }
}

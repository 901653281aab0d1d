//! A client of the RPC mode, as programs are: sends lines, keeps every record in the order of arrival, and
//! waits for records no longer than a test may take.
//!
//! ```no_run
//! # use pliant_tests::{ModelServer, TempHome, reply};
//! # use serde_json::json;
//! let server = ModelServer::start([reply::text("Hello.")]);
//! let home = TempHome::with_model(&server);
//! let mut rpc = home.rpc();
//! rpc.turn("Greet me.");
//! let text = rpc.ok(json!({"type": "get_last_assistant_text"}));
//! assert_eq!(text["text"], "Hello.");
//! rpc.end();
//! ```

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{Pliant, TempHome, event_rules, send_signal};

/// How long a record may take to come.
const PATIENCE: Duration = Duration::from_secs(30);

/// The binary in RPC mode. Dropping it kills it.
#[derive(Debug)]
pub struct Rpc {
    child: Child,
    stdin: Option<ChildStdin>,
    /// `None`: nobody reads, until [`Rpc::read_on`].
    lines: Option<Receiver<Vec<u8>>>,
    stderr: Option<JoinHandle<String>>,
    records: Vec<Value>,
    /// How many records the test has looked at.
    seen: usize,
    sent: usize,
}

/// How the process ended.
#[derive(Debug)]
pub struct Ended {
    /// Its status.
    pub status: ExitStatus,
    /// Every record.
    pub records: Vec<Value>,
    /// As printed.
    pub stderr: String,
}

impl TempHome {
    /// The RPC mode with the scripted model.
    pub fn rpc(&self) -> Rpc {
        self.rpc_with(&[])
    }

    /// The same with more arguments.
    pub fn rpc_with(&self, args: &[&str]) -> Rpc {
        let pliant = self.pliant_with_model();
        pliant.args(["--mode", "rpc"]).args(args).rpc()
    }
}

impl Pliant {
    /// Starts it with a client on its pipes.
    pub fn rpc(self) -> Rpc {
        let mut rpc = self.rpc_unread();
        rpc.read_on();
        rpc
    }

    /// Starts it with a client that does not read until it is told to.
    pub fn rpc_unread(mut self) -> Rpc {
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = self.command.spawn().expect("the binary was built");
        let mut stderr = child.stderr.take().expect("the errors are piped");
        let stderr = thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Rpc {
            stdin: child.stdin.take(),
            child,
            lines: None,
            stderr: Some(stderr),
            records: Vec::new(),
            seen: 0,
            sent: 0,
        }
    }
}

impl Rpc {
    /// Begins to read.
    pub fn read_on(&mut self) {
        let stdout = self.child.stdout.take().expect("nobody reads yet");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        self.lines = Some(lines);
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends bytes as they are.
    pub fn raw(&mut self, bytes: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().expect("the input is open");
        // One that ended while it was told something shows that by its records.
        let _ = stdin.write_all(bytes.as_ref());
    }

    /// Sends a command, and answers the id that it was given.
    pub fn send(&mut self, mut command: Value) -> Value {
        self.sent += 1;
        let id = match command.get("id") {
            Some(id) => id.clone(),
            None => json!(format!("q{}", self.sent)),
        };
        command["id"] = id.clone();
        self.raw(format!("{command}\n"));
        id
    }

    /// Waits for the next record that `fits`; those before it are passed by.
    #[track_caller]
    pub fn next(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            while self.seen < self.records.len() {
                self.seen += 1;
                if fits(&self.records[self.seen - 1]) {
                    return self.records[self.seen - 1].clone();
                }
            }
            self.receive(what);
        }
    }

    /// Waits for the answer with that id, wherever in the stream it stands.
    #[track_caller]
    pub fn answer(&mut self, id: &Value) -> Value {
        let mut from = 0;
        loop {
            let records = self.records[from..].iter();
            let mut answers = records.filter(|record| record["type"] == "response");
            if let Some(answer) = answers.find(|answer| answer["id"] == *id) {
                return answer.clone();
            }
            from = self.records.len();
            self.receive(&format!("the answer {id}"));
        }
    }

    /// Sends a command and waits for its answer.
    #[track_caller]
    pub fn call(&mut self, command: Value) -> Value {
        let id = self.send(command);
        self.answer(&id)
    }

    /// The data of a command that succeeds; null without.
    #[track_caller]
    pub fn ok(&mut self, command: Value) -> Value {
        let mut answer = self.call(command);
        assert_eq!(answer["success"], true, "{answer}");
        assert_eq!(answer.get("error"), None, "{answer}");
        answer["data"].take()
    }

    /// The error of a command that fails.
    #[track_caller]
    pub fn error(&mut self, command: Value) -> String {
        let answer = self.call(command);
        assert_eq!(answer["success"], false, "{answer}");
        assert_eq!(answer.get("data"), None, "{answer}");
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(!error.is_empty(), "{answer}");
        error.to_owned()
    }

    /// `get_state`.
    #[track_caller]
    pub fn state(&mut self) -> Value {
        self.ok(json!({"type": "get_state"}))
    }

    /// Waits for the next event of a type.
    #[track_caller]
    pub fn event(&mut self, kind: &str) -> Value {
        self.next(kind, |record| record["type"] == kind)
    }

    /// Prompts, waits until that has settled, and answers the events of the run.
    #[track_caller]
    pub fn turn(&mut self, message: &str) -> Vec<Value> {
        let from = self.records.len();
        let prompted = self.ok(json!({"type": "prompt", "message": message}));
        assert_eq!(prompted["disposition"], "started");
        self.seen = self.seen.max(from);
        self.event("agent_settled");
        self.since(from)
    }

    /// Every record so far.
    pub fn records(&self) -> &[Value] {
        &self.records
    }

    /// Passes by what has arrived, and answers how many records that were.
    pub fn mark(&mut self) -> usize {
        self.seen = self.records.len();
        self.seen
    }

    /// The events among the records from that one on.
    pub fn since(&self, from: usize) -> Vec<Value> {
        let records = self.records[from..].iter();
        let events = records.filter(|record| record["type"] != "response");
        events.cloned().collect()
    }

    /// Waits for a dialog.
    #[track_caller]
    pub fn dialog(&mut self) -> Value {
        self.next("a dialog", |record| {
            let asks = ["select", "confirm", "input", "editor"];
            let method = record["method"].as_str();
            record["type"] == "extension_ui_request" && asks.contains(&method.unwrap_or_default())
        })
    }

    /// Answers a dialog.
    pub fn tell(&mut self, dialog: &Value, answer: Value) {
        let mut record = json!({"type": "extension_ui_response", "id": dialog["id"]});
        for (name, value) in answer.as_object().expect("an answer has fields") {
            record[name] = value.clone();
        }
        self.raw(format!("{record}\n"));
    }

    /// Waits for a line that a plugin shows, and answers it.
    #[track_caller]
    pub fn notice(&mut self) -> String {
        let record = self.next("a notice", |record| record["method"] == "notify");
        record["message"].as_str().unwrap_or_default().to_owned()
    }

    /// Sends a signal to the process, not to its children.
    pub fn signal(&self, signal: i32) {
        let pid = libc::pid_t::try_from(self.child.id()).expect("a process id fits its type");
        send_signal(pid, signal);
    }

    /// Nothing more will be sent.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Nothing will be read: the pipe is closed.
    pub fn close_output(&mut self) {
        self.lines = None;
        self.child.stdout = None;
    }

    /// Whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        let status = self.child.try_wait().expect("the child is ours");
        status.is_some()
    }

    /// Waits for the end of the process.
    #[track_caller]
    pub fn wait(mut self) -> Ended {
        if let Some(lines) = self.lines.take() {
            let deadline = Instant::now() + PATIENCE;
            loop {
                let left = deadline.saturating_duration_since(Instant::now());
                match lines.recv_timeout(left) {
                    Ok(line) => self.records.push(record(&line)),
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => panic!("pliant did not end: {self:#?}"),
                }
            }
        }
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("the child is ours") {
                break status;
            }
            assert!(Instant::now() < deadline, "pliant did not end");
            thread::sleep(Duration::from_millis(2));
        };
        let stderr = self.stderr.take().map(|reading| reading.join());
        let stderr = stderr.and_then(Result::ok).unwrap_or_default();
        assert!(!stderr.contains("panicked"), "{stderr}");
        Ended {
            status,
            records: std::mem::take(&mut self.records),
            stderr,
        }
    }

    /// Ends the input, and expects an orderly end with records in order.
    #[track_caller]
    pub fn end(mut self) -> Ended {
        self.close_input();
        let ended = self.wait();
        assert_eq!(ended.status.code(), Some(0), "{ended:#?}");
        ended
    }

    #[track_caller]
    fn receive(&mut self, what: &str) {
        let lines = self.lines.as_ref().expect("somebody reads");
        match lines.recv_timeout(PATIENCE) {
            Ok(line) => self.records.push(record(&line)),
            Err(error) => {
                let last = self.records.len().saturating_sub(6);
                panic!(
                    "{what} does not come ({error}); the last records: {:#?}",
                    &self.records[last..]
                );
            }
        }
    }
}

impl Drop for Rpc {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let pid = libc::pid_t::try_from(self.child.id()).expect("a process id fits its type");
            // The whole group: the process has not been waited for, so the id is still its own.
            send_signal(-pid, libc::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

/// A stream of the scripted model in which each piece is an event of its own, for [`crate::reply::raw`].
pub fn deltas<'a>(pieces: impl IntoIterator<Item = &'a str>) -> String {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 0,
            "model": crate::MODEL, "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    let mut stream = String::new();
    for piece in pieces {
        stream += &chunk(json!({ "content": piece }), Value::Null);
    }
    stream + &chunk(json!({}), json!("stop")) + "data: [DONE]\n\n"
}

/// The events of one run, by their types, after checking their order.
///
/// # Panics
/// When one of the ordering rules of `interfaces.md` §7 is broken.
#[track_caller]
pub fn checked(events: &[Value]) -> Vec<&str> {
    event_rules::check_run(events);
    let kinds = events.iter().map(|event| event["type"].as_str());
    kinds.map(Option::unwrap_or_default).collect()
}

#[track_caller]
fn record(line: &[u8]) -> Value {
    serde_json::from_slice(line)
        .unwrap_or_else(|error| panic!("no record ({error}): {}", String::from_utf8_lossy(line)))
}

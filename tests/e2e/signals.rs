//! What ends a run from outside: signals, and a reader that stalls or leaves. What was said so far is
//! stored, tools end with the run, and nothing that hangs keeps the process.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use pliant_tests::{MODEL, ModelServer, Output, PROVIDER, Reply, TempHome, fixture_plugin, reply};
use serde_json::{Value, json};

const SIGNALS: [(libc::c_int, i32); 3] = [
    (libc::SIGINT, 130),
    (libc::SIGTERM, 143),
    (libc::SIGHUP, 129),
];

/// Waits for something that will happen.
#[track_caller]
pub(super) fn until<T>(what: &str, mut happened: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(value) = happened() {
            return value;
        }
        assert!(Instant::now() < deadline, "{what} does not happen");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A command that begins, tells so, and does not end by itself.
fn endless() -> Reply {
    let command = "sleep 600 & echo $$ $! > begun.tmp; mv begun.tmp begun; wait";
    reply::text("Let me wait.").and_call("bash", json!({"command": command}))
}

/// The processes of [`endless`], once they are there.
fn begun(home: &TempHome) -> Vec<String> {
    let file = home.project_dir().join("begun");
    let pids = until("the command", || fs::read_to_string(&file).ok());
    pids.split_whitespace().map(str::to_owned).collect()
}

#[track_caller]
pub(super) fn are_gone(pids: &[String]) {
    for pid in pids {
        until("the end of the command", || {
            let shown = Command::new("ps").args(["-o", "stat=", "-p", pid]).output();
            let state = shown.expect("ps is there").stdout;
            // One that nobody has waited for yet is over, too.
            (state.is_empty() || state.starts_with(b"Z")).then_some(())
        });
    }
}

/// The last answer of the stored session was aborted.
#[track_caller]
fn aborted_answer(home: &TempHome) -> Value {
    let messages = home.stored_messages().into_iter();
    let mut answer = messages.filter(|message| message["role"] == "assistant");
    let answer = answer.next_back().expect("an answer is stored");
    assert_eq!(answer["stopReason"], "aborted", "{answer}");
    answer
}

#[track_caller]
fn ended(output: &Output, status: i32) {
    assert_eq!(output.status.code(), Some(status), "{output:#?}");
    assert!(!output.stderr.contains("panicked"), "{output:#?}");
}

#[test]
fn a_signal_ends_print_mode_with_its_status_and_the_aborted_answer_is_stored() {
    for (signal, status) in SIGNALS {
        let server = ModelServer::start([reply::hold()]);
        let home = TempHome::with_model(&server);
        let running = home.prompt("Wait.").spawn();
        server.wait_for(1);
        running.signal(signal);
        let output = running.wait();
        ended(&output, status);
        assert_eq!((&*output.stdout, &*output.stderr), ("", ""));
        aborted_answer(&home);
        server.finish();
    }
}

#[test]
fn a_signal_ends_json_mode_with_its_status_and_the_stream_with_what_was_said() {
    for (signal, status) in SIGNALS {
        let text = "Half of an answer that never ends.";
        let server = ModelServer::start([reply::text(text).hold_after(5)]);
        let home = TempHome::with_model(&server);
        let mut started = start(&home, &["--mode", "json", "Wait."]);
        started.read_until("text_delta");
        send(&started.child, signal);
        let last = started.last_line();
        assert_eq!(started.wait(), (Some(status), String::new()));
        let settled: Value = serde_json::from_str(&last).expect("it is JSON");
        assert_eq!(settled, json!({"type": "agent_settled", "aborted": true}));
        let said = aborted_answer(&home)["content"][0]["text"].take();
        let said = said.as_str().expect("half an answer is kept").to_owned();
        assert!(!said.is_empty() && text.starts_with(&said), "{said}");
        server.finish();
    }
}

#[test]
fn a_signal_ends_the_command_that_a_tool_runs_and_no_other_prompt_is_sent() {
    for mode in ["text", "json"] {
        let server = ModelServer::start([endless()]);
        let home = TempHome::with_model(&server);
        let running = home
            .prompt("Wait.")
            .args(["--mode", mode, "And again."])
            .spawn();
        let pids = begun(&home);
        running.signal(libc::SIGTERM);
        ended(&running.wait(), 143);
        are_gone(&pids);
        let roles = home.stored_messages().into_iter();
        let users = roles.filter(|message| message["role"] == "user").count();
        assert_eq!(users, 1);
        server.finish();
    }
}

#[test]
fn a_second_signal_ends_what_does_not_stop() {
    let server = ModelServer::start([reply::hold()]);
    let home = TempHome::with_model(&server);
    let script = home.write(
        "stay.rhai",
        r#"on("session_shutdown", |event, ctx| { exec("touch", ["begun"]); loop {} });"#,
    );
    let script = script.display().to_string();
    let running = home.prompt("Wait.").args(["-e", &script]).spawn();
    server.wait_for(1);
    running.signal(libc::SIGTERM);
    let file = home.project_dir().join("begun");
    until("the handler", || file.exists().then_some(()));
    let asked = Instant::now();
    running.signal(libc::SIGINT);
    ended(&running.wait(), 143);
    assert!(asked.elapsed() < Duration::from_secs(2));
    aborted_answer(&home);
    server.finish();
}

#[test]
fn a_reader_that_stalls_keeps_neither_the_process_nor_the_answer_from_its_end() {
    // Much more than a pipe and everything before it hold.
    let text = "word ".repeat(3_000);
    let server = ModelServer::start([reply::text(&text).hold_after(3_000)]);
    let home = TempHome::with_model(&server);
    let mut started = start(&home, &["--mode", "json", "Tell."]);
    let mut looks = Vec::new();
    until("a full pipe", || {
        looks.push(started.unread());
        let last = &looks[looks.len().saturating_sub(20)..];
        (last.len() == 20 && last[0] > 32 * 1024 && last.iter().all(|look| *look == last[0]))
            .then_some(())
    });
    let asked = Instant::now();
    send(&started.child, libc::SIGTERM);
    assert_eq!(started.wait(), (Some(143), String::new()));
    assert!(asked.elapsed() < Duration::from_secs(4));
    aborted_answer(&home);
    server.finish();
}

#[test]
fn a_reader_that_leaves_ends_the_run_without_a_word() {
    let command = "echo $$ > begun.tmp; mv begun.tmp begun; while echo tick; do sleep 0.01; done";
    let server = ModelServer::start([reply::tool_call("bash", json!({"command": command}))]);
    let home = TempHome::with_model(&server);
    let mut started = start(&home, &["--mode", "json", "Tell."]);
    let pids = begun(&home);
    started.leave();
    assert_eq!(started.wait(), (Some(1), String::new()));
    are_gone(&pids);
    aborted_answer(&home);
    server.finish();
}

#[cfg(target_os = "linux")]
#[test]
fn a_stdout_that_cannot_be_written_is_named() {
    for mode in ["text", "json"] {
        let server = ModelServer::answering(|_| reply::text("Hello."));
        let home = TempHome::with_model(&server);
        let full = fs::File::create("/dev/full").expect("linux has it");
        let arguments = ["-p", "Greet me.", "--mode", mode];
        let output = command(&home, &arguments).stdout(full).output();
        let output = output.expect("the binary was built");
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.starts_with("Error: Standard output cannot be written: No space left"),
            "{said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
        server.finish();
    }
}

/// The binary with the scripted model, its pipes in the hands of the test.
pub(super) fn command(home: &TempHome, arguments: &[&str]) -> Command {
    let mut command = bare_command(home);
    command
        .args(["--provider", PROVIDER, "--model", MODEL])
        .args(arguments);
    command
}

/// The binary without any arguments.
pub(super) fn bare_command(home: &TempHome) -> Command {
    let built = fixture_plugin("hello").with_file_name("pliant");
    let mut command = Command::new(built);
    command
        .current_dir(home.project_dir())
        .env("HOME", home.home_dir())
        .env("PLIANT_AGENT_DIR", home.agent_dir())
        .env("TMPDIR", home.tmp_dir())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0);
    command
}

#[allow(unsafe_code)]
pub(super) fn send(child: &Child, signal: libc::c_int) {
    let pid = libc::pid_t::try_from(child.id()).expect("a process id fits its type");
    // SAFETY: `kill` takes two numbers and touches no memory of ours.
    unsafe { libc::kill(pid, signal) };
}

fn start(home: &TempHome, arguments: &[&str]) -> Started {
    let mut child = command(home, arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary was built");
    let stdout = child.stdout.take().map(BufReader::new);
    Started { child, stdout }
}

/// A run whose stdout is read only as far as the test says. Dropping it kills it.
struct Started {
    child: Child,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Started {
    fn stdout(&mut self) -> &mut BufReader<ChildStdout> {
        self.stdout.as_mut().expect("the reader has not left")
    }

    #[track_caller]
    fn read_until(&mut self, word: &str) {
        let line = self.stdout().lines().map_while(Result::ok);
        let found = line.into_iter().any(|line| line.contains(word));
        assert!(found, "{word} is not told");
    }

    fn last_line(&mut self) -> String {
        let lines = self.stdout().lines().map_while(Result::ok);
        lines.last().expect("something is told")
    }

    /// Bytes that wait for the reader.
    #[allow(unsafe_code)]
    fn unread(&mut self) -> libc::c_int {
        let mut bytes: libc::c_int = 0;
        let pipe = self.stdout().get_ref().as_raw_fd();
        // SAFETY: the pipe is open, and FIONREAD writes one number.
        unsafe { libc::ioctl(pipe, libc::FIONREAD, &raw mut bytes) };
        bytes
    }

    fn leave(&mut self) {
        self.stdout = None;
    }

    /// The status and what was said on stderr.
    #[track_caller]
    fn wait(&mut self) -> (Option<i32>, String) {
        let status = until("the end", || self.child.try_wait().expect("it is ours"));
        let mut said = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            stderr.read_to_string(&mut said).expect("stderr is text");
        }
        (status.code(), said)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! Processes for plugins, scripts and user commands: an [`ExecRequest`] and a [`ProcessEnv`] come
//! in, a stream of output chunks goes out, ended by one chunk that says how the process ended.
//!
//! A process leads its own group, reads nothing (`/dev/null`) and writes both outputs into one pipe,
//! so that their order is the order of writing. No task runs behind the stream: whoever drops it
//! before its end kills the process with all its descendants. What is not here: permissions,
//! which settings give the shell and the prefix line, and what a model is told about the output.

mod tree;

use std::ffi::OsStr;
use std::fs;
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream::{self, Stream};
use pliant_sdk::Error;
use pliant_sdk::error::code;
use pliant_sdk::host::{ByteStream, ExecExit, ExecRequest, PollBytes};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use tree::{Tree, pipe_name};

/// Variables of one session. A command gets them only with [`ExecRequest::session_env`]; those
/// inherited from an outer pliant or pi never reach it.
pub const SESSION_VARIABLES: [&str; 10] = [
    "PLIANT_SESSION_ID",
    "PLIANT_SESSION_FILE",
    "PLIANT_PROVIDER",
    "PLIANT_MODEL",
    "PLIANT_REASONING_LEVEL",
    "PI_SESSION_ID",
    "PI_SESSION_FILE",
    "PI_PROVIDER",
    "PI_MODEL",
    "PI_REASONING_LEVEL",
];

/// How long the output may be silent after the exit before descendants are left alone.
const QUIET: Duration = Duration::from_millis(100);

/// How long reading goes on after the exit in all. Every chunk re-arms [`QUIET`], so without this
/// a background child that writes for ever would hold the caller for ever (T04).
const AFTER_EXIT: Duration = Duration::from_secs(1);

/// How long a killed process may take to disappear; one in uninterruptible sleep takes longer.
const DYING: Duration = Duration::from_secs(2);

/// What a pipe holds at most, and the size of a chunk. What the process wrote before its exit and
/// is not read yet is never more than this.
const PIPE_CAPACITY: usize = 64 * 1024;

/// Where and how processes of a session run.
#[derive(Debug, Clone, Default)]
pub struct ProcessEnv {
    /// Directory for requests that name none; relative ones start here.
    pub cwd: PathBuf,
    /// Program that runs command lines (`shellPath`).
    pub shell: PathBuf,
    /// Line put before every command line (`shellCommandPrefix`).
    pub prefix: Option<String>,
    /// Set for every process.
    pub extra: Vec<(String, String)>,
    /// Set for requests with `session_env`: values for [`SESSION_VARIABLES`].
    pub session: Vec<(String, String)>,
    /// Taken from the inherited environment: keys of providers.
    pub removed: Vec<String>,
}

/// The shell for command lines when the settings name none: bash, of the folders of `PATH` too, else
/// `sh`.
#[must_use]
pub fn default_shell(path: &OsStr) -> PathBuf {
    std::iter::once(PathBuf::from("/bin/bash"))
        .chain(std::env::split_paths(path).map(|folder| folder.join("bash")))
        .find(|candidate| candidate.is_file())
        .unwrap_or_else(|| PathBuf::from("/bin/sh"))
}

/// Starts a process. Chunks are `o` and raw output; the last one is `x` and an [`ExecExit`].
///
/// Dropping the stream before that last chunk kills the process, its group and its descendants.
///
/// # Errors
/// `not_found` for a missing working directory or program, `invalid` for an empty request, `io` when
/// the system refuses.
pub async fn stream(request: ExecRequest, env: &ProcessEnv) -> Result<ByteStream, Error> {
    let started = Instant::now();
    let (reader, writer) = io::pipe().map_err(|e| refused("open a pipe for the output", &e))?;
    let pipe_name = pipe_name(&reader);
    let pipe = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))
        .map_err(|e| refused("read the pipe", &e))?;
    let errors = writer
        .try_clone()
        .map_err(|e| refused("share the pipe", &e))?;
    let mut command = command(&request, env)?;
    command.stdin(Stdio::null()).stdout(writer).stderr(errors);
    let child = command.spawn().map_err(|e| not_started(&command, &e))?;
    // The command holds our copies of the pipe's writing end; with them the output would not end.
    drop(command);
    let tree = Tree {
        leader: child.id(),
        pipe: pipe_name,
    };
    let running = Running {
        child: Some(child),
        tree,
        pipe: Some(pipe),
        buffer: vec![b'o'; PIPE_CAPACITY + 1],
        started,
        deadline: request
            .timeout_ms
            .and_then(|ms| started.checked_add(Duration::from_millis(ms))),
        exited: None,
        phase: Phase::Running,
        runtime: Handle::current(),
    };
    let chunks = stream::unfold(running, async |mut running| {
        let chunk = running.next().await?;
        Some((chunk, running))
    });
    Ok(ByteStream::new(Chunks(Box::pin(chunks))))
}

struct Chunks(Pin<Box<dyn Stream<Item = Result<Vec<u8>, Error>> + Send>>);

impl PollBytes for Chunks {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Error>>> {
        self.0.as_mut().poll_next(cx)
    }
}

fn command(request: &ExecRequest, env: &ProcessEnv) -> Result<Command, Error> {
    let mut command = match (request.argv.split_first(), &request.shell_command) {
        (Some((program, args)), _) => {
            let mut command = Command::new(program);
            command.args(args);
            command
        }
        (None, Some(line)) => {
            let mut command = Command::new(&env.shell);
            command.arg("-c").arg(match &env.prefix {
                Some(prefix) => format!("{prefix}\n{line}"),
                None => line.clone(),
            });
            command
        }
        (None, None) => {
            return Err(Error::invalid(
                "the request names no program and no command line; give argv or shellCommand",
            ));
        }
    };
    command.current_dir(directory(&request.cwd, env)?);
    command.process_group(0);
    for name in env
        .removed
        .iter()
        .map(String::as_str)
        .chain(SESSION_VARIABLES)
    {
        command.env_remove(name);
    }
    command.env("AI_AGENT", "pliant");
    command.env("PLIANT_CODING_AGENT", "true");
    let session: &[_] = if request.session_env {
        &env.session
    } else {
        &[]
    };
    for (name, value) in env.extra.iter().chain(session).chain(&request.env) {
        command.env(name, value);
    }
    Ok(command)
}

fn directory(asked: &str, env: &ProcessEnv) -> Result<PathBuf, Error> {
    let directory = env.cwd.join(asked);
    match fs::metadata(&directory) {
        Ok(found) if found.is_dir() => Ok(directory),
        Ok(_) => Err(Error::new(
            code::NOT_FOUND,
            format!(
                "The working directory {} is not a directory; run the command from another one.",
                directory.display()
            ),
        )),
        Err(cause) => Err(Error::new(
            code::NOT_FOUND,
            format!(
                "The working directory {} cannot be used: {cause}. Create it again or run the \
                 command from another one.",
                directory.display()
            ),
        )),
    }
}

fn not_started(command: &Command, cause: &io::Error) -> Error {
    let program = Path::new(command.as_std().get_program()).display();
    let mut error = Error::from(io::Error::from(cause.kind()));
    error.message = format!("The program {program} could not be started: {cause}.");
    if cause.kind() == io::ErrorKind::NotFound {
        error
            .message
            .push_str(" Check its name, PATH and the setting shellPath.");
    }
    error
}

fn refused(what: &str, cause: &io::Error) -> Error {
    Error::new(code::IO, format!("The system refused to {what}: {cause}."))
}

/// The state of one process, and the way to the next chunk.
struct Running {
    /// `None` once dropped.
    child: Option<Child>,
    tree: Tree,
    /// `None` after the end of the output.
    pipe: Option<pipe::Receiver>,
    /// `o`, then room for one chunk.
    buffer: Vec<u8>,
    started: Instant,
    deadline: Option<Instant>,
    exited: Option<Exited>,
    phase: Phase,
    /// Where killed processes are waited for.
    runtime: Handle,
}

struct Exited {
    code: i32,
    at: Instant,
    last_output: Instant,
    /// Bytes read since.
    read: usize,
}

enum Phase {
    Running,
    /// Only the exit is left to tell.
    Ending(ExecExit),
    Over,
}

enum Step {
    Output(usize),
    OutputEnded,
    Exited(ExitStatus),
    Lost(io::Error),
    TimedOut,
    Quiet,
}

impl Running {
    async fn next(&mut self) -> Option<Result<Vec<u8>, Error>> {
        loop {
            match &self.phase {
                Phase::Running => {}
                Phase::Ending(exit) => {
                    let mut chunk = vec![b'x'];
                    chunk.extend(serde_json::to_vec(exit).unwrap_or_default());
                    self.phase = Phase::Over;
                    return Some(Ok(chunk));
                }
                Phase::Over => return None,
            }
            let read = match self.step().await {
                Step::Output(read) => read,
                Step::OutputEnded => {
                    self.pipe = None;
                    self.end_if_complete();
                    0
                }
                Step::Exited(status) => {
                    self.exited = Some(Exited::now(status));
                    self.end_if_complete();
                    0
                }
                Step::Lost(cause) => {
                    self.tree.kill();
                    self.phase = Phase::Over;
                    return Some(Err(Error::new(
                        code::IO,
                        format!("The exit of the process could not be seen: {cause}."),
                    )));
                }
                Step::TimedOut => self.time_out().await,
                Step::Quiet => self.leave_background(),
            };
            if read > 0 {
                return self.buffer.get(..=read).map(|chunk| Ok(chunk.to_vec()));
            }
        }
    }

    /// Waits for whatever comes first. Nothing is lost when the wait is dropped.
    async fn step(&mut self) -> Step {
        if self.exited.as_ref().is_some_and(Exited::is_enough) {
            return Step::Quiet;
        }
        let quiet_at = self.exited.as_ref().map(Exited::quiet_at);
        let Self {
            child,
            pipe,
            buffer,
            ..
        } = self;
        // In order: a flood of output must hide neither the time limit nor the exit.
        tokio::select! {
            biased;
            () = until(self.deadline) => Step::TimedOut,
            status = exit_of(child.as_mut().filter(|_| quiet_at.is_none())) => match status {
                Ok(status) => Step::Exited(status),
                Err(cause) => Step::Lost(cause),
            },
            read = output_of(pipe.as_ref(), &mut buffer[1..]) => {
                if let Some(exited) = &mut self.exited {
                    exited.read += read;
                    exited.last_output = Instant::now();
                }
                if read == 0 { Step::OutputEnded } else { Step::Output(read) }
            }
            () = until(quiet_at) => Step::Quiet,
        }
    }

    fn end_if_complete(&mut self) {
        if let (None, Some(exited)) = (&self.pipe, &self.exited) {
            self.phase = Phase::Ending(self.exit(Some(exited.code), false));
        }
    }

    /// Kills everything; answers how much output was still there.
    async fn time_out(&mut self) -> usize {
        self.tree.kill();
        if let Some(child) = self.child.as_mut().filter(|_| self.exited.is_none()) {
            // Reaped here or, when it does not die in time, by the runtime.
            let _ = timeout(DYING, child.wait()).await;
        }
        let code = self.exited.as_ref().map(|exited| exited.code);
        let mut exit = self.exit(code, true);
        exit.background = code.is_some();
        self.phase = Phase::Ending(exit);
        self.read_rest()
    }

    /// The process has ended and its descendants are silent, or have talked long enough.
    fn leave_background(&mut self) -> usize {
        let read = self.read_rest();
        let mut exit = self.exit(self.exited.as_ref().map(|exited| exited.code), false);
        if let Some(pipe) = self.pipe.take() {
            exit.background = true;
            self.runtime.spawn(drain(pipe));
        }
        self.phase = Phase::Ending(exit);
        read
    }

    /// Takes what is in the pipe, past the runtime: its readiness may lag behind when the reader
    /// came late, and these bytes have no other chance.
    fn read_rest(&mut self) -> usize {
        let Some(pipe) = &self.pipe else { return 0 };
        let mut filled = 1;
        while let Some(room) = self
            .buffer
            .get_mut(filled..)
            .filter(|room| !room.is_empty())
        {
            match rustix::io::read(pipe, room) {
                Ok(0) => {
                    self.pipe = None;
                    break;
                }
                Ok(read) => filled += read,
                Err(_) => break,
            }
        }
        filled - 1
    }

    fn exit(&self, code: Option<i32>, timed_out: bool) -> ExecExit {
        let end = self
            .exited
            .as_ref()
            .map_or_else(Instant::now, |exited| exited.at);
        ExecExit {
            code,
            timed_out,
            background: false,
            wall_ms: u64::try_from((end - self.started).as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl Drop for Running {
    /// An abandoned process dies with its tree, also when only descendants are left of it.
    fn drop(&mut self) {
        if matches!(self.phase, Phase::Running) {
            self.tree.kill();
        }
        if let Some(mut child) = self.child.take().filter(|_| self.exited.is_none()) {
            // A child that nobody waits for stays in the process table.
            self.runtime.spawn(async move { child.wait().await });
        }
    }
}

impl Exited {
    fn now(status: ExitStatus) -> Self {
        let at = Instant::now();
        let by_signal = || status.signal().map_or(1, |signal| 128 + signal);
        Self {
            code: status.code().unwrap_or_else(by_signal),
            at,
            last_output: at,
            read: 0,
        }
    }

    fn quiet_at(&self) -> Instant {
        (self.last_output + QUIET).min(self.at + AFTER_EXIT)
    }

    /// The time after the exit is over and everything written before it has been read.
    fn is_enough(&self) -> bool {
        self.read >= PIPE_CAPACITY && self.at.elapsed() >= AFTER_EXIT
    }
}

async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => pending().await,
    }
}

async fn exit_of(child: Option<&mut Child>) -> io::Result<ExitStatus> {
    match child {
        Some(child) => child.wait().await,
        None => pending().await,
    }
}

/// Reads one chunk; 0 at the end. A pipe that cannot be read has ended.
async fn output_of(pipe: Option<&pipe::Receiver>, room: &mut [u8]) -> usize {
    let Some(pipe) = pipe else {
        return pending().await;
    };
    loop {
        if pipe.readable().await.is_err() {
            return 0;
        }
        match pipe.try_read(room) {
            Ok(read) => return read,
            Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return 0,
        }
    }
}

/// Reads on for background processes until the last one closes the pipe: without a reader their next
/// line would kill them, as `server &` in one command and its use in the next one shows. At most
/// 3 MiB a second, so that a forgotten `yes &` mostly waits. Ends with the runtime at the latest.
async fn drain(pipe: pipe::Receiver) {
    let mut buffer = vec![0; PIPE_CAPACITY];
    while output_of(Some(&pipe), &mut buffer).await > 0 {
        sleep(Duration::from_millis(20)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::time::Instant as Clock;

    fn env() -> ProcessEnv {
        ProcessEnv {
            cwd: std::env::temp_dir(),
            shell: default_shell(OsStr::new("")),
            ..ProcessEnv::default()
        }
    }

    fn line(command: &str) -> ExecRequest {
        ExecRequest {
            shell_command: Some(command.to_owned()),
            ..ExecRequest::default()
        }
    }

    async fn finish(mut stream: ByteStream) -> (String, ExecExit) {
        let mut output = Vec::new();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.expect("the process is not lost");
            match chunk.split_first() {
                Some((b'o', bytes)) => output.extend_from_slice(bytes),
                Some((b'x', json)) => {
                    let exit = serde_json::from_slice(json).expect("an exit");
                    assert!(stream.next().await.is_none(), "the exit is the last chunk");
                    return (String::from_utf8_lossy(&output).into_owned(), exit);
                }
                _ => panic!("a chunk of no kind"),
            }
        }
        panic!("no exit, after {:?}", String::from_utf8_lossy(&output));
    }

    async fn run(request: ExecRequest) -> (String, ExecExit) {
        finish(stream(request, &env()).await.expect("starts")).await
    }

    async fn first_line(stream: &mut ByteStream) -> String {
        let mut text = String::new();
        while !text.contains('\n') {
            let chunk = stream.next().await.expect("more").expect("output");
            text.push_str(&String::from_utf8_lossy(&chunk[1..]));
        }
        text.lines().next().unwrap_or_default().to_owned()
    }

    /// Whether a process runs. Who became its parent may leave it in the table as a zombie.
    fn runs(pid: &str) -> bool {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| !rest.trim().is_empty() && !rest.starts_with(" Z"))
    }

    async fn soon(condition: impl Fn() -> bool) -> bool {
        for _ in 0..100 {
            if condition() {
                return true;
            }
            sleep(Duration::from_millis(10)).await;
        }
        false
    }

    #[tokio::test]
    async fn both_outputs_arrive_in_the_order_of_writing() {
        let (output, exit) = run(line(
            "for i in 1 2 3; do echo o$i; echo e$i >&2; done; exit 3",
        ))
        .await;
        assert_eq!(output, "o1\ne1\no2\ne2\no3\ne3\n");
        assert_eq!(
            (exit.code, exit.timed_out, exit.background),
            (Some(3), false, false)
        );
    }

    #[tokio::test]
    async fn a_program_runs_without_a_shell() {
        let argv = ["printf", "%s", "a b;c"].map(str::to_owned).to_vec();
        let (output, exit) = run(ExecRequest {
            argv,
            ..ExecRequest::default()
        })
        .await;
        assert_eq!((output.as_str(), exit.code), ("a b;c", Some(0)));
    }

    #[tokio::test]
    async fn death_by_a_signal_is_128_and_its_number() {
        assert_eq!(run(line("kill -TERM $$")).await.1.code, Some(143));
    }

    #[tokio::test]
    async fn standard_input_is_closed() {
        assert_eq!(run(line("cat; echo end")).await.0, "end\n");
    }

    #[tokio::test]
    async fn the_prefix_line_runs_first() {
        let env = ProcessEnv {
            prefix: Some("greet() { echo hello; }".to_owned()),
            ..env()
        };
        let stream = stream(line("greet"), &env).await.expect("starts");
        assert_eq!(finish(stream).await.0, "hello\n");
    }

    #[tokio::test]
    async fn the_environment_is_what_the_session_says() {
        let pairs = |list: &[(&str, &str)]| {
            list.iter()
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect::<Vec<_>>()
        };
        let env = ProcessEnv {
            extra: pairs(&[("EXTRA", "1")]),
            session: pairs(&[("PLIANT_MODEL", "m")]),
            removed: vec!["HOME".to_owned()],
            ..env()
        };
        let show =
            "echo $AI_AGENT,$PLIANT_CODING_AGENT,$EXTRA,$ASKED,${PLIANT_MODEL-no},${HOME-no}";
        for (session_env, expected) in [
            (true, "pliant,true,1,2,m,no\n"),
            (false, "pliant,true,1,2,no,no\n"),
        ] {
            let request = ExecRequest {
                env: pairs(&[("ASKED", "2")]),
                session_env,
                ..line(show)
            };
            let stream = stream(request, &env).await.expect("starts");
            assert_eq!(finish(stream).await.0, expected);
        }
    }

    #[test]
    fn values_of_an_outer_session_do_not_reach_a_command() {
        let command = command(&line("true"), &env()).expect("a command");
        for name in SESSION_VARIABLES {
            let change = command
                .as_std()
                .get_envs()
                .find(|(changed, _)| *changed == name);
            assert_eq!(change.map(|(_, value)| value), Some(None), "{name}");
        }
    }

    #[tokio::test]
    async fn a_missing_directory_is_named() {
        let request = ExecRequest {
            cwd: "/no/such/folder".to_owned(),
            ..line("true")
        };
        let error = stream(request, &env()).await.expect_err("refused");
        assert!(error.is(code::NOT_FOUND));
        assert!(error.message.contains("/no/such/folder"), "{error}");
        let request = ExecRequest {
            cwd: "/dev/null".to_owned(),
            ..line("true")
        };
        let error = stream(request, &env()).await.expect_err("refused");
        assert!(error.message.contains("not a directory"), "{error}");
    }

    #[tokio::test]
    async fn a_missing_program_is_named() {
        let request = ExecRequest {
            argv: vec!["no-such-program".to_owned()],
            ..ExecRequest::default()
        };
        let error = stream(request, &env()).await.expect_err("refused");
        assert!(error.is(code::NOT_FOUND));
        assert!(error.message.contains("no-such-program"), "{error}");
    }

    #[tokio::test]
    async fn all_output_of_a_flood_arrives() {
        let (output, exit) = run(line("head -c 3000000 /dev/zero | tr '\\0' x")).await;
        assert_eq!((output.len(), exit.code), (3_000_000, Some(0)));
    }

    #[tokio::test]
    async fn t04_a_silent_background_child_does_not_hold_the_caller() {
        let clock = Clock::now();
        let (output, exit) = run(line("sleep 5 & echo done")).await;
        let waited = clock.elapsed();
        assert!(waited < Duration::from_millis(900), "{waited:?}");
        assert_eq!(output, "done\n");
        assert!(exit.background && !exit.timed_out);
        let run = Duration::from_millis(exit.wall_ms);
        assert!(
            run + QUIET <= waited + Duration::from_millis(1),
            "the silence counts: {run:?}"
        );
    }

    #[tokio::test]
    async fn t04_a_background_child_that_writes_for_ever_does_not_hold_the_caller() {
        let clock = Clock::now();
        let (output, exit) = run(line(
            "(for i in $(seq 100); do echo x; sleep .05; done) & echo done",
        ))
        .await;
        assert!(
            clock.elapsed() < Duration::from_millis(1800),
            "{:?}",
            clock.elapsed()
        );
        assert!(output.contains("done\n"), "{output:?}");
        assert_eq!((exit.code, exit.background), (Some(0), true));
    }

    #[tokio::test]
    async fn t04_a_background_flood_does_not_hold_the_caller() {
        let clock = Clock::now();
        let mut stream = stream(line("timeout 3 yes & sleep .1; echo done; exit 4"), &env())
            .await
            .expect("starts");
        let exit = loop {
            let chunk = stream.next().await.expect("more").expect("output");
            if chunk[0] == b'x' {
                break serde_json::from_slice::<ExecExit>(&chunk[1..]).expect("an exit");
            }
        };
        assert!(
            clock.elapsed() < Duration::from_millis(2500),
            "{:?}",
            clock.elapsed()
        );
        assert_eq!((exit.code, exit.background), (Some(4), true));
    }

    #[tokio::test]
    async fn t04_a_shell_that_waits_for_its_child_is_waited_for() {
        let (output, exit) = run(line("(sleep .3; echo late) & wait")).await;
        assert_eq!(output, "late\n");
        assert!(exit.wall_ms >= 300 && !exit.background);
    }

    #[tokio::test]
    async fn t04_output_of_a_detached_child_right_after_the_exit_is_kept() {
        let late = "(while kill -0 $$ 2>/dev/null; do :; done; echo late) & echo done";
        assert_eq!(run(line(late)).await.0, "done\nlate\n");
    }

    #[tokio::test]
    async fn t04_a_background_child_lives_on_and_may_write() {
        let (output, _) = run(line(
            "(sleep .4; echo a; sleep .1; echo b; sleep 5) & echo $!",
        ))
        .await;
        sleep(Duration::from_millis(700)).await;
        let child = output.trim();
        assert!(runs(child), "writing without a reader killed it");
        let _ = run(line(&format!("kill {child}"))).await;
    }

    #[tokio::test]
    async fn output_waits_for_a_slow_reader() {
        let mut stream = stream(line("echo first; sleep .05; echo second"), &env())
            .await
            .expect("starts");
        sleep(Duration::from_millis(100)).await;
        assert_eq!(first_line(&mut stream).await, "first");
        std::thread::sleep(Duration::from_millis(1300));
        let _ = finish(stream).await;
        let request = line("head -c 60000 /dev/zero; sleep 5 & exit 0");
        let mut stream = super::stream(request, &env()).await.expect("starts");
        std::thread::sleep(Duration::from_millis(100));
        let mut bytes = stream.next().await.expect("more").expect("output").len() - 1;
        std::thread::sleep(Duration::from_millis(1200));
        while let Some(Ok(chunk)) = stream.next().await {
            bytes += if chunk[0] == b'o' { chunk.len() - 1 } else { 0 };
        }
        assert_eq!(bytes, 60_000);
    }

    #[tokio::test]
    async fn t05_a_time_limit_kills_what_ignores_signals() {
        let clock = Clock::now();
        let request = ExecRequest {
            timeout_ms: Some(200),
            ..line("trap '' TERM INT HUP; echo begun; sleep 5; sleep 5")
        };
        let (output, exit) = run(request).await;
        assert!(
            clock.elapsed() < Duration::from_millis(1500),
            "{:?}",
            clock.elapsed()
        );
        assert_eq!(output, "begun\n");
        assert_eq!(
            (exit.code, exit.timed_out, exit.background),
            (None, true, false)
        );
        assert!(exit.wall_ms >= 200);
    }

    #[tokio::test]
    async fn t05_a_time_limit_reaches_a_grandchild_in_its_own_session() {
        let request = ExecRequest {
            timeout_ms: Some(700),
            ..line("setsid sh -c 'echo $$; exec sleep 5 >/dev/null 2>&1' & sleep 5")
        };
        let (output, exit) = run(request).await;
        assert!(exit.timed_out);
        assert!(soon(|| !runs(output.trim())).await, "the grandchild lives");
    }

    #[tokio::test]
    async fn t05_a_time_limit_after_the_exit_tells_both() {
        let request = ExecRequest {
            timeout_ms: Some(300),
            ..line("for i in 1 2 3; do (while :; do echo x; done) & done; exit 7")
        };
        let (_, exit) = run(request).await;
        assert_eq!(
            (exit.code, exit.timed_out, exit.background),
            (Some(7), true, true)
        );
    }

    #[tokio::test]
    async fn dropping_the_stream_kills_the_tree_and_leaves_no_zombie() {
        let mut stream = stream(
            line("trap '' TERM; setsid sleep 5 >/dev/null 2>&1 & echo $$ $!; sleep 5; sleep 5"),
            &env(),
        )
        .await
        .expect("starts");
        let pids = first_line(&mut stream).await;
        let (shell, grandchild) = pids.split_once(' ').expect("two numbers");
        drop(stream);
        assert!(soon(|| !runs(grandchild)).await, "the grandchild lives");
        let entry = Path::new("/proc").join(shell);
        assert!(
            soon(|| !entry.exists()).await,
            "the shell is still in the process table"
        );
    }

    #[tokio::test]
    async fn dropping_the_stream_after_the_exit_kills_orphans_that_hold_the_output() {
        let command = "echo $$; setsid sh -c 'echo $$; sleep 5; sleep 5' & sleep .3";
        let mut stream = stream(line(command), &env()).await.expect("starts");
        let mut lines = String::new();
        while lines.lines().count() < 2 || !lines.ends_with('\n') {
            let chunk = stream.next().await.expect("more").expect("output");
            lines.push_str(&String::from_utf8_lossy(&chunk[1..]));
        }
        let (shell, orphan) = lines.trim().split_once('\n').expect("two lines");
        assert!(soon(|| !runs(shell)).await, "the shell has not exited");
        let waited = timeout(Duration::from_millis(10), stream.next()).await;
        assert!(waited.is_err(), "waiting for silence: {waited:?}");
        drop(stream);
        assert!(soon(|| !runs(orphan)).await, "the orphan lives");
    }

    #[tokio::test]
    async fn a_process_that_closed_its_output_is_waited_for() {
        let (output, exit) = run(line("echo a; exec >/dev/null 2>&1; sleep .2; exit 9")).await;
        assert_eq!((output.as_str(), exit.code), ("a\n", Some(9)));
    }
}

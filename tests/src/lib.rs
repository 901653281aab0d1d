//! The harness of the end-to-end tests, in one reading: a temporary home, the real binary, what it
//! printed, and what it left behind. The model behind it is [`ModelServer`], which is told what to
//! say by [`reply`].
//!
//! ```no_run
//! use pliant_tests::{ModelServer, TempHome, reply};
//!
//! let server = ModelServer::start([reply::text("Hello.")]);
//! let home = TempHome::with_model(&server);
//! let output = home.prompt("Greet me.").run().success();
//! assert_eq!(output.stdout, "Hello.\n");
//! ```

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX, EXE_SUFFIX};
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{LazyLock, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub mod failures;
pub mod histories;
pub mod model_server;
pub mod recorded;
pub mod rehearsal;
pub mod replay;
pub mod reply;
pub mod rpc;
pub mod table;
pub mod wires;

mod event_rules;
mod gate;
mod request_rules;

pub use gate::Gate;
pub use model_server::{MODEL, ModelServer, Request};
pub use reply::Reply;
pub use rpc::Rpc;

/// The provider that [`TempHome::with_model`] configures.
pub const PROVIDER: &str = "mock";

/// A fresh home, configuration directory and project directory, removed at the end of a test that
/// passed. A test that fails says where it left them.
#[derive(Debug)]
pub struct TempHome {
    root: PathBuf,
}

impl TempHome {
    /// A home without any configuration.
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("pliant-test-{}-{number}", std::process::id());
        let tmp = std::env::temp_dir()
            .canonicalize()
            .expect("there is a temporary directory");
        let home = Self {
            root: tmp.join(name),
        };
        for folder in [home.agent_dir(), home.project_dir(), home.tmp_dir()] {
            fs::create_dir_all(folder).expect("the temporary directory is writable");
        }
        home
    }

    /// A home whose `models.json` knows the server as provider [`PROVIDER`], and whose settings
    /// turn off what would make a failing test slow.
    pub fn with_model(server: &ModelServer) -> Self {
        Self::with_provider(json!({
            "baseUrl": server.url(), "api": "openai-completions", "apiKey": "test-key",
            "models": [{"id": MODEL}],
        }))
    }

    /// The same over anthropic-messages, with a model that can think and costs something.
    pub fn with_messages_model(server: &ModelServer) -> Self {
        Self::with_provider(json!({
            "baseUrl": server.messages_url(), "api": "anthropic-messages", "apiKey": "test-key",
            "models": [{"id": MODEL, "reasoning": true,
                "cost": {"input": 1, "output": 2, "cacheRead": 0.5}}],
        }))
    }

    fn with_provider(provider: Value) -> Self {
        let home = Self::new();
        home.models(json!({PROVIDER: provider}));
        home.settings(json!({"retry": {"enabled": false}}));
        home
    }

    /// Writes the providers of `models.json`.
    pub fn models(&self, providers: Value) {
        let models = json!({"providers": providers}).to_string();
        self.write_agent("models.json", models);
    }

    /// Writes `settings.json`.
    pub fn settings(&self, settings: Value) {
        self.write_agent("settings.json", settings.to_string());
    }

    /// The user's home.
    pub fn home_dir(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The configuration directory.
    pub fn agent_dir(&self) -> PathBuf {
        self.home_dir().join(".pliant/agent")
    }

    /// Where the binary is started.
    pub fn project_dir(&self) -> PathBuf {
        self.root.join("project")
    }

    /// What the binary is told to be the temporary directory.
    pub fn tmp_dir(&self) -> PathBuf {
        self.root.join("tmp")
    }

    /// Writes a file of the project.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        write_file(self.project_dir().join(path), content.as_ref())
    }

    /// Writes a file of the configuration directory.
    pub fn write_agent(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        write_file(self.agent_dir().join(path), content.as_ref())
    }

    /// Reads a file of the project.
    pub fn read(&self, path: &str) -> String {
        let path = self.project_dir().join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The stored sessions, oldest first.
    pub fn session_files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let folders = fs::read_dir(self.agent_dir().join("sessions"));
        for folder in folders.into_iter().flatten().flatten() {
            for file in fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                let is_session = file.path().extension() == Some(OsStr::new("jsonl"));
                files.extend(is_session.then(|| file.path()));
            }
        }
        // Names begin with the time.
        files.sort_by_key(|path| path.file_name().map(OsStr::to_owned));
        files
    }

    /// The lines of the one stored session: its header, then its entries.
    #[track_caller]
    pub fn session(&self) -> Vec<Value> {
        match self.session_files().as_slice() {
            [file] => json_lines(&fs::read_to_string(file).expect("the session is text")),
            files => panic!("there is not one session but {files:?}"),
        }
    }

    /// The messages of the one stored session, oldest first.
    pub fn stored_messages(&self) -> Vec<Value> {
        let entries = self.session().into_iter();
        entries
            .filter(|entry| entry["type"] == "message")
            .map(|mut entry| entry["message"].take())
            .collect()
    }

    /// The binary, in this home.
    pub fn pliant(&self) -> Pliant {
        self.program(&binary())
    }

    /// A shell in this home, for pipes and redirections; the binary is `$0`.
    pub fn shell(&self, script: &str) -> Pliant {
        let shell = self.program(Path::new("/bin/sh")).args(["-c", script]);
        shell.args([binary()])
    }

    fn program(&self, program: &Path) -> Pliant {
        let mut command = Command::new(program);
        command
            .current_dir(self.project_dir())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home_dir())
            .env("PLIANT_AGENT_DIR", self.agent_dir())
            .env("TMPDIR", self.tmp_dir())
            .env("LANG", "C.UTF-8");
        Pliant {
            command,
            stdin: None,
            limit: Duration::from_secs(30),
        }
    }

    /// The binary with the scripted model: `pliant --provider mock --model mock-model`.
    pub fn pliant_with_model(&self) -> Pliant {
        self.pliant()
            .args(["--provider", PROVIDER, "--model", MODEL])
    }

    /// The same with `-p TEXT`.
    pub fn prompt(&self, text: &str) -> Pliant {
        self.pliant_with_model().args(["-p", text])
    }

    /// The same with `--mode json TEXT`.
    pub fn json_prompt(&self, text: &str) -> Pliant {
        self.pliant_with_model().args(["--mode", "json", text])
    }

    /// A damaged copy of a library, as a build that went wrong leaves it.
    pub fn broken_library(&self, library: &Path, damage: Damage) -> PathBuf {
        let mut bytes = fs::read(library).expect("the library was built");
        match damage {
            Damage::Truncated => bytes.truncate(bytes.len() / 2),
            Damage::Empty => bytes.clear(),
            Damage::Text => bytes = b"This is no library.\n".to_vec(),
            Damage::FlippedHeader => bytes[0] ^= 1,
            Damage::FlippedManifest => {
                let mark = b"\x01pliant-manifest\x02{";
                let found = bytes.windows(mark.len()).position(|window| window == mark);
                let at = found.expect("a plugin embeds its manifest");
                bytes[at + mark.len() - 1] ^= 1;
            }
        }
        let name = format!("{DLL_PREFIX}broken_{damage:?}{DLL_SUFFIX}").to_lowercase();
        write_file(self.root.join(name), &bytes)
    }
}

impl Default for TempHome {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for TempHome {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!(
                "the home of the failed test is kept: {}",
                self.root.display()
            );
        } else {
            // A process that has just been killed may still write; what is left is in /tmp.
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}

/// What is wrong with a library.
#[derive(Debug, Clone, Copy)]
pub enum Damage {
    /// The second half is missing.
    Truncated,
    /// No bytes.
    Empty,
    /// Another kind of file.
    Text,
    /// One bit, in the first byte: the system's loader refuses it.
    FlippedHeader,
    /// One bit, in the first byte of the embedded manifest: it is no JSON any more.
    FlippedManifest,
}

/// A run of the binary that has not begun.
#[derive(Debug)]
pub struct Pliant {
    command: Command,
    stdin: Option<String>,
    limit: Duration,
}

impl Pliant {
    /// Adds arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn current_dir(mut self, path: impl AsRef<Path>) -> Self {
        self.command.current_dir(path);
        self
    }

    /// Pipes a text to it; without one, its input is empty.
    #[must_use]
    pub fn stdin(mut self, text: &str) -> Self {
        self.stdin = Some(text.to_owned());
        self
    }

    /// Ends the run, and the test, after another time than 30 seconds.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Starts it.
    pub fn spawn(mut self) -> Running {
        let deadline = Instant::now() + self.limit;
        self.command
            .stdin(if self.stdin.is_some() {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Its own group, so that a run that hangs ends with everything it started.
            .process_group(0);
        let mut child = self.command.spawn().expect("the binary was built");
        if let Some(text) = self.stdin {
            let mut stdin = child.stdin.take().expect("the input is piped");
            // A run that ends without reading its input is no failure of the test.
            thread::spawn(move || drop(stdin.write_all(text.as_bytes())));
        }
        let stdout = read_all(child.stdout.take().expect("the output is piped"));
        let stderr = read_all(child.stderr.take().expect("the errors are piped"));
        Running {
            child,
            deadline,
            stdout,
            stderr,
        }
    }

    /// Runs it to its end.
    pub fn run(self) -> Output {
        self.spawn().wait()
    }
}

/// A run of the binary. Dropping it kills it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    deadline: Instant,
    stdout: Receiver<Vec<u8>>,
    stderr: Receiver<Vec<u8>>,
}

impl Running {
    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal to the process, not to its children.
    pub fn signal(&self, signal: i32) {
        send_signal(self.pid(), signal);
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// When the time limit passes; the run and all its children are killed.
    pub fn wait(mut self) -> Output {
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("the child is ours") {
                break Some(status);
            }
            if Instant::now() >= self.deadline {
                self.kill();
                break None;
            }
            thread::sleep(Duration::from_millis(2));
        };
        // A child of the run that outlives it may hold the pipes open.
        let patience = self
            .deadline
            .saturating_duration_since(Instant::now())
            .max(PIPE_PATIENCE);
        let read = |pipe: &Receiver<Vec<u8>>| pipe.recv_timeout(patience).ok();
        let pipes = (read(&self.stdout), read(&self.stderr));
        let text = |bytes: Option<Vec<u8>>| {
            String::from_utf8(bytes.unwrap_or_default()).expect("the output is UTF-8")
        };
        let closed = pipes.0.is_some() && pipes.1.is_some();
        let (stdout, stderr) = (text(pipes.0), text(pipes.1));
        match status {
            Some(status) if closed => Output {
                stdout,
                stderr,
                status,
            },
            Some(_) => panic!("pliant ended, but a process it started holds its output open"),
            None => panic!("pliant did not end in time.\nstdout: {stdout}\nstderr: {stderr}"),
        }
    }

    fn pid(&self) -> libc::pid_t {
        libc::pid_t::try_from(self.child.id()).expect("a process id fits its type")
    }

    fn kill(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            // The whole group: the process has not been waited for, so the id is still its own.
            send_signal(-self.pid(), libc::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

const PIPE_PATIENCE: Duration = Duration::from_secs(2);

/// What a run printed, and how it ended.
#[derive(Debug)]
pub struct Output {
    /// As printed.
    pub stdout: String,
    /// As printed.
    pub stderr: String,
    /// How it ended.
    pub status: ExitStatus,
}

impl Output {
    /// Expects status 0.
    ///
    /// # Panics
    /// On another.
    #[track_caller]
    pub fn success(self) -> Self {
        assert!(self.status.success(), "{self:#?}");
        self
    }

    /// Expects a failure that is explained: status 1, an `Error:` line, and all of `words` in
    /// what was printed; neither a panic nor a page of text.
    ///
    /// # Panics
    /// On anything else.
    #[track_caller]
    pub fn failure(self, words: &[&str]) -> Self {
        assert_eq!(self.status.code(), Some(1), "{self:#?}");
        assert!(
            self.stderr.lines().any(|line| line.starts_with("Error: ")),
            "{self:#?}"
        );
        assert!(self.stderr.lines().count() <= 6, "{self:#?}");
        assert!(!self.stderr.contains("panicked at"), "{self:#?}");
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is not in {self:#?}");
        }
        self
    }

    /// The lines of the JSON mode, after checking their order.
    ///
    /// # Panics
    /// When a line is no JSON, or breaks one of the ordering rules of `interfaces.md` §7.
    pub fn events(&self) -> Vec<Value> {
        let events = json_lines(&self.stdout);
        event_rules::check(&events);
        events
    }

    /// The events of one type.
    pub fn events_of(&self, kind: &str) -> Vec<Value> {
        let events = self.events().into_iter();
        events.filter(|event| event["type"] == kind).collect()
    }
}

/// A plugin of `tests/plugins`, built with everything else.
pub fn fixture_plugin(name: &str) -> PathBuf {
    library(&build().profile_dir, name)
}

/// A plugin that ships with pliant, such as `openai_completions`, built with everything else.
pub fn plugin(name: &str) -> PathBuf {
    library(&build().profile_dir, &format!("pliant_{name}"))
}

/// A plugin of `tests/fixtures/abi`, built with the ABI that is kept beside it: `first` or `other`.
///
/// They are workspaces of their own, so only the tests that need one pay for building it.
pub fn abi_fixture(name: &str) -> PathBuf {
    let manifest = workspace()
        .join("tests/fixtures/abi")
        .join(name)
        .join("Cargo.toml");
    let target = Target::of_this_test();
    let built = target.dir.join("abi-fixtures");
    target
        .build(&built, &manifest, &[])
        .unwrap_or_else(|errors| panic!("{errors}"));
    library(&built.join(target.profile_folder()), name)
}

/// The binary that is tested.
pub fn binary() -> PathBuf {
    build().profile_dir.join(format!("pliant{EXE_SUFFIX}"))
}

fn library(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{DLL_PREFIX}{name}{DLL_SUFFIX}"))
}

/// Builds the binary and every plugin, once; `cargo test` alone builds neither.
fn build() -> &'static Target {
    static BUILT: OnceLock<Result<Target, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let target = Target::of_this_test();
        let everything = target.build(
            &target.dir,
            &workspace().join("Cargo.toml"),
            &["--workspace"],
        );
        everything.map(|()| target)
    });
    built.as_ref().unwrap_or_else(|errors| panic!("{errors}"))
}

/// Where this test was built: `DIR/PROFILE/deps/TEST`.
#[derive(Debug)]
struct Target {
    dir: PathBuf,
    profile_dir: PathBuf,
}

impl Target {
    fn of_this_test() -> Self {
        let test = std::env::current_exe().expect("a test knows its file");
        let above = |path: &Path| path.parent().expect("cargo builds into folders").to_owned();
        let profile_dir = above(&above(&test));
        Self {
            dir: above(&profile_dir),
            profile_dir,
        }
    }

    fn profile_folder(&self) -> &str {
        let folder = self.profile_dir.file_name().and_then(OsStr::to_str);
        folder.expect("profiles have plain names")
    }

    /// Builds as this test was built.
    fn build(&self, target_dir: &Path, manifest: &Path, more: &[&str]) -> Result<(), String> {
        let profile = match self.profile_folder() {
            "debug" => "dev",
            profile => profile,
        };
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(["build", "--quiet", "--locked", "--profile", profile])
            .args(more);
        command
            .arg("--manifest-path")
            .arg(manifest)
            .arg("--target-dir")
            .arg(target_dir);
        // What cargo tells a test about its package would look like a change to some build scripts.
        for (name, _) in std::env::vars_os() {
            let package = [
                "CARGO_PKG_",
                "CARGO_MANIFEST_",
                "CARGO_CRATE_",
                "CARGO_BIN_",
            ];
            let of_package = |name: &str| package.iter().any(|start| name.starts_with(start));
            if name.to_str().is_some_and(of_package) {
                command.env_remove(name);
            }
        }
        let output = command.output().expect("cargo runs");
        if output.status.success() {
            return Ok(());
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        Err(format!("{} does not build:\n{errors}", manifest.display()))
    }
}

/// The workspace's folder.
pub fn workspace() -> &'static Path {
    static WORKSPACE: LazyLock<PathBuf> = LazyLock::new(|| {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        tests
            .parent()
            .expect("tests is a folder of the workspace")
            .to_owned()
    });
    &WORKSPACE
}

/// Parses one JSON value a line.
fn json_lines(text: &str) -> Vec<Value> {
    let parse = |line: &str| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("not JSON ({error}): {line}"))
    };
    text.lines().map(parse).collect()
}

fn write_file(path: PathBuf, content: &[u8]) -> PathBuf {
    let folder = path.parent().expect("a file is in a folder");
    fs::create_dir_all(folder).expect("the folder can be made");
    fs::write(&path, content).expect("the file can be written");
    path
}

fn read_all(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (done, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // Nobody receives when the test has failed already.
        let _ = pipe.read_to_end(&mut bytes);
        let _ = done.send(bytes);
    });
    receiver
}

#[allow(unsafe_code)]
fn send_signal(pid: libc::pid_t, signal: i32) {
    // SAFETY: `kill` takes two numbers and touches no memory of ours.
    unsafe { libc::kill(pid, signal) };
}

#[cfg(test)]
mod tests {
    use std::panic;

    use super::*;

    fn shell(home: &TempHome, script: &str) -> Pliant {
        home.program(Path::new("/bin/sh")).args(["-c", script])
    }

    #[test]
    fn a_run_knows_its_home_and_nothing_of_the_tester() {
        let home = TempHome::new();
        let output = home
            .program(Path::new("/usr/bin/env"))
            .env("EXTRA", "1")
            .run()
            .success();
        let names = output
            .stdout
            .lines()
            .filter_map(|line| line.split('=').next());
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "EXTRA",
                "HOME",
                "LANG",
                "PATH",
                "PLIANT_AGENT_DIR",
                "TMPDIR"
            ]
        );
    }

    #[test]
    fn a_run_gets_its_input_and_gives_its_outputs() {
        let home = TempHome::new();
        let output = shell(&home, "cat; echo 'Error: no' >&2; exit 1")
            .stdin("in")
            .run();
        assert_eq!(output.stdout, "in");
        output.failure(&["no"]);
    }

    #[test]
    fn a_run_that_hangs_is_killed_with_its_children() {
        let home = TempHome::new();
        let run = shell(&home, "sleep 300 & echo begun; wait").limit(Duration::from_millis(300));
        let ended = panic::catch_unwind(panic::AssertUnwindSafe(|| run.run()));
        let said = ended.expect_err("it does not end").downcast::<String>();
        // The output is read to its end, so the child that held it open is gone.
        let wanted = "pliant did not end in time.\nstdout: begun\n";
        assert!(said.expect("the panic is a text").starts_with(wanted));
    }

    #[test]
    fn a_home_disappears_and_a_session_is_read_from_it() {
        let home = TempHome::new();
        let entry = json!({"type": "message", "message": {"role": "user"}});
        let lines = format!("{}\n{entry}\n", json!({"type": "session"}));
        let file = home.write_agent("sessions/--x--/1_a.jsonl", lines);
        assert_eq!(home.session_files(), [file]);
        assert_eq!(home.stored_messages(), [json!({"role": "user"})]);
        let root = home.root.clone();
        drop(home);
        assert!(!root.exists());
    }
}

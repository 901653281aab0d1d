//! One process from its start to its end: when it wrote, what it used, how it ended.
//!
//! The process is started by this program run again with a flag. A process inherits the peak memory
//! of the one that starts it, and that copy has none worth mentioning; the bench with its replies has.

use std::io::Read;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const FLAG: &str = "--measure";

/// What one run took.
#[derive(Debug, Clone)]
pub struct Run {
    /// From just before the start to the first byte on stdout; nothing when there was none.
    pub first_byte: Option<Duration>,
    /// From just before the start to the end.
    pub wall: Duration,
    /// User and system time.
    pub cpu: Duration,
    /// Peak resident memory.
    pub peak_kib: u64,
}

/// Measures a command; its stdout is read, its stdin is empty.
///
/// # Panics
/// When it fails: a broken run has no figures.
pub fn measure(command: &Command) -> Run {
    let this = std::env::current_exe().expect("a bench knows its file");
    let mut copy = Command::new(this);
    copy.arg(FLAG)
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear();
    for (name, value) in command.get_envs() {
        copy.envs(value.map(|value| (name, value)));
    }
    if let Some(folder) = command.get_current_dir() {
        copy.current_dir(folder);
    }
    let output = copy.output().expect("this program runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{errors}");
    let said: Value = serde_json::from_slice(&output.stdout).expect("the copy answers JSON");
    let number = |name: &str| said[name].as_u64();
    let time = |name: &str| Duration::from_micros(number(name).unwrap_or_default());
    Run {
        first_byte: number("first_byte_us").map(Duration::from_micros),
        wall: time("wall_us"),
        cpu: time("cpu_us"),
        peak_kib: number("peak_kib").unwrap_or_default(),
    }
}

/// In the copy: the command to measure.
pub fn command_of(args: &[String]) -> Option<Command> {
    let [flag, program, rest @ ..] = args else {
        return None;
    };
    let mut command = Command::new(program);
    command.args(rest);
    (flag == FLAG).then_some(command)
}

/// In the copy: runs the command and writes its figures.
pub fn run(mut command: Command) -> ExitCode {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let start = Instant::now();
    let mut child = command.spawn().expect("the program was built");
    let mut stdout = child.stdout.take().expect("the output is piped");
    let mut buffer = vec![0; 1 << 16];
    let mut first_byte = None;
    while let Ok(1..) = stdout.read(&mut buffer) {
        first_byte.get_or_insert_with(|| start.elapsed());
    }
    let status = child.wait().expect("the child is ours");
    let wall = start.elapsed();
    let used = used_by_child();
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let figures = json!({
        "first_byte_us": first_byte.map(micros), "wall_us": micros(wall),
        "cpu_us": of_timeval(used.ru_utime) + of_timeval(used.ru_stime),
        "peak_kib": used.ru_maxrss,
    });
    println!("{figures}");
    if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Microseconds.
fn of_timeval(time: libc::timeval) -> i64 {
    time.tv_sec * 1_000_000 + time.tv_usec
}

/// What the copy's one child used, after its end.
#[allow(unsafe_code)]
fn used_by_child() -> libc::rusage {
    // SAFETY: all-zero bytes are a valid `rusage`, which holds numbers only.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live local of the type that `getrusage` fills.
    let failed = unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut used) };
    assert_eq!(failed, 0, "the usage of children can be asked for");
    used
}

//! This program run again for one case: nothing else is in its memory, and its processor time is that
//! of the case.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pliant_kernel::models::ModelWish;
use pliant_kernel::session::{Session, Subscription};
use pliant_kernel::{Kernel, KernelOptions, OpenOptions};
use pliant_sdk::Event;
use serde_json::Value;

/// Runs a case and answers the figures that it wrote.
///
/// # Panics
/// When it fails: a broken run has no figures.
pub fn run(args: &[&str]) -> Value {
    let this = std::env::current_exe().expect("a bench knows its file");
    let output = Command::new(this).args(args).output();
    let output = output.expect("this program runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?} failed:\n{errors}");
    serde_json::from_slice(&output.stdout).expect("the copy answers JSON")
}

/// In the copy: a kernel with its folders in `dir`.
pub fn kernel(dir: &Path, plugins: &[&str]) -> Kernel {
    let mut options = KernelOptions::new(dir.to_owned(), dir.join("agent"));
    options.plugins = plugins.iter().map(Into::into).collect();
    Kernel::boot(options).expect("a kernel starts in an empty folder")
}

/// In the copy: a stored session with a model.
pub async fn session(kernel: &Kernel, provider: &str, model: &str) -> Session {
    let open = OpenOptions {
        model: ModelWish {
            provider: Some(provider.to_owned()),
            model: Some(model.to_owned()),
        },
        ..OpenOptions::default()
    };
    let session = kernel.open_session(open).await;
    session.expect("the model exists")
}

/// In the copy: takes every event, as a front end does, and answers how many were pieces of answers.
pub async fn count_pieces(mut events: Subscription) -> usize {
    let mut pieces = 0;
    while let Some(event) = events.recv().await {
        pieces += usize::from(matches!(*event, Event::MessageUpdate { .. }));
    }
    pieces
}

/// User and system time of this process so far.
#[allow(unsafe_code)]
pub fn cpu() -> Duration {
    // SAFETY: all-zero bytes are a valid `rusage`, which holds numbers only.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live local of the type that `getrusage` fills.
    let failed = unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut used) };
    assert_eq!(failed, 0, "a process can ask for its usage");
    let micros = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
    let micros = u64::try_from(micros(used.ru_utime) + micros(used.ru_stime));
    Duration::from_micros(micros.unwrap_or(0))
}

/// What this process holds beside files, in KiB; nothing where the system does not say.
pub fn anonymous_kib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| {
        let value = line.strip_prefix("RssAnon:")?;
        value.trim().strip_suffix("kB")?.trim().parse().ok()
    });
    kib.unwrap_or(f64::NAN)
}

pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

pub fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Vec<&str> = load.split(' ').take(3).collect();
    load.join(" ")
}

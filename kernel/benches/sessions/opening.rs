//! One session opened in a process of its own, which is this program run again: nothing else is in
//! its memory, and nothing was opened before.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use pliant_kernel::tree::{EntryId, Ids, SessionTree};
use serde_json::{Value, json};

const FLAG: &str = "--open";

/// What one opening took.
#[derive(Debug)]
pub struct Opened {
    /// Until leaf, settings and context were known.
    pub open_ms: f64,
    /// Then. Mapped files are not counted.
    pub anonymous_mib: f64,
    /// To another branch and back, with the context of both.
    pub navigate_ms: f64,
    /// After that.
    pub after_mib: f64,
}

/// Opens a session and goes to another leaf of it, if one is named, and back.
///
/// # Panics
/// When it fails: a broken run has no figures.
pub fn measure(path: &Path, other_leaf: &str) -> Opened {
    let this = std::env::current_exe().expect("a bench knows its file");
    let output = Command::new(this)
        .arg(FLAG)
        .arg(path)
        .arg(other_leaf)
        .output()
        .expect("this program runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let said: Value = serde_json::from_slice(&output.stdout).expect("the copy answers JSON");
    let figure = |name: &str| said[name].as_f64().unwrap_or(f64::NAN);
    Opened {
        open_ms: figure("openMs"),
        anonymous_mib: figure("anonymousMib"),
        navigate_ms: figure("navigateMs"),
        after_mib: figure("afterMib"),
    }
}

/// In the copy: the session to open.
pub fn path_of(args: &[String]) -> Option<PathBuf> {
    match args {
        [flag, path, _] if flag == FLAG => Some(path.into()),
        _ => None,
    }
}

/// In the copy: opens the session and writes the figures.
pub fn run(path: &Path, other_leaf: &str) -> ExitCode {
    warm(path);
    let start = Instant::now();
    let cwd = Path::new("/work/demo");
    let mut tree = SessionTree::open(path, cwd, Ids::system()).expect("the session is whole");
    let messages = tree.context().len();
    let leaf = tree.leaf().cloned();
    let model = tree.settings().model.clone();
    let open_ms = crate::ms(start.elapsed());
    assert!(messages > 0 && model.is_some() && tree.damage().is_empty());
    let anonymous_mib = anonymous_mib();

    let start = Instant::now();
    let other = Some(EntryId::from(other_leaf)).filter(|other| !other.as_str().is_empty());
    for to in other.iter().chain(&leaf) {
        tree.branch(to).expect("the leaf exists");
        assert!(!tree.context().is_empty());
    }
    let navigate_ms = crate::ms(start.elapsed());
    let figures = json!({
        "openMs": open_ms, "anonymousMib": anonymous_mib,
        "navigateMs": navigate_ms, "afterMib": self::anonymous_mib(),
    });
    println!("{figures}");
    ExitCode::SUCCESS
}

/// Brings the file into the system's cache, in pieces that leave no memory behind.
fn warm(path: &Path) {
    let mut file = File::open(path).expect("the file was written");
    let mut piece = [0; 1 << 14];
    while let Ok(1..) = file.read(&mut piece) {}
}

/// What this process holds beside files, as the system says; nothing where it does not.
fn anonymous_mib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| {
        let value = line.strip_prefix("RssAnon:")?;
        value.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()
    });
    kib.map_or(f64::NAN, |kib| kib / 1024.0)
}

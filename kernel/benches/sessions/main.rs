//! What large sessions cost: opening, memory, appending, projecting, listing, navigating, in one
//! table beside the budgets.
//!
//! `cargo bench -p pliant-kernel --bench sessions` writes its sessions into a temporary folder that
//! it removes. Files are read once before they are measured, so the figures are those of a warm
//! cache. It says `ok` or `over` and never fails on a time: the machine may be busy with something
//! else, so the load is printed before and after.

mod generator;
mod text;

mod opening;
mod writing;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use pliant_kernel::tree;
use pliant_tests::table::{self, Table, Unit};

const MB: usize = 1_000_000;
const LISTED: u64 = 500;
const RUNS: usize = 9;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(path) = opening::path_of(&args) {
        return opening::run(&path, &args[2]);
    }
    if !args.iter().any(|arg| arg == "--bench") {
        println!("Sessions are measured by `cargo bench -p pliant-kernel --bench sessions`.");
        return ExitCode::SUCCESS;
    }
    println!("before: load average {}", load());
    let folder = Folder::new();
    let mut table = Table::default();
    open_and_navigate(&folder, &mut table);
    append(&folder, &mut table);
    list(&folder, &mut table);
    println!("\n{table}");
    println!("after: load average {}", load());
    ExitCode::SUCCESS
}

fn open_and_navigate(folder: &Folder, table: &mut Table) {
    for (megabytes, budget_ms) in [(1, 4.0), (10, 20.0), (100, 100.0)] {
        eprintln!("measuring: open {megabytes} MB");
        let path = folder.path(&format!("{megabytes}.jsonl"));
        let start = Instant::now();
        let written = generator::write_session(&path, megabytes * MB, 7).expect("there is room");
        table.note(format!(
            "{megabytes} MB: {} entries of {} bytes on average, written in {:.0} ms",
            written.entries,
            written.bytes / written.entries,
            ms(start.elapsed())
        ));
        let opened: Vec<_> = (0..RUNS)
            .map(|_| opening::measure(&path, &written.other_leaf))
            .collect();
        let what = |what: &str| format!("{what}, {megabytes} MB");
        let opens = opened.iter().map(|opened| opened.open_ms);
        table.row(what("open to usable state"), Unit::Ms, opens, budget_ms);
        if megabytes == 100 {
            let memory = opened.iter().map(|opened| opened.anonymous_mib);
            table.row(what("anonymous memory, open"), Unit::Mib, memory, 20.0);
            let navigations = opened.iter().map(|opened| opened.navigate_ms);
            table.row(
                what("to another branch and back"),
                Unit::Ms,
                navigations,
                50.0,
            );
            let memory = opened.iter().map(|opened| opened.after_mib);
            table.row(what("anonymous memory, then"), Unit::Mib, memory, 20.0);
        }
    }
}

fn append(folder: &Folder, table: &mut Table) {
    eprintln!("measuring: append");
    let appends = writing::append(&folder.path("1.jsonl"));
    table.row("append, no sync", Unit::Us, appends, 25.0);
    eprintln!("measuring: turns");
    let turns = writing::turns(&folder.path("turns.jsonl"));
    let (early, late) = (
        table::middle(&turns.early_us),
        table::middle(&turns.late_us),
    );
    table.row(
        "append and context, 10th turn",
        Unit::Us,
        turns.early_us,
        50.0,
    );
    table.row(
        "append and context, 10,000th",
        Unit::Us,
        turns.late_us,
        50.0,
    );
    table.row("10,000th to 10th turn", Unit::Times, [late / early], 2.0);
}

fn list(folder: &Folder, table: &mut Table) {
    eprintln!("measuring: list {LISTED} sessions");
    let sessions = folder.path("listed");
    fs::create_dir(&sessions).expect("the folder is ours");
    for seed in 0..LISTED {
        let path = sessions.join(format!("{seed}.jsonl"));
        generator::write_session(&path, MB, seed).expect("there is room");
    }
    let once = |_| {
        let start = Instant::now();
        let listed = tree::list(&sessions);
        let time = ms(start.elapsed());
        assert_eq!(listed.len(), usize::try_from(LISTED).unwrap_or(0));
        time
    };
    once(0);
    let lists: Vec<f64> = (0..RUNS).map(once).collect();
    table.row("list 500 sessions of 1 MB", Unit::Ms, lists, 100.0);
}

/// A temporary folder that goes with this value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("pliant-sessions-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("the temporary directory is writable");
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays behind stays in the temporary directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn load() -> String {
    let load = fs::read_to_string(Path::new("/proc/loadavg")).unwrap_or_default();
    let load: Vec<&str> = load.split(' ').take(3).collect();
    load.join(" ")
}

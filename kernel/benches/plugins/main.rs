//! Native plugins from the kernel's side (`plugin-abi.md` §12): what a call costs, in this process and in
//! one of its own, and what comes before the first. Prints measured and target; fails on no time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pliant_abi::PluginModuleRef;
use pliant_abi::abi_stable::StableAbi;
use pliant_abi::abi_stable::abi_stability::abi_checking::check_layout_compatibility;
use pliant_abi::abi_stable::library::lib_header_from_path;
use pliant_kernel::dylib::{
    ChildLimits, HostProgram, PluginHost, PluginRuntime, Stage, check, found_at, open,
};
use pliant_kernel::registry::{Generation, Rank};
use pliant_sdk::host::{Host, NoServices};
use pliant_sdk::plugin::{CallCtx, Caller, Flow, Invocation};
use pliant_tests::fixture_plugin;
use pliant_tests::table::{Table, Unit};
use serde_json::json;

/// The first word of this program when it is a child.
const CHILD: &str = "__plugin-host";

/// Counts what is emitted.
struct Listener;

impl Caller for Listener {
    fn cancelled(&self) -> bool {
        false
    }
    fn emit(&self, payload: &[u8]) -> Flow {
        std::hint::black_box(payload);
        Flow::Continue
    }
}

fn host(folder: &Path, isolated: bool) -> Arc<PluginHost> {
    Arc::new(PluginHost {
        runtime: PluginRuntime::default(),
        stage: Stage::new(folder.join("cache"), folder.to_owned()),
        services: Arc::new(|_| Arc::new(NoServices)),
        offers: Vec::new(),
        init: Box::new(|_| json!({})),
        program: std::env::current_exe().ok().map(|program| HostProgram {
            program,
            args: vec![CHILD.into()],
        }),
        isolates: Box::new(move |_| isolated),
        limits: Box::new(|_| ChildLimits::default()),
    })
}

fn call(payload: &str) -> Invocation {
    Invocation {
        op: "handle".to_owned(),
        payload: payload.as_bytes().to_vec(),
        ctx: CallCtx::new(Arc::new(Listener), Host::from_services(NoServices)),
    }
}

/// Places of the fixture's handlers, in the order it adds them.
const NOTHING: u32 = 0;
const EMITS: u32 = 1;
const ECHO: u32 = 2;
const WAITS: u32 = 3;

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn main() -> ExitCode {
    if std::env::args().nth(1).is_some_and(|word| word == CHILD) {
        return ExitCode::from(pliant_kernel::dylib::serve());
    }
    if !std::env::args().any(|arg| arg == "--bench") {
        println!("Plugins are measured by `cargo bench -p pliant-kernel --bench plugins`.");
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return ExitCode::FAILURE;
    };
    let mut table = Table::default();
    let library = fixture_plugin("bench");
    runtime.block_on(measure(&library, &mut table));
    println!("\n{table}");
    ExitCode::SUCCESS
}

async fn measure(library: &Path, table: &mut Table) {
    let Ok(folder) = tempfile::tempdir() else {
        return;
    };
    loads(folder.path(), library, table);
    copies(folder.path(), table);
    layouts(library, table);
    let here = host(folder.path(), false);
    let Some(plugin) = opened(library, &here) else {
        return;
    };
    calls(&*plugin, table).await;
    let there = host(folder.path(), true);
    let Some(plugin) = opened(library, &there) else {
        return;
    };
    isolated(&*plugin, table).await;
    if let Some(pid) = plugin.vitals().pid {
        let resident = resident_mib(pid);
        table.row("child, resident", Unit::Mib, resident, 8.0);
    }
}

fn opened(library: &Path, host: &Arc<PluginHost>) -> Option<Arc<dyn Generation>> {
    // As what ships: not tried out first.
    let found = found_at(library, Rank::BuiltIn).ok()?;
    open(found, host).ok()
}

fn loads(folder: &Path, library: &Path, table: &mut Table) {
    // Threads are there already when a plugin is loaded in a session.
    let here = host(folder, false);
    let _first = opened(library, &here);
    let load = |_| {
        let begun = Instant::now();
        let loaded = opened(library, &here);
        let took = us(begun.elapsed()) / 1e3;
        drop(loaded);
        took
    };
    table.row(
        "copy + load + check + create",
        Unit::Ms,
        (0..21).map(load),
        2.0,
    );
    let probe = |_| {
        let begun = Instant::now();
        let checked = check(library, &here);
        let took = us(begun.elapsed()) / 1e3;
        assert!(checked.is_ok(), "the fixture loads");
        took
    };
    table.row("probe in a child", Unit::Ms, (0..21).map(probe), 15.0);
}

fn copies(folder: &Path, table: &mut Table) {
    for (megabytes, budget) in [(1, 2.0), (5, 10.0)] {
        let copy = |run: u32| {
            let file: PathBuf = folder.join(format!("lib{megabytes}-{run}.so"));
            if std::fs::write(&file, vec![7_u8; megabytes << 20]).is_err() {
                return f64::NAN;
            }
            let stage = Stage::new(folder.join("cache"), folder.to_owned());
            let begun = Instant::now();
            let copied = stage.copy(&file);
            let took = us(begun.elapsed()) / 1e3;
            drop(copied);
            took
        };
        let what = format!("private copy, {megabytes} MB");
        table.row(what, Unit::Ms, (0..11).map(copy), budget);
    }
}

/// The check of a library's layout against ours, and what it costs to make it the other way round too, as
/// for a plugin that knows less than the kernel.
fn layouts(library: &Path, table: &mut Table) {
    let Ok(header) = lib_header_from_path(library) else {
        return;
    };
    let Some(theirs) = header.layout() else {
        return;
    };
    let ours = <PluginModuleRef as StableAbi>::LAYOUT;
    let timed = |one, other| {
        let begun = Instant::now();
        let fits = check_layout_compatibility(one, other);
        let took = us(begun.elapsed()) / 1e3;
        assert!(fits.is_ok(), "the fixture fits");
        took
    };
    let first = (0..21).map(|_| timed(ours, theirs));
    table.row("layout check", Unit::Ms, first, 0.5);
    let second = (0..21).map(|_| timed(theirs, ours));
    table.row("second layout direction", Unit::Ms, second, 0.5);
}

/// Nanoseconds have no unit of their own here.
async fn calls(plugin: &dyn Generation, table: &mut Table) {
    const MANY: u32 = 20_000;
    let mut sync = Vec::new();
    for _ in 0..11 {
        let begun = Instant::now();
        for _ in 0..MANY {
            let _ = std::hint::black_box(plugin.control("nothing", b"null"));
        }
        sync.push(us(begun.elapsed()) / f64::from(MANY));
    }
    table.row("operation of a plugin, with its JSON", Unit::Us, sync, 0.3);
    let mut ready = Vec::new();
    for _ in 0..11 {
        let begun = Instant::now();
        for _ in 0..MANY {
            let _ = plugin.invoke(NOTHING, call("null")).await;
        }
        ready.push(us(begun.elapsed()) / f64::from(MANY));
    }
    table.row(
        "call that is ready at once, on the plugin threads and back",
        Unit::Us,
        ready,
        30.0,
    );
    let mut emitted = Vec::new();
    for _ in 0..11 {
        let count = 100_000;
        let begun = Instant::now();
        let _ = plugin.invoke(EMITS, call(&count.to_string())).await;
        emitted.push(us(begun.elapsed()) / f64::from(count));
    }
    table.row("emitted event", Unit::Us, emitted, 0.2);
    let mut dropped = Vec::new();
    for _ in 0..21 {
        let mut running = plugin.invoke(WAITS, call("null"));
        let _ = tokio::time::timeout(Duration::from_millis(5), &mut running).await;
        let given_up = now_ns();
        drop(running);
        std::thread::sleep(Duration::from_millis(20));
        let answer = plugin.control("dropped", b"null").unwrap_or_default();
        let at: u64 = serde_json::from_slice(&answer).unwrap_or_default();
        #[allow(clippy::cast_precision_loss, reason = "a short time")]
        dropped.push(at.saturating_sub(given_up) as f64 / 1e6);
    }
    table.row(
        "given up, to the plugin's future dropped",
        Unit::Ms,
        dropped,
        5.0,
    );
}

async fn isolated(plugin: &dyn Generation, table: &mut Table) {
    let timed = async |contribution: u32, payload: &str, runs: usize| {
        let mut all = Vec::new();
        for _ in 0..runs {
            let begun = Instant::now();
            let _ = plugin.invoke(contribution, call(payload)).await;
            all.push(us(begun.elapsed()));
        }
        all
    };
    let small = timed(NOTHING, "null", 2000).await;
    table.row("in a child: small call", Unit::Us, small, 100.0);
    let text = format!("{:?}", "x".repeat(64 << 10));
    let large = timed(ECHO, &text, 300).await;
    table.row("in a child: 64 KiB there and back", Unit::Us, large, 600.0);
    let mut emitted = Vec::new();
    for _ in 0..11 {
        let count = 20_000;
        let begun = Instant::now();
        let _ = plugin.invoke(EMITS, call(&count.to_string())).await;
        emitted.push(us(begun.elapsed()) / f64::from(count));
    }
    table.row("in a child: emitted event", Unit::Us, emitted, 5.0);
}

fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(0))
}

fn resident_mib(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kb: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kb / 1024.0)
}

//! From a saved file to the new behaviour, in a program that runs (`plugin-abi.md` §12): scripts, libraries,
//! and what two hundred versions of a library leave behind.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Instant;

use super::ms;
use crate::lab::Lab;
use pliant_tests::fixture_plugin;
use pliant_tests::table::{Table, Unit};

const SCRIPTS: u32 = 21;
const LIBRARIES: u32 = 200;

/// A program that is spoken to line by line.
struct Program {
    child: Child,
    stdin: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Program {
    fn start(lab: &Lab, log: &Path) -> Self {
        let log = log.display().to_string();
        let mut command = lab.command(&["--mode", "rpc", "--log-file", &log]);
        command.env("PLIANT_LOG", "pliant::reload=debug");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let stdin = child.stdin.take().expect("it is piped");
        let lines = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut program = Self {
            child,
            stdin,
            lines,
        };
        writeln!(program.stdin, "{{\"id\":\"s\",\"type\":\"get_state\"}}").expect("it reads");
        program.wait_for("\"get_state\"");
        program
    }

    fn wait_for(&mut self, words: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line).expect("it writes text");
            assert!(read > 0, "it ended while {words} was waited for");
            if line.contains(words) {
                return line;
            }
        }
    }

    fn resident_mib(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let digits: String = line
            .unwrap_or_default()
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        digits.parse::<f64>().unwrap_or(f64::NAN) / 1024.0
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Saves scripts and libraries, and waits for each to be live.
pub fn reload(lab: &Lab, table: &mut Table) {
    let agent = lab.agent_dir();
    let script = agent.join("extensions/bench.rhai");
    let library = agent.join("plugins").join(library_name());
    for file in [&script, &library] {
        fs::create_dir_all(file.parent().expect("a folder")).expect("it can be made");
    }
    let whole = fs::read(fixture_plugin("versioned")).expect("it was built");
    fs::write(&library, versioned(&whole, 0)).expect("it can be written");
    let log = lab.scratch("reload.log");
    let mut program = Program::start(lab, &log);
    // The first save tells that the watcher is there.
    save(&script, text(0).as_bytes());
    program.wait_for("resources_changed");

    let mut taken = Vec::new();
    for version in 1..=SCRIPTS {
        let begun = Instant::now();
        save(&script, text(version).as_bytes());
        program.wait_for("resources_changed");
        taken.push(ms(begun.elapsed()));
    }
    table.row("script saved, to live", Unit::Ms, taken, 60.0);

    let before = program.resident_mib();
    let mut taken = Vec::new();
    for version in 1..=LIBRARIES {
        let bytes = versioned(&whole, version);
        let begun = Instant::now();
        save(&library, &bytes);
        program.wait_for("resources_changed");
        taken.push(ms(begun.elapsed()));
    }
    let after = program.resident_mib();
    let tenth = taken.len() / 10;
    let mean = |times: &[f64]| {
        times.iter().sum::<f64>() / f64::from(u32::try_from(times.len()).unwrap_or(1))
    };
    let growth = mean(&taken[taken.len() - tenth..]) / mean(&taken[..tenth]);
    table.row("library built, to live", Unit::Ms, taken, 150.0);
    table.row(
        "the same, last of 200 against the first",
        Unit::Times,
        [growth],
        1.2,
    );
    let each = (after - before) / f64::from(LIBRARIES);
    table.row(
        "resident memory, each retired generation",
        Unit::Mib,
        [each],
        1.0,
    );
    table.row(
        "resident memory, 200 of them",
        Unit::Mib,
        [after - before],
        200.0,
    );
    drop(program);
    let log = fs::read_to_string(&log).unwrap_or_default();
    let published = log.lines().filter(|line| line.contains("published"));
    let published = published.filter_map(|line| {
        let number = line.split("took_us=").nth(1)?;
        number.split(' ').next()?.parse::<f64>().ok()
    });
    table.row("publish", Unit::Us, published.collect::<Vec<_>>(), 1000.0);
    for file in [&script, &library] {
        let _ = fs::remove_file(file);
    }
}

fn library_name() -> PathBuf {
    use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
    PathBuf::from(format!("{DLL_PREFIX}pliant_versioned{DLL_SUFFIX}"))
}

fn text(version: u32) -> String {
    format!("register_command(\"v\", #{{ description: \"{version}\", run: |args, ctx| () }});")
}

/// As builds and editors do: beside it, then over it.
fn save(file: &Path, bytes: &[u8]) {
    let beside = file.with_file_name(".new");
    fs::write(&beside, bytes).expect("it can be written");
    fs::rename(&beside, file).expect("it can be renamed");
}

/// Another version of the fixture.
fn versioned(whole: &[u8], version: u32) -> Vec<u8> {
    let mark = b"pliant-version: ";
    let mut bytes = whole.to_vec();
    let places: Vec<usize> = bytes
        .windows(mark.len())
        .enumerate()
        .filter(|(_, window)| window == mark)
        .map(|(at, _)| at + mark.len())
        .collect();
    for at in places {
        bytes[at..at + 8].copy_from_slice(format!("{version:08}").as_bytes());
    }
    bytes
}

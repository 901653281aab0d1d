//! What a plugin author waits for after each edit. Only on demand: it builds in the developer's own
//! target folder.

use std::fs::File;
use std::process::Command;
use std::time::{Instant, SystemTime};

use pliant_tests::workspace;

use super::ms;
use crate::lab::Lab;
use pliant_tests::table::{Table, Unit};

const RUNS: usize = 3;

/// An edit of the tool `bash`, then `cargo build -p pliant-shell`.
pub fn build(lab: &Lab, table: &mut Table) {
    // What is out of date for another reason is not part of the edit.
    build_shell(lab);
    let edited = |_| {
        let source = File::options()
            .append(true)
            .open(workspace().join("plugins/shell/src/bash.rs"));
        let touched = source.and_then(|source| source.set_modified(SystemTime::now()));
        touched.expect("the source may be written");
        let start = Instant::now();
        build_shell(lab);
        ms(start.elapsed())
    };
    let taken: Vec<f64> = (0..RUNS).map(edited).collect();
    table.row("edited plugin, dev build", Unit::Ms, taken, 1000.0);
}

fn build_shell(lab: &Lab) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--quiet", "--locked", "-p", "pliant-shell"])
        .arg("--target-dir")
        .arg(&lab.target_dir)
        .current_dir(workspace())
        .env_clear();
    // What cargo tells a bench of its own package would look like a change to some build scripts.
    let kept = [
        "PATH",
        "HOME",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "RUSTUP_TOOLCHAIN",
        "RUSTFLAGS",
    ];
    for name in kept {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    let status = command.status().expect("cargo runs");
    assert!(status.success(), "pliant-shell does not build");
}
